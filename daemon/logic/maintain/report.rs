//! What maintenance did and why, as it tells others: the `detail` of `/run/zramd/work/maintenance.json`.

use serde::{Deserialize, Serialize};

use super::resize::Resize;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Why it ran: `timer`, `request`, `pressure=LEVEL`.
    pub cause: String,
    /// When it ended, in microseconds since boot (CLOCK_MONOTONIC).
    pub ended_monotonic_usec: u64,
    /// What was done, in this order.
    pub actions: Vec<Action>,
    /// What was not, and why: the device (or empty), the policy, the reason.
    pub skipped: Vec<(String, String, String)>,
    /// The budget of write-back, where write-back is on.
    pub budget: Option<Budget>,
    /// Devices whose size no longer follows from the machine's memory.
    pub resizes: Vec<Resize>,
    /// Memory that each device used.
    pub memory: Vec<Used>,
}

/// Memory that a device used, before a run and after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// `zramN`.
    pub device: String,
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes after.
    pub after_bytes: u64,
}

/// What a policy has done since boot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Total {
    /// Times that it did something, a device at a time.
    pub runs: u64,
    /// Bytes of memory that it freed.
    pub freed_bytes: u64,
    /// Bytes that it wrote to backing devices.
    pub written_bytes: u64,
    /// Microseconds that it took.
    pub took_usec: u64,
    /// When it last had its turn, in microseconds since boot (CLOCK_MONOTONIC).
    pub last_monotonic_usec: u64,
    /// How that went: `done`, `skipped`, `postponed`, `cancelled` or `failed`.
    pub last_result: String,
}

impl Total {
    /// Adds what was just done.
    pub fn add(&mut self, actions: &[Action], result: &str, now_usec: u64) {
        self.runs = self.runs.saturating_add(u64::from(!actions.is_empty()));
        // What compaction frees may have been taken by the action before it; what others wrote meanwhile is no loss of the policy's.
        let freed = actions.iter().fold(0_i64, |sum, action| sum.saturating_add(action.freed_bytes));
        self.freed_bytes = self.freed_bytes.saturating_add(u64::try_from(freed).unwrap_or(0));
        for action in actions {
            self.written_bytes = self.written_bytes.saturating_add(action.written_bytes);
            self.took_usec = self.took_usec.saturating_add(action.took_usec);
        }
        self.last_monotonic_usec = now_usec;
        result.clone_into(&mut self.last_result);
    }
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Action {
    /// `zramN`.
    pub device: String,
    /// `mark-idle`, `recompress`, `write-back`, `compact`.
    pub action: String,
    /// Which pages, in the kernel's words, or empty.
    pub pages: String,
    /// Why.
    pub reason: String,
    /// What came of it, for people.
    pub result: String,
    /// Bytes of memory that it freed; negative when it took some.
    pub freed_bytes: i64,
    /// Bytes written to the backing device.
    pub written_bytes: u64,
    /// Microseconds that it took.
    pub took_usec: u64,
}

impl Action {
    /// What was done, with which pages.
    pub fn what(&self) -> String {
        if self.pages.is_empty() { self.action.clone() } else { format!("{} {}", self.action, self.pages) }
    }
}

/// The budget of write-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Bytes in any 24 hours.
    pub daily_bytes: u64,
    /// Bytes of it that are left.
    pub left_bytes: u64,
    /// Bytes written since they are counted.
    pub total_bytes: u64,
}

impl Report {
    /// Bytes of memory that the run freed.
    pub fn freed_bytes(&self) -> i64 {
        self.actions.iter().fold(0, |sum, action| sum.saturating_add(action.freed_bytes))
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        if self.actions.is_empty() {
            let why = self.skipped.first().map(|(device, policy, reason)| {
                let device = if device.is_empty() { String::new() } else { format!("{device}: ") };
                format!(" ({device}{policy}: {reason})")
            });
            return format!("nothing to do{}", why.unwrap_or_default());
        }
        let words: Vec<String> = self
            .actions
            .iter()
            .map(|action| format!("{}: {}: {}", action.device, action.what(), action.result))
            .collect();
        words.join("; ")
    }
}
