//! Asking PID 1: it alone does `swapon`, `swapoff`, `mount` and `umount`, because a sandboxed service has mounts of its own.

use tokio::sync::Mutex;
use zbus::{Connection, OwnedVariant};

use super::bus::error::{Error, ErrorKind, Result};
use super::bus::label;
use super::handle::Handle;
use super::stream;
use logic::record::Target;

/// PID 1's name, object and interface (org.freedesktop.systemd1(5)).
const SERVICE: &str = "org.freedesktop.systemd1";
const OBJECT: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";

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

/// A conversation with PID 1. Without zbus' proxies, which would be most of this program's text.
#[derive(Debug)]
pub struct Systemd {
    connection: Connection,
}

/// How many conversations there are: to PID 1 they are one, which begins with the first and ends with the last.
static CONVERSATIONS: Mutex<u32> = Mutex::const_new(0);

/// How PID 1 says that all went well.
pub const DONE: &str = "done";
/// How PID 1 says that another job has replaced one.
const CANCELED: &str = "canceled";
/// How often a job that was replaced is asked for again.
const REPLACED: usize = 10;

const SIGTERM: i32 = 15;

impl Systemd {
    /// Begins; end it with [`Systemd::leave`], or PID 1 continues to tell us about every unit.
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
    ) -> zbus::Result<zbus::Message> {
        self.connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), method, body).await
    }

    /// Ends it.
    pub async fn leave(self) {
        let mut conversations = CONVERSATIONS.lock().await;
        *conversations = conversations.saturating_sub(1);
        if *conversations == 0 {
            // PID 1 forgets us anyway when we leave the bus.
            self.call("Unsubscribe", &()).await.ok();
        }
    }

    /// Has PID 1 run the generators and read all units again.
    pub async fn reload(&self) -> Result<()> {
        self.call("Reload", &()).await?;
        Ok(())
    }

    /// The active units that stop when this one does, because they require it or are bound to it.
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

    /// Saves a disk that is about to be taken away, as long as it can still be kept back. One that is not kept, or not loaded, has
    /// nothing to save.
    pub async fn save_before_stop(&self, target: &Target, handle: &Handle) -> Result<()> {
        let Target::RamDisk(name) = target else { return Ok(()) };
        let unit = format!("zramd-disk-save@{name}.service");
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

    /// Has PID 1 do something with a unit, and waits for its end.
    pub async fn unit(&self, verb: Verb, unit: &str, target: &Target, handle: &Handle) -> Result<()> {
        // SIGTERM: swapoff then gives up between two pages, and the swap stays active.
        let give_up = (verb == Verb::Stop).then_some("control");
        let mut tries = 0;
        let how = loop {
            let how = self.job(verb, unit, give_up, handle).await?;
            // The start of any service pulls in swap.target, and with it the swap: it replaces a job that stops the swap.
            if how != CANCELED || tries == REPLACED || handle.cancel.is_cancelled() {
                break how;
            }
            tries += 1;
        };
        result(verb, unit, target, &how, handle)
    }

    /// Has PID 1 do something with a unit, and returns what it says when it is done: `done`, `failed`, …. When the job is
    /// cancelled, the processes of the unit that `give_up` names (`control`, `main`) get SIGTERM.
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
        let mut removed = zbus::MessageStream::for_match_rule(rule, &self.connection, None).await?;
        let method = match verb {
            Verb::Start => "StartUnit",
            Verb::Stop => "StopUnit",
            Verb::Reload => "ReloadUnit",
        };
        let asked = match self.call(method, &(unit, "replace")).await {
            Ok(asked) => asked,
            // What does not exist is stopped.
            Err(error) if verb == Verb::Stop && is_no_such_unit(&error) => return Ok(DONE.to_owned()),
            Err(error) => return Err(error.into()),
        };
        let asked = asked.body();
        let job: zbus::ObjectPath<'_> = asked.deserialize()?;
        loop {
            tokio::select! {
                signal = stream::next(&mut removed) => {
                    let Some(signal) = signal.transpose()? else {
                        return Err(Error::new(ErrorKind::Failed, "PID 1 left the bus"));
                    };
                    let body = signal.body();
                    let (_, ended, _, how): (u32, zbus::ObjectPath<'_>, &str, &str) = body.deserialize()?;
                    if ended == job {
                        return Ok(how.to_owned());
                    }
                }
                () = handle.cancelled.notified() => {
                    if let Some(who) = give_up {
                        // If it has just ended, report how it ended.
                        self.call("KillUnit", &(unit, who, SIGTERM)).await.ok();
                    }
                }
            }
        }
    }
}

/// A property of a unit; nothing when there is none, or PID 1 does not answer.
pub async fn property_of(
    connection: &Connection,
    unit: &str,
    interface: &str,
    property: &str,
) -> Option<OwnedVariant> {
    // A path that asks for it has PID 1 read the unit, if it has not yet.
    let path = format!("{OBJECT}/unit/{}", label(unit));
    let properties = Some("org.freedesktop.DBus.Properties");
    let what = (interface, property);
    let call = connection.call_method(Some(SERVICE), path.as_str(), properties, "Get", &what);
    call.await.ok()?.body().deserialize().ok()
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
        Target::RamDisk(_) | Target::Vm | Target::Zswap => String::new(),
    };
    Err(Error::new(
        ErrorKind::Failed,
        format!("{target}: systemd could not {verb} {unit} ({result}): see `journalctl -b -u {unit}{setup}`"),
    ))
}
