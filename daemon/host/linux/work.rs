//! The directory `/run/zramd/work`: state and arguments of `zramd-worker`.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{files, lock};
use crate::{Errno, HostError};

pub const DIRECTORY: &str = "/run/zramd/work";

/// Path of the state file of a work.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.json")
}

/// The text of its state file.
pub fn read(root: &Path, name: &str) -> Option<String> {
    fs::read_to_string(files::below(root, &path(name))).ok()
}

/// Replaces its state file atomically.
pub fn write(root: &Path, name: &str, text: &str) -> Result<(), String> {
    files::replace(root, &path(name), Some(text))
}

fn words_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.words")
}

/// Stores the arguments of a work that PID 1 starts, because it cannot pass them on; `None` removes them.
pub fn ask(root: &Path, name: &str, words: Option<&[String]>) -> Result<(), String> {
    let text = words.map(|words| words.join("\0"));
    files::replace(root, &words_path(name), text.as_deref())
}

/// Takes the stored arguments of a work; empty if there are none.
pub fn asked(root: &Path, name: &str) -> Result<Vec<String>, String> {
    let words = files::read_optional(root, &words_path(name))?;
    ask(root, name, None)?;
    Ok(words.split_terminator('\0').map(str::to_owned).collect())
}

/// Whether there are stored arguments that no worker has taken.
pub fn is_asked(root: &Path, name: &str) -> bool {
    files::below(root, &words_path(name)).exists()
}

fn lock_file(name: &str) -> String {
    format!(".{name}.lock")
}

/// Locks a work for as long as the value lives; `None` if another process has it.
pub fn take(root: &Path, name: &str) -> Result<Option<OwnedFd>, HostError> {
    let directory = files::below(root, DIRECTORY);
    let name = lock_file(name);
    loop {
        fs::create_dir_all(&directory).map_err(|error| HostError::io(DIRECTORY, "create", &error))?;
        let taken = fs::File::open(&directory)
            .map_err(|error| HostError::io(DIRECTORY, "open", &error))
            .and_then(|directory| lock::try_take(directory, &name, &format!("{DIRECTORY}/{name}")));
        match taken {
            // Its last owner removed the directory.
            Err(error) if error.is(Errno::NOENT) => {}
            taken => return taken,
        }
    }
}

/// Releases the lock and removes its file.
pub fn give_up(root: &Path, name: &str, right: OwnedFd) {
    if let Ok(directory) = fs::File::open(files::below(root, DIRECTORY)) {
        lock::remove(directory, &lock_file(name));
        // The directory stays while it has files.
        fs::remove_dir(files::below(root, DIRECTORY)).ok();
    }
    drop(right);
}
