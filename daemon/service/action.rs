//! The polkit actions, and what their prompts say.

use zbus::message::Header;

use super::names::name_in_path;
use logic::human::human;
use logic::proc::device_number;

/// The polkit actions of methods; `units/org.zramd1.policy` has their descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Harmless changes that lose no data: compaction, maintenance, counters.
    Tune,
    /// Create, remove, resize, limit, activate, reload, cancel jobs of other users.
    Manage,
    /// Change the configuration.
    Configure,
    /// Save a RAM disk, or verify a snapshot.
    SaveRamdisk,
    /// Restore a RAM disk from a snapshot; delete and pin snapshots.
    RestoreRamdisk,
    /// Run the benchmark.
    Benchmark,
}

impl Action {
    /// Its polkit id.
    pub const fn id(self) -> &'static str {
        match self {
            Action::Tune => "org.zramd1.tune",
            Action::Manage => "org.zramd1.manage",
            Action::Configure => "org.zramd1.configure",
            Action::SaveRamdisk => "org.zramd1.save-ramdisk",
            Action::RestoreRamdisk => "org.zramd1.restore-ramdisk",
            Action::Benchmark => "org.zramd1.benchmark",
        }
    }

    /// The action on a device or RAM disk, by the name that the caller gave.
    pub(crate) fn on(self, name: &str) -> Asked {
        let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        let name = match device_number(name) {
            Some(number) => format!("zram{number}"),
            None => name.chars().filter(is_of_name).take(LONGEST_NAME).collect(),
        };
        self.with("device", name)
    }

    /// The action with an amount of memory; 0 is no limit.
    pub(crate) fn of_size(self, bytes: u64) -> Asked {
        self.with("size", if bytes == 0 { "none".to_owned() } else { human(bytes) })
    }

    /// The action with a detail, which its message names.
    pub(crate) fn with(self, name: &'static str, value: String) -> Asked {
        Asked { action: self, detail: Some((name, value)) }
    }
}

/// Longest name in a prompt, in characters.
const LONGEST_NAME: usize = 40;

/// Domain of translations of the messages (gettext).
pub const DOMAIN: &str = "zramd";

/// The message of each method that polkit is asked about, by the last word of its interface and its name. polkit puts in the details of
/// the request: `$(device)`, `$(ramdisk)` and `$(job)` from the path of the object, others from the call.
#[rustfmt::skip]
const MESSAGES: [(&str, &str, &str); 27] = [
    ("Manager", "CreateDevice", "Authentication is required to set up compressed memory until the next boot: $(change)"),
    ("Manager", "RemoveDevice", "Authentication is required to remove $(device)."),
    ("Manager", "ActivateDevice", "Authentication is required to bring $(device) into use."),
    ("Manager", "UnsetOverride", "Authentication is required to bring $(device) in line with the configuration."),
    ("Manager", "PlanConfigure", "Authentication is required to see what a change of the configuration does: $(change)"),
    ("Manager", "Reload", "Authentication is required to apply the configuration of compressed memory."),
    ("Manager", "Configure", "Authentication is required to change the configuration of compressed memory: $(change)"),
    ("Manager", "Maintain", "Authentication is required to recompress compressed memory and write it back."),
    ("Device", "Resize", "Authentication is required to change the size of $(device) to $(size)."),
    ("Device", "SetMemoryLimit", "Authentication is required to change the memory limit of $(device) to $(size)."),
    ("Device", "Compact", "Authentication is required to compact $(device)."),
    ("Device", "ResetPeak", "Authentication is required to reset the peak of memory that $(device) has used."),
    ("Device", "MarkIdle", "Authentication is required to mark pages of $(device) as idle."),
    ("Device", "Recompress", "Authentication is required to recompress pages of $(device)."),
    ("Device", "Writeback", "Authentication is required to write pages of $(device) to its backing device."),
    ("Swap", "Activate", "Authentication is required to switch on the swap on $(device)."),
    ("Swap", "Deactivate", "Authentication is required to switch off the swap on $(device)."),
    ("RamDisk", "Save", "Authentication is required to save the RAM disk $(ramdisk)."),
    ("RamDisk", "Verify", "Authentication is required to verify a snapshot of the RAM disk $(ramdisk)."),
    ("RamDisk", "Restore", "Authentication is required to replace the contents of the RAM disk $(ramdisk) by a snapshot."),
    ("RamDisk", "DeleteSnapshot", "Authentication is required to delete a snapshot of the RAM disk $(ramdisk)."),
    ("RamDisk", "Pin", "Authentication is required to change which snapshots of the RAM disk $(ramdisk) are kept."),
    ("RamDisk", "Resize", "Authentication is required to change the size of the RAM disk $(ramdisk) to $(size)."),
    ("Benchmark", "Run", "Authentication is required to measure compression algorithms."),
    ("Benchmark", "Adopt", "Authentication is required to set up swap again with the algorithm of the benchmark."),
    ("Benchmark", "Forget", "Authentication is required to forget the result of the benchmark."),
    ("Job", "Cancel", "Authentication is required to cancel job $(job) of another user."),
];

/// All messages, for translators.
pub fn messages() -> impl Iterator<Item = &'static str> {
    MESSAGES.iter().map(|(_, _, message)| *message)
}

/// The message of a method.
pub fn message(interface: &str, method: &str) -> Option<&'static str> {
    let interface = interface.rsplit('.').next()?;
    let found = MESSAGES.iter().find(|(on, name, _)| *on == interface && *name == method);
    found.map(|(_, _, message)| *message)
}

/// An action that a caller asks for.
#[derive(Debug)]
pub struct Asked {
    pub(crate) action: Action,
    detail: Option<(&'static str, String)>,
}

impl From<Action> for Asked {
    fn from(action: Action) -> Asked {
        Asked { action, detail: None }
    }
}

impl Asked {
    /// The details of the request to polkit.
    pub(crate) fn details(self, call: &Header<'_>) -> Vec<(&'static str, String)> {
        let interface = call.interface().map(ToString::to_string).unwrap_or_default();
        let method = call.member().map(ToString::to_string).unwrap_or_default();
        let path = call.path().map(ToString::to_string).unwrap_or_default();
        let mut details: Vec<_> = name_in_path(&path).into_iter().chain(self.detail).collect();
        if let Some(message) = message(&interface, &method) {
            details.push(("polkit.message", message.to_owned()));
            details.push(("polkit.gettext_domain", DOMAIN.to_owned()));
        }
        details.push(("method", method));
        details
    }
}
