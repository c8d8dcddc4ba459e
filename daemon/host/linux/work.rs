//! The folder `/run/zramd/work`: what `zramd-worker` says about its work, and what it was asked for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::files;
use crate::host::HostError;

/// The folder.
pub const FOLDER: &str = "/run/zramd/work";

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
pub fn take(root: &Path, name: &str) -> Result<Option<OwnedFd>, HostError> {
    let shown = format!("{FOLDER}/.{name}.lock");
    let path = files::below(root, &shown);
    fs::create_dir_all(files::below(root, FOLDER))
        .map_err(|error| HostError::io(FOLDER, "create", &error))?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| HostError::new(shown.as_str(), "open", errno))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(HostError::new(shown, "lock", errno)),
    }
}

/// Gives the right back for good. Only where taking it is serialised by another lock: the file goes away, and whoever has
/// it open would lock what nobody else can find.
pub fn give_up(root: &Path, name: &str, lock: OwnedFd) {
    // An empty file or folder that stays harms nobody.
    fs::remove_file(files::below(root, &format!("{FOLDER}/.{name}.lock"))).ok();
    fs::remove_dir(files::below(root, FOLDER)).ok();
    drop(lock);
}
