//! Whether anything of a tree has changed: a digest over what a walk sees, without reading contents.

use super::entry::{Meta, Time};

/// What a walk has seen so far. Two walks that end with another text saw another tree. With the same text it was the same as
/// far as the kernel tells: the time of the last change of anything of a file (`ctime`) cannot be set by programs.
///
/// What it cannot see is a write through a shared mapping to a page that may be written to already: only the first write, which
/// the kernel has to allow, changes the time. ext4, xfs and btrfs take that right away when they write the page to their disk,
/// so it is enough to have them do so before the walk (`syncfs`). A tmpfs never does, and lets a page that was only read be
/// written to, too: there the same text proves nothing, and the contents have to be compared.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    hash: blake3::Hasher,
    newest: Time,
}

impl Fingerprint {
    /// A file in the directory of this number, in an order that depends on nothing but names.
    pub fn add(&mut self, directory: usize, name: &[u8], meta: &Meta) {
        let mut bytes = [0; 72];
        let numbers = [
            meta.size,
            meta.mtime.seconds.cast_unsigned(),
            meta.ctime.seconds.cast_unsigned(),
            u64::from(meta.mtime.nanoseconds) << 32 | u64::from(meta.ctime.nanoseconds),
            u64::from(meta.mode) << 32 | u64::from(meta.links),
            u64::from(meta.uid) << 32 | u64::from(meta.gid),
            u64::from(meta.special.0) << 32 | u64::from(meta.special.1),
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

    /// An attribute of the file that was added last.
    pub fn add_attribute(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, value] {
            self.hash.update(&(part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    /// The digest. Nothing when a file changed so shortly before the walk began that a further change could carry the same
    /// time: then the next save does not rely on it.
    pub fn finish(&self, began: Time, tick: Time) -> Option<String> {
        let settled = self.newest.saturating_add(tick) < began;
        settled.then(|| self.hash.finalize().to_hex().to_string())
    }

    /// The digest, for comparing two walks of the same moment.
    pub fn text(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }
}

impl Time {
    /// This much later.
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
            Meta { mode: 0o600, ..first },
            Meta { uid: 0, ..first },
            Meta { gid: 0, ..first },
            Meta { size: 4, ..first },
            Meta { mtime: Time { seconds: 100, nanoseconds: 8 }, ..first },
            Meta { ctime: Time { seconds: 101, nanoseconds: 8 }, ..first },
            Meta { links: 2, ..first },
            Meta { inode: 10, ..first },
            Meta { special: (0, 1), ..first },
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
        // A clock that was set back.
        assert_eq!(fingerprint.finish(Time::default(), tick), None);
    }
}
