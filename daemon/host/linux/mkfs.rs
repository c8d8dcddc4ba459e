//! Running `mkfs`, the only external program that setting up a device runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process;
use crate::{HostError, MkfsSpec};

/// Time limit. The unit that sets up a device ends after 60 s, without a reason.
const LIMIT: Duration = Duration::from_secs(45);

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
    let output = process::output(&mut command, &name, LIMIT, |_| {}).map_err(|error| HostError {
        object: object.to_owned(),
        operation: format!("run {name}"),
        ..error
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
