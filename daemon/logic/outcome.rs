//! Results of a request, by target, as returned on the bus when a job has ended.

use super::change::Action;
use super::error::ErrorKind;
use super::record::Target;
use super::text::worded;

/// Result for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The target; `None` for the request as a whole.
    pub target: Option<Target>,
    pub action: Option<Action>,
    /// The kind of error; `None` on success.
    pub error: Option<ErrorKind>,
    /// A sentence for people that names the target.
    pub text: String,
}

/// An [`Outcome`] on the bus: target, action, error name, text. Missing values are empty.
pub type OnTheBus = (String, String, String, String);

impl Outcome {
    /// The result of a request as a whole.
    pub fn whole(error: Option<ErrorKind>, text: impl Into<String>) -> Outcome {
        Outcome { target: None, action: None, error, text: text.into() }
    }

    /// Whether it succeeded.
    pub fn is_done(&self) -> bool {
        self.error.is_none()
    }

    /// Converts it for the bus.
    pub fn on_the_bus(&self) -> OnTheBus {
        (
            self.target.as_ref().map(ToString::to_string).unwrap_or_default(),
            self.action.map(|action| action.word().to_owned()).unwrap_or_default(),
            self.error.map(|kind| kind.on_the_bus().to_owned()).unwrap_or_default(),
            worded(self.text.as_str()),
        )
    }
}
