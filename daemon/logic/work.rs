//! Progress and result of a job of `zramd-worker`: one small JSON file per job, `/run/zramd/work/NAME.json`.
//!
//! It is updated at most four times per second while the job runs, and is kept until the next job of that name begins.
//! The programs that start or watch a job read it.

use serde::{Deserialize, Serialize};

use super::error::ErrorKind;
use crate::word::word;

/// Version of the file's format.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// Its cancellation was requested.
    Cancelled,
    /// The machine was busy; the job is tried again later.
    Postponed,
}

impl Ending {
    /// The word in files and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// Contents of the file. `D` are the details of this kind of job; readers that do not need them use
/// [`serde::de::IgnoredAny`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work<D> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Verb of `zramd-worker`.
    pub verb: String,
    /// The process that runs it.
    pub pid: u32,
    /// When it began, in microseconds since boot (CLOCK_MONOTONIC).
    pub started_monotonic_usec: u64,
    /// Progress, 0 to 1.
    pub progress: f64,
    /// The current operation, for people.
    pub doing: String,
    /// Result; `None` while it runs.
    pub result: Option<Ending>,
    /// Message about the result, for people.
    pub message: String,
    /// The kind of error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// Details of this kind of job.
    #[serde(default = "Default::default", bound(deserialize = "D: Default + Deserialize<'de>"))]
    pub detail: D,
}

/// The result of a job that was requested at `asked_usec` and no longer runs, according to its file. A file without a
/// result means that the job was killed; an older file belongs to another job.
pub fn ending<D>(file: Option<&Work<D>>, asked_usec: u64) -> (Ending, String) {
    match file.filter(|work| work.started_monotonic_usec >= asked_usec) {
        Some(work) => match work.result {
            Some(outcome) => (outcome, work.message.clone()),
            None => (Ending::Failed, format!("it was killed during: {}", work.doing)),
        },
        None => (Ending::Failed, "it ended before it began".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    const TEXT: &str = r#"{"schema_version":1,"verb":"benchmark","pid":123,"started_monotonic_usec":500,"progress":0.42,
        "doing":"zstd(level=1)","result":null,"message":"","detail":{"pages":3,"more":[1,{}]}}"#;

    fn read(text: &str) -> Work<IgnoredAny> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn readers_that_do_not_care_about_details_skip_them() {
        let work = read(TEXT);
        assert_eq!((work.verb.as_str(), work.pid, work.result), ("benchmark", 123, None));
        let work: Work<serde_json::Value> = serde_json::from_str(TEXT).unwrap();
        assert_eq!(work.detail["pages"], 3);
        assert_eq!(read(&TEXT.replace(r#","detail":{"pages":3,"more":[1,{}]}"#, "")).doing, "zstd(level=1)");
    }

    #[test]
    fn the_end_is_told_by_the_file_of_this_work_only() {
        let done = read(&TEXT.replace("null", r#""done""#).replace(r#""message":"""#, r#""message":"lz4""#));
        assert_eq!(ending(Some(&done), 500), (Ending::Done, "lz4".to_owned()));
        assert_eq!(ending(Some(&done), 501).0, Ending::Failed, "it is older");
        let killed = ending(Some(&read(TEXT)), 0);
        assert_eq!(killed.0, Ending::Failed);
        assert!(killed.1.contains("zstd(level=1)"), "{killed:?}");
        assert_eq!(ending::<()>(None, 0).0, Ending::Failed);
    }
}
