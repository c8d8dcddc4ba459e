//! Alarms while memory is short, before the kernel kills processes: full swap, failed writes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::finding::{Code, Finding};
use crate::sample::Snapshot;

use super::pressure::LOOK;

/// The findings that cause an alarm.
const CODES: [Code; 4] = [Code::SwapFull, Code::SwapNearlyFull, Code::WritesFailed, Code::MemoryLimitNear];
/// Percentage of managed swap in use from which it is checked more often.
const FILLING: u64 = 70;
/// Interval of these checks: the last pages can fill up quickly.
const OFTEN: Duration = Duration::from_millis(500);

/// Alarms that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alarms {
    /// By code and object. For failed writes, with their number at the end of the last shortage: it never decreases.
    told: BTreeMap<(Code, String), Option<u64>>,
}

impl Alarms {
    /// The alarms to send now: each once per device.
    pub fn news<'a>(&mut self, snapshot: &'a Snapshot) -> Vec<&'a Finding> {
        let mut news = Vec::new();
        for found in snapshot.problems.iter().filter(|found| CODES.contains(&found.code)) {
            let key = (found.code, found.object.clone());
            let is_known = self
                .told
                .get(&key)
                .is_some_and(|before| before.is_none_or(|count| count == failed_writes(snapshot, &key.1)));
            if !is_known {
                self.told.insert(key, None);
                news.push(found);
            }
        }
        news
    }

    /// Ends a shortage of memory: findings that are gone, and a further rise of failed writes, cause another alarm
    /// later.
    pub fn calm(&mut self, snapshot: &Snapshot) {
        self.told.retain(|(code, object), count| {
            *count = (*code == Code::WritesFailed).then(|| failed_writes(snapshot, object));
            snapshot.problems.iter().any(|found| found.code == *code && found.object == *object)
        });
    }
}

fn failed_writes(snapshot: &Snapshot, device: &str) -> u64 {
    snapshot.device(device).map_or(0, |device| device.stats.io.failed_writes)
}

/// Time until the next check.
pub fn next_look(snapshot: &Snapshot) -> Duration {
    let swaps = snapshot.devices.iter().filter(|device| device.managed).filter_map(|device| device.swap);
    let fills = |swap: crate::sample::SwapView| swap.used_bytes >= swap.size_bytes / 100 * FILLING;
    if swaps.into_iter().any(fills) { OFTEN } else { LOOK }
}

#[cfg(test)]
mod tests {
    use crate::health::{Surroundings, findings};
    use crate::maintain::alarm::*;
    use crate::sample::{DeviceView, RoleView, StateView, SwapView};

    const GIB: u64 = 1 << 30;

    /// A machine whose swap is in use by this percentage.
    fn swap(percent: u64) -> Snapshot {
        let swap = SwapView { priority: 100, size_bytes: GIB, used_bytes: GIB / 100 * percent };
        let device = DeviceView {
            name: "zram0".to_owned(),
            managed: true,
            role: RoleView::Swap,
            state: StateView::Active,
            swap: Some(swap),
            ..DeviceView::default()
        };
        Snapshot { devices: vec![device], ..Snapshot::default() }
    }

    fn seen(snapshot: &Snapshot) -> Snapshot {
        Snapshot { problems: findings(snapshot, &Surroundings::default()), ..snapshot.clone() }
    }

    fn told(alarms: &mut Alarms, snapshot: &Snapshot) -> Vec<String> {
        alarms
            .news(&seen(snapshot))
            .into_iter()
            .map(|found| format!("{} {}", found.code, found.object))
            .collect()
    }

    #[test]
    fn swap_that_fills_up_is_told_twice_and_then_no_more() {
        let mut alarms = Alarms::default();
        assert_eq!(told(&mut alarms, &swap(90)), [""; 0]);
        assert_eq!(told(&mut alarms, &swap(96)), ["swap-nearly-full zram0"]);
        assert_eq!(told(&mut alarms, &swap(97)), [""; 0]);
        assert_eq!(told(&mut alarms, &swap(100)), ["swap-full zram0"]);
        assert_eq!(told(&mut alarms, &swap(96)), [""; 0]);
        // It remains full during several shortages.
        alarms.calm(&seen(&swap(96)));
        assert_eq!(told(&mut alarms, &swap(96)), [""; 0]);
        // It had not remained full.
        assert_eq!(told(&mut alarms, &swap(100)), ["swap-full zram0"]);
        alarms.calm(&seen(&swap(10)));
        assert_eq!(told(&mut alarms, &swap(96)), ["swap-nearly-full zram0"]);
    }

    #[test]
    fn writes_that_fail_are_told_and_other_problems_are_not() {
        let mut snapshot = swap(10);
        snapshot.devices[0].stats.memory.mem_limit = GIB / 2;
        snapshot.devices[0].stats.memory.mem_used_total = GIB / 2 - 1;
        snapshot.devices[0].stats.derived.huge_share = 0.9;
        snapshot.devices[0].stats.memory.orig_data_size = GIB;
        let mut alarms = Alarms::default();
        assert_eq!(told(&mut alarms, &snapshot), ["memory-limit-near zram0"]);
        snapshot.devices[0].stats.io.failed_writes = 1;
        assert_eq!(told(&mut alarms, &snapshot), ["writes-failed zram0"]);
        snapshot.devices[0].stats.io.failed_writes = 2;
        assert_eq!(told(&mut alarms, &snapshot), [""; 0]);
        // The number never decreases: an alarm depends on whether it has grown when memory is short again.
        alarms.calm(&seen(&snapshot));
        assert_eq!(told(&mut alarms, &snapshot), [""; 0]);
        snapshot.devices[0].stats.io.failed_writes = 3;
        assert_eq!(told(&mut alarms, &snapshot), ["writes-failed zram0"]);
        assert_eq!(told(&mut alarms, &snapshot), [""; 0]);
    }

    #[test]
    fn what_fills_up_is_looked_at_more_often() {
        assert_eq!(next_look(&Snapshot::default()), LOOK);
        assert_eq!(next_look(&swap(60)), LOOK);
        assert_eq!(next_look(&swap(69)), LOOK);
        assert_eq!(next_look(&swap(70)), OFTEN);
        assert_eq!(next_look(&swap(75)), OFTEN);
        let mut other = swap(90);
        other.devices[0].managed = false;
        assert_eq!(next_look(&other), LOOK);
    }
}
