//! Bytes that were written, in all and in a rolling period of 24 hours, which a budget limits: by write-back, and by the
//! saves of a RAM disk.
//!
//! Amounts age only by time that has certainly passed: by the boot-time clock, and between boots by the wall clock if
//! it was synchronised before and after, which may be long after boot. A clock that jumps, a power failure or a damaged
//! file can therefore delay write-back, but never allow more of it. The bytes of a run are reserved before it begins.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Version of the file.
pub const VERSION: u32 = 1;
/// The period.
pub const WINDOW: Duration = Duration::from_secs(24 * 3600);
/// Amounts that began less than this ago are merged, to keep the file small.
const MERGE: Duration = Duration::from_secs(3600);
/// Maximum error of a synchronised clock, of both readings together.
const SLACK: Duration = Duration::from_secs(120);

/// The clocks by which amounts age.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clocks {
    /// ID of this boot.
    pub boot_id: String,
    /// Time since boot, including suspend.
    pub boot: Duration,
    /// Time since 1970; `None` unless the clock is synchronised.
    pub synchronised: Option<Duration>,
}

/// Bytes that were written, or reserved, at about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Amount {
    /// Minimum time since the last of them.
    last: Duration,
    /// Minimum time since the first.
    first: Duration,
    bytes: u64,
    /// Whether all of them were written before the time of the [`Anchor`].
    #[serde(default)]
    anchored: bool,
}

/// The latest time of an earlier boot at which the wall clock was synchronised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Anchor {
    boot_id: String,
    /// Time since 1970, by a synchronised clock.
    wall: Duration,
    /// Time by which amounts have aged since.
    counted: Duration,
}

/// Bytes written during the last 24 hours, with times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    version: u32,
    /// When the file was written. All amounts are older.
    clocks: Clocks,
    #[serde(default)]
    anchor: Option<Anchor>,
    /// Oldest first.
    amounts: Vec<Amount>,
    /// Bytes that the present run, or one that was killed, may have written.
    reserved: u64,
    /// Total bytes written since the ledger exists, including those that killed runs may have written.
    #[serde(default)]
    total: u64,
}

impl Ledger {
    /// The first one: nothing was written before.
    pub fn first(now: Clocks) -> Ledger {
        Ledger { version: VERSION, clocks: now, anchor: None, amounts: Vec::new(), reserved: 0, total: 0 }
    }

    /// The ledger if the record cannot be read: as if everything had just been spent.
    fn unknown(now: Clocks) -> Ledger {
        let all = Amount { last: Duration::ZERO, first: Duration::ZERO, bytes: u64::MAX, anchored: false };
        Ledger { amounts: vec![all], ..Ledger::first(now) }
    }

    /// Reads the file, and ages the amounts by the time since it was written. Bytes reserved by a killed run count as
    /// written. Also returns why it cannot be read, if so.
    pub fn read(text: Result<Option<String>, String>, now: Clocks) -> (Ledger, Option<String>) {
        let read = match text {
            Err(why) => Err(format!("the record of earlier writes cannot be read: {why}")),
            Ok(None) => return (Ledger::first(now), None),
            Ok(Some(text)) => serde_json::from_str::<Ledger>(&text)
                .map_err(|error| format!("the record of earlier writes cannot be read: {error}"))
                .and_then(|ledger| match ledger.version {
                    VERSION => Ok(ledger),
                    other => Err(format!("the record of earlier writes has version {other}")),
                }),
        };
        match read {
            Ok(mut ledger) => {
                ledger.resume(now);
                (ledger, None)
            }
            Err(why) => (Ledger::unknown(now), Some(why)),
        }
    }

    /// Ages the amounts by the time since the ledger was written. Bytes reserved by a killed run count as written.
    pub fn resume(&mut self, now: Clocks) {
        self.pass(now);
        let lost = std::mem::take(&mut self.reserved);
        // They may have been written just before.
        self.add(lost);
        self.total = self.total.saturating_add(lost);
    }

    /// Contents of the file.
    pub fn text(&self) -> String {
        // Numbers and texts can always be serialised; an empty file would be read as no record.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn pass(&mut self, now: Clocks) {
        if let Some(wall) = self.clocks.synchronised {
            let boot_id = self.clocks.boot_id.clone();
            self.anchor = Some(Anchor { boot_id, wall, counted: Duration::ZERO });
            self.amounts.iter_mut().for_each(|amount| amount.anchored = true);
        }
        let passed = passed(&self.clocks, &now);
        self.amounts.iter_mut().for_each(|amount| amount.age(passed));
        if let Some(anchor) = &mut self.anchor {
            anchor.counted = anchor.counted.saturating_add(passed);
            // Within one boot, the wall clock is not used.
            if let Some(wall) = now.synchronised.filter(|_| anchor.boot_id != now.boot_id) {
                let since = wall.saturating_sub(anchor.wall).saturating_sub(SLACK);
                let rest = since.saturating_sub(anchor.counted);
                self.amounts.iter_mut().filter(|amount| amount.anchored).for_each(|amount| amount.age(rest));
            }
        }
        self.amounts.retain(|amount| amount.last < WINDOW);
        self.clocks = now;
    }

    fn add(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        match self.amounts.last_mut().filter(|last| last.first < MERGE) {
            Some(last) => {
                last.bytes = last.bytes.saturating_add(bytes);
                last.last = Duration::ZERO;
                last.anchored = false;
            }
            None => self.amounts.push(Amount {
                last: Duration::ZERO,
                first: Duration::ZERO,
                bytes,
                anchored: false,
            }),
        }
    }

    /// Bytes written or reserved in the last 24 hours; the largest number if they are unknown.
    pub fn spent(&self) -> u64 {
        self.amounts.iter().fold(self.reserved, |sum, amount| sum.saturating_add(amount.bytes))
    }

    /// Bytes left of the budget.
    pub fn left(&self, daily: u64) -> u64 {
        daily.saturating_sub(self.spent())
    }

    /// Total bytes written since the ledger exists, including those that killed runs may have written.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Time until the oldest amount leaves the period, when more of the budget is available.
    pub fn wait(&self) -> Duration {
        self.amounts.first().map_or(Duration::ZERO, |oldest| WINDOW.saturating_sub(oldest.last))
    }

    /// Reserves bytes for a run. Save the ledger before the run begins.
    pub fn reserve(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_add(bytes);
    }

    /// Replaces the reserved bytes by those actually written.
    pub fn settle(&mut self, written: u64, now: Clocks) {
        self.reserved = 0;
        self.pass(now);
        self.add(written);
        self.total = self.total.saturating_add(written);
    }
}

impl Amount {
    fn age(&mut self, time: Duration) {
        self.last = self.last.saturating_add(time);
        self.first = self.first.saturating_add(time);
    }
}

/// Minimum time that has passed, by the boot-time clock. If it shows a later time, only the difference is certain, even
/// in another boot; an earlier time proves another boot, and so at least the present uptime.
fn passed(before: &Clocks, now: &Clocks) -> Duration {
    match now.boot.checked_sub(before.boot) {
        Some(passed) => passed,
        None if now.boot_id != before.boot_id => now.boot,
        None => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::ledger::*;

    const MIB: u64 = 1 << 20;
    const HOUR: Duration = Duration::from_secs(3600);

    fn at(boot: &str, hours: u32) -> Clocks {
        Clocks { boot_id: boot.to_owned(), boot: HOUR * hours, synchronised: None }
    }

    fn again(ledger: &Ledger, now: Clocks) -> Ledger {
        let (ledger, why) = Ledger::read(Ok(Some(ledger.text())), now);
        assert_eq!(why, None);
        ledger
    }

    #[test]
    fn before_the_first_run_nothing_is_spent() {
        let (ledger, why) = Ledger::read(Ok(None), at("a", 1));
        assert_eq!((ledger.left(MIB), ledger.total(), why), (MIB, 0, None));
    }

    #[test]
    fn a_broken_file_means_that_all_is_spent() {
        for text in [
            Err("an error of the disk".to_owned()),
            Ok(""),
            Ok("{"),
            Ok(
                r#"{"version":2,"clocks":{"boot_id":"","boot":{"secs":0,"nanos":0},"synchronised":null},"amounts":[],"reserved":0}"#,
            ),
        ] {
            let (ledger, why) = Ledger::read(text.clone().map(|text| Some(text.to_owned())), at("a", 1));
            assert!(why.is_some(), "{text:?}");
            assert_eq!(ledger.left(u64::MAX), 0);
            assert_eq!(again(&ledger, at("a", 24)).left(u64::MAX), 0);
            assert_eq!(again(&ledger, at("a", 25)).left(MIB), MIB, "a day later");
        }
    }

    #[test]
    fn what_was_written_comes_back_after_a_day() {
        let mut ledger = Ledger::first(at("a", 24));
        ledger.reserve(100 * MIB);
        assert_eq!(ledger.left(150 * MIB), 50 * MIB);
        ledger.settle(60 * MIB, at("a", 24));
        assert_eq!(ledger.left(150 * MIB), 90 * MIB, "what was not written is not lost");
        assert_eq!(again(&ledger, at("a", 47)).left(150 * MIB), 90 * MIB);
        assert_eq!(again(&ledger, at("a", 48)).left(150 * MIB), 150 * MIB);
        assert_eq!(ledger.wait(), WINDOW);
    }

    #[test]
    fn what_was_written_an_hour_later_comes_back_an_hour_later() {
        let mut ledger = Ledger::first(at("a", 24));
        ledger.settle(100 * MIB, at("a", 24));
        ledger.settle(10 * MIB, at("a", 25));
        assert_eq!(again(&ledger, at("a", 48)).spent(), 10 * MIB);
        assert_eq!(again(&ledger, at("a", 49)).spent(), 0);
    }

    #[test]
    fn a_run_that_was_killed_counts_as_if_it_had_written_everything() {
        let mut ledger = Ledger::first(at("a", 24));
        ledger.reserve(100 * MIB);
        let ledger = again(&ledger, at("b", 1));
        assert_eq!((ledger.left(150 * MIB), ledger.total()), (50 * MIB, 100 * MIB));
        assert_eq!(again(&ledger, at("b", 24)).left(150 * MIB), 50 * MIB);
        assert_eq!(again(&ledger, at("b", 25)).left(150 * MIB), 150 * MIB);
    }

    #[test]
    fn over_budget_is_not_practically_unlimited() {
        let mut ledger = Ledger::first(at("a", 24));
        ledger.settle(200 * MIB, at("a", 24));
        assert_eq!(ledger.left(150 * MIB), 0);
        ledger.reserve(u64::MAX);
        assert_eq!(ledger.left(150 * MIB), 0);
    }

    #[test]
    fn between_boots_only_a_synchronised_clock_is_believed() {
        let clocks = |boot: &str, hours: u32, wall: Option<u32>| Clocks {
            synchronised: wall.map(|hours| HOUR * hours),
            ..at(boot, hours)
        };
        let mut ledger = Ledger::first(clocks("a", 24, Some(1000)));
        ledger.settle(100 * MIB, clocks("a", 24, Some(1000)));
        assert_eq!(again(&ledger, clocks("b", 0, None)).left(100 * MIB), 0);
        assert_eq!(again(&ledger, clocks("b", 0, Some(1025))).left(100 * MIB), 100 * MIB);
        assert_eq!(again(&ledger, clocks("b", 0, Some(1024))).left(100 * MIB), 0, "clocks are never exact");
        assert_eq!(again(&ledger, clocks("b", 0, Some(5))).left(100 * MIB), 0, "backwards");
        // Within one boot, the wall clock is not used.
        assert_eq!(again(&ledger, clocks("a", 25, Some(9000))).left(100 * MIB), 0);
    }

    #[test]
    fn a_clock_that_is_synchronised_long_after_boot_counts_the_time_switched_off() {
        let clocks = |boot: &str, hours: u32, wall: Option<u32>| Clocks {
            synchronised: wall.map(|hours| HOUR * hours),
            ..at(boot, hours)
        };
        let mut ledger = Ledger::first(clocks("a", 24, Some(1000)));
        ledger.settle(100 * MIB, clocks("a", 24, Some(1000)));
        // The daemon may run before the clock is synchronised, and there may be boots in which it never is.
        ledger = again(&ledger, clocks("b", 0, None));
        ledger = again(&ledger, clocks("c", 1, None));
        ledger = again(&ledger, clocks("c", 2, None));
        assert_eq!(ledger.left(100 * MIB), 0);
        ledger.settle(10 * MIB, clocks("c", 2, None));
        ledger = again(&ledger, clocks("c", 3, Some(1020)));
        assert_eq!(ledger.wait(), 4 * HOUR + SLACK);
        ledger = again(&ledger, clocks("c", 8, Some(1025)));
        assert_eq!(ledger.left(100 * MIB), 90 * MIB, "what was written in this boot is as old as it is");
        assert_eq!(again(&ledger, clocks("c", 25, None)).left(100 * MIB), 90 * MIB);
        assert_eq!(again(&ledger, clocks("c", 26, None)).left(100 * MIB), 100 * MIB);
    }

    #[test]
    fn what_the_boot_clock_shows_has_passed_in_any_boot() {
        let mut ledger = Ledger::first(at("a", 30));
        ledger.settle(100 * MIB, at("a", 30));
        assert_eq!(again(&ledger, at("b", 23)).left(100 * MIB), 0);
        assert_eq!(
            again(&ledger, at("b", 24)).left(100 * MIB),
            100 * MIB,
            "less than before, so it began later"
        );
        assert_eq!(again(&ledger, at("b", 53)).left(100 * MIB), 0, "a container's boot may be none");
        assert_eq!(again(&ledger, at("b", 54)).left(100 * MIB), 100 * MIB);
        assert_eq!(again(&ledger, at("a", 29)).left(100 * MIB), 0, "the same boot never goes back");
    }

    #[test]
    fn a_file_of_an_older_version_is_understood() {
        let text = r#"{"version":1,"clocks":{"boot_id":"a","boot":{"secs":9,"nanos":0},"synchronised":{"secs":3600,"nanos":0}},
            "amounts":[{"last":{"secs":0,"nanos":0},"first":{"secs":7,"nanos":0},"bytes":1048576}],"reserved":0,"total":5}"#;
        let (ledger, why) = Ledger::read(Ok(Some(text.to_owned())), at("b", 0));
        assert_eq!((why, ledger.left(MIB), ledger.total()), (None, 0, 5));
        let day = Clocks { synchronised: Some(HOUR * 26), ..at("b", 0) };
        assert_eq!(again(&ledger, day).left(MIB), MIB);
    }

    proptest! {
        /// For any sequence of boots and clock changes, no amount is taken for older than it is.
        #[test]
        fn no_amount_is_older_than_it_is(
            steps in prop::collection::vec((0_u32..300, 0_u32..8, 0_u32..900, -60_i64..=60), 1..80),
        ) {
            let minute = Duration::from_secs(60);
            let (mut now, mut began, mut boot) = (HOUR * 9000, HOUR * 8990, 0);
            let (mut synchronised, mut error) = (false, 0);
            let mut writes: Vec<(Duration, u64)> = Vec::new();
            let mut ledger = Ledger::first(at("0", 10));
            for (minutes, what, off, seconds) in steps {
                if what < 2 {
                    now += minute * off;
                    (began, boot, synchronised, error) = (now, boot + 1, what == 1, seconds);
                }
                now += minute * minutes;
                synchronised = (synchronised || what == 2) && what != 3;
                let wall = Duration::from_secs(now.as_secs().saturating_add_signed(error));
                let clocks = Clocks {
                    boot_id: boot.to_string(),
                    boot: now.saturating_sub(began),
                    synchronised: synchronised.then_some(wall),
                };
                ledger = again(&ledger, clocks.clone());
                for (then, _) in &writes {
                    let age = now.saturating_sub(*then);
                    let younger = writes.iter().filter(|(then, _)| now.saturating_sub(*then) <= age);
                    let known = ledger.amounts.iter().filter(|amount| amount.last <= age);
                    let known: u64 = known.map(|amount| amount.bytes).sum();
                    prop_assert!(age >= WINDOW || younger.map(|(_, bytes)| bytes).sum::<u64>() <= known, "{age:?} {ledger:?}");
                }
                ledger.reserve(10);
                // Killed after it has written everything.
                if what != 7 {
                    ledger.settle(10, clocks);
                }
                writes.push((now, 10));
            }
        }
    }

    #[test]
    fn the_file_stays_small() {
        let mut ledger = Ledger::first(at("a", 24));
        for minute in 0..3 * 1440 {
            let now = Clocks { boot: HOUR * 24 + Duration::from_secs(60 * minute), ..at("a", 0) };
            ledger = again(&ledger, now.clone());
            ledger.settle(1, now);
        }
        assert!(ledger.amounts.len() <= 26, "{}", ledger.amounts.len());
        assert!((1440..=1500).contains(&ledger.spent()), "{}", ledger.spent());
        assert_eq!(ledger.total(), 3 * 1440);
    }
}
