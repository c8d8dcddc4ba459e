//! PID 1 through systemctl(1), for short-lived programs without a D-Bus connection.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::process;
use crate::HostError;
use logic::error::Error;

/// Time limit, as for the unit that drains. PID 1 has its own limits for what it starts and stops.
const LIMIT: Duration = Duration::from_secs(300);

fn systemctl(verb: &str, words: &[&str]) -> Result<String, HostError> {
    let mut command = Command::new("systemctl");
    command.args(["--no-ask-password", verb]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = process::output(&mut command, "systemctl", LIMIT, |_| {})?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = if said.is_empty() { output.status.to_string() } else { said.join(" ") };
    Err(HostError::text("systemctl", format!("{verb} {}", words.join(" ")), said))
}

/// Brings the units in line with the configuration: those of the generator, or those that `zramd-setup` writes if the
/// generator does not run.
pub fn follow_configuration() -> Result<(), Error> {
    process::ask::<()>(process::ours("zramd-setup").arg("write-units"), LIMIT, |_| {})?;
    Ok(reload()?)
}

/// Has PID 1 run the generators and read all units again.
pub fn reload() -> Result<(), HostError> {
    systemctl("daemon-reload", &[]).map(drop)
}

/// Disables a unit at boot. PID 1 reads that with [`reload`].
pub fn disable(unit: &str) -> Result<(), HostError> {
    systemctl("disable", &["--no-reload", unit]).map(drop)
}

/// Starts units and waits until they have started.
pub fn start(units: &[&str]) -> Result<(), HostError> {
    systemctl("start", units).map(drop)
}

/// Stops units and waits until they have stopped.
pub fn stop(units: &[&str]) -> Result<(), HostError> {
    systemctl("stop", units).map(drop)
}

/// Stops a unit, unless it is not active. One that failed, such as a mount that an earlier call found busy, is no longer listed
/// as failed.
pub fn stop_if_active(unit: &str) -> Result<(), HostError> {
    if property(unit, "ActiveState")? != "inactive" {
        stop(&[unit])?;
    }
    if property(unit, "ActiveState")? == "failed" {
        systemctl("reset-failed", &[unit])?;
    }
    Ok(())
}

/// A property of a unit (org.freedesktop.systemd1(5)); empty if it does not exist.
pub fn property(unit: &str, name: &str) -> Result<String, HostError> {
    let property = format!("--property={name}");
    systemctl("show", &["--value", &property, unit])
}
