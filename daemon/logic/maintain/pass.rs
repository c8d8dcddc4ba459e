//! Terms for a pass over the pages of a device.

use serde::{Deserialize, Serialize};

/// A selection of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Incompressible pages marked idle.
    HugeIdle,
    /// Pages marked idle.
    Idle,
    /// Incompressible pages.
    Huge,
}

impl Pages {
    /// The word used by the kernel in `recompress` and `writeback`.
    pub const fn word(self) -> &'static str {
        match self {
            Pages::HugeIdle => "huge_idle",
            Pages::Idle => "idle",
            Pages::Huge => "huge",
        }
    }

    /// Parses such a word.
    pub fn of_word(word: &str) -> Option<Pages> {
        let word = word.replace('-', "_");
        [Pages::HugeIdle, Pages::Idle, Pages::Huge].into_iter().find(|pages| pages.word() == word)
    }
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<T> {
    /// Do this, for this reason.
    Do(T, String),
    /// Do nothing, for this reason.
    Skip(String),
}

impl<T> Decision<T> {
    /// The reason in either case.
    pub fn reason(&self) -> &str {
        match self {
            Decision::Do(_, reason) | Decision::Skip(reason) => reason,
        }
    }
}

#[cfg(test)]
impl<T: std::fmt::Debug> Decision<T> {
    /// The work; panics if it is skipped.
    pub fn done(self) -> T {
        match self {
            Decision::Do(done, _) => done,
            Decision::Skip(why) => panic!("{why}"),
        }
    }

    /// The reason for skipping; panics otherwise.
    pub fn skipped(self) -> String {
        match self {
            Decision::Do(done, _) => panic!("{done:?}"),
            Decision::Skip(why) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::maintain::pass::*;

    #[test]
    fn words_of_the_kernel_are_read_back_also_with_a_hyphen() {
        for word in ["huge_idle", "idle", "huge"] {
            assert_eq!(Pages::of_word(word).map(Pages::word), Some(word));
        }
        assert_eq!(Pages::of_word("huge-idle"), Some(Pages::HugeIdle));
        assert_eq!([Pages::of_word("incompressible"), Pages::of_word("")], [None, None]);
    }
}
