//! Conditions under which maintenance is postponed: it must not disturb other work.

use std::time::Duration;

use super::{Cause, span};
use crate::psi::Usage;

/// State of the machine. Unknown values do not postpone anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Conditions {
    /// What other programs use.
    pub usage: Usage,
    /// Battery charge in percent; `None` on mains power.
    pub on_battery: Option<u8>,
    /// Waking time since the last resume, if known.
    pub since_resume: Option<Duration>,
}

/// Battery charge in percent below which it is low.
const LOW_BATTERY: u8 = 30;
/// Time after a resume in which nothing is done.
pub const AFTER_RESUME: Duration = Duration::from_secs(600);

/// Why a battery is too low for work that can wait; `None` on mains power.
pub fn low_battery(percent: Option<u8>) -> Option<String> {
    percent.filter(|percent| *percent < LOW_BATTERY).map(|percent| format!("the battery is at {percent} %"))
}

/// Why to postpone, if so. Requests are never postponed; while memory is short, busy CPUs are ignored.
pub fn gate(conditions: &Conditions, cause: Cause) -> Option<String> {
    if cause == Cause::Request {
        return None;
    }
    if let Some(why) = low_battery(conditions.on_battery) {
        return Some(why);
    }
    if cause.is_short() {
        return None;
    }
    if let Some(since) = conditions.since_resume.filter(|since| *since < AFTER_RESUME) {
        let when =
            if since.is_zero() { "since the last run".to_owned() } else { format!("{} ago", span(since)) };
        return Some(format!("the machine was suspended {when}"));
    }
    conditions.usage.busy()
}

#[cfg(test)]
mod tests {
    use crate::maintain::gate::*;
    use crate::maintain::pressure::Level;

    fn busy() -> Usage {
        Usage { load: Some(1.2), ..Usage::default() }
    }

    #[test]
    fn each_gate_holds_the_timer_up() {
        let check = |conditions: Conditions, figure: &str| {
            let why = gate(&conditions, Cause::Timer).unwrap();
            assert!(why.contains(figure), "{why}");
            assert_eq!(gate(&conditions, Cause::Request), None, "a request is carried out");
        };
        check(Conditions { usage: busy(), ..Conditions::default() }, "1.2");
        check(Conditions { on_battery: Some(12), ..Conditions::default() }, "12 %");
        check(Conditions { since_resume: Some(Duration::from_secs(65)), ..Conditions::default() }, "1min 5s");
        check(Conditions { since_resume: Some(Duration::ZERO), ..Conditions::default() }, "");
    }

    #[test]
    fn a_quiet_machine_and_one_that_tells_nothing_are_maintained() {
        assert_eq!(gate(&Conditions::default(), Cause::Timer), None);
        for (percent, seconds) in [(80, 3600), (30, 600)] {
            let quiet = Conditions {
                usage: Usage { load: Some(0.3), ..Usage::default() },
                on_battery: Some(percent),
                since_resume: Some(Duration::from_secs(seconds)),
            };
            assert_eq!(gate(&quiet, Cause::Timer), None);
        }
    }

    #[test]
    fn short_memory_only_waits_for_a_low_battery() {
        let busy = Conditions { usage: busy(), ..Conditions::default() };
        assert_eq!(gate(&busy, Cause::Pressure(Level::Severe)), None);
        let low = Conditions { on_battery: Some(5), ..busy };
        assert!(gate(&low, Cause::Pressure(Level::Severe)).is_some());
    }
}
