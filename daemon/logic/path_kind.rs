//! What is at a path.

/// Type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// There is none.
    Missing,
    Directory,
    /// An empty file, or `/dev/null`.
    Empty,
    /// Any other file.
    Other,
    /// Unknown: this user may not look.
    Hidden,
    /// Unknown: looking at it failed, for this reason.
    Unreadable(&'static str),
}
