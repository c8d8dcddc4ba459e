//! The directory `/run/zramd/work`: what `zramd-worker` says about its work, and what it was asked for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{files, lock};
use crate::{Errno, HostError};

/// The directory.
pub const DIRECTORY: &str = "/run/zramd/work";

/// The file of a work.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.json")
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
    format!("{DIRECTORY}/{name}.words")
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

fn lock_file(name: &str) -> String {
    format!(".{name}.lock")
}

/// Takes the right to do a work, which one process at a time has as long as it keeps the value. Nothing when another has it.
pub fn take(root: &Path, name: &str) -> Result<Option<OwnedFd>, HostError> {
    let directory = files::below(root, DIRECTORY);
    let name = lock_file(name);
    loop {
        fs::create_dir_all(&directory).map_err(|error| HostError::io(DIRECTORY, "create", &error))?;
        let taken = fs::File::open(&directory)
            .map_err(|error| HostError::io(DIRECTORY, "open", &error))
            .and_then(|directory| lock::try_take(directory, &name, &format!("{DIRECTORY}/{name}")));
        match taken {
            // Its last owner has removed the directory.
            Err(error) if error.is(Errno::NOENT) => {}
            taken => return taken,
        }
    }
}

/// Gives the right back, and removes its file.
pub fn give_up(root: &Path, name: &str, right: OwnedFd) {
    if let Ok(directory) = fs::File::open(files::below(root, DIRECTORY)) {
        lock::remove(directory, &lock_file(name));
        // It stays while something is in it.
        fs::remove_dir(files::below(root, DIRECTORY)).ok();
    }
    drop(right);
}
