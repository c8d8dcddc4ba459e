//! Who we are, where we run, who holds a device open, and loading a module.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::mkfs::find_program;
use crate::host::{Holder, HostError};

/// Bit of `CAP_SYS_ADMIN` in include/uapi/linux/capability.h.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Whether we have `CAP_SYS_ADMIN`, without which neither swap nor mounts nor zram can be changed.
pub fn is_privileged() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return false };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).is_some_and(|bits| bits & CAP_SYS_ADMIN != 0)
}

/// The kind of container that we run in, found without running anything.
///
/// Sources: systemd's container interface (`/run/systemd/container`, `container=` of PID 1) and the marker files of
/// docker and podman.
pub fn container(root: &Path) -> Option<String> {
    let named = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let from_pid_1 = || {
        let environment = fs::read(root.join("proc/1/environ")).ok()?;
        let value = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"container="))?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
    };
    let marker = |path: &str, kind: &str| root.join(path).exists().then(|| kind.to_owned());
    named("run/systemd/container")
        .or_else(from_pid_1)
        .or_else(|| marker(".dockerenv", "docker"))
        .or_else(|| marker("run/.containerenv", "podman"))
}

/// Processes other than this one that have the node open.
pub fn holders(root: &Path, node: &Path) -> Vec<Holder> {
    let Ok(node) = fs::metadata(node) else { return Vec::new() };
    let is_node = |file: &fs::Metadata| {
        file.rdev() == node.rdev() && file.mode() & libc::S_IFMT == node.mode() & libc::S_IFMT
    };
    processes_where(root, |process| descriptors(process).any(|file| is_node(&file)))
}

/// Processes other than this one that have a file open, a working directory or a root on the file system at `path`.
pub fn mount_users(root: &Path, path: &Path) -> Vec<Holder> {
    let Ok(folder) = fs::metadata(path) else { return Vec::new() };
    processes_where(root, |process| {
        let places = ["cwd", "root", "exe"].into_iter().filter_map(|name| fs::metadata(process.join(name)).ok());
        places.chain(descriptors(process)).any(|file| file.dev() == folder.dev())
    })
}

/// What a process has open. Processes come and go while we look, and we may not look into all of them.
fn descriptors(process: &Path) -> impl Iterator<Item = fs::Metadata> {
    fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .filter_map(|descriptor| fs::metadata(descriptor.ok()?.path()).ok())
}

fn processes_where(root: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<Holder> {
    let Ok(processes) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let mut holders: Vec<Holder> = processes
        .filter_map(|process| {
            let process = process.ok()?;
            let pid: u32 = process.file_name().to_str()?.parse().ok()?;
            if pid == std::process::id() || !wanted(&process.path()) {
                return None;
            }
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            Some(Holder { pid, name: name.trim().to_owned() })
        })
        .collect();
    holders.sort_by_key(|holder| holder.pid);
    holders
}

/// Loads a module with modprobe(8), which resolves dependencies; only direct mode does this, units use
/// `modprobe@zram.service`.
pub fn load_module(root: &Path, name: &str) -> Result<(), HostError> {
    let program = find_program(root, "modprobe")
        .ok_or_else(|| HostError::text(name, "load the module", "modprobe is not installed"))?;
    let output = Command::new(program)
        .arg(name)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| HostError::io(name, "run modprobe", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("modprobe failed").trim().to_owned();
    Err(HostError::text(name, "load the module", said))
}
