//! The folder `/run/zramd/work`: what `zramd-worker` says about its work, and what it was asked for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::files;

/// The folder.
const FOLDER: &str = "/run/zramd/work";

/// The file of a work.
pub fn path(name: &str) -> String {
    format!("{FOLDER}/{name}.json")
}

/// What it says, if it is there.
pub fn read(root: &Path, name: &str) -> Option<String> {
    fs::read_to_string(files::below(root, &path(name))).ok()
}

/// Replaces it as a whole.
pub fn write(root: &Path, name: &str, text: &str) -> Result<(), String> {
    files::replace(root, &path(name), Some(text))
}

fn words_path(name: &str) -> String {
    format!("{FOLDER}/{name}.words")
}

/// Notes the words that a work is asked for with, where PID 1 starts it and cannot hand them on; nothing removes them.
pub fn ask(root: &Path, name: &str, words: Option<&[String]>) -> Result<(), String> {
    let text = words.map(|words| words.join("\0"));
    files::replace(root, &words_path(name), text.as_deref())
}

/// Takes the words that a work was asked for with; none when nobody asked for anything particular.
pub fn asked(root: &Path, name: &str) -> Result<Vec<String>, String> {
    let words = files::read_optional(root, &words_path(name))?;
    ask(root, name, None)?;
    Ok(words.split_terminator('\0').map(str::to_owned).collect())
}

/// Takes the right to do a work, which one process at a time has as long as it keeps the value. Nothing when another has it.
pub fn take(root: &Path, name: &str) -> Result<Option<OwnedFd>, String> {
    let path = files::below(root, &format!("{FOLDER}/.{name}.lock"));
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    fs::create_dir_all(files::below(root, FOLDER)).map_err(|error| failed(&error))?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| failed(&error))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}
