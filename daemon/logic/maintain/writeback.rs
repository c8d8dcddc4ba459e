//! Selects pages to write to the backing device, and their number.

use std::time::Duration;

use super::age::Range;
use super::pressure::Level;
use super::{Cause, span, too_soon};
use crate::device::stat::BACKING_BLOCK;
use crate::human::human;

/// Default idle ages (ChromeOS, Android).
pub const AGE: Range = Range { least: Duration::from_secs(20 * 3600), most: Duration::from_secs(25 * 3600) };
/// Default budget for 24 hours.
pub const DAILY: u64 = 1 << 30;
/// Default limit of one run, if all memory is in use.
pub const PER_RUN: u64 = 300 << 20;
/// With less than this, a disk is not woken up.
pub const LEAST: u64 = 5 << 20;
/// Minimum time between two runs of the timer.
const BACK_OFF: Duration = Duration::from_secs(10 * 60);
/// Minimum time after a failure: with some errors of a disk, the kernel tries all pages, which may take minutes.
const AFTER_FAILURE: Duration = Duration::from_secs(3600);

/// The configured settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Idle ages.
    pub age: Range,
    /// Budget in bytes for 24 hours.
    pub daily: u64,
    /// Limit of one run in bytes.
    pub per_run: u64,
    /// Whether runs of the timer and on request also write incompressible pages that are not idle.
    pub huge: bool,
}

/// State of the device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// Bytes free on the backing device; `None` without one.
    pub free: Option<u64>,
    /// Bytes left of the budget.
    pub left: u64,
    /// Time until more of the budget is available.
    pub wait: Duration,
    /// Bytes that the run has written from other devices.
    pub written: u64,
    /// Bytes per page.
    pub page_size: u64,
    /// Pages stored in memory.
    pub stored_pages: u64,
    /// Share of memory in use, 0 to 1.
    pub utilisation: f64,
    /// Bytes by which it takes too much memory, see [`super::filling::excess`].
    pub excess: u64,
    /// Waking time since the last run.
    pub last: Option<Duration>,
    /// Waking time since the last run, if it failed.
    pub failed: Option<Duration>,
}

/// The passes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Limit in bytes: a whole number of pages.
    pub bytes: u64,
    /// Whether to write incompressible pages that are not idle afterwards.
    pub huge: bool,
    /// What triggered it.
    pub cause: Cause,
}

impl Run {
    /// The reason for a pass over pages of this age.
    pub fn reason(&self, age: Duration) -> String {
        let of = format!("idle for {}, at most {}", span(age), human(self.bytes));
        match self.cause {
            Cause::Timer | Cause::Request => of,
            Cause::Filling => format!("{of}, because it takes much memory and fills"),
            Cause::Pressure(level) => format!("{of}, because of {} pressure", level.word()),
        }
    }
}

/// Rounds down to whole pages. With a partial page, there would be no limit: the kernel subtracts the blocks of a whole
/// page, and the counter wraps below zero (`zram_account_writeback_submit` in drivers/block/zram/zram_drv.c; newer
/// kernels round it themselves).
pub fn whole_pages(bytes: u64, page_size: u64) -> u64 {
    let page = page_size.max(BACKING_BLOCK);
    bytes / page * page
}

/// Decides what to do with a device.
///
/// # Errors
///
/// Why nothing is done.
pub fn decide(settings: &Settings, seen: &Seen, cause: Cause) -> Result<Run, String> {
    let Some(free) = seen.free else { return Err("it has no backing device".to_owned()) };
    if let Some(ago) = seen.failed.filter(|ago| cause != Cause::Request && *ago < AFTER_FAILURE) {
        return Err(format!(
            "it failed {} ago, and is tried again in {}",
            span(ago),
            span(AFTER_FAILURE.saturating_sub(ago))
        ));
    }
    if let Some(why) = too_soon(seen.last, cause, BACK_OFF) {
        return Err(why);
    }
    if seen.stored_pages == 0 {
        return Err("nothing is stored".to_owned());
    }
    // While memory is short and on request, the limit does not depend on the memory in use.
    let share = if cause == Cause::Timer { seen.utilisation.clamp(0.0, 1.0) } else { 1.0 };
    let needed = if cause.is_short() { seen.excess } else { u64::MAX };
    let of_run = part(settings.per_run, share).saturating_sub(seen.written);
    let bytes = of_run.min(free).min(seen.left).min(needed);
    let bytes = whole_pages(bytes, seen.page_size);
    if bytes < LEAST {
        let why = if seen.left < LEAST {
            format!(
                "the budget of {} in 24 hours is spent; more is left in {}",
                human(settings.daily),
                span(seen.wait)
            )
        } else if free < LEAST {
            format!("the backing device is full ({} free)", human(free))
        } else if needed < LEAST {
            "it takes little of the memory".to_owned()
        } else if seen.written > 0 {
            format!("the run has written {} from other devices", human(seen.written))
        } else {
            format!("{} is too little to wake a disk for", human(bytes))
        };
        return Err(why);
    }
    // A page that has just been read from the disk is not idle. But one that does not compress frees no memory in swap: under critical
    // pressure, the kernel ends a program before it is idle.
    let huge = if cause.is_short() { cause.level() == Level::Critical } else { settings.huge };
    Ok(Run { bytes, huge, cause })
}

/// A fraction, 0 to 1, of an amount, in steps of a thousandth.
fn part(bytes: u64, share: f64) -> u64 {
    let thousandths = (share * 1000.0).floor();
    let thousandths = (0..=1000_u16).rev().find(|step| f64::from(*step) <= thousandths).unwrap_or(0);
    bytes / 1000 * u64::from(thousandths) + bytes % 1000 * u64::from(thousandths) / 1000
}

#[cfg(test)]
mod tests {
    use crate::maintain::writeback::*;

    const MIB: u64 = 1 << 20;
    const SETTINGS: Settings = Settings { age: AGE, daily: DAILY, per_run: PER_RUN, huge: false };

    fn seen() -> Seen {
        Seen {
            free: Some(1 << 30),
            left: DAILY,
            page_size: 4096,
            stored_pages: 1 << 18,
            utilisation: 0.5,
            ..Seen::default()
        }
    }

    fn run(seen: &Seen, cause: Cause) -> Run {
        decide(&SETTINGS, seen, cause).unwrap()
    }

    fn skipped(seen: &Seen) -> String {
        decide(&SETTINGS, seen, Cause::Timer).unwrap_err()
    }

    #[test]
    fn a_run_writes_the_least_of_its_share_the_budget_and_the_room() {
        assert_eq!(run(&seen(), Cause::Timer).bytes, 150 * MIB);
        assert_eq!(run(&Seen { left: 7 * MIB, ..seen() }, Cause::Timer).bytes, 7 * MIB);
        assert_eq!(run(&Seen { free: Some(6 * MIB + 5), ..seen() }, Cause::Timer).bytes, 6 * MIB);
        assert_eq!(run(&Seen { written: 20 * MIB, ..seen() }, Cause::Timer).bytes, 130 * MIB);
        assert!(!run(&seen(), Cause::Timer).huge);
    }

    #[test]
    fn only_whole_pages_are_written() {
        assert_eq!(
            run(&Seen { page_size: 16384, left: 6 * MIB + 16383, ..seen() }, Cause::Timer).bytes,
            6 * MIB
        );
        for (page, bytes, whole) in [(4096, 8191, 4096), (16384, 391 << 12, 388 << 12), (65536, 65535, 0)] {
            assert_eq!(whole_pages(bytes, page), whole);
        }
        assert_eq!([part(1999, 0.5), part(1999, 0.0019)], [999, 1]);
    }

    #[test]
    fn too_little_is_nothing() {
        assert!(skipped(&Seen { left: 4 * MIB, ..seen() }).contains("1.0 GiB"));
        skipped(&Seen { free: Some(0), ..seen() });
        skipped(&Seen { utilisation: 0.01, ..seen() });
        skipped(&Seen { free: None, ..seen() });
        skipped(&Seen { stored_pages: 0, ..seen() });
        assert!(skipped(&Seen { written: 146 * MIB, ..seen() }).contains("146.0 MiB"));
    }

    #[test]
    fn the_first_limit_that_leaves_too_little_is_named() {
        let limits = |left, free, excess| Seen { left, free: Some(free), excess, ..seen() };
        let enough = limits(LEAST, LEAST, LEAST);
        assert_eq!(run(&enough, Cause::Filling).bytes, LEAST);
        for (seen, cause, expected) in [
            (limits(LEAST - 1, 0, 0), Cause::Filling, "the budget of 1.0 GiB in 24 hours is spent"),
            (limits(LEAST, LEAST - 1, 0), Cause::Filling, "the backing device is full"),
            (limits(LEAST, LEAST, LEAST - 1), Cause::Filling, "it takes little of the memory"),
            (Seen { written: 296 * MIB, ..enough }, Cause::Filling, "the run has written 296.0 MiB"),
            (Seen { utilisation: 0.01, ..enough }, Cause::Timer, "3.0 MiB is too little to wake a disk"),
        ] {
            let why = decide(&SETTINGS, &seen, cause).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
    }

    #[test]
    fn after_a_failure_only_a_request_is_carried_out_within_an_hour() {
        let ago = |seconds| Seen { failed: Some(Duration::from_secs(seconds)), excess: LEAST, ..seen() };
        for cause in [Cause::Timer, Cause::Filling, Cause::Pressure(Level::Critical)] {
            let why = decide(&SETTINGS, &ago(3599), cause).unwrap_err();
            assert_eq!(why, "it failed 59min 59s ago, and is tried again in 1s");
            run(&ago(3600), cause);
        }
        run(&ago(0), Cause::Request);
    }

    #[test]
    fn incompressible_pages_that_are_not_idle_are_written_if_configured_or_under_critical_pressure() {
        let seen = Seen { excess: 20 * MIB, ..seen() };
        for (cause, unless_configured, configured) in [
            (Cause::Timer, false, true),
            (Cause::Request, false, true),
            (Cause::Filling, false, false),
            (Cause::Pressure(Level::Moderate), false, false),
            (Cause::Pressure(Level::Severe), false, false),
            (Cause::Pressure(Level::Critical), true, true),
        ] {
            for (huge, expected) in [(false, unless_configured), (true, configured)] {
                let settings = Settings { huge, ..SETTINGS };
                assert_eq!(decide(&settings, &seen, cause).unwrap().huge, expected, "{cause}, {huge}");
            }
        }
    }

    #[test]
    fn while_memory_is_short_a_device_writes_what_it_holds_too_much() {
        for cause in [Cause::Filling, Cause::Pressure(Level::Critical)] {
            let short = |excess| run(&Seen { excess, ..seen() }, cause);
            let huge = cause == Cause::Pressure(Level::Critical);
            assert_eq!((short(20 * MIB).bytes, short(20 * MIB).huge), (20 * MIB, huge));
            assert_eq!(short(900 * MIB).bytes, 300 * MIB);
            // The daemon has looked at the time already, which is not that of this process.
            let soon = Seen { excess: 20 * MIB, last: Some(Duration::from_secs(29)), ..seen() };
            assert_eq!(run(&soon, cause).bytes, 20 * MIB);
            assert!(decide(&SETTINGS, &seen(), cause).is_err());
        }
    }

    #[test]
    fn runs_of_the_timer_keep_their_distance() {
        let soon = Seen { last: Some(Duration::from_secs(60)), ..seen() };
        assert!(skipped(&soon).contains("1min"));
        assert!(skipped(&Seen { last: Some(Duration::from_secs(599)), ..seen() }).contains("9min 59s"));
        run(&Seen { last: Some(Duration::from_secs(600)), ..seen() }, Cause::Timer);
        let short = Seen { excess: 900 * MIB, ..soon };
        assert_eq!(run(&short, Cause::Pressure(Level::Moderate)).bytes, 300 * MIB);
    }
}
