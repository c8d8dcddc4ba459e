//! Asking PID 1 by systemctl(1), for programs that are there for moments and hold no conversation with it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process;
use crate::host::HostError;

/// How long it may take: as long as the unit that drains may. PID 1 has limits for what it starts and stops.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a program and waits for its end; what it has to say on standard error becomes the error.
fn run(program: &Path, words: &[&str]) -> Result<String, HostError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = process::output(&mut command, &name, LIMIT, |_| {})?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = if said.is_empty() { output.status.to_string() } else { said.join(" ") };
    Err(HostError::text(name, words.join(" "), said))
}

fn systemctl(verb: &str, words: &[&str]) -> Result<String, HostError> {
    run(Path::new("systemctl"), &[&["--no-ask-password", verb], words].concat())
}

/// Brings the units in line with the configuration: those of the generator, and those that `zramd-setup` writes where it does not
/// run.
pub fn follow_configuration() -> Result<(), HostError> {
    systemctl("daemon-reload", &[])?;
    match run(&process::beside("zramd-setup"), &["units", "write"])?.as_str() {
        "true" => systemctl("daemon-reload", &[]).map(drop),
        _ => Ok(()),
    }
}

/// Starts units and waits until they have started.
pub fn start(units: &[&str]) -> Result<(), HostError> {
    systemctl("start", units).map(drop)
}

/// Stops units and waits until they have stopped.
pub fn stop(units: &[&str]) -> Result<(), HostError> {
    systemctl("stop", units).map(drop)
}

/// A property of a unit (org.freedesktop.systemd1(5)); empty when there is no such property.
pub fn property(unit: &str, name: &str) -> Result<String, HostError> {
    let property = format!("--property={name}");
    systemctl("show", &["--value", &property, unit])
}
