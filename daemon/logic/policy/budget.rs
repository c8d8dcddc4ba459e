//! How much may be written to the backing device: at most so much in any 24 hours, whatever happens in between.
//!
//! Each amount grows old only by time that is known to have passed: by the boot-time clock within one boot, and between boots by
//! the wall clock if it was synchronised before and after. A clock that jumps, a power cut and a file that is lost can therefore
//! only delay write-back, never allow more of it. What a run may write is reserved before it begins.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Version of the file.
pub const VERSION: u32 = 1;
/// The window.
pub const WINDOW: Duration = Duration::from_secs(24 * 3600);
/// Amounts whose first bytes are younger than this are kept as one, so that the file stays small.
const MERGE: Duration = Duration::from_secs(3600);
/// Most that a synchronised clock is off by, at both ends together.
const SLACK: Duration = Duration::from_secs(120);

/// The clocks, as far as the budget needs them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clocks {
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// Since boot, with suspend.
    pub boot: Duration,
    /// Since 1970, if the clock is synchronised with others.
    pub synchronised: Option<Duration>,
}

/// Bytes written, or reserved, at about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Amount {
    /// Time known to have passed since the last of them.
    last: Duration,
    /// Time known to have passed since the first.
    first: Duration,
    bytes: u64,
}

/// What was written during the last 24 hours, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    version: u32,
    clocks: Clocks,
    /// Youngest last.
    amounts: Vec<Amount>,
    /// What the run that goes on, or was killed, may have written.
    reserved: u64,
    /// Bytes written since there is a ledger.
    #[serde(default)]
    total: u64,
}

impl Ledger {
    /// The ledger when nothing is known: as if all had just been spent.
    pub fn unknown(now: Clocks) -> Ledger {
        let all = Amount { last: Duration::ZERO, first: Duration::ZERO, bytes: u64::MAX };
        Ledger { version: VERSION, clocks: now, amounts: vec![all], reserved: 0, total: 0 }
    }

    /// Reads the file, and lets the time pass that has passed since it was written. What a run reserved that never came back
    /// counts as written. The reason, when the file says nothing.
    pub fn read(text: Option<&str>, now: Clocks) -> (Ledger, Option<String>) {
        let read = match text {
            None => Err("there is no record of earlier writes".to_owned()),
            Some(text) => serde_json::from_str::<Ledger>(text)
                .map_err(|error| format!("the record of earlier writes cannot be read: {error}"))
                .and_then(|ledger| match ledger.version {
                    VERSION => Ok(ledger),
                    other => Err(format!("the record of earlier writes has version {other}")),
                }),
        };
        match read {
            Ok(mut ledger) => {
                ledger.pass(now);
                let lost = std::mem::take(&mut ledger.reserved);
                // Until a moment ago, for all that is known.
                ledger.add(lost);
                (ledger, None)
            }
            Err(why) => (Ledger::unknown(now), Some(why)),
        }
    }

    /// The file.
    pub fn text(&self) -> String {
        // Plain numbers and texts can always be written; an empty file would be read as unknown.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn pass(&mut self, now: Clocks) {
        let before = &self.clocks;
        let passed = if before.boot_id == now.boot_id {
            now.boot.saturating_sub(before.boot)
        } else {
            match (before.synchronised, now.synchronised) {
                (Some(then), Some(now)) => now.saturating_sub(then).saturating_sub(SLACK),
                _ => Duration::ZERO,
            }
        };
        for amount in &mut self.amounts {
            amount.last = amount.last.saturating_add(passed);
            amount.first = amount.first.saturating_add(passed);
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
            }
            None => self.amounts.push(Amount { last: Duration::ZERO, first: Duration::ZERO, bytes }),
        }
    }

    /// Bytes written in the last 24 hours, or reserved.
    pub fn spent(&self) -> u64 {
        self.amounts.iter().fold(self.reserved, |sum, amount| sum.saturating_add(amount.bytes))
    }

    /// Bytes that may still be written.
    pub fn left(&self, daily: u64) -> u64 {
        daily.saturating_sub(self.spent())
    }

    /// Bytes written since there is a ledger.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// When more may be written, if nothing is left: the time until the oldest amount leaves the window.
    pub fn wait(&self) -> Duration {
        self.amounts.first().map_or(Duration::ZERO, |oldest| WINDOW.saturating_sub(oldest.last))
    }

    /// Reserves bytes for a run. The ledger has to be on disk before the run begins.
    pub fn reserve(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_add(bytes);
    }

    /// Replaces what was reserved by what was written.
    pub fn settle(&mut self, written: u64, now: Clocks) {
        self.reserved = 0;
        self.pass(now);
        self.add(written);
        self.total = self.total.saturating_add(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const HOUR: Duration = Duration::from_secs(3600);

    fn at(boot: &str, hours: u32) -> Clocks {
        Clocks { boot_id: boot.to_owned(), boot: HOUR * hours, synchronised: None }
    }

    fn again(ledger: &Ledger, now: Clocks) -> Ledger {
        let (ledger, why) = Ledger::read(Some(&ledger.text()), now);
        assert_eq!(why, None);
        ledger
    }

    #[test]
    fn a_lost_or_broken_file_means_that_all_is_spent() {
        for text in [
            None,
            Some(""),
            Some("{"),
            Some(
                r#"{"version":2,"clocks":{"boot_id":"","boot":{"secs":0,"nanos":0},"synchronised":null},"amounts":[],"reserved":0}"#,
            ),
        ] {
            let (ledger, why) = Ledger::read(text, at("a", 1));
            assert!(why.is_some(), "{text:?}");
            assert_eq!(ledger.left(u64::MAX), 0);
            assert_eq!(again(&ledger, at("a", 24)).left(u64::MAX), 0);
            assert_eq!(again(&ledger, at("a", 25)).left(MIB), MIB, "a day later");
        }
    }

    #[test]
    fn what_was_written_comes_back_after_a_day() {
        let mut ledger = again(&Ledger::unknown(at("a", 0)), at("a", 24));
        ledger.reserve(100 * MIB);
        assert_eq!(ledger.left(150 * MIB), 50 * MIB);
        ledger.settle(60 * MIB, at("a", 24));
        assert_eq!(ledger.left(150 * MIB), 90 * MIB, "what was not written is not lost");
        assert_eq!(again(&ledger, at("a", 47)).left(150 * MIB), 90 * MIB);
        assert_eq!(again(&ledger, at("a", 48)).left(150 * MIB), 150 * MIB);
        assert_eq!(ledger.wait(), WINDOW);
    }

    #[test]
    fn a_run_that_was_killed_counts_as_if_it_had_written_everything() {
        let mut ledger = again(&Ledger::unknown(at("a", 0)), at("a", 24));
        ledger.reserve(100 * MIB);
        let ledger = again(&ledger, at("b", 1));
        assert_eq!(ledger.left(150 * MIB), 50 * MIB);
        assert_eq!(again(&ledger, at("b", 24)).left(150 * MIB), 50 * MIB);
        assert_eq!(again(&ledger, at("b", 25)).left(150 * MIB), 150 * MIB);
    }

    #[test]
    fn over_budget_is_not_practically_unlimited() {
        let mut ledger = again(&Ledger::unknown(at("a", 0)), at("a", 24));
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
        let mut ledger = again(&Ledger::unknown(at("a", 0)), clocks("a", 24, Some(1000)));
        ledger.settle(100 * MIB, clocks("a", 24, Some(1000)));
        assert_eq!(again(&ledger, clocks("b", 0, None)).left(100 * MIB), 0);
        assert_eq!(again(&ledger, clocks("b", 0, Some(1025))).left(100 * MIB), 100 * MIB);
        assert_eq!(again(&ledger, clocks("b", 0, Some(1024))).left(100 * MIB), 0, "clocks are never exact");
        assert_eq!(again(&ledger, clocks("b", 0, Some(5))).left(100 * MIB), 0, "backwards");
        // Within one boot, the wall clock has no say.
        assert_eq!(again(&ledger, clocks("a", 25, Some(9000))).left(100 * MIB), 0);
    }

    #[test]
    fn the_file_stays_small() {
        let mut ledger = again(&Ledger::unknown(at("a", 0)), at("a", 24));
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
