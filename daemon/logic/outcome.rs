//! What became of each target of a request, from the engine to the bus.

use serde::{Deserialize, Serialize};

use super::change::{Action, Change};
use super::error::Error;
use super::record::Target;
use super::text::worded;

/// What became of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub target: Target,
    /// The change; `None` for steps of a plan.
    pub action: Option<Action>,
    /// What was done, in words: the steps that succeeded, or the differences of the change.
    pub done: Vec<String>,
    /// Failures of optional steps: the target is usable without them.
    pub warnings: Vec<String>,
    /// Why it failed, and what could not be undone afterwards; empty on success.
    pub errors: Vec<Error>,
}

/// An [`Outcome`] on the bus: target, action, error name, text. Missing values are empty.
pub type OnTheBus = (String, String, String, String);

impl Outcome {
    /// A target for which nothing is done yet.
    pub fn new(target: &Target) -> Outcome {
        Outcome {
            target: target.clone(),
            action: None,
            done: Vec::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// A target for which nothing was done.
    pub fn failed(target: &Target, error: Error) -> Outcome {
        Outcome { errors: vec![error], ..Outcome::new(target) }
    }

    /// A change that was made, unless there are errors.
    pub fn of(change: &Change, errors: Vec<Error>) -> Outcome {
        let detail = Some(change.detail.clone()).filter(|detail| errors.is_empty() && !detail.is_empty());
        let done = detail.into_iter().collect();
        Outcome { action: Some(change.action), done, errors, ..Outcome::new(&change.target) }
    }

    /// Whether it succeeded.
    pub fn is_done(&self) -> bool {
        self.errors.is_empty()
    }

    /// A sentence for people that names the target.
    pub fn text(&self) -> String {
        if !self.is_done() {
            let messages: Vec<&str> = self.errors.iter().map(|error| error.message.as_str()).collect();
            return messages.join("; ");
        }
        let action = self.action.map_or("done", Action::word);
        match self.done.join(", ") {
            done if done.is_empty() => format!("{}: {action}", self.target),
            done => format!("{}: {action} ({done})", self.target),
        }
    }

    /// Converts it for the bus.
    pub fn on_the_bus(&self) -> OnTheBus {
        (
            self.target.to_string(),
            self.action.map(|action| action.word().to_owned()).unwrap_or_default(),
            self.errors.first().map(|error| error.kind.on_the_bus().to_owned()).unwrap_or_default(),
            worded(self.text()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn an_outcome_says_what_was_done_or_why_it_failed() {
        let target = Target::Device(0);
        let change = |detail: &str, errors: &[&str]| {
            let errors = errors.iter().map(|message| Error::new(ErrorKind::InUse, *message)).collect();
            Outcome::of(&Change::new(&target, Action::Recreate, detail), errors)
        };
        let failed = Outcome::failed(&target, Error::failed("zram0: EIO"));
        let (in_use, io) = ("org.zramd1.Error.InUse", "org.zramd1.Error.Failed");
        for (outcome, done, action, error, text) in [
            (Outcome::new(&target), 0, "", "", "zram0: done"),
            (failed, 0, "", io, "zram0: EIO"),
            (change("", &[]), 0, "recreate", "", "zram0: recreate"),
            (change("size 1 → 2", &[]), 1, "recreate", "", "zram0: recreate (size 1 → 2)"),
            (change("size 1 → 2", &["it is open"]), 0, "recreate", in_use, "it is open"),
            (change("", &["it is open", "and stays"]), 0, "recreate", in_use, "it is open; and stays"),
        ] {
            assert_eq!((outcome.done.len(), outcome.is_done()), (done, error.is_empty()), "{text}");
            let expected = ["zram0", action, error, text].map(str::to_owned);
            assert_eq!(<[String; 4]>::from(outcome.on_the_bus()), expected);
        }
    }
}
