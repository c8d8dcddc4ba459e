//! Identity of a caller: bus name and user.

use zbus::Connection;
use zbus::message::Header;

use super::error::{Error, ErrorKind, Result};
use super::names::ask;

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
