//! The drop-in of lasting changes in `/etc`.

use std::fs;
use std::io::ErrorKind as Io;
use std::os::fd::AsFd;
use std::path::Path;

use super::files::{below, read_text};
use super::ramdisk::{Calls, Subject};
use super::store;
use crate::{Errno, HostError};
use logic::config::lasting::{DIRECTORY, FILE, NAME, Rewrite};
use logic::error::{Error, ErrorKind};

/// Name of the new file until it is complete.
const PARTIAL: &str = ".99-zramdctl.toml.new";

/// The text of the drop-in; `None` if it does not exist.
///
/// # Errors
///
/// Also for a symbolic link: replacing it would leave the file unchanged to which it leads.
pub fn read(root: &Path) -> Result<Option<String>, Error> {
    let path = below(root, FILE);
    let failed = |error: std::io::Error| Error::from(HostError::io(FILE, "read", &error));
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        found if found.as_ref().is_ok_and(fs::Metadata::is_file) => {}
        Ok(_) => {
            let message = format!("{FILE} is not a regular file; change what it leads to, or remove it");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Err(error) => return Err(failed(error)),
    }
    fs::File::open(path).and_then(read_text).map(Some).map_err(failed)
}

/// Replaces the drop-in atomically, if it still has the text from before; it is on disk afterwards.
///
/// # Errors
///
/// [`ErrorKind::Busy`] if another program has changed the drop-in.
pub fn replace(calls: &Calls, root: &Path, Rewrite { before, after }: &Rewrite) -> Result<(), Error> {
    if before == after {
        return Ok(());
    }
    let lock = store::lock(root)?;
    let done = match read(root) {
        Ok(found) if found == *before => write(calls, root, after.as_deref()).map_err(explained),
        Ok(_) => {
            let message = format!("{FILE} was changed by another program meanwhile; try again");
            Err(Error::new(ErrorKind::Busy, message))
        }
        Err(error) => Err(error),
    };
    store::unlock(root, lock);
    done
}

fn write(calls: &Calls, root: &Path, text: Option<&str>) -> Result<(), HostError> {
    let at = |operation: &'static str| move |errno: Errno| HostError::new(FILE, operation, errno);
    let path = below(root, DIRECTORY);
    calls.make_directories(&path, 0o755).map_err(at("create the directory of"))?;
    let directory = calls.open_directory(&path).map_err(at("open the directory of"))?;
    let directory = directory.as_fd();
    let Some(text) = text else {
        calls.remove(directory, NAME.as_bytes(), false).map_err(at("remove"))?;
        return calls.sync(directory).map_err(at("sync the directory of"));
    };
    // Left behind by an interrupted change.
    match calls.remove(directory, PARTIAL.as_bytes(), false) {
        Err(errno) if errno != Errno::NOENT => return Err(at("write")(errno)),
        _ => {}
    }
    let file = calls.create(directory, PARTIAL.as_bytes(), 0o644).map_err(at("create"))?;
    let written = || {
        // All users may read the configuration, whatever the umask is.
        calls.set_mode(Subject::Open(file.as_fd()), 0o644).map_err(at("set the mode of"))?;
        calls.write_all(file.as_fd(), text.as_bytes()).map_err(at("write"))?;
        calls.sync(file.as_fd()).map_err(at("sync"))?;
        calls.rename(directory, PARTIAL, NAME, false).map_err(at("replace"))
    };
    let done = written();
    if done.is_err() {
        // If this fails too, the next change removes it.
        calls.remove(directory, PARTIAL.as_bytes(), false).ok();
    }
    done?;
    calls.sync(directory).map_err(at("sync the directory of"))
}

/// Adds a remedy where it is known.
pub fn explained(error: HostError) -> Error {
    let remedy = match error.errno() {
        Some(Errno::ROFS) => {
            "; a lasting change needs a writable /etc/zramd, `zramdctl set --runtime` overrides a value until the next boot"
        }
        Some(Errno::NOSPC) => "; free some space, and try again",
        Some(Errno::ACCES | Errno::PERM) => "; only root can change the configuration",
        _ => "",
    };
    let message = format!("{error}{remedy}");
    Error::new(Error::from(error).kind, message)
}
