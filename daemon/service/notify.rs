//! Notifications for the service manager (sd_notify(3)); without one they have no effect.

use sd_notify::NotifyState;
use zbus::Connection;

use crate::{NAME, ROOT};

/// The interface that every program on a bus has.
const PEER: &str = "org.freedesktop.DBus.Peer";

/// Sends a notification; errors are ignored.
fn send(states: &[NotifyState]) {
    sd_notify::notify(states).ok();
}

pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Notifies the watchdog, if it is enabled, up to four times per interval, as long as the daemon answers calls on the bus. An answer may
/// be lost: the bus drops messages to a program for which too many are waiting, and any user can send them.
pub async fn keep_watchdog_fed(connection: Connection) {
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    let pause = interval / 4;
    loop {
        tokio::time::sleep(pause).await;
        // Through the bus and its own dispatcher: a daemon that is deaf gets no answer, and is restarted.
        let ping = connection.call_method(Some(NAME), ROOT, Some(PEER), "Ping", &());
        if tokio::time::timeout(pause, ping).await.is_ok_and(|answer| answer.is_ok()) {
            send(&[NotifyState::Watchdog]);
        }
    }
}
