//! Authorization: polkit decides, root is always allowed.
//!
//! The caller is identified by its bus name, which is not reused while it is connected; process ids are. Reading needs no
//! authorization.

use std::collections::HashMap;
use std::time::Instant;

use zbus::message::{Flags, Header};
use zbus::{Connection, Variant};

use super::caller::name_of;
use super::error::{Error, ErrorKind, Result};
use super::turn::Turns;

/// The `AllowUserInteraction` flag of polkit.
const INTERACTIVE: u32 = 1;

/// The polkit actions of methods; `units/org.zramd1.policy` has their descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Harmless changes that lose no data: compaction, maintenance, counters.
    Tune,
    /// Create, remove, resize, limit, activate, reload, cancel jobs of other users.
    Manage,
    /// Change the configuration.
    Configure,
    /// Save a RAM disk, or verify a snapshot.
    SaveDisk,
    /// Restore a RAM disk from a snapshot; delete and pin snapshots.
    RestoreDisk,
    /// Run the benchmark.
    Benchmark,
}

impl Action {
    /// Its polkit id.
    pub const fn id(self) -> &'static str {
        match self {
            Action::Tune => "org.zramd1.tune",
            Action::Manage => "org.zramd1.manage",
            Action::Configure => "org.zramd1.configure",
            Action::SaveDisk => "org.zramd1.save-disk",
            Action::RestoreDisk => "org.zramd1.restore-disk",
            Action::Benchmark => "org.zramd1.benchmark",
        }
    }
}

/// Succeeds for root and for callers that polkit authorizes; others get `AccessDenied`.
pub async fn check(turns: &Turns, connection: &Connection, call: &Header<'_>, action: Action) -> Result<()> {
    let turn = turns.take(connection, call).await?;
    if turn.user == 0 {
        return Ok(());
    }
    polkit(connection, call, action).await?;
    match action {
        // The only action that polkit allows without a password.
        Action::SaveDisk => turns.pace(turn.user, Instant::now()),
        _ => Ok(()),
    }
}

/// Succeeds for the owner of a job, for root and for administrators.
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

/// Asks polkit (org.freedesktop.PolicyKit1.Authority.CheckAuthorization).
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
