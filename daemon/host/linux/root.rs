//! Files below a directory that is treated as `/`, and that no link leads out of.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::files::{describe, must_be_regular, read_text};
use logic::path_kind::Content;

/// A directory that is treated as `/`.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// Opens the directory.
    pub fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// The names in a directory, none if it is missing. The error says why it cannot be read.
    pub fn names(&self, directory: &str) -> Result<Vec<String>, String> {
        match self.entries(directory) {
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            entries => entries.map_err(|error| describe(&error)),
        }
    }

    fn entries(&self, directory: &str) -> io::Result<Vec<String>> {
        let directory = self.at(Path::new(directory), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Opens a path as seen from inside the root.
    fn at(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from(0o644) } else { Mode::empty() };
        let flags = flags | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(&self.0, path, flags, mode, ResolveFlags::IN_ROOT)?)
    }

    /// What is at a path; `None` if it is missing.
    pub fn content(&self, path: &Path) -> Option<Content> {
        let itself = match self.at(path, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(itself) => itself,
            Err(error) if is_missing(&error) => return None,
            Err(error) => return Some(Content::Unreadable(describe(&error))),
        };
        let target = link_target(itself.as_fd());
        // A link to /dev/null is empty, also if the root has no /dev.
        let is_null = target.as_ref().is_some_and(|target| target.ends_with("/dev/null"));
        let text = if is_null { Ok(String::new()) } else { self.text(path) };
        Some(match (target, text) {
            (Some(target), Ok(text)) => Content::Link { target, text: Some(text) },
            (Some(target), Err(error)) if is_missing(&error) => Content::Link { target, text: None },
            (None, Ok(text)) => Content::Text(text),
            (_, Err(error)) => Content::Unreadable(describe(&error)),
        })
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        must_be_regular(&File::from(self.at(path, OFlags::PATH)?).metadata()?)?;
        let file = File::from(self.at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        must_be_regular(&file.metadata()?)?;
        read_text(file)
    }

    /// Writes a new file, with the directories it needs. An existing one is an error ([`io::ErrorKind::AlreadyExists`]) and
    /// is not changed.
    pub fn create(&self, path: &Path, text: &str) -> io::Result<()> {
        let (directory, name) = match (path.parent(), path.file_name()) {
            (Some(directory), Some(name)) => (self.directory(directory)?, name),
            _ => return Err(Errno::INVAL.into()),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&directory, name, flags, Mode::from(0o644))?);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a configuration is worse than none.
            rustix::fs::unlinkat(&directory, name, AtFlags::empty()).ok();
        }
        written
    }

    /// Opens a directory, creating it and its parents.
    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        if path.as_os_str().is_empty() {
            return self.0.try_clone();
        }
        let open = || self.at(path, OFlags::RDONLY | OFlags::DIRECTORY);
        match (open(), path.parent(), path.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                match rustix::fs::mkdirat(self.directory(parent)?, name, Mode::from(0o755)) {
                    // A dangling link, or another program created it first.
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(error) => Err(error.into()),
                }
            }
            (opened, ..) => opened,
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Where a link points, if it is one.
fn link_target(file: BorrowedFd<'_>) -> Option<String> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file).ok()?.st_mode);
    if kind != FileType::Symlink {
        return None;
    }
    Some(rustix::fs::readlinkat(file, "", Vec::new()).ok()?.to_string_lossy().into_owned())
}
