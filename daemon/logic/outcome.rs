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
