//! The configuration files of other programs: read as they are, links not followed, and ours written beside them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::below;
use crate::logic::import::files::{Content, Found};

/// Those of the main files that exist below `root`.
pub fn mains(root: &Path, paths: &[&str]) -> Vec<Found> {
    paths.iter().enumerate().filter_map(|(index, path)| found(root, index, PathBuf::from(path))).collect()
}

/// Everything in the folders of drop-ins below `root`.
pub fn drop_ins(root: &Path, folders: &[&str]) -> Vec<Found> {
    let mut all = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        let Ok(entries) = fs::read_dir(below(root, folder)) else { continue };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        all.extend(names.filter_map(|name| found(root, index, Path::new(folder).join(name))));
    }
    all
}

/// `path` is as seen from inside `root`.
fn found(root: &Path, index: usize, path: PathBuf) -> Option<Found> {
    let real = below(root, path.to_str()?);
    let kind = fs::symlink_metadata(&real).ok()?;
    let text = || fs::read_to_string(&real);
    let content = if kind.is_symlink() {
        let target = fs::read_link(&real).ok()?.to_string_lossy().into_owned();
        // A link to /dev/null reads as empty, one that leads nowhere not at all.
        Content::Link { target, text: text().ok() }
    } else {
        match text() {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Unreadable(error.to_string()),
        }
    };
    Some(Found { root: index, path, content })
}

/// Writes a new file, with the folders it needs; one that is there is an error, and stays as it is.
pub fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a configuration is worse than none.
        fs::remove_file(path).ok();
    }
    written
}
