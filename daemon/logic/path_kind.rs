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

/// Contents at a path, links *not* followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file with this text.
    Text(String),
    Link {
        /// Its target, as written in the link.
        target: String,
        /// The text of the target (empty for `/dev/null`); `None` for a dangling link.
        text: Option<String>,
    },
    /// Not readable as text, for this reason.
    Unreadable(String),
}
