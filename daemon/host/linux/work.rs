//! The directory `/run/zramd/work`: state and orders of `zramd-worker`.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{files, lock, log};
use crate::{Errno, HostError};
use logic::log::Context;
use logic::order::Order;

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

/// Path of the order of a work.
pub fn order_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.order")
}

/// Writes the order of a work that PID 1 starts, because it cannot pass it on; `None` removes it.
pub fn put_order(root: &Path, name: &str, order: Option<&Order>) -> Result<(), String> {
    let path = order_path(name);
    let text = order.map(serde_json::to_string).transpose().map_err(|error| format!("{path}: {error}"))?;
    // One line each.
    let text = text.map(|order| format!("{order}\n{}", log::context().json()));
    files::replace(root, &path, text.as_deref())
}

/// Takes the order of a work, so that it is carried out once, with what the program that wrote it passes on for messages; `None` if there is
/// none.
pub fn take_order(root: &Path, name: &str) -> Result<Option<(String, Context)>, String> {
    let mut text = files::read_optional(root, &order_path(name))?;
    put_order(root, name, None)?;
    let context = text.find('\n').map(|end| Context::parse(&text.split_off(end))).unwrap_or_default();
    Ok((!text.is_empty()).then_some((text, context)))
}

/// Whether there is an order that no worker has taken.
pub fn has_order(root: &Path, name: &str) -> bool {
    files::below(root, &order_path(name)).exists()
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
