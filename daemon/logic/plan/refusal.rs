//! Refusals of the planner.

use super::{Decision, Item};
use crate::config::problem::{Origin, Problem, Severity};
use crate::error::ErrorKind;
use crate::finding::Code;
use crate::text::worded;

/// A refusal: its kind, reason, and position in the configuration.
pub(super) struct Refusal {
    pub kind: ErrorKind,
    pub reason: String,
    pub origin: Origin,
    pub hint: Option<String>,
    pub code: Option<Code>,
}

impl Refusal {
    pub(super) fn new(kind: ErrorKind, origin: &Origin, reason: impl Into<String>) -> Refusal {
        Refusal { kind, reason: worded(reason), origin: origin.clone(), hint: None, code: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn code(mut self, code: Code) -> Refusal {
        self.code = Some(code);
        self
    }
}

/// Marks an item as refused, and adds the problem.
pub(super) fn refuse(item: &mut Item, refusal: Refusal, problems: &mut Vec<Problem>) {
    if item.decision != Decision::Planned {
        return;
    }
    item.decision = Decision::Refused;
    item.kind = Some(refusal.kind);
    item.reason.clone_from(&refusal.reason);
    let found = problem(Severity::Error, &refusal.origin, refusal.reason, refusal.hint)
        .kind(refusal.kind)
        .about(item.target.to_string());
    problems.push(Problem { code: refusal.code, ..found });
}

/// A problem found by the planner.
pub(super) fn problem(
    severity: Severity,
    origin: &Origin,
    message: impl Into<String>,
    hint: Option<String>,
) -> Problem {
    let found = match severity {
        Severity::Error => Problem::error(origin.clone(), message),
        Severity::Warning => Problem::warning(origin.clone(), message),
    };
    Problem { hint, ..found }
}
