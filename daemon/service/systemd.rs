//! Asking PID 1: it alone does `swapon`, `swapoff`, `mount` and `umount`, because a sandboxed service has mounts of its own.

use std::time::Duration;

use zbus::Connection;

use super::bus::error::{BusError, Name, Result};
use super::jobs::Handle;
use super::stream;
use crate::logic::record::Target;

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;
    fn unsubscribe(&self) -> zbus::Result<()>;
    fn reload(&self) -> zbus::Result<()>;
    fn start_unit(&self, name: &str, mode: &str) -> zbus::Result<zbus::OwnedObjectPath>;
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<zbus::OwnedObjectPath>;
    fn reload_unit(&self, name: &str, mode: &str) -> zbus::Result<zbus::OwnedObjectPath>;
    fn kill_unit(&self, name: &str, whom: &str, signal: i32) -> zbus::Result<()>;
    #[zbus(signal)]
    fn job_removed(
        &self,
        id: u32,
        job: zbus::ObjectPath<'_>,
        unit: String,
        result: String,
    ) -> zbus::Result<()>;
}

/// What PID 1 is asked to do with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Apply changed options to it.
    Reload,
}

/// A conversation with PID 1.
#[derive(Debug)]
pub struct Systemd {
    manager: ManagerProxy<'static>,
}

/// How often progress is looked at while PID 1 works.
const LOOK: Duration = Duration::from_millis(250);

impl Systemd {
    /// Begins; end it with [`Systemd::leave`], or PID 1 goes on to tell us about every unit.
    pub async fn enter(connection: &Connection) -> Result<Systemd> {
        let manager = ManagerProxy::builder(connection)
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .await?;
        manager.subscribe().await?;
        Ok(Systemd { manager })
    }

    /// Ends it.
    pub async fn leave(self) {
        // PID 1 forgets us anyway when we leave the bus.
        self.manager.unsubscribe().await.ok();
    }

    /// Has PID 1 run the generators and read all units again.
    pub async fn reload(&self) -> Result<()> {
        Ok(self.manager.reload().await?)
    }

    /// Has PID 1 do something with a unit, and waits for its end. `look` is called now and then, for progress.
    pub async fn unit<F: Future<Output = ()>>(
        &self,
        verb: Verb,
        unit: &str,
        target: &Target,
        handle: &Handle,
        look: impl Fn() -> F,
    ) -> Result<()> {
        let mut removed = self.manager.receive_job_removed().await?;
        let asked = match verb {
            Verb::Start => self.manager.start_unit(unit, "replace").await,
            Verb::Stop => self.manager.stop_unit(unit, "replace").await,
            Verb::Reload => self.manager.reload_unit(unit, "replace").await,
        };
        let job = match asked {
            Ok(job) => job,
            // What does not exist is stopped.
            Err(error) if verb == Verb::Stop && is_no_such_unit(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                signal = stream::next(&mut removed) => {
                    let Some(signal) = signal else {
                        return Err(BusError::new(Name::Failed, "PID 1 left the bus"));
                    };
                    let args = signal.args()?;
                    if *args.job() == *job {
                        return result(verb, unit, target, args.result(), handle);
                    }
                }
                () = handle.cancelled.notified() => {
                    // SIGTERM: swapoff then gives up between two pages, and the swap stays active.
                    if verb == Verb::Stop {
                        self.manager.kill_unit(unit, "control", 15).await.ok();
                    }
                }
                _ = ticks.tick() => look().await,
            }
        }
    }
}

fn is_no_such_unit(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, ..)
        if name.as_str() == "org.freedesktop.systemd1.NoSuchUnit")
}

fn result(verb: Verb, unit: &str, target: &Target, result: &str, handle: &Handle) -> Result<()> {
    if result == "done" || (verb == Verb::Stop && result == "skipped") {
        return Ok(());
    }
    if handle.cancel.is_cancelled() {
        return Err(BusError::new(Name::Cancelled, format!("{target}: cancelled; it is in use as before")));
    }
    let verb = match verb {
        Verb::Start => "start",
        Verb::Stop => "stop",
        Verb::Reload => "reload",
    };
    let setup = match target {
        Target::Device(number) => format!(" -u zramd-setup@zram{number}"),
        Target::RamDisk(_) => String::new(),
    };
    Err(BusError::new(
        Name::Failed,
        format!("{target}: systemd could not {verb} {unit} ({result}): see `journalctl -b -u {unit}{setup}`"),
    ))
}
