//! Who may do what: polkit decides, root always may.
//!
//! The caller is identified by its bus name, which cannot be reused while it is connected; process ids can. Reading is
//! open to every user and does not come here.

use std::collections::HashMap;
use std::time::Instant;

use zbus::message::{Flags, Header};
use zbus::{Connection, Variant};

use super::caller::name_of;
use super::error::{Error, ErrorKind, Result};
use super::turn::Turns;

/// polkit may ask the person at the terminal or screen.
const INTERACTIVE: u32 = 1;

/// The polkit actions that methods ask for; `units/org.zramd1.policy` describes them to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Small things that lose nothing: compaction, maintenance, counters.
    Tune,
    /// Create, remove, resize, limit, activate, reload, cancel what others asked for.
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

/// Lets root and callers that polkit allows pass; all others get `AccessDenied`.
pub async fn check(turns: &Turns, connection: &Connection, call: &Header<'_>, action: Action) -> Result<()> {
    let turn = turns.take(connection, call).await?;
    if turn.user == 0 {
        return Ok(());
    }
    polkit(connection, call, action).await?;
    match action {
        // The one that polkit allows without a password.
        Action::SaveDisk => turns.pace(turn.user, Instant::now()),
        _ => Ok(()),
    }
}

/// Lets the owner of a job pass, and root and administrators.
pub async fn check_owner(
    turns: &Turns,
    connection: &Connection,
    call: &Header<'_>,
    owner: Option<u32>,
) -> Result<()> {
    let turn = turns.take(connection, call).await?;
    if turn.user == 0 || owner == Some(turn.user) {
        return Ok(());
    }
    polkit(connection, call, Action::Manage).await
}

/// Asks polkit, in the terms of org.freedesktop.PolicyKit1.Authority.CheckAuthorization.
async fn polkit(connection: &Connection, call: &Header<'_>, action: Action) -> Result<()> {
    let name = name_of(call)?;
    let subject = ("system-bus-name", HashMap::from([("name", Variant::from(name))]));
    let details: HashMap<&str, &str> = HashMap::new();
    let flags = if call.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH) { INTERACTIVE } else { 0 };
    let no_polkit = |error: zbus::Error| {
        log::debug!("polkit does not answer: {error}");
        denied(action, "only root may do this, because polkit is not available")
    };
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
    let answer = answer.body();
    let (is_authorized, is_challenge, _): (bool, bool, HashMap<&str, &str>) = answer.deserialize()?;
    match (is_authorized, is_challenge) {
        (true, _) => Ok(()),
        (false, true) => Err(denied(action, "authentication as an administrator is required")),
        (false, false) => Err(denied(action, "polkit denied permission")),
    }
}

fn denied(action: Action, why: &str) -> Error {
    Error::new(ErrorKind::NotPermitted, format!("{}: {why}", action.id()))
}
