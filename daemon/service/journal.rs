//! The journal: one message id per kind of event, explained in `units/zramd.catalog`.

use std::fmt::Display;

use logic::finding::{self, Finding};
use logic::human::human;
use logic::log::Level;
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

/// A caller may not do what it asked for, or it cannot be done.
pub const REFUSED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d07";

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

/// The daemon serves.
pub fn started(devices: usize) {
    tracing::info!(MESSAGE_ID = STARTED, "zramd {} serves {devices} zram devices", env!("CARGO_PKG_VERSION"));
}

/// Unfinished work of a previous daemon was completed.
pub fn resumed(what: &str) {
    tracing::info!(MESSAGE_ID = RESUMED, "completed an interrupted change: {what}");
}

/// Memory pressure has another level.
pub fn pressure(level: &str, from: &str, reason: &str) {
    tracing::info!(
        MESSAGE_ID = PRESSURE,
        ZRAMD_PRESSURE = level,
        "memory pressure: {from} -> {level}: {reason}"
    );
}

/// Compressed swap is full, fails, or takes in what does not compress, while memory is short.
pub fn alarm(found: &Finding) {
    let (code, object) = (found.code.to_string(), found.object.as_str());
    tracing::error!(
        MESSAGE_ID = ALARM,
        ZRAMD_PROBLEM = code.as_str(),
        ZRAMD_OBJECT = object,
        "{} ({})",
        found.message,
        found.remedy
    );
}

/// Swapping stops because of what has arrived.
pub fn swapping_stopped(arrived: Totals) {
    tracing::warn!(
        MESSAGE_ID = SWAPPING,
        ZRAMD_SWAPPING = "stopped",
        "swapping stops for {} at most, because it frees no memory: {}",
        span(LONGEST),
        arrived.share(0).unwrap_or_default()
    );
}

pub fn swapping_resumed() {
    tracing::info!(MESSAGE_ID = SWAPPING, ZRAMD_SWAPPING = "resumed", "swapping is resumed");
}

/// Maintenance changed pages of a device.
pub fn maintained(action: &Action) {
    tracing::info!(
        MESSAGE_ID = MAINTAINED,
        ZRAMD_OBJECT = action.device.as_str(),
        ZRAMD_ACTION = action.action.as_str(),
        "{}: {}: {} ({})",
        action.device,
        action.what(),
        action.result,
        action.reason
    );
}

/// Work of the daemon itself has ended.
pub fn job_ended(kind: &str, result: Ending, message: &str) {
    ended(kind, None, result, message, false);
}

/// A job has ended. `request` says for whom. `slip`: it failed because of a mistake of the caller, which is no error of the machine.
pub fn ended(kind: &str, request: Option<&dyn Display>, result: Ending, message: &str, slip: bool) {
    let who = request.map(|request| format!(" (for {request})")).unwrap_or_default();
    // It decides whether the message is written.
    let priority = level_of(result, slip).priority();
    if result == Ending::Done {
        tracing::error!(
            PRIORITY = priority,
            MESSAGE_ID = JOB_DONE,
            ZRAMD_JOB_TYPE = kind,
            "{kind}: {message}{who}"
        );
    } else {
        let word = result.word();
        tracing::error!(
            PRIORITY = priority,
            MESSAGE_ID = JOB_FAILED,
            ZRAMD_JOB_TYPE = kind,
            ZRAMD_RESULT = word,
            "{kind} {word}: {message}{who}"
        );
    }
}

/// A method that needs no job has changed something.
pub fn changed(method: &str, object: &str, request: &dyn Display) {
    tracing::info!(
        MESSAGE_ID = JOB_DONE,
        ZRAMD_JOB_TYPE = method,
        ZRAMD_RESULT = Ending::Done.word(),
        "{method} of {object}: done (for {request})"
    );
}

/// A change was not begun.
pub fn refused(method: &str, object: &str, request: &dyn Display, why: &str) {
    tracing::info!(
        PRIORITY = Level::Notice.priority(),
        MESSAGE_ID = REFUSED,
        ZRAMD_JOB_TYPE = method,
        "{method} of {object} refused: {why} (for {request})"
    );
}

/// Log level for the result of a job.
fn level_of(result: Ending, slip: bool) -> Level {
    match result {
        // Not a fault: cancelled by a user, or postponed because the machine is busy.
        Ending::Done | Ending::Cancelled | Ending::Postponed => Level::Info,
        _ if slip => Level::Warning,
        Ending::Failed => Level::Err,
    }
}

/// A RAM disk is getting full.
pub fn space_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    let free = human(free);
    tracing::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name,
        "{mount_point} (ramdisk.{name}) is {percent} % full, {free} are free (`zramdctl ramdisk resize {name} SIZE` gives it more)"
    );
}

/// A RAM disk is running out of inodes.
pub fn inodes_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    tracing::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name,
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
            finding::Level::Error => Level::Err,
            finding::Level::Warning => Level::Warning,
            finding::Level::Note => Level::Info,
        };
        // The priority decides whether it is written.
        tracing::error!(
            PRIORITY = level.priority(),
            MESSAGE_ID = PROBLEM,
            ZRAMD_PROBLEM = code.as_str(),
            ZRAMD_OBJECT = object,
            "{} ({})",
            found.sentence(),
            found.remedy
        );
    }
    for found in before.iter().filter(|found| !has(now, found)) {
        tracing::info!(
            MESSAGE_ID = PROBLEM_GONE,
            ZRAMD_PROBLEM = found.code.to_string().as_str(),
            ZRAMD_OBJECT = found.object.as_str(),
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
        assert_eq!(levels, [Level::Info, Level::Info, Level::Info, Level::Err]);
        assert_eq!(level_of(Ending::Failed, true), Level::Warning);
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
            REFUSED,
            SPACE_LOW,
            PRESSURE,
            MAINTAINED,
            ALARM,
            SWAPPING,
        ];
        assert_eq!(explained, all);
    }
}
