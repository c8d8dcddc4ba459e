//! The import of other programs' configurations, and what `zramdctl init` proposes, which may be such an import.
//!
//! Translations and proposals are functions of data, in `peer` and `init`. The other files read the machine, below a directory
//! that may be that of another one.

pub mod claimed_twice;
pub mod files;
pub mod init;
pub mod machine;
pub mod peer;
