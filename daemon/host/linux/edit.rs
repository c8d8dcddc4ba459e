//! Edits of drop-ins: lasting ones in `/etc`, and those until the next boot in `/run`.

use std::fs;
use std::io::ErrorKind as Io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use super::files::{below, read_text};
use super::ramdisk::{Calls, OVERLAY, RAMFS, Subject, TMPFS};
use super::store;
use crate::{Errno, HostError};
use logic::config::edit::Edit;
use logic::config::lasting::{FILE, Transient};
use logic::error::{Error, ErrorKind};

/// The text of the drop-in; `None` if it does not exist.
///
/// # Errors
///
/// Also for a symbolic link: replacing it would leave the file unchanged to which it leads.
pub fn read(root: &Path, path: &str) -> Result<Option<String>, Error> {
    let failed = |error: std::io::Error| Error::from(HostError::io(path, "read", &error));
    let file = below(root, path);
    match fs::symlink_metadata(&file) {
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        found if found.as_ref().is_ok_and(fs::Metadata::is_file) => {}
        Ok(_) => {
            let message = format!("{path} is not a regular file; change what it leads to, or remove it");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Err(error) => return Err(failed(error)),
    }
    fs::File::open(file).and_then(read_text).map(Some).map_err(failed)
}

/// Whether a lasting change would not last, or be refused for all users.
pub fn transient(root: &Path) -> Option<Transient> {
    let drop_in = below(root, FILE);
    let place = drop_in.ancestors().skip(1).find(|place| place.is_dir())?;
    let is_read_only =
        rustix::fs::statvfs(place).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        return Some(Transient::ReadOnly);
    }
    let calls = Calls::new();
    let magic = calls.open_directory(place).and_then(|place| calls.file_system(place.as_fd())).ok()?.magic;
    let is_in_memory = match magic {
        TMPFS | RAMFS => true,
        // What is below an overlay is not visible.
        OVERLAY => {
            super::files::cmdline(root).split_whitespace().any(|word| word == "systemd.volatile=overlay")
        }
        _ => false,
    };
    is_in_memory.then_some(Transient::InMemory)
}

/// Writes an edit atomically, if the drop-in still has the text from before; it is on disk afterwards. Returns whether anything was
/// written: not if the drop-in has the new text already.
///
/// # Errors
///
/// [`ErrorKind::Busy`] if another program has changed the drop-in.
pub fn write(calls: &Calls, root: &Path, edit: &Edit) -> Result<bool, Error> {
    let path = &edit.path;
    if edit.before == edit.after {
        return Ok(false);
    }
    let lock = store::lock(root)?;
    let done = match read(root, path) {
        Ok(found) if found == edit.after => Ok(false),
        Ok(found) if found == edit.before => {
            replace(calls, root, path, edit.after.as_deref()).map(|()| true).map_err(explained)
        }
        Ok(_) => {
            let message = format!("{path} was changed by another program meanwhile; try again");
            Err(Error::new(ErrorKind::Busy, message))
        }
        Err(error) => Err(error),
    };
    store::unlock(root, lock);
    done
}

fn replace(calls: &Calls, root: &Path, path: &str, text: Option<&str>) -> Result<(), HostError> {
    let at = |operation: &'static str| move |errno: Errno| HostError::new(path, operation, errno);
    let Some((parent, name)) = path.rsplit_once('/') else { return Err(at("write")(Errno::INVAL)) };
    let parent = below(root, parent);
    calls.make_directories(&parent, 0o755).map_err(at("create the directory of"))?;
    let directory = calls.open_directory(&parent).map_err(at("open the directory of"))?;
    let directory = directory.as_fd();
    let Some(text) = text else {
        calls.remove(directory, name.as_bytes(), false).map_err(at("remove"))?;
        calls.sync(directory).map_err(at("sync the directory of"))?;
        if path.starts_with("/run/") {
            // The directory stays while it holds other drop-ins.
            fs::remove_dir(parent).ok();
        }
        return Ok(());
    };
    let partial = format!(".{name}.new");
    // Left behind by an interrupted change.
    match calls.remove(directory, partial.as_bytes(), false) {
        Err(errno) if errno != Errno::NOENT => return Err(at("write")(errno)),
        _ => {}
    }
    let file = calls.create(directory, partial.as_bytes(), 0o644).map_err(at("create"))?;
    let written = || {
        // All users may read the configuration, whatever the umask is.
        calls.set_mode(Subject::Open(file.as_fd()), 0o644).map_err(at("set the mode of"))?;
        calls.write_all(file.as_fd(), text.as_bytes()).map_err(at("write"))?;
        calls.sync(file.as_fd()).map_err(at("sync"))?;
        calls.rename(directory, &partial, name, false).map_err(at("replace"))
    };
    let done = written();
    if done.is_err() {
        // If this fails too, the next change removes it.
        calls.remove(directory, partial.as_bytes(), false).ok();
    }
    done?;
    calls.sync(directory).map_err(at("sync the directory of"))
}

/// Adds a remedy where it is known.
pub fn explained(error: HostError) -> Error {
    let remedy = match error.errno() {
        Some(Errno::ROFS) if error.object == FILE => {
            "; a lasting change needs a writable /etc/zramd, `zramdctl set --runtime` overrides a value until the next boot; a merged confext makes /etc read-only"
        }
        Some(Errno::NOSPC) => "; free some space, and try again",
        Some(Errno::ACCES | Errno::PERM) => "; only root can change the configuration",
        _ => "",
    };
    let message = format!("{error}{remedy}");
    Error::new(Error::from(error).kind, message)
}
