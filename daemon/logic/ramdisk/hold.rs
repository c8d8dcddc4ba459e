//! Why an intact snapshot was not loaded, or not completely: the file `gen-N.held`. Such a snapshot is pinned until it is
//! loaded, unpinned or deleted.

use serde::{Deserialize, Serialize};

use super::manifest::Contents;
use crate::human::human;

/// The reason, which is one of this machine or its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "lack", rename_all = "kebab-case")]
pub enum Hold {
    /// The RAM disk is too small.
    Size {
        /// Bytes of its files.
        needed: u64,
        /// Bytes that the empty RAM disk has.
        size: u64,
    },
    /// The RAM disk has too few inodes.
    Inodes {
        /// Inodes of its files.
        needed: u64,
        /// Inodes that the empty RAM disk has.
        inodes: u64,
    },
    /// Anything else. Without file names, because every user may read it.
    Other {
        /// The error.
        why: String,
    },
}

impl Hold {
    /// Whether these contents do not fit.
    pub fn of(contents: &Contents, size: u64, inodes: u64) -> Option<Hold> {
        Hold::of_sizes((contents.occupied_bytes, contents.inodes()), (size, inodes))
    }

    /// As [`Hold::of`], for bytes and inodes that are needed and that there are.
    pub fn of_sizes(needed: (u64, u64), found: (u64, u64)) -> Option<Hold> {
        if needed.0 > found.0 {
            return Some(Hold::Size { needed: needed.0, size: found.0 });
        }
        (needed.1 > found.1).then_some(Hold::Inodes { needed: needed.1, inodes: found.1 })
    }

    /// Parses the file. Other text is a reason, too.
    pub fn parse(text: &str) -> Hold {
        serde_json::from_str(text).unwrap_or_else(|_| Hold::Other { why: text.trim().to_owned() })
    }

    /// Its JSON.
    pub fn file(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The reason, for people.
    pub fn text(&self) -> String {
        match self {
            Hold::Size { needed, size } if needed > size => {
                format!("it needs {}, `size` is {}", human(*needed), human(*size))
            }
            Hold::Size { size, .. } => {
                format!("it needs more than {}, which is what `size` gives", human(*size))
            }
            Hold::Inodes { needed, inodes } => format!("it needs {needed} inodes, `inodes` is {inodes}"),
            Hold::Other { why } => why.clone(),
        }
    }

    /// What to do, so that it can be loaded.
    pub fn cure(&self, disk: &str) -> String {
        match self {
            Hold::Size { needed, size } => {
                let mib = (*needed.max(size) >> 20) + 1;
                format!("set size of [ramdisk.{disk}] to at least {mib}MiB")
            }
            Hold::Inodes { needed, .. } => {
                format!("set inodes of [ramdisk.{disk}] to at least {}", needed + 1)
            }
            Hold::Other { .. } => "fix the cause".to_owned(),
        }
    }

    /// Whether the snapshot fits into the empty RAM disk now, with this many bytes and inodes (0: unknown or unlimited).
    fn is_over(&self, bytes: u64, inodes: u64) -> bool {
        match self {
            Hold::Size { needed, size } => bytes >= *needed && bytes > *size,
            Hold::Inodes { needed, .. } => inodes >= *needed,
            Hold::Other { .. } => false,
        }
    }

    /// The reason as of now, and what to do: the commands that load the snapshot or give it up. `room`: bytes and inodes of
    /// the empty RAM disk `name` now.
    pub fn report(&self, name: &str, room: (u64, u64), generation: u64) -> (String, String) {
        let is_over = self.is_over(room.0, room.1);
        let (now, first) = if is_over {
            (" at that load; it fits now".to_owned(), "run".to_owned())
        } else {
            (String::new(), format!("{}, then run", self.cure(name)))
        };
        let remedy = format!(
            "{first} `zramdctl ramdisk restore {name} {generation}`, or give it up with `zramdctl ramdisk pin --off {name} {generation}`"
        );
        (format!("{}{now}", self.text()), remedy)
    }
}

/// Why the contents of a generation do not fit into this much space. Without file names, because every user may read
/// it.
pub fn refuse_size(contents: &Contents, free_bytes: u64, free_inodes: u64) -> Option<String> {
    let short = match Hold::of(contents, free_bytes, free_inodes)? {
        Hold::Inodes { needed, inodes } => format!("{needed} files are needed and {inodes} are free"),
        _ => format!("{} are needed and {} are free", human(contents.occupied_bytes), human(free_bytes)),
    };
    Some(format!("the RAM disk is too small: {short}"))
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::hold::*;
    use crate::ramdisk::manifest::Sized;

    #[test]
    fn a_reason_names_both_figures_and_comes_back() {
        let contents = Contents { files: 2, directories: 1, occupied_bytes: 13 << 19, ..Contents::default() };
        assert_eq!(Hold::of(&contents, 13 << 19, 3), None);
        let size = Hold::of(&contents, 4 << 20, 3).unwrap();
        assert_eq!(size.text(), "it needs 6.5 MiB, `size` is 4.0 MiB");
        let report = |hold: &Hold, bytes, inodes| hold.report("logs", (bytes, inodes), 2);
        let (why, remedy) = report(&size, 4 << 20, 9);
        assert!(why == size.text() && remedy.contains("at least 7MiB"), "{why}: {remedy}");
        // The RAM disk is larger again.
        let (why, remedy) = report(&size, 16 << 20, 9);
        assert!(
            why.ends_with("it fits now") && remedy.starts_with("run `zramdctl ramdisk restore logs 2`"),
            "{why}: {remedy}"
        );
        let inodes = Hold::of(&contents, 7 << 20, 2).unwrap();
        assert_eq!(inodes.text(), "it needs 3 inodes, `inodes` is 2");
        assert!(report(&inodes, 16 << 20, 2).1.starts_with("set inodes"));
        assert!(report(&inodes, 16 << 20, 3).1.starts_with("run"));
        let other = Hold::Other { why: "the format is new".to_owned() };
        for hold in [size, inodes, other] {
            assert_eq!(Hold::parse(&hold.file()), hold);
        }
        assert_eq!(Hold::parse("by hand\n").text(), "by hand");
    }

    #[test]
    fn a_snapshot_fits_once_there_is_what_it_needs_and_more_than_at_its_load() {
        let mib = |mib: u64| mib << 20;
        for (needed, size, now, fits) in
            [(6, 4, 5, false), (6, 4, 6, true), (4, 4, 4, false), (4, 4, 5, true), (3, 4, 4, false)]
        {
            let hold = Hold::Size { needed: mib(needed), size: mib(size) };
            let (why, _) = hold.report("logs", (mib(now), 0), 2);
            assert_eq!(why.ends_with("it fits now"), fits, "{needed} of {size}, now {now}: {why}");
        }
        // Files can need more than is known before.
        for needed in [3, 4] {
            let hold = Hold::Size { needed: mib(needed), size: mib(4) };
            assert_eq!(hold.text(), "it needs more than 4.0 MiB, which is what `size` gives");
        }
    }

    #[test]
    fn what_does_not_fit_is_said_without_names() {
        let file = Sized { path: "journal/a".to_owned(), bytes: 3 << 20 };
        let contents = Contents {
            files: 2,
            directories: 1,
            occupied_bytes: 4 << 20,
            biggest: vec![file],
            ..Contents::default()
        };
        assert_eq!(refuse_size(&contents, 4 << 20, 3), None);
        let reason = refuse_size(&contents, 3 << 20, 3).unwrap();
        assert!(reason.contains("4.0 MiB") && reason.contains("3.0 MiB"), "{reason}");
        assert!(!reason.contains("journal") && contents.biggest_text().contains("journal/a (3.0 MiB)"));
        let reason = refuse_size(&contents, 4 << 20, 2).unwrap();
        assert!(reason.contains(" 3 ") && reason.contains(" 2 "), "{reason}");
    }
}
