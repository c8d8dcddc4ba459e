//! Who wants statistics without asking each time. Nobody subscribed means no timer and no wake-up.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;

use super::bus::auth;
use super::bus::device::{Device, stats_map};
use super::bus::error::{BusError, Name, Result};
use super::core::{Core, lock};
use super::stream;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longest interval.
const LONGEST: Duration = Duration::from_secs(3600);
/// Callers that may be subscribed at the same time.
const MOST: usize = 256;
/// Those of them that may belong to one user, but for root.
const MOST_OF_ONE: usize = 64;

/// The subscribed callers, by their unique name on the bus, with the user that each belongs to.
#[derive(Debug, Default)]
pub struct Subscribers {
    live: BTreeMap<String, (u32, JoinHandle<()>)>,
}

impl Core {
    /// Sends `StatsUpdated` of all devices to this caller until it unsubscribes or leaves the bus.
    pub async fn subscribe(self: &Arc<Self>, call: &Header<'_>, interval: Duration) -> Result<()> {
        if !(SHORTEST..=LONGEST).contains(&interval) {
            let message =
                format!("the interval is {} ms to {} ms", SHORTEST.as_millis(), LONGEST.as_millis());
            return Err(BusError::new(Name::InvalidArgument, message));
        }
        let _turn = self.turns.take(call)?;
        let caller = auth::caller(call)?;
        let connection = self.connection().ok_or_else(|| BusError::new(Name::Failed, "there is no bus"))?;
        let user = auth::user_of(&connection, &caller).await?;
        let mut subscribers = lock(&self.subscribers);
        let others = subscribers.live.iter().filter(|(name, _)| **name != caller).map(|(_, (user, _))| *user);
        let of_user = others.clone().filter(|other| *other == user && user != 0).count();
        if others.count() >= MOST || of_user >= MOST_OF_ONE {
            let message = format!("{MOST} callers are subscribed already, or {MOST_OF_ONE} of one user");
            return Err(BusError::new(Name::LimitExceeded, message));
        }
        let task = tokio::spawn(feed(Arc::clone(self), caller.clone(), interval));
        if let Some((_, before)) = subscribers.live.insert(caller, (user, task)) {
            before.abort();
        }
        Ok(())
    }

    /// Ends a subscription; whoever has none is content.
    pub fn unsubscribe(&self, caller: &str) {
        if let Some((_, task)) = lock(&self.subscribers).live.remove(caller) {
            task.abort();
        }
    }
}

/// Sends samples until the caller leaves the bus.
async fn feed(core: Arc<Core>, caller: String, interval: Duration) {
    if let Err(error) = send_samples(&core, &caller, interval).await {
        tracing::debug!(%error, caller, "a subscription ends");
    }
    core.unsubscribe(&caller);
}

/// Sends a sample of every device, again and again.
async fn send_samples(core: &Arc<Core>, caller: &str, interval: Duration) -> zbus::Result<()> {
    let Some(connection) = core.connection() else { return Ok(()) };
    let destination = zbus::names::UniqueName::try_from(caller)?;
    let bus = "org.freedesktop.DBus";
    // About this caller only, so that others who come and go wake nobody. No name is given twice: one signal is all there is.
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(bus)
        .interface(bus)
        .member("NameOwnerChanged")
        .arg(0, caller)
        .build()?;
    let mut departure =
        zbus::MessageStream::for_match_rule(rule, &connection, Some(NonZeroUsize::MIN)).await?;
    // Whoever left before that is not announced any more.
    auth::user_of(&connection, caller).await?;
    let mut ticks = tokio::time::interval(interval);
    // Being late once must not cause a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stream::next(&mut departure) => return Ok(()),
            _ = ticks.tick() => {}
        }
        let snapshot = core.sample().await;
        for device in &snapshot.devices {
            let emitter = SignalEmitter::new(&connection, super::bus::device_path(&device.name))?;
            let emitter = emitter.set_destination(destination.clone().into());
            Device::stats_updated(&emitter, stats_map(device)).await?;
        }
    }
}
