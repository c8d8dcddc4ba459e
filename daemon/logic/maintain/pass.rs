//! A pass over the pages of a device, in the kernel's words.

use serde::{Deserialize, Serialize};

/// Which pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Those that do not compress and are marked idle.
    HugeIdle,
    /// Those that are marked idle.
    Idle,
    /// Those that do not compress.
    Huge,
}

impl Pages {
    /// The kernel's word for them, the same in `recompress` and `writeback`.
    pub const fn word(self) -> &'static str {
        match self {
            Pages::HugeIdle => "huge_idle",
            Pages::Idle => "idle",
            Pages::Huge => "huge",
        }
    }

    /// The pages of a word.
    pub fn of_word(word: &str) -> Option<Pages> {
        let word = word.replace('-', "_");
        [Pages::HugeIdle, Pages::Idle, Pages::Huge].into_iter().find(|pages| pages.word() == word)
    }
}

/// What to do, or why nothing is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<T> {
    /// This, for this reason.
    Do(T, String),
    /// Nothing, for this reason.
    Skip(String),
}

impl<T> Decision<T> {
    /// The reason, either way.
    pub fn reason(&self) -> &str {
        match self {
            Decision::Do(_, reason) | Decision::Skip(reason) => reason,
        }
    }
}
