//! Notifications for the service manager (sd_notify(3)); without one they have no effect.

use sd_notify::NotifyState;

/// Sends a notification; errors are ignored.
fn send(states: &[NotifyState]) {
    sd_notify::notify(states).ok();
}

/// READY=1.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// RELOADING=1.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// STOPPING=1.
pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Notifies the watchdog twice per interval, if it is enabled.
pub async fn keep_watchdog_fed() {
    let Some(interval) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(interval / 2).await;
        send(&[NotifyState::Watchdog]);
    }
}
