//! Identity of a caller: bus name and user.

use std::time::Duration;

use zbus::Connection;
use zbus::message::Header;

use super::error::{Error, ErrorKind, Result};
use super::names::{MANAGER, OBJECT, ask, unlabel};
use super::reply::PID_1;

/// Time that PID 1 has to name the unit of a caller, which is only for the journal.
const SOON: Duration = Duration::from_secs(1);

/// A caller of the bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: u32,
    /// 0 if the bus does not know it.
    pub pid: u32,
    /// Its unit; empty if PID 1 does not know it.
    pub unit: String,
}

/// The unique name of the caller on the bus.
pub(crate) fn name_of(call: &Header<'_>) -> Result<String> {
    let sender = call.sender().map(ToString::to_string);
    // Only possible on a direct connection without a bus.
    sender.ok_or_else(|| Error::new(ErrorKind::NotPermitted, "the caller is unknown"))
}

/// The user that owns a connection to the bus.
pub(crate) async fn user_of(connection: &Connection, name: &str) -> Result<u32> {
    let unknown =
        |error| Error::new(ErrorKind::NotPermitted, format!("the bus does not name the caller: {error}"));
    ask(connection, "GetConnectionUnixUser", name).await.map_err(unknown)
}

/// The process and unit of a caller, as far as bus and PID 1 know them. `/proc` is hidden from the daemon.
pub(crate) async fn identity(connection: &Connection, name: &str, user: u32) -> Identity {
    let Ok(pid) = ask(connection, "GetConnectionUnixProcessID", name).await else {
        return Identity { user, ..Identity::default() };
    };
    let unit = tokio::time::timeout(SOON, unit_of(connection, pid)).await.ok().flatten();
    Identity { user, pid, unit: unit.unwrap_or_default() }
}

/// The unit of a process; `None` if PID 1 does not know it.
async fn unit_of(connection: &Connection, pid: u32) -> Option<String> {
    let call = connection.call_method(Some(PID_1.name), OBJECT, Some(MANAGER), "GetUnitByPID", &pid);
    let reply = call.await.ok()?;
    let path: zbus::OwnedObjectPath = reply.body().deserialize().ok()?;
    path.rsplit('/').next().map(unlabel)
}
