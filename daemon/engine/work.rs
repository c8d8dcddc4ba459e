//! Reports the progress of a job: writes the file described in `logic/work.rs`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, interrupt, work as directory};
use logic::duration::micros;
use logic::text::worded;
use logic::work::{Ending, SCHEMA_VERSION, Work};

/// Minimum interval between writes of the file, and between attempts to begin.
const INTERVAL: Duration = Duration::from_millis(250);

/// Why a job ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    Failed(Error),
    /// It was cancelled on request.
    Cancelled(String),
    /// The machine is busy; the text says why.
    Postponed(String),
}

impl<E: Into<Error>> From<E> for Stopped {
    fn from(error: E) -> Stopped {
        Stopped::Failed(error.into())
    }
}

/// A job in progress. On the whole machine, only one job of each name runs at a time.
#[derive(Debug)]
pub struct Reporter {
    root: PathBuf,
    name: String,
    work: Work<Value>,
    written: Duration,
    /// `None` without a file: the progress is not published.
    lock: Option<OwnedFd>,
}

impl Reporter {
    /// Begins job `name` (which names the file), done by `verb`. An error if another process is doing it.
    pub fn begin(root: &Path, name: &str, verb: &str) -> Result<Reporter, Error> {
        let busy = || Error::new(ErrorKind::Busy, format!("{verb}: another process does this already"));
        let lock = directory::take(root, name)?.ok_or_else(busy)?;
        Reporter::with(lock, root, name, verb, Value::Null)
    }

    /// A job whose progress and result are not published: for work that must not depend on that.
    pub fn unpublished(name: &str, verb: &str) -> Reporter {
        Reporter::new(None, Path::new("/"), name, verb, Value::Null)
    }

    /// As [`Reporter::begin`], but after the job of this name that is in progress, if any. The details of that job stay in
    /// the file until new ones are written.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`] when cancelled before it has begun.
    pub fn begin_after(root: &Path, name: &str, verb: &str) -> Result<Reporter, Error> {
        let lock = loop {
            if interrupt::is_asked() {
                return Err(Error::new(ErrorKind::Cancelled, format!("{verb}: cancelled")));
            }
            match directory::take(root, name)? {
                Some(lock) => break lock,
                None => std::thread::sleep(INTERVAL),
            }
        };
        let last = || serde_json::from_str::<Work<Value>>(&directory::read(root, name)?).ok();
        Reporter::with(lock, root, name, verb, last().map_or(Value::Null, |work| work.detail))
    }

    fn with(lock: OwnedFd, root: &Path, name: &str, verb: &str, detail: Value) -> Result<Reporter, Error> {
        let mut reporter = Reporter::new(Some(lock), root, name, verb, detail);
        reporter.write()?;
        Ok(reporter)
    }

    fn new(lock: Option<OwnedFd>, root: &Path, name: &str, verb: &str, detail: Value) -> Reporter {
        let now = now();
        let work = Work {
            schema_version: SCHEMA_VERSION,
            verb: verb.to_owned(),
            pid: std::process::id(),
            started_monotonic_usec: micros(now),
            progress: 0.0,
            doing: String::new(),
            result: None,
            message: String::new(),
            error: None,
            detail,
        };
        Reporter { root: root.to_owned(), name: name.to_owned(), work, written: now, lock }
    }

    /// Whether its progress and result are published.
    pub fn is_published(&self) -> bool {
        self.lock.is_some()
    }

    /// Reports the progress, from 0 to 1, and the current operation in words.
    pub fn progress(&mut self, share: f64, doing: &str) {
        self.work.progress = share.clamp(0.0, 1.0);
        if self.work.doing != doing {
            self.work.doing = worded(doing);
        }
        if now().saturating_sub(self.written) >= INTERVAL {
            // A failed write does not end the job; `end` reports a problem with the file.
            self.write().ok();
        }
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        interrupt::is_asked()
    }

    /// [`Stopped::Cancelled`] when cancelled; for `?` in loops.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_cancelled() {
            return Err(Stopped::Cancelled(format!("{}: cancelled", self.work.verb)));
        }
        Ok(())
    }

    /// The details so far, which are those of the previous job if they were kept.
    pub fn last<D: Default + DeserializeOwned>(&self) -> D {
        serde_json::from_value(self.work.detail.clone()).unwrap_or_default()
    }

    /// Sets details specific to this kind of job; written with the next progress or at the end.
    pub fn detail(&mut self, detail: &impl Serialize) -> Result<(), Error> {
        self.work.detail = serde_json::to_value(detail)
            .map_err(|error| Error::failed(format!("{}: write JSON: {error}", self.name)))?;
        Ok(())
    }

    /// Reports how the job ended.
    pub fn end(mut self, ended: &Result<String, Stopped>) -> Result<Ending, Error> {
        let (outcome, message) = match ended {
            Ok(message) => (Ending::Done, message),
            Err(Stopped::Failed(error)) => (Ending::Failed, &error.message),
            Err(Stopped::Cancelled(message)) => (Ending::Cancelled, message),
            Err(Stopped::Postponed(message)) => (Ending::Postponed, message),
        };
        self.work.result = Some(outcome);
        self.work.message = worded(message.as_str());
        if let Err(Stopped::Failed(error)) = ended {
            self.work.error = Some(error.kind);
        }
        self.work.doing.clear();
        if outcome == Ending::Done {
            self.work.progress = 1.0;
        }
        self.write()?;
        Ok(outcome)
    }

    fn write(&mut self) -> Result<(), Error> {
        if self.lock.is_none() {
            return Ok(());
        }
        let text = serde_json::to_string(&self.work)
            .map_err(|error| Error::failed(format!("{}: write JSON: {error}", self.name)))?;
        directory::write(&self.root, &self.name, &text).map_err(Error::failed)?;
        self.written = now();
        Ok(())
    }
}

fn now() -> Duration {
    LinuxHost::new("/").monotonic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(root: &Path) -> Work<Value> {
        serde_json::from_str(&directory::read(root, "benchmark").unwrap()).unwrap()
    }

    #[test]
    fn the_file_tells_the_beginning_and_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut reporter = Reporter::begin(directory.path(), "benchmark", "benchmark").unwrap();
        let work = read(directory.path());
        assert_eq!((work.pid, work.result, work.progress), (std::process::id(), None, 0.0));
        assert!(work.started_monotonic_usec > 0);
        reporter.detail(&[1, 2]).unwrap();
        assert_eq!(reporter.end(&Ok("lz4".to_owned())), Ok(Ending::Done));
        let work = read(directory.path());
        assert_eq!((work.result, work.message.as_str(), work.progress), (Some(Ending::Done), "lz4", 1.0));
        assert_eq!(work.detail, serde_json::json!([1, 2]));
    }

    #[test]
    fn a_job_after_another_has_its_details_until_it_has_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let begin_after = || Reporter::begin_after(directory.path(), "maintenance", "maintain").unwrap();
        let mut first = begin_after();
        assert_eq!(first.last::<Option<u32>>(), None);
        std::thread::scope(|scope| {
            let second = scope.spawn(begin_after);
            first.detail(&7).unwrap();
            assert_eq!(first.end(&Ok(String::new())), Ok(Ending::Done));
            let second = second.join().unwrap();
            assert_eq!(second.last::<u32>(), 7);
            let work: Work<u32> =
                serde_json::from_str(&directory::read(directory.path(), "maintenance").unwrap()).unwrap();
            assert_eq!((work.detail, work.result), (7, None));
        });
        drop(Reporter::begin(directory.path(), "maintenance", "maintain").unwrap());
        let work: Work<Option<u32>> =
            serde_json::from_str(&directory::read(directory.path(), "maintenance").unwrap()).unwrap();
        assert_eq!(work.detail, None);
    }

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let first = Reporter::begin(directory.path(), "benchmark", "benchmark").unwrap();
        assert!(Reporter::begin(directory.path(), "benchmark", "benchmark").is_err());
        let other = Reporter::begin(directory.path(), "ramdisk-logs", "save").unwrap();
        let failed = Err(Stopped::from(Error::new(ErrorKind::StoreFull, "no room")));
        assert_eq!(first.end(&failed), Ok(Ending::Failed));
        let work = read(directory.path());
        assert_eq!((work.message.as_str(), work.error), ("no room", Some(ErrorKind::StoreFull)));
        Reporter::begin(directory.path(), "benchmark", "benchmark").unwrap();
        drop(other);
    }

    #[test]
    fn progress_is_written_a_few_times_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let mut reporter = Reporter::begin(directory.path(), "benchmark", "benchmark").unwrap();
        reporter.progress(0.3, "soon after the beginning");
        assert_eq!(read(directory.path()).doing, "");
        reporter.written = now().checked_sub(INTERVAL).unwrap();
        reporter.progress(1.4, "later");
        let work = read(directory.path());
        assert_eq!((work.doing.as_str(), work.progress), ("later", 1.0));
    }
}
