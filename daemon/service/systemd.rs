//! Jobs of PID 1. Swap and mounts are changed by PID 1 only, because the sandbox of the service has its own mount namespace.

use std::num::NonZeroUsize;
use std::time::Instant;

use tokio::sync::Mutex;
use zbus::{Connection, OwnedVariant};

use super::blocking;
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::names::{MANAGER, OBJECT, label};
use super::reply::PID_1;
use super::stream;
use host::linux::log;
use logic::record::Target;

/// Bus name of PID 1.
const SERVICE: &str = PID_1.name;
const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// A verb for a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Start,
    Stop,
    /// Apply changed options to it.
    Reload,
}

/// A subscription to signals of PID 1. zbus' proxies are not used, because they would be most of this program's code.
#[derive(Debug)]
pub struct Systemd {
    connection: Connection,
}

/// Number of users of the subscription; PID 1 counts one per connection.
static CONVERSATIONS: Mutex<u32> = Mutex::const_new(0);

/// Job result: success.
pub const DONE: &str = "done";
/// Job result: replaced by another job.
const CANCELED: &str = "canceled";
/// Maximum number of times that a replaced job is started again.
const REPLACED: usize = 10;

const SIGTERM: i32 = 15;
/// Signals about ended jobs that may arrive before a reply of PID 1. A boot has a few hundred.
const QUEUED_JOBS: Option<NonZeroUsize> = NonZeroUsize::new(1024);

impl Systemd {
    /// Subscribes. [`Systemd::leave`] has to be called, or PID 1 keeps sending signals about all units.
    pub async fn enter(connection: &Connection) -> Result<Systemd> {
        let pid_1 = Systemd { connection: connection.clone() };
        let mut conversations = CONVERSATIONS.lock().await;
        if *conversations == 0 {
            pid_1.call("Subscribe", &()).await?;
        }
        *conversations += 1;
        Ok(pid_1)
    }

    async fn call<B: serde::Serialize + zbus::DynamicType + Sync>(
        &self,
        method: &str,
        body: &B,
    ) -> Result<zbus::Message> {
        Ok(self.ask(method, body).await??)
    }

    /// As [`Self::call`]. The outer error is silence, the inner one a reply of PID 1.
    async fn ask<B: serde::Serialize + zbus::DynamicType + Sync>(
        &self,
        method: &str,
        body: &B,
    ) -> Result<zbus::Result<zbus::Message>> {
        let call = self.connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), method, body);
        PID_1.within(call).await
    }

    /// Unsubscribes.
    pub async fn leave(self) {
        let mut conversations = CONVERSATIONS.lock().await;
        *conversations = conversations.saturating_sub(1);
        if *conversations == 0 {
            // PID 1 drops the subscription when the connection ends.
            self.call("Unsubscribe", &()).await.ok();
        }
    }

    /// Reloads PID 1: runs the generators and reads all units again.
    pub async fn reload(&self) -> Result<()> {
        let begun = Instant::now();
        self.call("Reload", &()).await?;
        tracing::debug!("PID 1: reloaded after {} ms", begun.elapsed().as_millis());
        // The generator has run.
        let hand_over = || {
            log::hand_over();
            Ok::<(), Error>(())
        };
        blocking::run(hand_over).await
    }

    /// The active units that stop with this one, because of `Requires=` or `BindsTo=`.
    pub async fn stopping_with(&self, unit: &str) -> Vec<String> {
        let mut units = vec![unit.to_owned()];
        let mut at = 0;
        while let Some(unit) = units.get(at).cloned() {
            at += 1;
            for property in ["RequiredBy", "BoundBy", "ConsistsOf"] {
                let found = property_of(&self.connection, &unit, UNIT, property).await;
                for other in found.and_then(|names| Vec::<String>::try_from(names).ok()).unwrap_or_default() {
                    if units.contains(&other) {
                        continue;
                    }
                    let state = property_of(&self.connection, &other, UNIT, "ActiveState").await;
                    if state.and_then(|state| String::try_from(state).ok()).as_deref() == Some("active") {
                        units.push(other);
                    }
                }
            }
        }
        units.split_off(1)
    }

    /// Saves a RAM disk before it is stopped, while an error can still prevent that. RAM disks that are not persistent or not loaded
    /// are skipped.
    pub async fn save_before_stop(&self, target: &Target, handle: &Handle) -> Result<()> {
        let Target::Ramdisk(name) = target else { return Ok(()) };
        let unit = format!("zramd-ramdisk-save@{name}.service");
        let how = self.job(Verb::Start, &unit, Some("main"), handle).await?;
        match how.as_str() {
            DONE | "dependency" | "skipped" | "assert" => Ok(()),
            _ => {
                let message = format!(
                    "{target}: not changed, because it cannot be saved: see `journalctl -b -u {unit}`"
                );
                Err(Error::new(ErrorKind::Failed, message))
            }
        }
    }

    /// Starts, stops or reloads a unit and waits for the job.
    pub async fn unit(&self, verb: Verb, unit: &str, target: &Target, handle: &Handle) -> Result<()> {
        // SIGTERM: swapoff gives up after the current page, and the swap stays active.
        let give_up = (verb == Verb::Stop).then_some("control");
        let mut tries = 0;
        let how = loop {
            let how = self.job(verb, unit, give_up, handle).await?;
            // The start of any service pulls in swap.target and the swap, which replaces a stop job of the swap.
            if how != CANCELED || tries == REPLACED || handle.cancel.is_cancelled() {
                break how;
            }
            tries += 1;
        };
        result(verb, unit, target, &how, handle)
    }

    /// Starts a job of a unit and returns its result: `done`, `failed`, …. If our job is cancelled, the processes of the
    /// unit that `give_up` names (`control`, `main`) get SIGTERM.
    pub async fn job(
        &self,
        verb: Verb,
        unit: &str,
        give_up: Option<&str>,
        handle: &Handle,
    ) -> Result<String> {
        let rule = zbus::MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender(SERVICE)
            .path(OBJECT)
            .interface(MANAGER)
            .member("JobRemoved")
            .build()?;
        // Not read until PID 1 has replied. If it were full, the reply would not be received either.
        let mut removed = zbus::MessageStream::for_match_rule(rule, &self.connection, QUEUED_JOBS).await?;
        let method = match verb {
            Verb::Start => "StartUnit",
            Verb::Stop => "StopUnit",
            Verb::Reload => "ReloadUnit",
        };
        let begun = Instant::now();
        let asked = match self.ask(method, &(unit, "replace")).await? {
            Ok(asked) => asked,
            // A unit that does not exist is stopped.
            Err(error) if verb == Verb::Stop && is_no_such_unit(&error) => return Ok(DONE.to_owned()),
            Err(error) => return Err(error.into()),
        };
        let asked = asked.body();
        let job: zbus::ObjectPath<'_> = asked.deserialize()?;
        let mut silence = std::pin::pin!(PID_1.silence(&self.connection));
        loop {
            tokio::select! {
                biased;
                signal = stream::next(&mut removed) => {
                    let Some(signal) = signal.transpose()? else {
                        return Err(Error::new(ErrorKind::Failed, "PID 1 left the bus"));
                    };
                    let body = signal.body();
                    let (_, ended, _, how): (u32, zbus::ObjectPath<'_>, &str, &str) = body.deserialize()?;
                    if ended == job {
                        tracing::debug!("PID 1: {method} of {unit}: {how} after {} ms", begun.elapsed().as_millis());
                        return Ok(how.to_owned());
                    }
                }
                error = &mut silence => return Err(error),
                () = handle.cancelled.notified() => {
                    if let Some(who) = give_up {
                        // It may just have ended; then report how.
                        let whom = (unit, who, SIGTERM);
                        tokio::select! {
                            _ = self.call("KillUnit", &whom) => {}
                            error = &mut silence => return Err(error),
                        }
                    }
                }
            }
        }
    }
}

/// A property of a unit; `None` if it does not exist, or on error.
pub async fn property_of(
    connection: &Connection,
    unit: &str,
    interface: &str,
    property: &str,
) -> Option<OwnedVariant> {
    // An access by path makes PID 1 load the unit.
    let path = format!("{OBJECT}/unit/{}", label(unit));
    let properties = Some("org.freedesktop.DBus.Properties");
    let what = (interface, property);
    let call = connection.call_method(Some(SERVICE), path.as_str(), properties, "Get", &what);
    PID_1.within(call).await.ok()?.ok()?.body().deserialize().ok()
}

fn is_no_such_unit(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, ..)
        if name.as_str() == "org.freedesktop.systemd1.NoSuchUnit")
}

fn result(verb: Verb, unit: &str, target: &Target, result: &str, handle: &Handle) -> Result<()> {
    if result == DONE || (verb == Verb::Stop && result == "skipped") {
        return Ok(());
    }
    if handle.cancel.is_cancelled() {
        return Err(Error::new(ErrorKind::Cancelled, format!("{target}: cancelled; it is in use as before")));
    }
    let verb = match verb {
        Verb::Start => "start",
        Verb::Stop => "stop",
        Verb::Reload => "reload",
    };
    let setup = match target {
        Target::Device(number) => format!(" -u zramd-setup@zram{number}"),
        Target::Ramdisk(_) | Target::Vm | Target::Zswap => String::new(),
    };
    Err(Error::new(
        ErrorKind::Failed,
        format!("{target}: systemd could not {verb} {unit} ({result}): see `journalctl -b -u {unit}{setup}`"),
    ))
}
