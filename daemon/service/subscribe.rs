//! Who wants statistics without asking each time. Nobody subscribed means no timer and no wake-up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use zbus::object_server::SignalEmitter;

use super::bus::device::{Device, stats_map};
use super::bus::error::{BusError, Name, Result};
use super::core::{Core, lock};

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longest interval.
const LONGEST: Duration = Duration::from_secs(3600);
/// Callers that may be subscribed at the same time.
const MOST: usize = 256;

/// The subscribed callers, by their unique name on the bus.
#[derive(Debug, Default)]
pub struct Subscribers {
    live: BTreeMap<String, JoinHandle<()>>,
    departures: Option<JoinHandle<()>>,
}

impl Core {
    /// Sends `StatsUpdated` of all devices to this caller until it unsubscribes or leaves the bus.
    pub fn subscribe(self: &Arc<Self>, caller: &str, interval: Duration) -> Result<()> {
        if !(SHORTEST..=LONGEST).contains(&interval) {
            let message =
                format!("the interval is {} ms to {} ms", SHORTEST.as_millis(), LONGEST.as_millis());
            return Err(BusError::new(Name::InvalidArgument, message));
        }
        let mut subscribers = lock(&self.subscribers);
        if subscribers.live.len() >= MOST && !subscribers.live.contains_key(caller) {
            return Err(BusError::new(Name::LimitExceeded, format!("{MOST} callers are subscribed already")));
        }
        let task = tokio::spawn(feed(Arc::clone(self), caller.to_owned(), interval));
        if let Some(before) = subscribers.live.insert(caller.to_owned(), task) {
            before.abort();
        }
        if subscribers.departures.is_none() {
            subscribers.departures = Some(tokio::spawn(watch_departures(Arc::clone(self))));
        }
        Ok(())
    }

    /// Ends a subscription; whoever has none is content.
    pub fn unsubscribe(&self, caller: &str) {
        let mut subscribers = lock(&self.subscribers);
        if let Some(task) = subscribers.live.remove(caller) {
            task.abort();
        }
        if subscribers.live.is_empty()
            && let Some(watch) = subscribers.departures.take()
        {
            watch.abort();
        }
    }
}

/// Sends a sample of every device, again and again.
async fn feed(core: Arc<Core>, caller: String, interval: Duration) {
    let Some(connection) = core.connection() else { return };
    let Ok(destination) = zbus::names::UniqueName::try_from(caller) else { return };
    let mut ticks = tokio::time::interval(interval);
    // Being late once must not cause a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let snapshot = core.sample().await;
        for device in &snapshot.devices {
            let Ok(emitter) = SignalEmitter::new(&connection, super::bus::device_path(&device.name)) else {
                continue;
            };
            let emitter = emitter.set_destination(destination.clone().into());
            // The connection to the bus is gone: the daemon ends anyway.
            if Device::stats_updated(&emitter, stats_map(device)).await.is_err() {
                return;
            }
        }
    }
}

/// Ends the subscriptions of callers that leave the bus. Runs only while somebody is subscribed.
async fn watch_departures(core: Arc<Core>) {
    let Some(connection) = core.connection() else { return };
    if let Err(error) = follow_departures(&core, &connection).await {
        tracing::warn!(%error, "cannot see who leaves the bus; subscriptions end with the daemon");
    }
}

async fn follow_departures(core: &Arc<Core>, connection: &zbus::Connection) -> zbus::Result<()> {
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")
        .interface("org.freedesktop.DBus")
        .member("NameOwnerChanged")
        .build()?;
    let mut owners = zbus::MessageStream::for_match_rule(rule, connection, None).await?;
    while let Some(signal) = super::stream::next(&mut owners).await {
        let signal = signal?;
        let body = signal.body();
        let (name, _before, now): (&str, &str, &str) = body.deserialize()?;
        if now.is_empty() {
            // Through a task of its own: the last one to leave ends this very watch.
            let name = name.to_owned();
            let core = Arc::clone(core);
            tokio::spawn(async move { core.unsubscribe(&name) });
        }
    }
    Ok(())
}
