//! Authorization: polkit decides, root is always allowed.
//!
//! The caller is identified by its bus name, which is not reused while it is connected; process ids are. Reading needs no
//! authorization.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use zbus::message::{Flags, Header};
use zbus::{Connection, MatchRule, MessageStream, Variant};

pub use super::action::{Action, Asked};
use super::call_limits::CallLimits;
use super::caller::{identity, name_of, user_of};
use super::error::{Error, ErrorKind, Result};
use super::names::BUS;
use super::request::Request;
use crate::reply::POLKIT;
use crate::stream;

/// polkit's object and interface.
const AUTHORITY: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";
/// The `AllowUserInteraction` flag of polkit.
const INTERACTIVE: u32 = 1;
/// Time after which an answer of polkit is one of a person.
const SOON: Duration = Duration::from_secs(1);

/// Succeeds for root and for callers that polkit authorizes; others get `AccessDenied`, which is noted in the journal.
pub async fn check(
    limits: &CallLimits,
    connection: &Connection,
    call: &Header<'_>,
    asked: impl Into<Asked>,
) -> Result<Request> {
    check_or(limits, connection, call, asked.into(), None).await
}

/// Succeeds for the owner of a job, for root and for administrators.
pub async fn check_owner(
    limits: &CallLimits,
    connection: &Connection,
    call: &Header<'_>,
    owner: Option<u32>,
) -> Result<Request> {
    check_or(limits, connection, call, Action::Manage.into(), owner).await
}

async fn check_or(
    limits: &CallLimits,
    connection: &Connection,
    call: &Header<'_>,
    asked: Asked,
    owner: Option<u32>,
) -> Result<Request> {
    let action = asked.action;
    let counted = limits.take(connection, call).await?;
    let user = counted.user;
    let allowed = if user == 0 || owner == Some(user) {
        Ok(())
    } else {
        permitted(limits, connection, call, asked, user).await
    };
    // A user who is refused often gets no more lines in the journal.
    match allowed {
        Err(error) if !limits.notes(user, Instant::now()) => return Err(error),
        _ => {}
    }
    let request = describe(limits, connection, call, action, user).await?;
    match allowed {
        Ok(()) => Ok(request),
        Err(error) => {
            request.refuse(&error.message);
            Err(error)
        }
    }
}

async fn describe(
    limits: &CallLimits,
    connection: &Connection,
    call: &Header<'_>,
    action: Action,
    user: u32,
) -> Result<Request> {
    let identity = identity(connection, &name_of(call)?, user).await;
    let method = call.member().map(ToString::to_string).unwrap_or_default();
    let object = call.path().map(ToString::to_string).unwrap_or_default();
    Ok(Request::new(identity, action.id(), method, object, limits.clone()))
}

async fn permitted(
    limits: &CallLimits,
    connection: &Connection,
    call: &Header<'_>,
    asked: Asked,
    user: u32,
) -> Result<()> {
    let action = asked.action;
    let begun = Instant::now();
    let answer = polkit(connection, call, asked).await;
    let word = if answer.is_ok() { "yes" } else { "no" };
    tracing::debug!(
        "polkit: {} for uid {user}: {word} after {} ms",
        action.id(),
        begun.elapsed().as_millis()
    );
    answer?;
    if action == Action::SaveRamdisk {
        // The only action that polkit allows without a password.
        limits.pace(user, Instant::now())?;
    }
    Ok(())
}

/// Asks polkit (org.freedesktop.PolicyKit1.Authority.CheckAuthorization).
async fn polkit(connection: &Connection, call: &Header<'_>, asked: Asked) -> Result<()> {
    let action = asked.action;
    let name = name_of(call)?;
    let subject = ("system-bus-name", HashMap::from([("name", Variant::from(name.as_str()))]));
    let details: HashMap<&str, String> = asked.details(call).into_iter().collect();
    let is_interactive = call.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH);
    let (flags, cancellation) = if is_interactive {
        // Unique, unless a caller uses a number twice: polkit then refuses that caller.
        (INTERACTIVE, format!("{name}-{}", call.primary().serial_num()))
    } else {
        (0, String::new())
    };
    let no_polkit = |error: zbus::Error| {
        tracing::debug!("polkit does not answer: {error}");
        denied(action, "only root may do this, because polkit is not available")
    };
    let body = (subject, action.id(), details, flags, cancellation.as_str());
    let check =
        connection.call_method(Some(POLKIT.name), AUTHORITY, Some(INTERFACE), "CheckAuthorization", &body);
    let answer = if is_interactive {
        // Boxed, so that it is gone when its prompt is dismissed.
        let mut check = Box::pin(check);
        match tokio::time::timeout(SOON, &mut check).await {
            Ok(answer) => answer,
            Err(_) => {
                // A person answers, so this takes any time, but no longer than the caller waits. Not asked for earlier: each
                // such watch is a call of the bus, and any user can send many requests.
                let left = async {
                    match departure(connection, &name).await {
                        Ok(mut departure) => {
                            stream::next(&mut departure).await;
                            denied(action, "the caller has left the bus")
                        }
                        // It has left already.
                        Err(error) => error,
                    }
                };
                let answer = tokio::select! {
                    biased;
                    answer = POLKIT.while_alive(connection, check) => answer,
                    error = left => Err(error),
                };
                if answer.is_err() {
                    dismiss(connection, &cancellation).await?;
                }
                answer?
            }
        }
    } else {
        POLKIT.within(check).await?
    };
    let answer = answer.map_err(no_polkit)?;
    let answer = answer.body();
    let (is_authorized, is_challenge, _): (bool, bool, HashMap<&str, &str>) = answer.deserialize()?;
    match (is_authorized, is_challenge) {
        (true, _) => Ok(()),
        (false, true) => Err(denied(action, "authentication as an administrator is required")),
        (false, false) => Err(denied(action, "polkit denied permission")),
    }
}

/// The signal that a caller leaves the bus.
async fn departure(connection: &Connection, caller: &str) -> Result<MessageStream> {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(BUS)
        .interface(BUS)
        .member("NameOwnerChanged")
        .arg(0, caller)
        .build()?;
    let departure = MessageStream::for_match_rule(rule, connection, None).await?;
    // A caller that left before gets no signal.
    user_of(connection, caller).await?;
    Ok(departure)
}

/// Ends a question of polkit. The reply is not awaited.
async fn dismiss(connection: &Connection, cancellation: &str) -> Result<()> {
    let call = zbus::Message::method_call(AUTHORITY, "CancelCheckAuthorization")
        .destination(POLKIT.name)
        .interface(INTERFACE)
        .with_flags(Flags::NO_REPLY_EXPECTED)
        .build(&cancellation)?;
    Ok(connection.send(&call).await?)
}

fn denied(action: Action, why: &str) -> Error {
    Error::new(ErrorKind::NotPermitted, format!("{}: {why}", action.id()))
}
