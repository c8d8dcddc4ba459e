//! What became of a request, target by target: what a job says on the bus when it has ended.

use super::change::Action;
use super::error::ErrorKind;
use super::record::Target;
use super::text::worded;

/// What became of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What it is about; nothing for the request as a whole.
    pub target: Option<Target>,
    /// What was done, or was to be done.
    pub action: Option<Action>,
    /// Why it failed; nothing when it was done.
    pub error: Option<ErrorKind>,
    /// A sentence for people that names the target.
    pub text: String,
}

/// An [`Outcome`] on the bus: target, action, name of the error, text. What is absent is empty.
pub type OnTheBus = (String, String, String, String);

impl Outcome {
    /// The outcome of a request as a whole.
    pub fn whole(error: Option<ErrorKind>, text: impl Into<String>) -> Outcome {
        Outcome { target: None, action: None, error, text: text.into() }
    }

    /// Whether it was done.
    pub fn is_done(&self) -> bool {
        self.error.is_none()
    }

    /// In the form of the bus.
    pub fn on_the_bus(&self) -> OnTheBus {
        (
            self.target.as_ref().map(ToString::to_string).unwrap_or_default(),
            self.action.map(|action| action.word().to_owned()).unwrap_or_default(),
            self.error.map(|kind| kind.on_the_bus().to_owned()).unwrap_or_default(),
            worded(self.text.as_str()),
        )
    }
}
