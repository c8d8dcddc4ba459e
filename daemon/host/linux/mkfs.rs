//! Running `mkfs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sd_notify::NotifyState;

use super::process;
use crate::{HostError, MkfsSpec};

/// How long it may write nothing. Much less than the time limit of the unit that sets up a device, which would end without a
/// reason.
const LIMIT: Duration = Duration::from_secs(20);
/// How much later that unit ends from each time on at which it has written something.
const EXTEND_BY: Duration = Duration::from_secs(60);

/// Absolute path of `mkfs.TYPE`, if it is installed.
pub fn find(root: &Path, fs_type: &str) -> Option<PathBuf> {
    process::find_program(root, &format!("mkfs.{fs_type}"))
}

/// Makes a file system; the error has the output of the program.
pub fn run(root: &Path, node: &Path, object: &str, spec: &MkfsSpec) -> Result<(), HostError> {
    let name = format!("mkfs.{}", spec.fs_type);
    let operation = format!("format it as {}", spec.fs_type);
    let program = find(root, &spec.fs_type)
        .ok_or_else(|| HostError::text(object, &operation, format!("{name} is not installed")))?;
    let mut command = Command::new(program);
    command
        .args(&spec.arguments)
        .arg(node)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C");
    let figures = root.join("sys/block").join(object).join("stat");
    let written = || {
        // There may be no service manager.
        let micros = u32::try_from(EXTEND_BY.as_micros()).unwrap_or(u32::MAX);
        sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(micros)]).ok();
        fs::read_to_string(&figures).ok()
    };
    let output = process::output_while(&mut command, &name, LIMIT, |_| {}, written).map_err(|error| {
        HostError { object: object.to_owned(), operation: format!("run {name}"), ..error }
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // mkfs.xfs prints its usage after the reason.
    let said = said.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
    let said = said.last().copied().unwrap_or("it said nothing");
    Err(HostError::text(object, operation, format!("{name} failed ({}): {said}", output.status)))
}
