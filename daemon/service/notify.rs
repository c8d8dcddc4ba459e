//! Telling systemd how we are (sd_notify(3)). Without systemd nobody listens, which is fine.

use sd_notify::NotifyState;

/// Sends; a service manager that does not listen is no reason to fail.
fn send(states: &[NotifyState]) {
    sd_notify::notify(states).ok();
}

/// We serve.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A reload begins.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// We are about to end.
pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Answers the watchdog half as often again as it asks for, if it does; one wake-up in minutes.
pub async fn keep_watchdog_fed() {
    let Some(interval) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(interval / 2).await;
        send(&[NotifyState::Watchdog]);
    }
}
