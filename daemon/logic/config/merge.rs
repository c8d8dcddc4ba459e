//! What all files say together: per key, the last assignment wins, and its origin is remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::fragment::{self, Section};
use super::problem::Problem;

/// What all files say together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// Sections by name.
    pub sections: BTreeMap<String, Section>,
    /// Sections that some file breaks: what the owner wanted there is not known, so they are not used at all.
    pub broken: BTreeSet<String>,
}

/// Reads files in order, lowest precedence first.
pub fn merge(files: &[(PathBuf, String)]) -> (Merged, Vec<Problem>) {
    let mut merged = Merged::default();
    let mut problems = Vec::new();
    for (index, (file, text)) in files.iter().enumerate() {
        let (fragment, found) = fragment::read(file, text, index);
        problems.extend(found);
        merged.broken.extend(fragment.broken);
        for (name, section) in fragment.sections {
            let known = merged.sections.entry(name).or_default();
            known.origin = section.origin;
            known.keys.extend(section.keys);
        }
    }
    merged.sections.retain(|name, _| !merged.broken.contains(name));
    (merged, problems)
}
