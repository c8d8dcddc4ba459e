//! Entries left out of a snapshot or a tree, with reasons.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::limits::{NAMED, shown};
use crate::word::word;

/// Why a file, or a part of it, was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OmittedReason"))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A program held a lease on it and did not give it up.
    Lease,
    /// The kernel could not read it.
    Unreadable,
    /// Its path is too long.
    Path,
    /// It has too many attributes: it is kept without user attributes.
    Attributes,
    /// It is immutable or append-only: it is kept without these flags.
    Flags,
    /// Parts of it could not be read and were replaced by zeros.
    Damaged,
    /// It does not fit into a snapshot.
    Format,
    /// The snapshot has lost a part of its contents.
    Contents,
    /// It could not be created on the RAM disk.
    Refused,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

impl Reason {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }

    /// In words, after a number of files.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::Lease => "with a lease of another program",
            Reason::Unreadable => "unreadable",
            Reason::Path => "with a path that is too long",
            Reason::Attributes => "kept without its user attributes",
            Reason::Flags => "kept without the flags of chattr (immutable, append-only)",
            Reason::Damaged => "kept with zeros where they could not be read",
            Reason::Format => "that a snapshot cannot hold",
            Reason::Contents => "with damaged contents",
            Reason::Refused => "refused by the RAM disk",
            Reason::Other => "for another reason",
        }
    }
}

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its path below the RAM disk, as [`shown`].
    pub path: String,
    /// Why it is left out.
    pub reason: Reason,
    /// The error of the kernel or the reader.
    #[serde(default)]
    pub detail: String,
}

/// All files that were left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Omitted {
    /// Number of files by reason. Files below a directory that was left out do not count.
    pub counts: BTreeMap<Reason, u64>,
    /// Some of them by name.
    pub named: Vec<Named>,
}

impl Omitted {
    /// Adds a file.
    pub fn add(&mut self, path: impl FnOnce() -> Vec<u8>, reason: Reason, detail: impl Display) {
        *self.counts.entry(reason).or_default() += 1;
        if self.named.len() < NAMED {
            self.named.push(Named { path: shown(&path()), reason, detail: detail.to_string() });
        }
    }

    /// Adds those of a later step.
    pub fn extend(&mut self, other: &Omitted) {
        for (reason, count) in &other.counts {
            *self.counts.entry(*reason).or_default() += count;
        }
        let room = NAMED.saturating_sub(self.named.len());
        self.named.extend(other.named.iter().take(room).cloned());
    }

    /// Number of files.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether another attempt would leave out the same files.
    pub fn is_lasting(&self) -> bool {
        let passes = |reason: &Reason| matches!(reason, Reason::Lease | Reason::Unreadable | Reason::Damaged);
        !self.counts.keys().any(passes)
    }

    /// The numbers by reason, for people. Without names, which are only for users who may read the files. Empty for
    /// none.
    pub fn summary(&self) -> String {
        let parts: Vec<String> =
            self.counts.iter().map(|(reason, count)| format!("{count} {}", reason.text())).collect();
        parts.join(", ")
    }

    /// As [`Omitted::summary`] with names, for the journal. Empty for none.
    pub fn report(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut names: Vec<String> = self
            .named
            .iter()
            .map(|Named { path, reason, detail }| match detail.as_str() {
                "" => format!("{path} ({})", reason.text()),
                detail => format!("{path} ({detail})"),
            })
            .collect();
        let more = self.count().saturating_sub(self.named.len() as u64);
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        format!("{}: {}", self.summary(), names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::omitted::*;

    #[test]
    fn names_are_few_and_reasons_are_counted() {
        let mut omitted = Omitted::default();
        assert_eq!((omitted.summary(), omitted.report()), (String::new(), String::new()));
        for number in 0..12 {
            omitted.add(|| format!("f{number}").into_bytes(), Reason::Lease, "");
        }
        omitted.add(|| b"x".to_vec(), Reason::Unreadable, "I/O error");
        assert_eq!((omitted.count(), omitted.named.len()), (13, NAMED));
        assert!(omitted.report().ends_with(", and 3 more"), "{}", omitted.report());
        assert!(!omitted.summary().contains("f0"));
        let mut both = Omitted::default();
        both.add(|| b"x".to_vec(), Reason::Unreadable, "I/O error");
        both.extend(&omitted);
        assert_eq!((both.count(), both.named.len()), (14, NAMED));
    }

    #[test]
    fn a_report_names_each_file_with_its_error_or_reason() {
        let mut omitted = Omitted::default();
        omitted.add(|| b"x".to_vec(), Reason::Unreadable, "I/O error");
        omitted.add(|| b"y".to_vec(), Reason::Lease, "");
        assert_eq!(
            omitted.report(),
            "1 with a lease of another program, 1 unreadable: x (I/O error), y (with a lease of another program)"
        );
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        assert!(Omitted::default().is_lasting());
        for (reason, lasts) in [
            (Reason::Lease, false),
            (Reason::Unreadable, false),
            (Reason::Damaged, false),
            (Reason::Path, true),
            (Reason::Attributes, true),
        ] {
            let mut omitted = Omitted::default();
            omitted.add(|| b"x".to_vec(), reason, "");
            assert_eq!(omitted.is_lasting(), lasts, "{reason:?}");
        }
    }

    #[test]
    fn a_reason_of_a_later_version_is_read() {
        let text = r#"{"counts":{"lease":2,"new-one":1},"named":[{"path":"a","reason":"new-one"}]}"#;
        let omitted: Omitted = serde_json::from_str(text).unwrap();
        assert_eq!((omitted.count(), omitted.named[0].reason), (3, Reason::Other));
    }
}
