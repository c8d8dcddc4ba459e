//! Metadata of files, as the kernel tells it.

/// A time: seconds since 1970 (negative for earlier times), and nanoseconds to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds after them, below 1 000 000 000.
    pub nanoseconds: u32,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Regular file.
    File,
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Character device.
    Character,
    /// Block device.
    Block,
    /// Socket: not kept, because its program creates it anew.
    Socket,
    /// Unknown to this version.
    Unknown,
}

/// Metadata from statx(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Type.
    pub kind: Kind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Bytes allocated; less than `size` for a file with holes.
    pub occupied: u64,
    /// Modification time.
    pub mtime: Time,
    /// Change time.
    pub ctime: Time,
    /// Creation time, if known.
    pub born: Time,
    /// Number of hard links.
    pub links: u32,
    /// Inode number.
    pub inode: u64,
    /// Device of the file system.
    pub device: (u32, u32),
    /// Device number of a device node.
    pub special: (u32, u32),
    /// ID of the mount.
    pub mount: u64,
    /// Whether it is immutable or append-only (chattr(1)).
    pub is_locked: bool,
}

impl Meta {
    /// Whether contents read between these two calls of statx(2) are consistent.
    pub fn is_unchanged(&self, later: &Meta) -> bool {
        (self.inode, self.size, self.mtime, self.ctime) == (later.inode, later.size, later.mtime, later.ctime)
    }
}

/// An extended attribute: name and value.
pub type Attribute = (Vec<u8>, Vec<u8>);
