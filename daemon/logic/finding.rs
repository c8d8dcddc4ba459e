//! A finding: a mistake in the configuration, a problem of the machine, or something worth knowing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::ErrorKind;
use super::origin::Origin;
use super::text::{shown, worded};

/// Percentage in use from which a device, its memory limit or a RAM disk counts as nearly full.
const NEARLY_FULL_PERCENT: u64 = 95;

/// Whether that much of a size or limit is in use; 0 is no limit.
pub fn is_nearly_full(used: u64, limit: u64) -> bool {
    limit > 0 && used / 100 * 100 >= limit / 100 * NEARLY_FULL_PERCENT
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingLevel"))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something does not work, or data was lost.
    #[default]
    Error,
    /// It works, but worse than it could, or only for a limited time.
    Warning,
    /// Intended, but worth knowing.
    Note,
}

/// Its name in JSON and on the bus.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Kind of a finding, for programs. The meaning of a code never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingCode"))]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A section of the configuration is not used.
    ConfigInvalid,
    /// A setting is ignored or harmful.
    ConfigDoubtful,
    /// Changes of the configuration do not last, or are refused.
    ConfigNotLasting,
    /// A managed device is gone, or was reset.
    DeviceLost,
    /// Another program has set up a managed device since zramd did.
    DeviceTakenOver,
    /// A record in `/run/zramd` is damaged.
    RecordDamaged,
    /// A configured device is set up by another program, or its record is lost.
    DeviceUnmanaged,
    /// The machine has more or less memory than when the device was set up.
    MemoryChanged,
    /// The set-up of a device was interrupted.
    Unfinished,
    /// A swap device is not active.
    SwapOff,
    /// A device lacks its configured backing device.
    WritebackMissing,
    /// Reads of a device failed.
    ReadsFailed,
    /// Writes to a device failed.
    WritesFailed,
    /// Swap is full.
    SwapFull,
    /// Swap is nearly full.
    SwapNearlyFull,
    /// The size of a swap device does not fit what it stores.
    SizeDoubtful,
    /// A file system on a device is nearly full.
    FilesystemNearlyFull,
    /// A device has nearly reached its memory limit.
    MemoryLimitNear,
    /// Most pages of a device do not compress.
    Incompressible,
    /// zswap is on.
    ZswapActive,
    /// zswap is on, but there is no swap on a disk.
    ZswapWithoutSwap,
    /// Other swap is preferred.
    PriorityInverted,
    /// Swap on a disk is used when compressed swap is full.
    DiskSwapBelow,
    /// Another program's configuration can be imported.
    ImportOffered,
    /// Another program sets up zram, too.
    ForeignManager,
    /// A line of `/etc/fstab` is for what zramd sets up.
    FstabLine,
    /// A unit of the administrator takes the place of one of zramd.
    UnitHidden,
    /// An option of the zram driver adds devices, or keeps it from being loaded.
    DriverOption,
    /// A kernel setting changed by zramd was changed again.
    SettingChanged,
    /// Hibernation has no swap on a disk.
    NoDiskSwapForHibernation,
    /// `resume=` names a zram device.
    ResumeOnZram,
    /// A RAM disk is nearly full.
    RamdiskNearlyFull,
    /// A RAM disk could not be loaded.
    RamdiskNotLoaded,
    /// The directory on disk is used instead of a RAM disk.
    RamdiskPassthrough,
    /// A RAM disk was loaded from an older snapshot.
    RamdiskFallback,
    /// A RAM disk is empty, because its snapshot could not be loaded.
    RamdiskBeganEmpty,
    /// The previous boot ended without a last save.
    RamdiskUnclean,
    /// Snapshots cannot be written.
    StoreNotWritable,
    /// The last save failed.
    SaveFailed,
    /// The store has no room for the next save.
    StoreNearlyFull,
    /// Saves write more than the daily budget.
    RamdiskOverBudget,
    /// A snapshot cannot be loaded.
    SnapshotBroken,
    /// An intact snapshot was not loaded, or would not be, for a reason of this machine.
    SnapshotHeld,
    /// Contents of the newest snapshot are damaged.
    SnapshotDamaged,
    /// A damaged snapshot was set aside.
    SnapshotCorrupt,
    /// Snapshots of an earlier version are not loaded.
    SnapshotOld,
    /// RAM disks can hold more than there is memory.
    RamdisksExceedMemory,
    /// A key is overridden at runtime.
    Overridden,
    /// The section of an override no longer exists.
    OverrideOrphaned,
    /// A device was created at runtime.
    CreatedAtRuntime,
    /// The kernel's figures cannot be read.
    Unreadable,
    /// zram-generator sets up the same device.
    DeviceClaimedTwice,
    /// The verdict of the benchmark cannot be read.
    VerdictDamaged,
    /// A device does not use the verdict of the benchmark.
    VerdictNotUsed,
    /// A change is refused.
    Refused,
    /// A configured device does not exist.
    NotSetUp,
    /// A device is not as configured.
    NotInLine,
    /// Swap is drained for hibernation.
    SwapDrained,
    /// This is a container.
    Container,
    /// The kernel has no zram.
    ZramMissing,
    /// The kernel cannot load RAM disks.
    KernelTooOld,
    /// The kernel does not report memory pressure.
    PressureUnknown,
    /// The kernel reports memory pressure to privileged programs only.
    PressureNeedsRights,
    /// A program was ended because memory ran out.
    ProgramEnded,
    /// The generator is not installed.
    GeneratorMissing,
    /// `zramd.service` is not enabled.
    NotEnabled,
    /// `zramd.service` does not run.
    DaemonNotRunning,
}

/// Its name in JSON, on the bus and in the journal.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A finding. All of them are reported, not only the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Severity. With an error in the configuration, the section, or for a syntax error the file, is not used.
    pub level: Level,
    /// Code.
    pub code: Code,
    /// The object concerned: a device, a file; empty for the machine.
    pub object: String,
    /// The message: one sentence, which names the object unless there is a place.
    pub message: String,
    /// What to do, in one line.
    pub remedy: String,
    /// Kind of error with which a target is refused, if it is about the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// Its place, if it is about the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Origin>,
}

impl Finding {
    /// Creates a finding about the machine.
    pub fn new(
        level: Level,
        code: Code,
        object: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level,
            code,
            object: object.to_owned(),
            message: worded(shown(message)),
            remedy: worded(shown(remedy)),
            kind: None,
            place: None,
        }
    }

    /// A mistake: the section or file is not used.
    pub fn error(origin: Origin, message: impl Into<String>) -> Finding {
        let found = Finding::new(Level::Error, Code::ConfigInvalid, &origin.place(), message, "");
        Finding { kind: Some(ErrorKind::Config), place: Some(origin), ..found }
    }

    /// A doubtful setting: it is used, or ignored without harm.
    pub fn warning(origin: Origin, message: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, code: Code::ConfigDoubtful, ..Finding::error(origin, message) }
    }

    /// Why a target is refused.
    pub fn refusal(kind: ErrorKind, origin: &Origin, reason: impl Into<String>) -> Finding {
        Finding::error(origin.clone(), reason).kind(kind)
    }

    /// Sets the kind of error.
    #[must_use]
    pub fn kind(mut self, kind: ErrorKind) -> Finding {
        self.kind = Some(kind);
        self
    }

    /// Sets the object concerned.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Finding {
        self.object = object.into();
        self
    }

    /// Sets the code.
    #[must_use]
    pub fn code(mut self, code: Code) -> Finding {
        self.code = code;
        self
    }

    /// Sets what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = worded(shown(remedy));
        self
    }

    /// Its key in the configuration, `section.key`; empty without one.
    pub fn key(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.key)
    }

    /// Its line, counted from 1; 0 without one.
    pub fn line(&self) -> u32 {
        self.place.as_ref().map_or(0, |place| place.line)
    }

    /// The message after its place: `/etc/zramd/zramd.toml:3: zram0.zram-size: …`
    pub fn sentence(&self) -> String {
        let place = self.place.as_ref().map(Origin::place).unwrap_or_default();
        let parts = [place.as_str(), self.key(), self.message.as_str()];
        shown(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "))
    }

    /// Message and remedy.
    pub fn text(&self) -> String {
        match self.remedy.as_str() {
            "" => self.message.clone(),
            remedy => format!("{} ({remedy})", self.message),
        }
    }

    /// `/etc/zramd/zramd.toml:3:9: zram0.zram-size: what is wrong (what to write)`. Always one line, even if quoted text has several:
    /// each line of the kernel log is an entry of its own.
    pub fn one_line(&self) -> String {
        let mut text = String::new();
        if let Some(place) = &self.place {
            if !place.file.as_os_str().is_empty() {
                text.push_str(&place.file.display().to_string());
                if place.line > 0 {
                    text.push_str(&format!(":{}:{}", place.line, place.column));
                }
                text.push_str(": ");
            }
            if !place.key.is_empty() {
                text.push_str(&format!("{}: ", place.key));
            }
        }
        text.push_str(&self.text());
        shown(text)
    }

    /// Whether both have the same code, object and place.
    pub fn is_same(&self, other: &Finding) -> bool {
        (self.code, &self.object, self.key()) == (other.code, &other.object, other.key())
    }
}

/// Adds what a comparison with the configuration found to what is known about the machine, which says more: neither the same again, nor
/// that a target is not as configured, if there is a reason.
pub fn add(known: &mut Vec<Finding>, more: impl IntoIterator<Item = Finding>) {
    for one in more {
        let is_difference = matches!(one.code, Code::Refused | Code::NotSetUp | Code::NotInLine);
        let is_covered = |other: &Finding| {
            other.object == one.object && (is_difference || (other.code == one.code && other.place.is_none()))
        };
        if !known.iter().any(is_covered) {
            known.push(one);
        }
    }
}

/// Whether one of them is an error.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.level == Level::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_begins_no_line_of_its_own() {
        let found =
            Finding::new(Level::Note, Code::Refused, "", "a\nerror: b", "c\n  help: d").remedy("e\nf");
        assert_eq!((found.message.as_str(), found.remedy.as_str()), ("a\\x0aerror: b", "e\\x0af"));
    }

    #[test]
    fn what_is_quoted_cannot_begin_a_line_of_its_own() {
        let origin = Origin { key: "a\nb".to_owned(), ..Origin::default() };
        let found = Finding::error(origin, "`\u{1b}[31m` is unknown").remedy("write\tb");
        assert_eq!(found.one_line(), r"a\x0ab: `\x1b[31m` is unknown (write\x09b)");
    }

    #[test]
    fn a_sentence_begins_with_the_place() {
        let origin =
            Origin { file: "/f".into(), line: 3, key: "zram0.zram-size".to_owned(), ..Origin::default() };
        let found = Finding::error(origin, "there is no `RAM`").remedy("did you mean `ram`?");
        assert_eq!((found.object.as_str(), found.code), ("/f:3", Code::ConfigInvalid));
        assert_eq!(found.sentence(), "/f:3: zram0.zram-size: there is no `RAM`");
        assert_eq!(found.text(), "there is no `RAM` (did you mean `ram`?)");
        assert_eq!(
            Finding::new(Level::Note, Code::SwapOff, "zram0", "zram0 is off", "").sentence(),
            "zram0 is off"
        );
    }

    #[test]
    fn a_file_without_a_line_is_named_alone() {
        let origin = Origin { file: "/proc/cmdline".into(), ..Origin::default() };
        assert_eq!(Finding::error(origin, "it has a mistake").one_line(), "/proc/cmdline: it has a mistake");
    }

    #[test]
    fn nearly_full_is_95_percent_of_a_limit() {
        for (used, limit, expected) in [
            (9500, 10_000, true),
            (9499, 10_000, false),
            (10_000, 10_000, true),
            (0, 10_000, false),
            // No limit.
            (0, 0, false),
            (9500, 0, false),
        ] {
            assert_eq!(is_nearly_full(used, limit), expected, "{used} of {limit}");
        }
    }

    #[test]
    fn a_finding_is_the_same_with_another_message_but_not_of_another_key() {
        let finding = |code, object: &str, key: &str, message: &str| {
            let place = Origin { key: key.to_owned(), ..Origin::default() };
            Finding { place: Some(place), ..Finding::new(Level::Note, code, object, message, "") }
        };
        let known = finding(Code::Overridden, "zram0", "zram0.zram-size", "64 MiB");
        assert!(known.is_same(&finding(Code::Overridden, "zram0", "zram0.zram-size", "96 MiB")));
        for other in [
            finding(Code::OverrideOrphaned, "zram0", "zram0.zram-size", "64 MiB"),
            finding(Code::Overridden, "zram1", "zram0.zram-size", "64 MiB"),
            finding(Code::Overridden, "zram0", "zram0.label", "64 MiB"),
        ] {
            assert!(!known.is_same(&other), "{other:?}");
        }
    }

    #[test]
    fn what_is_known_of_an_object_covers_the_same_and_that_it_differs() {
        let finding = |code, object: &str| Finding::new(Level::Note, code, object, "", "");
        for (code, object, is_added) in [
            (Code::SwapOff, "zram0", false),
            (Code::SwapOff, "zram1", true),
            (Code::Incompressible, "zram0", true),
            (Code::Incompressible, "zram1", true),
            (Code::Refused, "zram0", false),
            (Code::NotInLine, "zram0", false),
            (Code::NotInLine, "zram1", true),
        ] {
            let mut known = vec![finding(Code::SwapOff, "zram0")];
            add(&mut known, [finding(code, object)]);
            assert_eq!(known.len(), if is_added { 2 } else { 1 }, "{code:?} {object}");
        }
        let in_a_file = Finding { place: Some(Origin::default()), ..finding(Code::SwapOff, "zram0") };
        let mut known = vec![in_a_file];
        add(&mut known, [finding(Code::SwapOff, "zram0")]);
        assert_eq!(known.len(), 2, "a mistake in a file is another");
    }
}
