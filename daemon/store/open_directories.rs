//! Open directories along a path down a tree. Each is opened relative to its parent, so opening takes the same time at
//! any depth. The number of open directories is limited.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use host::Errno;
use host::linux::ramdisk::Calls;
use logic::ramdisk::directories::{Directories, TOP};

/// Maximum number of open directories.
const OPEN: usize = 64;

/// Open directories below a root, each inside the one before it.
#[derive(Debug)]
pub struct OpenDirectories<'a> {
    calls: &'a Calls,
    root: BorrowedFd<'a>,
    open: Vec<(usize, Arc<OwnedFd>)>,
}

impl<'a> OpenDirectories<'a> {
    /// Starts at the root.
    pub fn new(calls: &'a Calls, root: BorrowedFd<'a>) -> OpenDirectories<'a> {
        OpenDirectories { calls, root, open: Vec::new() }
    }

    /// Opens a directory. No component of its path may be a symbolic link or another mount.
    pub fn open(&mut self, directories: &Directories, wanted: usize) -> Result<Arc<OwnedFd>, Errno> {
        let mut from = wanted;
        // A directory has a higher number than its parent.
        loop {
            while self.open.last().is_some_and(|(number, _)| *number > from) {
                self.open.pop();
            }
            if from == TOP || self.open.last().is_some_and(|(number, _)| *number == from) {
                break;
            }
            from = directories.above(from).0;
        }
        let mut way = directories.way(from, wanted);
        if way.len() >= OPEN {
            // Directories far above are not needed soon.
            let below = way.split_off(way.len() - OPEN / 2);
            let names: Vec<&[u8]> = way.iter().map(|number| directories.above(*number).1).collect();
            let opened = self.calls.open_below(self.last(), &names.join(&b'/'))?;
            self.open.clear();
            self.open.extend(way.last().map(|number| (*number, Arc::new(opened))));
            way = below;
        }
        for number in way {
            let opened = self.calls.open_below(self.last(), directories.above(number).1)?;
            if self.open.len() >= OPEN {
                self.open.drain(..OPEN / 2);
            }
            self.open.push((number, Arc::new(opened)));
        }
        match self.open.last() {
            Some((_, opened)) => Ok(Arc::clone(opened)),
            None => Ok(Arc::new(self.calls.open_below(self.root, b"")?)),
        }
    }

    /// Closes a directory and everything below it: its number will be reused.
    pub fn forget(&mut self, number: usize) {
        while self.open.last().is_some_and(|(open, _)| *open >= number) {
            self.open.pop();
        }
    }

    fn last(&self) -> BorrowedFd<'_> {
        self.open.last().map_or(self.root, |(_, opened)| opened.as_fd())
    }
}
