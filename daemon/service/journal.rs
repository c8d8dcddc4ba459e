//! The journal: one message id per kind of event, explained in `units/zramd.catalog`.

use host::out;
use log::{LevelFilter, Log, Metadata, Record};
use systemd_journal_logger::{JournalLog, connected_to_journal};

use logic::finding::{Finding, Level};
use logic::human::human;
use logic::maintain::incompressible::LONGEST;
use logic::maintain::span;
use logic::maintain::taken_in::Totals;
use logic::maintain_report::Action;
use logic::work::Ending;

/// The daemon serves.
pub const STARTED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d01";
/// A job was done.
pub const JOB_DONE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d02";
/// A job failed, was cancelled or postponed.
pub const JOB_FAILED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d03";
/// A problem has come up.
pub const PROBLEM: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d04";
/// A problem is gone.
pub const PROBLEM_GONE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d05";
/// Unfinished work of a previous daemon was completed.
pub const RESUMED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d06";

/// A RAM disk is getting full.
pub const SPACE_LOW: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d20";
/// Memory pressure has another level.
pub const PRESSURE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d11";
/// Maintenance changed pages of a device.
pub const MAINTAINED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d12";
/// A device is full or fails while memory is short.
pub const ALARM: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d13";
/// Swapping is stopped, or resumed.
pub const SWAPPING: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d14";

/// Logger for a daemon that runs outside of systemd.
struct StandardError;

impl Log for StandardError {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        out::note(&format!("{}: {}", record.level().as_str().to_ascii_lowercase(), record.args()));
    }

    fn flush(&self) {}
}

/// Logs to the journal if systemd connected the daemon to it, otherwise to standard error.
pub fn open() {
    let journal = connected_to_journal().then(JournalLog::new).and_then(Result::ok);
    // Fails only if a logger is installed already.
    match journal {
        Some(journal) => journal.install().ok(),
        None => log::set_logger(&StandardError).ok(),
    };
    log::set_max_level(LevelFilter::Info);
}

/// The daemon serves.
pub fn started(devices: usize) {
    log::info!(MESSAGE_ID = STARTED; "zramd {} serves {devices} zram devices", env!("CARGO_PKG_VERSION"));
}

/// Unfinished work of a previous daemon was completed.
pub fn resumed(what: &str) {
    log::info!(MESSAGE_ID = RESUMED; "completed an interrupted change: {what}");
}

/// Memory pressure has another level.
pub fn pressure(level: &str, from: &str, reason: &str) {
    log::info!(
        MESSAGE_ID = PRESSURE,
        ZRAMD_PRESSURE = level;
        "memory pressure: {from} -> {level}: {reason}"
    );
}

/// Compressed swap is full, fails, or takes in what does not compress, while memory is short.
pub fn alarm(found: &Finding) {
    let (code, object) = (found.code.to_string(), found.object.as_str());
    log::error!(
        MESSAGE_ID = ALARM,
        ZRAMD_PROBLEM = code.as_str(),
        ZRAMD_OBJECT = object;
        "{} ({})",
        found.message,
        found.remedy
    );
}

/// Swapping stops because of what has arrived.
pub fn swapping_stopped(arrived: Totals) {
    log::warn!(
        MESSAGE_ID = SWAPPING,
        ZRAMD_SWAPPING = "stopped";
        "swapping stops for {} at most, because it frees no memory: {}",
        span(LONGEST),
        arrived.share(0).unwrap_or_default()
    );
}

pub fn swapping_resumed() {
    log::info!(MESSAGE_ID = SWAPPING, ZRAMD_SWAPPING = "resumed"; "swapping is resumed");
}

/// Maintenance changed pages of a device.
pub fn maintained(action: &Action) {
    log::info!(
        MESSAGE_ID = MAINTAINED,
        ZRAMD_OBJECT = action.device.as_str(),
        ZRAMD_ACTION = action.action.as_str();
        "{}: {}: {} ({})",
        action.device,
        action.what(),
        action.result,
        action.reason
    );
}

/// A job has ended.
pub fn job_ended(kind: &str, result: Ending, message: &str) {
    ended(kind, result, message, false);
}

/// A job has ended. `slip`: it failed because of a mistake of the caller, which is no error of the machine.
pub fn ended(kind: &str, result: Ending, message: &str, slip: bool) {
    let word = result.word();
    if result == Ending::Done {
        log::info!(MESSAGE_ID = JOB_DONE, ZRAMD_JOB = kind; "{kind}: {message}");
    } else {
        let level = level_of(result, slip);
        log::log!(level, MESSAGE_ID = JOB_FAILED, ZRAMD_JOB = kind, ZRAMD_RESULT = word; "{kind} {word}: {message}");
    }
}

/// Log level for the result of a job.
fn level_of(result: Ending, slip: bool) -> log::Level {
    match result {
        // Not a fault: cancelled by a user, or postponed because the machine is busy.
        Ending::Done | Ending::Cancelled | Ending::Postponed => log::Level::Info,
        _ if slip => log::Level::Warn,
        Ending::Failed => log::Level::Error,
    }
}

/// A RAM disk is getting full.
pub fn space_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    let free = human(free);
    log::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name;
        "{mount_point} (ramdisk.{name}) is {percent} % full, {free} are free (`zramdctl ramdisk resize {name} SIZE` gives it more)"
    );
}

/// A RAM disk is running out of inodes.
pub fn inodes_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    log::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name;
        "{mount_point} (ramdisk.{name}) has {percent} % of its inodes in use: {free} more files fit (`inodes` in its section gives a tmpfs more)"
    );
}

/// Logs problems that have appeared or are gone.
pub fn problems(before: &[Finding], now: &[Finding]) {
    // The text has changing figures; a problem is identified by code and object.
    let has = |list: &[Finding], found: &Finding| list.iter().any(|other| other.is_same(found));
    for found in now.iter().filter(|found| !has(before, found)) {
        let (code, object) = (found.code.to_string(), found.object.as_str());
        let level = match found.level {
            Level::Error => log::Level::Error,
            Level::Warning => log::Level::Warn,
            Level::Note => log::Level::Info,
        };
        log::log!(
            level, MESSAGE_ID = PROBLEM, ZRAMD_PROBLEM = code.as_str(), ZRAMD_OBJECT = object;
            "{} ({})", found.sentence(), found.remedy
        );
    }
    for found in before.iter().filter(|found| !has(now, found)) {
        log::info!(
            MESSAGE_ID = PROBLEM_GONE,
            ZRAMD_PROBLEM = found.code.to_string().as_str(),
            ZRAMD_OBJECT = found.object.as_str();
            "no longer: {}",
            found.sentence()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_failed_is_an_error() {
        let levels = [Ending::Done, Ending::Cancelled, Ending::Postponed, Ending::Failed]
            .map(|result| level_of(result, false));
        assert_eq!(levels, [log::Level::Info, log::Level::Info, log::Level::Info, log::Level::Error]);
        assert_eq!(level_of(Ending::Failed, true), log::Level::Warn);
    }

    #[test]
    fn every_message_id_is_explained_in_the_catalogue() {
        let catalogue = include_str!("../../units/zramd.catalog");
        let explained: Vec<&str> = catalogue.lines().filter_map(|line| line.strip_prefix("-- ")).collect();
        let all = [
            STARTED,
            JOB_DONE,
            JOB_FAILED,
            PROBLEM,
            PROBLEM_GONE,
            RESUMED,
            SPACE_LOW,
            PRESSURE,
            MAINTAINED,
            ALARM,
            SWAPPING,
        ];
        assert_eq!(explained, all);
    }
}
