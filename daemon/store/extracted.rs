//! What an extraction has made.

use logic::ramdisk::omitted::Omitted;

/// Result of an extraction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Number of attributes that the file system does not support.
    pub unsupported: u64,
    /// Path and attribute of some of them.
    pub unsupported_names: Vec<String>,
    /// Entries that could not be created.
    pub omitted: Omitted,
}

impl Extracted {
    /// What could not be created, for people and without file names; `None` if there is nothing.
    pub fn lost(&self) -> Option<String> {
        let attributes = match self.unsupported {
            0 => None,
            count => Some(format!("{count} extended attributes that the file system does not support")),
        };
        let omitted = Some(self.omitted.summary()).filter(|_| !self.omitted.is_empty());
        let lost: Vec<String> = omitted.into_iter().chain(attributes).collect();
        (!lost.is_empty()).then(|| lost.join(", "))
    }
}
