//! Detects changes of a tree: a digest of its metadata, without reading contents.

use super::entry::{Meta, Time};

/// Digest of the metadata seen by a walk. If two digests differ, so do the trees. If they are equal, so are the trees
/// as far as the kernel tells: the change time (`ctime`) of a file cannot be set by programs.
///
/// The exception are writes through a shared mapping to pages that are already writable: only the first write, which
/// causes a page fault, updates the time. ext4, xfs and btrfs make pages read-only again when they write them to disk,
/// so `syncfs` before the walk is sufficient. tmpfs never does, and even maps pages writable that were only read:
/// there, equal digests prove nothing, and contents must be compared.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    hash: blake3::Hasher,
    newest: Time,
}

impl Fingerprint {
    /// Adds a file in the directory of this number. The order must depend on names only.
    pub fn add(&mut self, directory: usize, name: &[u8], meta: &Meta) {
        let mut bytes = [0; 72];
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let numbers = [
            meta.size,
            meta.mtime.seconds.cast_unsigned(),
            meta.ctime.seconds.cast_unsigned(),
            pair(meta.mtime.nanoseconds, meta.ctime.nanoseconds),
            pair(meta.mode, meta.links),
            pair(meta.uid, meta.gid),
            pair(meta.special.0, meta.special.1),
            meta.inode,
            (meta.kind as u64) << 56 | (directory as u64) << 16 | name.len() as u64,
        ];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.hash.update(&bytes);
        self.hash.update(name);
        self.newest = self.newest.max(meta.ctime);
    }

    /// Adds an attribute of the last file.
    pub fn add_attribute(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, value] {
            self.hash.update(&(part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    /// The digest. `None` if a file changed so shortly before the walk that a later change could have the same time:
    /// then the next save cannot rely on it.
    pub fn finish(&self, began: Time, tick: Time) -> Option<String> {
        let settled = self.newest.saturating_add(tick) < began;
        settled.then(|| self.hash.finalize().to_hex().to_string())
    }

    /// The digest, to compare two walks that follow each other.
    pub fn text(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }
}

impl Time {
    /// Adds a time span.
    pub fn saturating_add(self, other: Time) -> Time {
        let nanoseconds = self.nanoseconds + other.nanoseconds;
        let seconds = self.seconds.saturating_add(other.seconds);
        Time {
            seconds: seconds.saturating_add(i64::from(nanoseconds / 1_000_000_000)),
            nanoseconds: nanoseconds % 1_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::entry::Kind;
    use crate::ramdisk::fingerprint::*;

    fn meta() -> Meta {
        let at = |seconds| Time { seconds, nanoseconds: 7 };
        Meta {
            kind: Kind::File,
            mode: 0o644,
            uid: 1,
            gid: 2,
            size: 3,
            occupied: 4096,
            mtime: at(100),
            ctime: at(101),
            born: at(99),
            links: 1,
            inode: 9,
            device: (0, 1),
            special: (0, 0),
            is_locked: false,
            mount: 1,
        }
    }

    fn text(directory: usize, name: &str, meta: &Meta) -> String {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(directory, name.as_bytes(), meta);
        fingerprint.text()
    }

    #[test]
    fn whatever_changes_changes_it() {
        let first = meta();
        let changed = [
            Meta { kind: Kind::Fifo, ..first },
            Meta { mode: 0o600, ..first },
            Meta { uid: 0, ..first },
            Meta { gid: 0, ..first },
            Meta { size: 4, ..first },
            Meta { mtime: Time { seconds: 100, nanoseconds: 8 }, ..first },
            Meta { ctime: Time { seconds: 101, nanoseconds: 8 }, ..first },
            Meta { links: 2, ..first },
            Meta { inode: 10, ..first },
            Meta { special: (0, 1), ..first },
            Meta { special: (1, 0), ..first },
        ];
        assert_eq!(text(1, "b", &first), text(1, "b", &first));
        for other in changed {
            assert_ne!(text(1, "b", &first), text(1, "b", &other), "{other:?}");
        }
        assert_ne!(text(1, "b", &first), text(2, "b", &first));
    }

    #[test]
    fn what_has_just_changed_is_not_relied_on() {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(0, b"a", &meta());
        let tick = Time { seconds: 0, nanoseconds: 4_000_000 };
        let began = |nanoseconds| Time { seconds: 101, nanoseconds };
        assert_eq!(fingerprint.finish(began(4_000_007), tick), None);
        assert!(fingerprint.finish(began(4_000_008), tick).is_some());
        // The clock was set back.
        assert_eq!(fingerprint.finish(Time::default(), tick), None);
    }
}
