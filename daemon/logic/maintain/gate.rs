//! Conditions under which maintenance is postponed: it must not disturb other work.

use std::time::Duration;

use super::{Cause, span};

/// State of the machine. Unknown values do not postpone anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Conditions {
    /// Load of the last minute, per CPU.
    pub load_per_cpu: Option<f64>,
    /// Percentage of the last ten seconds in which some task waited for a CPU (PSI, `some`).
    pub cpu_pressure: Option<f64>,
    /// Percentage of the last ten seconds in which all tasks waited for memory (PSI, `full`).
    pub memory_pressure: Option<f64>,
    /// Battery charge in percent; `None` on mains power.
    pub on_battery: Option<u8>,
    /// Waking time since the last resume, if known.
    pub since_resume: Option<Duration>,
}

/// Load per CPU above which the machine is busy.
const BUSY_LOAD: f64 = 0.9;
/// Percentage of time in which some task waits for a CPU, above which the machine is busy.
const BUSY_CPU: f64 = 25.0;
/// Percentage of time in which all tasks wait for memory, above which no work is added.
const THRASHING: f64 = 20.0;
/// Battery charge in percent below which it is low.
const LOW_BATTERY: u8 = 30;
/// Time after a resume in which nothing is done.
pub const AFTER_RESUME: Duration = Duration::from_secs(600);

/// Why to postpone, if so. Requests are never postponed; while memory is short, busy CPUs are ignored.
pub fn gate(conditions: &Conditions, cause: Cause) -> Option<String> {
    if cause == Cause::Request {
        return None;
    }
    if let Some(percent) = conditions.on_battery.filter(|percent| *percent < LOW_BATTERY) {
        return Some(format!("the battery is at {percent} %"));
    }
    if cause.is_short() {
        return None;
    }
    if let Some(since) = conditions.since_resume.filter(|since| *since < AFTER_RESUME) {
        let when =
            if since.is_zero() { "since the last run".to_owned() } else { format!("{} ago", span(since)) };
        return Some(format!("the machine was suspended {when}"));
    }
    if let Some(load) = conditions.load_per_cpu.filter(|load| *load > BUSY_LOAD) {
        return Some(format!("the machine is busy (load {load:.1} per CPU)"));
    }
    if let Some(percent) = conditions.cpu_pressure.filter(|percent| *percent > BUSY_CPU) {
        return Some(format!("the machine is busy (tasks wait for a CPU {percent:.0} % of the time)"));
    }
    if let Some(percent) = conditions.memory_pressure.filter(|percent| *percent > THRASHING) {
        return Some(format!("everything waits for memory {percent:.0} % of the time"));
    }
    None
}

/// Load of the last minute (`/proc/loadavg`).
pub fn load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::maintain::gate::*;
    use crate::maintain::pressure::Level;

    #[test]
    fn each_gate_holds_the_timer_up() {
        let check = |conditions: Conditions, figure: &str| {
            let why = gate(&conditions, Cause::Timer).unwrap();
            assert!(why.contains(figure), "{why}");
            assert_eq!(gate(&conditions, Cause::Request), None, "a request is carried out");
        };
        check(Conditions { load_per_cpu: Some(1.2), ..Conditions::default() }, "1.2");
        check(Conditions { cpu_pressure: Some(40.0), ..Conditions::default() }, "40 %");
        check(Conditions { memory_pressure: Some(21.0), ..Conditions::default() }, "21 %");
        check(Conditions { on_battery: Some(12), ..Conditions::default() }, "12 %");
        check(Conditions { since_resume: Some(Duration::from_secs(65)), ..Conditions::default() }, "1min 5s");
        check(Conditions { since_resume: Some(Duration::ZERO), ..Conditions::default() }, "");
    }

    #[test]
    fn a_quiet_machine_and_one_that_tells_nothing_are_maintained() {
        assert_eq!(gate(&Conditions::default(), Cause::Timer), None);
        let quiet = Conditions {
            load_per_cpu: Some(0.3),
            cpu_pressure: Some(1.0),
            memory_pressure: Some(0.0),
            on_battery: Some(80),
            since_resume: Some(Duration::from_secs(3600)),
        };
        assert_eq!(gate(&quiet, Cause::Timer), None);
    }

    #[test]
    fn short_memory_only_waits_for_a_low_battery() {
        let busy =
            Conditions { load_per_cpu: Some(9.0), memory_pressure: Some(90.0), ..Conditions::default() };
        assert_eq!(gate(&busy, Cause::Pressure(Level::Severe)), None);
        let low = Conditions { on_battery: Some(5), ..busy };
        assert!(gate(&low, Cause::Pressure(Level::Severe)).is_some());
    }

    #[test]
    fn load_is_read() {
        assert_eq!(load("1.25 0.80 0.50 1/312 4711\n"), Some(1.25));
        assert_eq!(load(""), None);
    }
}
