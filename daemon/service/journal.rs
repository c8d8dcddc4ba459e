//! The journal: one message id for each kind of event that somebody may want to find, explained in `units/zramd.catalog`.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::logic::health::{Finding, Level};
use crate::logic::policy::report::Action;
use crate::logic::units::human;

/// The daemon serves.
pub const STARTED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d01";
/// A job ended as it should.
pub const JOB_DONE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d02";
/// A job failed, was cancelled or postponed.
pub const JOB_FAILED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d03";
/// A problem has come up.
pub const PROBLEM: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d04";
/// A problem is gone.
pub const PROBLEM_GONE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d05";
/// Work that an earlier daemon left unfinished is finished now.
pub const RESUMED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d06";

/// A RAM disk is getting full.
pub const SPACE_LOW: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d20";
/// Memory pressure has another level.
pub const PRESSURE: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d11";
/// Something was done to the pages of a device.
pub const MAINTAINED: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d12";
/// A device is full or fails while memory is short.
pub const ALARM: &str = "5ab6d4dd0f9b4bb5a8b4c0f4f6ae2d13";

/// Sends events to the journal when systemd connected us to it, and otherwise to standard error.
pub fn open() {
    let filter = || Targets::new().with_target("zramd", LevelFilter::INFO);
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    match to_journal.then(tracing_journald::layer) {
        Some(Ok(journal)) => {
            tracing_subscriber::registry().with(filter()).with(journal.with_field_prefix(None)).init();
        }
        _ => {
            let text = tracing_subscriber::fmt::layer()
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .without_time()
                .with_target(false);
            tracing_subscriber::registry().with(filter()).with(text).init();
        }
    }
}

/// The daemon serves.
pub fn started(devices: usize) {
    tracing::info!(MESSAGE_ID = STARTED, "zramd {} serves {devices} zram devices", env!("CARGO_PKG_VERSION"));
}

/// Work of an earlier daemon is finished.
pub fn resumed(what: &str) {
    tracing::info!(MESSAGE_ID = RESUMED, "finished what was interrupted: {what}");
}

/// Memory pressure has another level.
pub fn pressure(level: &str, from: &str, reason: &str) {
    tracing::info!(
        MESSAGE_ID = PRESSURE,
        ZRAMD_PRESSURE = level,
        "memory pressure: {from} -> {level}: {reason}"
    );
}

/// A device is full or fails while memory is short.
pub fn alarm(found: &Finding) {
    let (code, object) = (found.code.as_str(), found.object.as_str());
    tracing::error!(
        MESSAGE_ID = ALARM,
        ZRAMD_PROBLEM = code,
        ZRAMD_OBJECT = object,
        "{} ({})",
        found.message,
        found.remedy
    );
}

/// Something was done to the pages of a device.
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

/// A job has ended.
pub fn job_ended(kind: &str, result: &str, message: &str) {
    ended(kind, result, message, false);
}

/// A job has ended; what is only a slip of whoever asked for it is no error of the machine.
pub fn ended(kind: &str, result: &str, message: &str, slip: bool) {
    match result {
        "done" => tracing::info!(MESSAGE_ID = JOB_DONE, ZRAMD_JOB = kind, "{kind}: {message}"),
        // Nothing is wrong: somebody wants it so, or the machine has better things to do.
        "cancelled" | "postponed" => tracing::info!(
            MESSAGE_ID = JOB_FAILED,
            ZRAMD_JOB = kind,
            ZRAMD_RESULT = result,
            "{kind} {result}: {message}"
        ),
        _ if slip => tracing::warn!(
            MESSAGE_ID = JOB_FAILED,
            ZRAMD_JOB = kind,
            ZRAMD_RESULT = result,
            "{kind} {result}: {message}"
        ),
        _ => tracing::error!(
            MESSAGE_ID = JOB_FAILED,
            ZRAMD_JOB = kind,
            ZRAMD_RESULT = result,
            "{kind} {result}: {message}"
        ),
    }
}

/// A RAM disk is getting full.
pub fn space_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    let free = human(free);
    tracing::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name,
        "{mount_point} (ramdisk.{name}) is {percent} % full, {free} are free (`zramdctl disk resize {name} SIZE` gives it more)"
    );
}

/// A RAM disk has hardly any inodes left, however many bytes are free.
pub fn inodes_low(name: &str, mount_point: &str, percent: u32, free: u64) {
    tracing::warn!(
        MESSAGE_ID = SPACE_LOW,
        ZRAMD_OBJECT = name,
        "{mount_point} (ramdisk.{name}) has {percent} % of its inodes in use: {free} more files fit (`inodes` in its section gives a tmpfs more)"
    );
}

/// Logs what has come up and what is gone between two looks.
pub fn problems(before: &[Finding], now: &[Finding]) {
    // The sentence holds figures that change; the problem is the same by code and object.
    let has = |list: &[Finding], found: &Finding| {
        list.iter().any(|other| other.code == found.code && other.object == found.object)
    };
    for found in now.iter().filter(|found| !has(before, found)) {
        let (code, object) = (found.code.as_str(), found.object.as_str());
        let text = format!("{} ({})", found.message, found.remedy);
        match found.level {
            Level::Error => {
                tracing::error!(MESSAGE_ID = PROBLEM, ZRAMD_PROBLEM = code, ZRAMD_OBJECT = object, "{text}");
            }
            Level::Warning => {
                tracing::warn!(MESSAGE_ID = PROBLEM, ZRAMD_PROBLEM = code, ZRAMD_OBJECT = object, "{text}");
            }
            Level::Note => {
                tracing::info!(MESSAGE_ID = PROBLEM, ZRAMD_PROBLEM = code, ZRAMD_OBJECT = object, "{text}");
            }
        }
    }
    for found in before.iter().filter(|found| !has(now, found)) {
        tracing::info!(
            MESSAGE_ID = PROBLEM_GONE,
            ZRAMD_PROBLEM = found.code.as_str(),
            ZRAMD_OBJECT = found.object.as_str(),
            "no longer: {}",
            found.message
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{Event, Level, Subscriber};
    use tracing_subscriber::layer::{Context, Layer};

    use super::*;
    use crate::service::core::lock;

    /// The levels of all events.
    #[derive(Default, Clone)]
    struct Levels(Arc<Mutex<Vec<Level>>>);

    impl<S: Subscriber> Layer<S> for Levels {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            lock(&self.0).push(*event.metadata().level());
        }
    }

    #[test]
    fn only_what_failed_is_an_error() {
        let levels = Levels::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(levels.clone()), || {
            for result in ["done", "cancelled", "postponed", "failed"] {
                job_ended("maintain", result, "why");
            }
            ended("activate", "failed", "there is no device zram77", true);
        });
        assert_eq!(*lock(&levels.0), [Level::INFO, Level::INFO, Level::INFO, Level::ERROR, Level::WARN]);
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
        ];
        assert_eq!(explained, all);
    }
}
