//! Who may do what: polkit decides, root always may.
//!
//! The caller is identified by its bus name, which cannot be reused while it is connected; process ids can. Reading is
//! open to everybody and does not come here.

use std::collections::HashMap;

use zbus::Connection;
use zbus::message::{Flags, Header};
use zbus_polkit::policykit1::{AuthorizationResult, CheckAuthorizationFlags, Subject};

use super::error::{BusError, Name, Result};
use super::turn::Turns;

/// The polkit actions that methods ask for; `units/org.zramd1.policy` describes them to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Small things that lose nothing: compaction, limits, counters.
    Tune,
    /// Create, remove, resize, activate, reload.
    Manage,
    /// Save a RAM disk, or check a snapshot: adds safety, removes nothing.
    SaveDisk,
    /// Restore a RAM disk from a snapshot, delete and pin snapshots.
    RestoreDisk,
    /// Measure.
    Benchmark,
}

impl Action {
    /// Its polkit id.
    pub const fn id(self) -> &'static str {
        match self {
            Action::Tune => "org.zramd1.tune",
            Action::Manage => "org.zramd1.manage",
            Action::SaveDisk => "org.zramd1.save-disk",
            Action::RestoreDisk => "org.zramd1.restore-disk",
            Action::Benchmark => "org.zramd1.benchmark",
        }
    }
}

impl Action {
    /// What asking for a job of this kind takes, and with that cancelling it.
    pub fn of_job(kind: &str) -> Action {
        match kind {
            "maintain" => Action::Tune,
            "benchmark" | "adopt" => Action::Benchmark,
            "save" | "verify" => Action::SaveDisk,
            "restore" | "delete" | "pin" | "unpin" => Action::RestoreDisk,
            _ => Action::Manage,
        }
    }
}

/// Lets root and whomever polkit allows pass; everybody else gets `AccessDenied`.
pub async fn check(turns: &Turns, connection: &Connection, call: &Header<'_>, action: Action) -> Result<()> {
    let Some(sender) = call.sender() else {
        // Only on a direct connection without a bus, where nobody vouches for the caller.
        return Err(denied(action, "it is not known who calls"));
    };
    let _turn = turns.take(call)?;
    match user_of(connection, sender.as_str()).await {
        Ok(0) => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(denied(action, &format!("the bus does not say who calls: {error}"))),
    }
    let ask_person = call.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH);
    polkit(connection, call, action, ask_person).await
}

/// The unique name of the caller on the bus.
pub(in crate::service) fn caller(call: &Header<'_>) -> Result<String> {
    let sender = call.sender().map(ToString::to_string);
    sender.ok_or_else(|| BusError::new(Name::AccessDenied, "it is not known who calls"))
}

/// The user that owns a connection to the bus. Without zbus' proxies, which would be most of this program's text.
pub(in crate::service) async fn user_of(connection: &Connection, name: &str) -> zbus::Result<u32> {
    const BUS: &str = "org.freedesktop.DBus";
    let path = "/org/freedesktop/DBus";
    let answer = connection.call_method(Some(BUS), path, Some(BUS), "GetConnectionUnixUser", &name).await?;
    answer.body().deserialize()
}

async fn polkit(connection: &Connection, call: &Header<'_>, action: Action, ask_person: bool) -> Result<()> {
    let subject =
        Subject::new_for_message_header(call).map_err(|error| denied(action, &error.to_string()))?;
    let flags = if ask_person {
        CheckAuthorizationFlags::ALLOW_USER_INTERACTION
    } else {
        CheckAuthorizationFlags::empty()
    };
    let no_polkit = |error: zbus::Error| {
        tracing::debug!(%error, "polkit does not answer");
        denied(action, "only root may, because polkit is not there to allow others")
    };
    let details: HashMap<&str, &str> = HashMap::new();
    let answer = connection
        .call_method(
            Some("org.freedesktop.PolicyKit1"),
            "/org/freedesktop/PolicyKit1/Authority",
            Some("org.freedesktop.PolicyKit1.Authority"),
            "CheckAuthorization",
            &(subject, action.id(), details, flags, ""),
        )
        .await
        .map_err(no_polkit)?;
    let answer: AuthorizationResult = answer.body().deserialize()?;
    match (answer.is_authorized, answer.is_challenge) {
        (true, _) => Ok(()),
        (false, true) => Err(denied(action, "it takes authentication as an administrator")),
        (false, false) => Err(denied(action, "polkit does not allow it")),
    }
}

fn denied(action: Action, why: &str) -> BusError {
    BusError::new(Name::AccessDenied, format!("{}: {why}", action.id()))
}
