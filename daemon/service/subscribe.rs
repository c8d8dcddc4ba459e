//! Subscriptions to statistics. Without subscribers there is no timer and no wake-up.

use std::sync::Arc;
use std::time::Duration;

use zbus::ObjectPath;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;

use super::ROOT;
use super::bus::device::{Device, stats_map};
use super::bus::filesystem::{Filesystem, USAGE};
use super::bus::manager::{Manager, TOTALS};
use super::bus::ramdisk::{Ramdisk, SPACE};
use super::bus::table;
use super::caller;
use super::core::{Core, Selection};
use super::error::{Error, ErrorKind, Result};
use super::lock::lock;
use super::names::{BUS, device_path, ramdisk_path};
use super::stream;
use logic::property::Machine;

/// Minimum interval.
const SHORTEST: Duration = Duration::from_millis(100);
/// Maximum interval.
const LONGEST: Duration = Duration::from_secs(3600);
/// Maximum number of subscribers.
const MOST: usize = 256;
/// Maximum number of subscribers of one user other than root.
const MOST_OF_ONE: usize = 64;

impl Core {
    /// The objects with these paths, all of which have to exist; everything without any.
    pub async fn selection(self: &Arc<Self>, paths: &[ObjectPath<'_>]) -> Result<Selection> {
        if paths.is_empty() {
            return Ok(Selection::Everything);
        }
        let snapshot = self.sample().await;
        let devices = snapshot.devices.iter().map(|device| device_path(&device.name));
        let disks = snapshot.ramdisks.iter().map(|disk| ramdisk_path(&disk.name));
        let mut selected: Vec<String> = devices.chain(disks).chain([ROOT.to_owned()]).collect();
        if let Some(other) = paths.iter().find(|path| selected.iter().all(|known| known != path.as_str())) {
            let message = format!(
                "{other} has no statistics: select devices, RAM disks, or {ROOT} for the totals, as in GetManagedObjects"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        selected.retain(|known| paths.iter().any(|path| path.as_str() == known));
        Ok(Selection::Objects(selected))
    }

    /// Sends the statistics of these objects to this caller until it unsubscribes or leaves the bus, or at most for this time.
    pub async fn subscribe(
        self: &Arc<Self>,
        call: &Header<'_>,
        interval: Duration,
        selection: Selection,
        time: Option<Duration>,
    ) -> Result<()> {
        if !(SHORTEST..=LONGEST).contains(&interval) {
            let message =
                format!("the interval is {} ms to {} ms", SHORTEST.as_millis(), LONGEST.as_millis());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if time.is_some_and(|time| !(SHORTEST..=LONGEST).contains(&time)) {
            let message = format!("the time is 1 s to {} s", LONGEST.as_secs());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let connection = self.connection().ok_or_else(|| Error::new(ErrorKind::Failed, "there is no bus"))?;
        let caller = caller::name_of(call)?;
        let user = self.call_limits.take(&connection, call).await?.user;
        let mut subscribers = lock(&self.subscribers);
        let others = subscribers.live.iter().filter(|(name, _)| **name != caller).map(|(_, (user, _))| *user);
        let of_user = others.clone().filter(|other| *other == user && user != 0).count();
        if others.count() >= MOST || of_user >= MOST_OF_ONE {
            let message = format!("{MOST} callers are subscribed already, or {MOST_OF_ONE} of one user");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let feed = feed(Arc::clone(self), caller.clone(), interval, selection);
        let task = match time {
            None => tokio::spawn(feed),
            Some(time) => {
                let (core, caller) = (Arc::clone(self), caller.clone());
                tokio::spawn(async move {
                    // A later call of the same caller has aborted this task.
                    if tokio::time::timeout(time, feed).await.is_err() {
                        core.unsubscribe(&caller);
                    }
                })
            }
        };
        if let Some((_, before)) = subscribers.live.insert(caller, (user, task)) {
            before.abort();
        }
        if !subscribers.watched {
            subscribers.watched = true;
            tokio::spawn(watch_departures(Arc::clone(self), connection));
        }
        Ok(())
    }

    /// Ends the subscription of a caller, if it has one.
    pub fn unsubscribe(&self, caller: &str) {
        let mut subscribers = lock(&self.subscribers);
        if let Some((_, task)) = subscribers.live.remove(caller) {
            task.abort();
        }
        subscribers.fewer.notify_one();
    }
}

/// Sends a sample of the selected objects at each interval.
async fn feed(core: Arc<Core>, caller: String, interval: Duration, selection: Selection) {
    let Some(connection) = core.connection() else { return };
    let Ok(destination) = zbus::names::UniqueName::try_from(caller.as_str()) else { return };
    let mut ready = lock(&core.subscribers).ready.subscribe();
    // A caller that left before the watch was ready gets no NameOwnerChanged, so the bus is asked.
    if ready.wait_for(|ready| *ready).await.is_err() || caller::user_of(&connection, &caller).await.is_err() {
        return core.unsubscribe(&caller);
    }
    let mut ticks = tokio::time::interval(interval);
    // A delay must not cause a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let snapshot = core.sample().await;
        core.notice(&snapshot);
        let now = snapshot.timestamp_monotonic_usec;
        let to = |path: String| {
            let emitter = SignalEmitter::new(&connection, path).ok().filter(|it| selection.has(it.path()));
            emitter.map(|emitter| emitter.set_destination(destination.clone().into()))
        };
        // Without a connection to the bus the daemon exits anyway.
        for device in &snapshot.devices {
            if let Some(emitter) = to(device_path(&device.name)) {
                Device::stats_updated(&emitter, stats_map(device)).await.ok();
                // `Subscribe` is for the counters of devices only.
                if let Some(mount) = device.mount.as_ref().filter(|_| selection != Selection::Devices) {
                    Filesystem::usage_updated(&emitter, table::sample(mount, &USAGE, now)).await.ok();
                }
            }
        }
        for disk in &snapshot.ramdisks {
            if let Some(emitter) = to(ramdisk_path(&disk.name)) {
                Ramdisk::space_updated(&emitter, table::sample(disk, &SPACE, now)).await.ok();
            }
        }
        if let Some(emitter) = to(ROOT.to_owned()) {
            let machine = Machine { snapshot, ..Machine::default() };
            Manager::totals_updated(&emitter, table::sample(&machine, &TOTALS, now)).await.ok();
        }
    }
}

/// Ends the subscriptions of callers that leave the bus. Runs only while there are subscriptions.
async fn watch_departures(core: Arc<Core>, connection: zbus::Connection) {
    let Err(error) = follow_departures(&core, &connection).await else { return };
    tracing::warn!("cannot follow clients that leave the bus, so Subscribe is disabled: {error}");
    let mut subscribers = lock(&core.subscribers);
    for (_, (_, task)) in std::mem::take(&mut subscribers.live) {
        task.abort();
    }
    subscribers.watched = false;
    subscribers.ready.send_replace(false);
}

async fn follow_departures(core: &Core, connection: &zbus::Connection) -> zbus::Result<()> {
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(BUS)
        .interface(BUS)
        .member("NameOwnerChanged")
        .build()?;
    // Must not be cancelled: the bus would keep the match rule, and the number of rules is limited.
    let mut owners = zbus::MessageStream::for_match_rule(rule, connection, None).await?;
    let fewer = Arc::clone(&lock(&core.subscribers).fewer);
    loop {
        {
            let mut subscribers = lock(&core.subscribers);
            subscribers.watched = !subscribers.live.is_empty();
            subscribers.ready.send_replace(subscribers.watched);
            if !subscribers.watched {
                return Ok(());
            }
        }
        let signal = tokio::select! {
            signal = stream::next(&mut owners) => signal,
            () = fewer.notified() => continue,
        };
        let Some(signal) = signal.transpose()? else { return Ok(()) };
        let body = signal.body();
        let (name, _before, now): (&str, &str, &str) = body.deserialize()?;
        if now.is_empty() {
            core.unsubscribe(name);
        }
    }
}
