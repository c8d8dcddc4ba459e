//! Files outside the trait: configuration in, generated units out.
//!
//! The pure commands (`plan`, `check`, `generate`) read below a root folder and never touch devices, so these are plain
//! functions rather than verbs of the host.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RawDir};

use crate::logic::config::locate::{self, Entry, EntryKind};
use crate::logic::config::problem::{Origin, Problem};
use crate::logic::unit_text::{Contents, UnitFile};

/// Files in the order of precedence, and what is wrong with the others.
pub type Sources = (Vec<(PathBuf, String)>, Vec<Problem>);

/// The text of a file below `root`; a missing one is empty.
pub fn read_optional(root: &Path, path: &str) -> Result<String, String> {
    let full = below(root, path);
    match fs::read_to_string(&full) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {error}", full.display())),
    }
}

/// The text of a small file of the kernel. Its size says nothing beforehand, so `read_to_string` would begin with 32 bytes.
pub(super) fn read_small(path: &Path) -> io::Result<String> {
    let file = fs::File::open(path)?;
    let mut bytes = Vec::with_capacity(4096);
    loop {
        match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) if bytes.len() == bytes.capacity() => bytes.reserve(bytes.len()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The configuration below `root`, in the order of precedence.
pub fn find_sources(root: &Path) -> Sources {
    let mut mains = Vec::new();
    let mut drop_ins = Vec::new();
    for (index, folder) in locate::ROOTS.iter().enumerate() {
        let folder = below(root, folder);
        mains.extend(entry(index, locate::MAIN, folder.join(locate::MAIN)));
        let Ok(found) = fs::read_dir(folder.join(locate::DROP_INS)) else { continue };
        for file in found.filter_map(Result::ok) {
            if let Ok(name) = file.file_name().into_string() {
                drop_ins.extend(entry(index, &name, file.path()));
            }
        }
    }
    locate::order(mains, drop_ins)
}

/// The configuration below `root`, or one file with the sections of the moment: naming a file does not hide those, because
/// whoever asked for them asked for them to last until the next boot.
pub fn sources(root: &Path, file: Option<&PathBuf>) -> Sources {
    let Some(file) = file else { return find_sources(root) };
    let mut paths = vec![file.clone()];
    paths.extend(overlays(root));
    read_sources(&paths)
}

/// Files that were named, as they are.
pub fn read_sources(paths: &[PathBuf]) -> Sources {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match fs::read_to_string(path) {
            Ok(text) => files.push((path.clone(), text)),
            Err(error) => {
                let origin = Origin { file: path.clone(), ..Origin::default() };
                problems
                    .push(Problem::error(origin, format!("this file cannot be read: {}", describe(&error))));
            }
        }
    }
    (files, problems)
}

/// An I/O error without the number that Rust adds.
pub fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => crate::host::Errno(number).to_string(),
        None => error.to_string(),
    }
}

fn entry(root: usize, name: &str, path: PathBuf) -> Option<Entry> {
    let kind = match fs::read_to_string(&path) {
        Ok(text) if text.is_empty() => EntryKind::Mask,
        Ok(text) => EntryKind::Text(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::symlink_metadata(&path).ok()?;
            EntryKind::Dangling
        }
        Err(error) => EntryKind::Unreadable(describe(&error)),
    };
    Some(Entry { root, name: name.to_owned(), path, kind })
}

/// The folder of sections that last until the next boot.
const OVERLAYS: &str = "run/zramd/zramd.toml.d";

/// The drop-ins of the moment, by name.
pub fn overlays(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join(OVERLAYS)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(locate::is_drop_in));
    paths.sort();
    paths
}

/// The text of a drop-in of the moment, if there is one.
pub fn read_overlay(root: &Path, name: &str) -> Option<String> {
    fs::read_to_string(root.join(OVERLAYS).join(name)).ok()
}

/// Writes a drop-in of the moment, or removes it, as a whole.
pub fn write_overlay(root: &Path, name: &str, text: Option<&str>) -> Result<(), String> {
    replace(root, &format!("/{OVERLAYS}/{name}"), text)?;
    if text.is_none() {
        // It stays while other drop-ins are in it, or when somebody else has removed it.
        fs::remove_dir(root.join(OVERLAYS)).ok();
    }
    Ok(())
}

/// Replaces a file below `/run` as a whole, creating its folder, or removes it.
pub fn replace(root: &Path, path: &str, text: Option<&str>) -> Result<(), String> {
    let path = below(root, path);
    let written = match (text, path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(text), Some(folder), Some(name)) => fs::create_dir_all(folder).and_then(|()| {
            let partial = folder.join(format!(".{name}.new"));
            fs::write(&partial, text)?;
            fs::rename(&partial, &path)
        }),
        _ => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    written.map_err(|error| format!("{}: {}", path.display(), describe(&error)))
}

/// Whether a folder has a file with such a name that is neither hidden nor empty, as a link to `/dev/null` is.
pub fn has_file(folder: &Path, suffix: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(folder, flags, Mode::empty()) else { return false };
    // Not on the heap: the generator has little.
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(&opened, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        let fits = !name.starts_with(b".") && name.ends_with(suffix.as_bytes());
        let stat = || rustix::fs::statat(&opened, entry.file_name(), AtFlags::empty());
        if fits && stat().is_ok_and(|stat| stat.st_size > 0) {
            return true;
        }
    }
    false
}

/// Whether a folder is there and has something in it.
pub fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// `path` below `root`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Writes units below `folder`, creating the folders they need.
pub fn write_units(folder: &Path, files: &[UnitFile]) -> Result<(), String> {
    for file in files {
        let path = folder.join(&file.path);
        write_unit(&path, &file.contents).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn write_unit(path: &Path, contents: &Contents) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match contents {
        Contents::Text(text) => fs::write(path, text),
        Contents::Link(target) => {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            std::os::unix::fs::symlink(target, path)
        }
    }
}

/// Folders in which systemd looks for units, highest first.
const UNIT_FOLDERS: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"];

/// Whether some `*.wants` or `*.requires` folder has a link to `zramd.service`, and the service is not masked.
///
/// The same rule as systemd's own generators use for "is it enabled": the links are what `systemctl enable` makes.
pub fn is_enabled(root: &Path) -> bool {
    let masked = UNIT_FOLDERS.iter().any(|folder| {
        let unit = root.join(folder).join("zramd.service");
        fs::read_link(unit).is_ok_and(|target| target == Path::new("/dev/null"))
    });
    !masked && UNIT_FOLDERS.iter().any(|folder| is_wanted_in(&root.join(folder)))
}

fn is_wanted_in(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        (name.ends_with(".wants") || name.ends_with(".requires"))
            && fs::symlink_metadata(entry.path().join("zramd.service")).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_say_nothing_are_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(!has_file(&folder.join("gone"), ".conf"));
        for (name, text) in [(".a.conf", "x"), ("a.txt", "x"), ("b.conf", "")] {
            fs::write(folder.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/dev/null", folder.join("c.conf")).unwrap();
        std::os::unix::fs::symlink("/gone", folder.join("d.conf")).unwrap();
        assert!(!has_file(folder, ".conf"));
        fs::write(folder.join("e.conf"), "x").unwrap();
        assert!(has_file(folder, ".conf"));
    }
}
