//! When the timers of RAM disks elapse next.
//!
//! PID 1 is asked beforehand, never while a property is read: zbus holds a lock on all objects while it announces one. Calls
//! wait for that lock, and behind 64 of them no reply is received, so that any user could stop the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Notify;
use zbus::Connection;

use super::systemd::property_of;
use crate::lock::lock;
use host::Host;
use host::linux::{LinuxHost, clock};
use logic::duration::micros;
use logic::unit::ramdisk::saving_timer;

/// Minimum time between two rounds of questions.
const PAUSE: Duration = Duration::from_secs(1);

/// The next saves of RAM disks by timer.
#[derive(Debug, Default)]
pub struct NextSaves {
    /// By name, in microseconds of CLOCK_MONOTONIC as PID 1 has said: a step of the clock or a suspend changes the time of day at
    /// which a timer elapses, and nothing tells of it.
    known: std::sync::Mutex<BTreeMap<String, u64>>,
    /// Notified to ask again.
    outdated: Notify,
}

impl NextSaves {
    /// The next save in microseconds since 1970; 0 if there is none, or if it is not known yet.
    pub fn of(&self, disk: &str) -> u64 {
        let next = lock(&self.known).get(disk).copied().unwrap_or(0);
        let now = monotonic_usec();
        if next < now {
            self.ask();
        }
        since_1970(next, now, clock::unix_usec())
    }

    /// Has PID 1 asked again.
    pub fn ask(&self) {
        self.outdated.notify_one();
    }

    /// Waits until that is wanted, and asks for these RAM disks.
    pub async fn refresh(&self, connection: &Connection, disks: impl FnOnce() -> Vec<String>) {
        self.outdated.notified().await;
        let mut known = BTreeMap::new();
        for disk in disks() {
            let next = monotonic(connection, &saving_timer(&disk)).await;
            known.insert(disk, next);
        }
        *lock(&self.known) = known;
        tokio::time::sleep(PAUSE).await;
    }
}

/// When this timer elapses next, in microseconds since 1970; 0 if it does not, or if it is unknown.
pub async fn of_timer(connection: &Connection, unit: &str) -> u64 {
    since_1970(monotonic(connection, unit).await, monotonic_usec(), clock::unix_usec())
}

/// The same as PID 1 says it.
async fn monotonic(connection: &Connection, unit: &str) -> u64 {
    let interface = "org.freedesktop.systemd1.Timer";
    let next = property_of(connection, unit, interface, "NextElapseUSecMonotonic").await;
    next.and_then(|next| u64::try_from(next).ok()).unwrap_or(0)
}

fn monotonic_usec() -> u64 {
    micros(LinuxHost::new("/").monotonic())
}

/// A time of CLOCK_MONOTONIC as microseconds since 1970. PID 1 returns 0 or the largest number if there is none.
fn since_1970(next: u64, now: u64, today: u64) -> u64 {
    if next == 0 || next == u64::MAX { 0 } else { today.saturating_sub(now).saturating_add(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_known_follows_the_clock() {
        let saves = NextSaves::default();
        lock(&saves.known).insert("a".to_owned(), monotonic_usec() + 60_000_000);
        let ahead = saves.of("a") - clock::unix_usec();
        assert!((50_000_000..=60_000_000).contains(&ahead), "{ahead}");
        assert_eq!(saves.of("b"), 0);
    }

    #[test]
    fn monotonic_times_are_converted_relative_to_now() {
        assert_eq!(since_1970(70, 60, 1_000_000), 1_000_010);
        assert_eq!(since_1970(50, 60, 1_000_000), 999_990, "it is late");
        assert_eq!((since_1970(0, 60, 1), since_1970(u64::MAX, 60, 1)), (0, 0));
    }
}
