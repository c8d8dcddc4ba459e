//! Report of a maintenance run: the `detail` of `/run/zramd/work/maintenance.json`.

use serde::{Deserialize, Serialize};

use super::resize::Resize;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Maintenance"))]
#[serde(default)]
pub struct Report {
    /// What triggered it: `timer`, `request`, `filling`, `pressure=LEVEL`.
    pub cause: String,
    /// When it ended, in microseconds since boot (CLOCK_MONOTONIC).
    #[serde(rename = "last_maintenance_monotonic")]
    pub ended_monotonic_usec: u64,
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// What was skipped: the device (or empty), the policy, the reason.
    pub skipped: Vec<(String, String, String)>,
    /// The write-back budget, if write-back is enabled.
    #[serde(rename = "writeback_budget")]
    pub budget: Option<Budget>,
    /// Devices whose size no longer matches the machine's memory.
    pub resizes: Vec<Resize>,
    /// Memory used by each device.
    pub memory: Vec<Used>,
}

/// Memory used by a device, before and after a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MemoryUsed"))]
#[serde(default)]
pub struct Used {
    /// `zramN`.
    pub device: String,
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes after.
    pub after_bytes: u64,
}

/// Totals of a policy since boot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Total {
    /// Number of operations, counted per device.
    pub runs: u64,
    /// Bytes of memory freed.
    pub freed_bytes: u64,
    /// Bytes written to backing devices.
    pub written_bytes: u64,
    /// Duration in microseconds.
    pub took_usec: u64,
    /// When it last ran, in microseconds since boot (CLOCK_MONOTONIC).
    pub last_monotonic_usec: u64,
    /// Result of that run: `done`, `skipped`, `postponed`, `cancelled` or `failed`.
    pub last_result: String,
}

impl Total {
    /// Adds the actions of a run.
    pub fn add(&mut self, actions: &[Action], result: &str, now_usec: u64) {
        self.runs = self.runs.saturating_add(u64::from(!actions.is_empty()));
        // Memory taken by one action may be freed by the compaction after it; growth caused by other programs does not
        // count as a loss.
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

/// An action on a device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MaintenanceAction"))]
#[serde(default)]
pub struct Action {
    /// `zramN`.
    pub device: String,
    /// `mark-idle`, `recompress`, `write-back`, `compact`.
    pub action: String,
    /// The selection of pages, as the word of the kernel; or empty.
    pub pages: String,
    /// Why.
    pub reason: String,
    /// Result, for people.
    pub result: String,
    /// Bytes of memory freed; negative if it grew.
    pub freed_bytes: i64,
    /// Bytes written to the backing device.
    pub written_bytes: u64,
    /// Duration in microseconds.
    pub took_usec: u64,
}

impl Action {
    /// Name of the action, and its pages.
    pub fn what(&self) -> String {
        if self.pages.is_empty() { self.action.clone() } else { format!("{} {}", self.action, self.pages) }
    }
}

/// The write-back budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// Bytes per rolling 24 hours.
    pub daily_bytes: u64,
    /// Bytes left.
    pub left_bytes: u64,
    /// Bytes written in the last 24 hours; the largest number if they are unknown.
    #[serde(rename = "writeback_day_bytes")]
    pub day_bytes: u64,
    /// Total bytes written since they are counted.
    #[serde(rename = "writeback_total_bytes")]
    pub total_bytes: u64,
}

impl Report {
    /// Bytes of memory freed by the run.
    pub fn freed_bytes(&self) -> i64 {
        self.actions.iter().fold(0, |sum, action| sum.saturating_add(action.freed_bytes))
    }

    /// A summary in one sentence.
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
