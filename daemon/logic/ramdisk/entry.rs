//! Entries of a directory tree, as read from a disk and as stored in an archive.

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
}

impl Meta {
    /// Whether contents read between these two calls of statx(2) are consistent.
    pub fn is_unchanged(&self, later: &Meta) -> bool {
        (self.inode, self.size, self.mtime, self.ctime) == (later.inode, later.size, later.mtime, later.ctime)
    }
}

/// A data segment of a sparse file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Type of an archive entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Directory,
    /// Regular file of this size, all of which follows.
    File(u64),
    /// Sparse file: its size, and the size of the data that follows, which begins with a map of its segments.
    Sparse {
        /// Size of the file.
        size: u64,
        /// Bytes in the archive.
        stored: u64,
    },
    /// Hard link to an earlier entry.
    HardLink(Vec<u8>),
    /// Symbolic link with this target.
    Symlink(Vec<u8>),
    /// Named pipe.
    Fifo,
    /// Character device.
    Character(u32, u32),
    /// Block device.
    Block(u32, u32),
}

/// An extended attribute: name and value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// An entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path below the root, without a slash at either end; empty for the root itself.
    pub path: Vec<u8>,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Modification time.
    pub mtime: Time,
    /// Extended attributes, including ACLs, capabilities and security labels.
    pub attributes: Vec<Attribute>,
    /// Type.
    pub body: Body,
}

impl Entry {
    /// Size of a file, including its holes.
    pub fn size(&self) -> u64 {
        match self.body {
            Body::File(size) | Body::Sparse { size, .. } => size,
            _ => 0,
        }
    }

    /// Bytes after the header in the archive, without padding.
    pub fn stored(&self) -> u64 {
        match self.body {
            Body::File(size) => size,
            Body::Sparse { stored, .. } => stored,
            _ => 0,
        }
    }
}
