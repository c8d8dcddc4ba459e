//! What each configured device has to do with the verdict of the benchmark.

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::device::algorithm::Algorithm;
use crate::facts::Facts;
use crate::finding::{Code, Finding, Level};
use crate::plan::{Decision, Item, Plan};
use crate::request::Request;

/// Whether a device uses the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FollowerState"))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It does.
    Follows,
    /// It will when it is set up the next time.
    Later,
    /// It does not: the configuration names an algorithm first, or none.
    Not,
}

/// A device, and what it has to do with the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Follower {
    /// Its name.
    pub object: String,
    /// Whether it uses the verdict.
    pub state: State,
    /// The same in a sentence, with the algorithms.
    pub sentence: String,
    /// What to do about it; empty if nothing is to be done.
    pub remedy: String,
}

impl Follower {
    /// For people who look for what could be better; `None` if nothing could.
    pub fn finding(&self) -> Option<Finding> {
        let finding = || {
            Finding::new(Level::Note, Code::VerdictNotUsed, &self.object, self.sentence.clone(), &self.remedy)
        };
        // For swap that can be set up again at once, there is the finding of that change.
        (self.state == State::Not && !self.remedy.is_empty()).then(finding)
    }
}

/// The devices that are not skipped, in the order of the plan. `changes` are those that a reload would make.
pub fn followers(plan: &Plan, changes: &[Change], facts: &Facts, verdict: &Algorithm) -> Vec<Follower> {
    let items = plan.items.iter().filter(|item| item.decision != Decision::Skipped);
    items.filter_map(|item| follower(item, changes, facts, verdict)).collect()
}

fn follower(item: &Item, changes: &[Change], facts: &Facts, verdict: &Algorithm) -> Option<Follower> {
    let Some(Request::Device(_)) = &item.request else { return None };
    let name = &item.target;
    let used = facts.records.get(name).and_then(|record| record.algorithm.as_ref());
    let first = item.candidates.first()?;
    let adopts = changes.iter().any(|change| change.target == *name && change.by_verdict);
    let write_auto = "write compression-algorithm = \"auto\", and it follows the verdict".to_owned();
    let (state, sentence, remedy) = match (first.measured, &first.algorithm, used) {
        (true, Some(best), Some(used)) if best == used => {
            (State::Follows, format!("{name} follows the verdict of the benchmark, {best}"), String::new())
        }
        (true, Some(best), Some(used)) if adopts => (
            State::Later,
            format!(
                "{name} uses {used} and stores next to nothing: zramd.service, if it runs, sets it up again with {best}, the verdict of the benchmark"
            ),
            "`zramdctl bench adopt` does so, and waits for it".to_owned(),
        ),
        (true, Some(best), Some(used)) => (
            State::Later,
            format!("{name} uses {used}, and from the next boot on {best}, the verdict of the benchmark"),
            String::new(),
        ),
        (true, Some(best), None) => (
            State::Later,
            format!("{name} is not set up, and will use {best}, the verdict of the benchmark"),
            String::new(),
        ),
        (_, Some(named), _) if named == verdict => (
            State::Not,
            format!(
                "{name} uses {named}, which is the verdict of the benchmark too, because the configuration names it"
            ),
            String::new(),
        ),
        (_, Some(named), _) => (
            State::Not,
            format!(
                "{name} does not follow the verdict of the benchmark, {verdict}: the configuration names {named} first"
            ),
            write_auto,
        ),
        (_, None, _) => (
            State::Not,
            format!(
                "{name} does not follow the verdict of the benchmark, {verdict}: the configuration names no algorithm, so the kernel's default is used"
            ),
            write_auto,
        ),
    };
    Some(Follower { object: name.to_string(), state, sentence, remedy })
}
