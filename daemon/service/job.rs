//! `org.zramd1.Job`: work that takes longer than a method call may.

use std::sync::{Arc, Mutex};

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, interface};

use super::auth;
use super::call_limits::CallLimits;
use super::error::Result;
use super::names::{DEVICES, device_path, ramdisk_path};
use crate::lock::lock;
use crate::setup::Cancel;
use host::Host;
use host::linux::LinuxHost;
use logic::duration::micros;
use logic::error::ErrorKind;
use logic::outcome::{OnTheBus, Outcome};
use logic::record::Target;
use logic::work::Ending;

/// What a job is done to.
#[derive(Debug, Default)]
pub struct Subject {
    /// Its name, or a section; empty for the whole machine.
    pub(crate) name: String,
    path: OwnedObjectPath,
}

impl Subject {
    /// A RAM disk by its name, which may be that of a device.
    pub(crate) fn disk(name: &str) -> Subject {
        Subject { name: name.to_owned(), path: ramdisk_path(name).try_into().unwrap_or_default() }
    }

    /// The name of a device.
    pub(crate) fn device(&self) -> Option<&str> {
        self.path.starts_with(DEVICES).then_some(&self.name)
    }

    /// The name of a RAM disk.
    pub(crate) fn ramdisk(&self) -> Option<&str> {
        (self.device().is_none() && *self.path != *"/").then(|| self.name.trim_start_matches("ramdisk."))
    }
}

/// The device or RAM disk of a section.
impl From<String> for Subject {
    fn from(name: String) -> Subject {
        let path = match Target::of_section(&name) {
            Some(Target::Device(_)) => device_path(&name),
            Some(Target::Ramdisk(disk)) => ramdisk_path(&disk),
            _ => return Subject { name, ..Subject::default() },
        };
        Subject { name, path: path.try_into().unwrap_or_default() }
    }
}

/// One job.
#[derive(Debug)]
pub struct Job {
    kind: &'static str,
    subject: Subject,
    started: u64,
    pub(crate) state: Arc<Mutex<State>>,
    cancel: Cancel,
    cancelled: Arc<tokio::sync::Notify>,
    call_limits: CallLimits,
}

/// The mutable part of a job. Separate from [`Job`], which is locked while polkit asks a user who cancels it for a password.
#[derive(Debug, Default)]
pub struct State {
    /// The user that asked for the job; `None` for one of the daemon itself.
    pub(crate) owner: Option<u32>,
    pub(crate) progress: f64,
    pub(crate) result: Option<Ending>,
    pub(crate) message: String,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl State {
    /// The name of the error; empty if it has not failed.
    pub(crate) fn error(&self) -> &'static str {
        self.error.map_or("", ErrorKind::on_the_bus)
    }

    /// The outcomes in the form used on the bus. After the end there is at least one: the message of the job.
    pub(crate) fn outcomes(&self) -> Vec<OnTheBus> {
        if self.result.is_some() && self.outcomes.is_empty() {
            return vec![(String::new(), String::new(), self.error().to_owned(), self.message.clone())];
        }
        self.outcomes.iter().map(Outcome::on_the_bus).collect()
    }
}

impl Job {
    pub(crate) fn new(
        kind: &'static str,
        subject: Subject,
        state: Arc<Mutex<State>>,
        cancel: Cancel,
        cancelled: Arc<tokio::sync::Notify>,
        call_limits: CallLimits,
    ) -> Job {
        let started = micros(LinuxHost::new("/").monotonic());
        Job { kind, subject, started, state, cancel, cancelled, call_limits }
    }

    fn owner(&self) -> Option<u32> {
        lock(&self.state).owner
    }
}

/// A job that is waiting, running or has ended. It stays on the bus for half a minute after its end.
#[interface(name = "org.zramd1.Job")]
impl Job {
    /// What is done: `reload`, `remove`, `resize`, `activate`, `deactivate`, `unset`, `configure`, `benchmark`, `adopt`, `maintain`, or
    /// with a RAM disk `save`, `verify`, `restore`, `delete`, `pin` or `unpin`.
    #[zbus(property(emits_changed_signal = "const"), name = "Type")]
    fn kind(&self) -> String {
        self.kind.to_owned()
    }

    /// What it is done to: the name of a device or RAM disk, or empty for the whole machine.
    #[zbus(property(emits_changed_signal = "const"))]
    fn object(&self) -> String {
        self.subject.name.clone()
    }

    /// The object of that, which may not exist now; `/` for the whole machine, or for several.
    #[zbus(property(emits_changed_signal = "const"))]
    fn object_path(&self) -> OwnedObjectPath {
        self.subject.path.clone()
    }

    /// When it was asked for, in microseconds since boot (CLOCK_MONOTONIC).
    #[zbus(property(emits_changed_signal = "const"))]
    fn start_timestamp_monotonic(&self) -> u64 {
        self.started
    }

    /// How far it is, 0 to 1.
    #[zbus(property)]
    fn progress(&self) -> f64 {
        lock(&self.state).progress
    }

    /// How it ended: `done`, `failed`, `cancelled`, `postponed` (the machine was busy or short of memory), or empty while it has not.
    /// It changes after the others.
    #[zbus(property)]
    fn result(&self) -> String {
        lock(&self.state).result.map_or("", Ending::word).to_owned()
    }

    /// What there is to say about its end, for people.
    #[zbus(property)]
    fn message(&self) -> String {
        lock(&self.state).message.clone()
    }

    /// The name of the error with which it failed, as for a method; empty while it has not failed.
    #[zbus(property)]
    fn error(&self) -> String {
        lock(&self.state).error().to_owned()
    }

    /// What became of each target, once it has ended: target, action as in `Manager.Plan`, name of the error, and text for people.
    /// The target is empty for the job as a whole, the error where nothing failed.
    #[zbus(property)]
    fn outcomes(&self) -> Vec<OnTheBus> {
        lock(&self.state).outcomes()
    }

    /// Ends it early. What has been done stays done; a swap that was being deactivated stays active. The user that asked for the job
    /// may cancel it; others need the permission org.zramd1.manage.
    async fn cancel(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let request = auth::check_owner(&self.call_limits, connection, &call, self.owner()).await?;
        request
            .run(async {
                self.cancel.cancel();
                self.cancelled.notify_one();
                Ok(())
            })
            .await
    }

    /// It has ended. The values are those of the properties `Result`, `Message`, `Error` and `Outcomes`.
    #[zbus(signal)]
    async fn finished(
        emitter: &SignalEmitter<'_>,
        result: &str,
        message: &str,
        error: &str,
        outcomes: Vec<OnTheBus>,
    ) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_path_of_its_object() {
        for (section, expected) in [
            ("zram0", "/org/zramd1/device/zram0"),
            ("ramdisk.var-log", "/org/zramd1/ramdisk/var_2dlog"),
            ("defaults", "/"),
            ("", "/"),
        ] {
            let subject = Subject::from(section.to_owned());
            assert_eq!((subject.name.as_str(), subject.path.as_str()), (section, expected));
        }
        assert_eq!(Subject::disk("zram0").path.as_str(), "/org/zramd1/ramdisk/zram0");
    }
}
