//! The directory below which RAM disks are mounted before they appear at their mount points.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::HostError;
use logic::ramdisk::place::PLACES;

/// Its components below the root directory, with their modes: only root can enter the last one.
const PARTS: [(&str, Mode); 3] = [
    ("run", Mode::from_raw_mode(0o755)),
    ("zramd", Mode::from_raw_mode(0o755)),
    ("ramdisk", Mode::from_raw_mode(0o700)),
];

/// Creates [`PLACES`] below `root`, or sets its mode to 0700. Does not follow links.
///
/// # Errors
///
/// Also if it belongs to another user than ours.
pub fn make(root: &Path) -> Result<(), HostError> {
    let fail = |operation: &'static str| move |errno: Errno| HostError::new(PLACES, operation, errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(root, flags, Mode::empty()).map_err(fail("open"))?;
    for (name, mode) in PARTS {
        let made = match rustix::fs::mkdirat(&directory, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(fail("create")(errno)),
        };
        let opened = rustix::fs::openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
        directory = opened.map_err(fail("open"))?;
        if made {
            // Independent of the umask.
            rustix::fs::fchmod(&directory, mode).map_err(fail("set the mode of"))?;
        }
    }
    close_to_others(&directory).map_err(fail("set the mode of"))
}

fn close_to_others(directory: &OwnedFd) -> rustix::io::Result<()> {
    let stat = rustix::fs::fstat(directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if stat.st_mode & 0o7777 == 0o700 { Ok(()) } else { rustix::fs::fchmod(directory, Mode::RWXU) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_directory_is_created_or_closed_and_links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (root, places) = (directory.path(), directory.path().join("run/zramd/ramdisk"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let set_mode =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        make(root).unwrap();
        assert_eq!(mode(&places), 0o700);
        fs::create_dir(places.join("logs")).unwrap();
        set_mode(&places, 0o1777);
        make(root).unwrap();
        assert_eq!((mode(&places), places.join("logs").exists()), (0o700, true));

        let elsewhere = root.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        set_mode(&elsewhere, 0o755);
        fs::remove_dir_all(&places).unwrap();
        symlink(&elsewhere, &places).unwrap();
        make(root).unwrap_err();
        assert_eq!(mode(&elsewhere), 0o755);
    }
}
