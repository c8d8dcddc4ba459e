//! One thing in a directory tree, as it is read from a disk and as it stands in an archive.

/// A moment: seconds since 1970, before it when negative, and nanoseconds after that.
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
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Character device.
    Character,
    /// Block device.
    Block,
    /// Socket: its program makes it anew, so it is not kept.
    Socket,
    /// What this version does not know.
    Unknown,
}

/// What statx(2) says of a file.
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
    /// Bytes that it occupies; less than `size` where it has holes.
    pub occupied: u64,
    /// When its contents changed.
    pub mtime: Time,
    /// When anything of it changed.
    pub ctime: Time,
    /// When it was made, where that is known.
    pub born: Time,
    /// Names that it has.
    pub links: u32,
    /// Inode number.
    pub inode: u64,
    /// Device that it is on.
    pub device: (u32, u32),
    /// Device that it is.
    pub special: (u32, u32),
    /// The mount through which it was seen.
    pub mount: u64,
}

impl Meta {
    /// Whether what was read between these two looks belongs together.
    pub fn is_unchanged(&self, later: &Meta) -> bool {
        (self.inode, self.size, self.mtime, self.ctime) == (later.inode, later.size, later.mtime, later.ctime)
    }
}

/// A stretch of a file that is not a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// What an entry of an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Directory.
    Directory,
    /// Regular file of this many bytes, all of which follow.
    File(u64),
    /// Regular file with holes: its size, and the bytes that follow, which begin with the map of its segments.
    Sparse {
        /// Size of the file.
        size: u64,
        /// Bytes in the archive.
        stored: u64,
    },
    /// A further name of a file that came before.
    HardLink(Vec<u8>),
    /// Symbolic link to this.
    Symlink(Vec<u8>),
    /// Named pipe.
    Fifo,
    /// Character device.
    Character(u32, u32),
    /// Block device.
    Block(u32, u32),
}

/// An extended attribute: its name and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// An entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path below the disk, without a slash at either end; the disk itself is empty.
    pub path: Vec<u8>,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// When its contents changed.
    pub mtime: Time,
    /// Extended attributes: ACLs, capabilities and security labels are among them.
    pub attributes: Vec<Attribute>,
    /// What it is.
    pub body: Body,
}

impl Entry {
    /// Bytes that follow the header in the archive, without padding.
    pub fn stored(&self) -> u64 {
        match self.body {
            Body::File(size) => size,
            Body::Sparse { stored, .. } => stored,
            _ => 0,
        }
    }
}
