//! Who we are, where we run, who holds a device open, and loading a module.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mkfs::find_program;
use crate::host::{Holder, HostError};

/// Bit of `CAP_SYS_ADMIN` in include/uapi/linux/capability.h.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Whether we have `CAP_SYS_ADMIN`, without which neither swap nor mounts nor zram can be changed.
pub fn is_privileged() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return false };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .is_some_and(|bits| bits & CAP_SYS_ADMIN != 0)
}

/// The kind of container that we run in, if it keeps us from the machine's devices.
///
/// A container that has rights and a writable `/sys` counts as a machine: whoever made it wanted that, and images of
/// virtual machines that were built from container images keep the marker files of docker and podman.
pub fn container(root: &Path) -> Option<String> {
    let marker = |path: &str, kind: &str| root.join(path).exists().then(|| kind.to_owned());
    let kind = systemd_container(root)
        .or_else(|| marker(".dockerenv", "docker"))
        .or_else(|| marker("run/.containerenv", "podman"))?;
    (!is_privileged() || is_read_only(&root.join("sys"))).then_some(kind)
}

/// The kind of container by systemd's container interface: `/run/systemd/container`, `container=` of PID 1.
///
/// Found without running anything; zram-generator runs `systemd-detect-virt` for it, which takes most of its time.
pub fn systemd_container(root: &Path) -> Option<String> {
    let named = || {
        let text = fs::read_to_string(root.join("run/systemd/container")).ok()?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let from_pid_1 = || {
        let environment = fs::read(root.join("proc/1/environ")).ok()?;
        let value =
            environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"container="))?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
    };
    named().or_else(from_pid_1)
}

fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
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
        let places =
            ["cwd", "root", "exe"].into_iter().filter_map(|name| fs::metadata(process.join(name)).ok());
        places.chain(descriptors(process)).any(|file| file.dev() == folder.dev())
    })
}

/// What a process has open. Processes come and go while we look, and we may not look into all of them.
pub(super) fn descriptors(process: &Path) -> impl Iterator<Item = fs::Metadata> {
    fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .filter_map(|descriptor| fs::metadata(descriptor.ok()?.path()).ok())
}

/// The name of a process, which it can choose; empty when it has ended.
pub(super) fn comm(process: &Path) -> String {
    let name = fs::read(process.join("comm")).unwrap_or_default();
    name.trim_ascii_end().escape_ascii().to_string()
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
            Some(Holder { pid, name: comm(&process.path()) })
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

/// `zramd-worker`, which is installed beside every other program of zramd but `zramdctl`.
pub fn worker() -> PathBuf {
    beside("zramd-worker")
}

/// A program of zramd that is installed beside this one.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(name)));
    beside.filter(|path| path.exists()).unwrap_or_else(|| Path::new("/usr/lib/zramd").join(name))
}

/// Runs `zramd-worker`. What it has to say on standard error becomes the error; the rest goes to our own standard error, since
/// our output may be read by a program.
pub fn run_worker(words: &[&str]) -> Result<(), HostError> {
    let output = Command::new(worker())
        .args(words)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| HostError::io("zramd-worker", "run", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .map(|line| line.trim_start_matches("zramd-worker: ").trim_start_matches("<4>").trim())
        .filter(|line| !line.is_empty())
        .collect();
    let said = if lines.is_empty() { format!("zramd-worker: {}", output.status) } else { lines.join("; ") };
    Err(HostError::text("zramd-worker", words.join(" "), said))
}
