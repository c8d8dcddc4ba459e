//! Contents of files that every user may read.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::files::fill;

/// Maximum bytes of one file, so that a sample contains many files.
const MOST_OF_FILE: usize = 64 << 10;
/// Others may list a directory and reach what is in it.
const OPEN_DIRECTORY: u32 = 0o005;
/// Others may read a file.
const READABLE: u32 = 0o004;

/// Fills `data` with the beginnings of regular files below `directory`, sorted by name, and returns the number of bytes.
/// Only files that every user may read: all directories from the root on have to be open to others, and links are not
/// followed.
pub fn read_below(directory: &Path, data: &mut [u8]) -> usize {
    if !directory.ancestors().skip(1).all(is_open_directory) {
        return 0;
    }
    let mut filled = 0;
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if filled == data.len() {
            break;
        }
        if is_open_directory(&path) {
            let entries = fs::read_dir(&path).into_iter().flatten();
            let mut inside: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            left.extend(inside);
        } else if let Some(file) = open(&path) {
            let most = (data.len() - filled).min(MOST_OF_FILE);
            // A file with a read error is left out.
            filled += fill(file, &mut data[filled..filled + most]).unwrap_or(0);
        }
    }
    filled
}

fn is_open_directory(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.mode() & OPEN_DIRECTORY == OPEN_DIRECTORY)
}

/// Opens a regular file that others may read.
fn open(path: &Path) -> Option<File> {
    let is_public = |metadata: fs::Metadata| metadata.is_file() && metadata.mode() & READABLE == READABLE;
    // Opening a device can have side effects, so the path is checked before, and the open file again.
    fs::symlink_metadata(path).ok().filter(|metadata| is_public(metadata.clone()))?;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    is_public(file.metadata().ok()?).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir_in("/tmp").unwrap();
        chmod(place.path(), 0o755);
        place
    }

    fn write(path: &Path, data: &[u8], mode: u32) {
        fs::write(path, data).unwrap();
        chmod(path, mode);
    }

    #[test]
    fn a_sample_has_the_beginnings_of_many_files() {
        let place = place();
        fs::create_dir(place.path().join("b")).unwrap();
        chmod(&place.path().join("b"), 0o755);
        write(&place.path().join("b/large"), &vec![2; 2 * MOST_OF_FILE], 0o644);
        write(&place.path().join("a"), &[1; 10], 0o644);
        write(&place.path().join("c"), &[3; 10], 0o644);
        let mut data = vec![0; MOST_OF_FILE + 15];
        assert_eq!(read_below(place.path(), &mut data), data.len());
        assert_eq!((data[9], data[10], data[MOST_OF_FILE + 10]), (1, 2, 3));
        assert_eq!(read_below(place.path(), &mut vec![0; 200_000]), MOST_OF_FILE + 20);
    }

    /// Also as root, which could read all of them.
    #[test]
    fn private_files_are_not_read() {
        let place = place();
        let path = |name: &str| place.path().join(name);
        write(&path("public"), b"public", 0o644);
        write(&path("secret"), b"secret", 0o640);
        for (directory, mode) in [("closed", 0o750), ("unlisted", 0o711), ("unreachable", 0o744)] {
            fs::create_dir(path(directory)).unwrap();
            write(&path(directory).join("file"), b"secret", 0o644);
            chmod(&path(directory), mode);
        }
        std::os::unix::fs::symlink(path("closed/file"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("closed"), path("linked")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o666.into()).unwrap();
        let mut data = [0; 100];
        assert_eq!(read_below(place.path(), &mut data), 6);
        assert_eq!(&data[..6], b"public");
        chmod(place.path(), 0o700);
        assert_eq!(read_below(place.path(), &mut data), 0);
        let inside = path("open");
        fs::create_dir(&inside).unwrap();
        chmod(&inside, 0o755);
        write(&inside.join("file"), b"secret", 0o644);
        assert_eq!(read_below(&inside, &mut data), 0, "a directory above it is closed");
    }
}
