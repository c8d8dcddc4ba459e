//! Our privileges, containers, running programs, loading a module.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal, waitid,
};
use serde::de::DeserializeOwned;

use super::files::read_small;
use super::log;
use crate::{HostError, lossy};
use logic::error::Error;

/// Bit of `CAP_SYS_ADMIN` in include/uapi/linux/capability.h.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Directories of system programs; not `$PATH`, which the caller controls.
const DIRECTORIES: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];
/// Time limit for modprobe, which may read the driver from a slow medium.
const MODPROBE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for `zramd-worker` to load or save a RAM disk. It has limits of its own, which the configuration can raise.
pub const WORKER_LIMIT: Duration = Duration::from_secs(3600);

/// Whether we have `CAP_SYS_ADMIN`, without which neither swap nor mounts nor zram can be changed.
pub fn is_privileged() -> bool {
    // The file contains the name of this process, which need not be UTF-8.
    let Ok(status) = fs::read("/proc/self/status").map(lossy) else { return false };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .is_some_and(|bits| bits & CAP_SYS_ADMIN != 0)
}

/// The kind of container that we run in, if it keeps us from the machine's devices.
///
/// A container with `CAP_SYS_ADMIN` and a writable `/sys` counts as a machine: such rights were given on purpose, and
/// virtual machines that were built from container images have the marker files of docker and podman.
pub fn container(root: &Path) -> Option<String> {
    let marker = |path: &str, kind: &str| root.join(path).exists().then(|| kind.to_owned());
    let kind = systemd_container(root)
        .or_else(|| marker(".dockerenv", "docker"))
        .or_else(|| marker("run/.containerenv", "podman"))?;
    (!is_privileged() || is_read_only(&root.join("sys"))).then_some(kind)
}

/// The kind of container by systemd's container interface: `/run/systemd/container`, `container=` of PID 1.
///
/// zram-generator runs `systemd-detect-virt` for this, which takes most of its time.
pub fn systemd_container(root: &Path) -> Option<String> {
    let named = || {
        let text = read_small(&root.join("run/systemd/container")).ok()?;
        let text = lossy(text).trim().to_owned();
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

/// The process group of a child that was started with `process_group(0)`.
pub fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Signals a process group whose first process has not been waited for, so that its id is its own. One that has just ended is not an
/// error.
pub fn end_group(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        kill_process_group(group, signal).ok();
    }
}

/// A process that can be signalled. Its id would be that of another process once it has ended.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// Opens a child that has not been waited for; `None` on kernels before 5.3.
    pub fn of(child: &Child) -> Option<Pidfd> {
        pidfd_open(group(child)?, PidfdFlags::empty()).ok().map(Pidfd)
    }

    /// Sends SIGTERM. It may just have ended, which is not an error.
    pub fn terminate(&self) {
        pidfd_send_signal(&self.0, Signal::TERM).ok();
    }
}

/// Runs a program to its end and returns its output. A program that takes longer than `limit` is killed with its children;
/// `name` is its name for messages, and `watch` is called with the process, and with `None` when it has ended.
pub fn output(
    command: &mut Command,
    name: &str,
    limit: Duration,
    watch: impl Fn(Option<Pidfd>),
) -> Result<Output, HostError> {
    output_while(command, name, limit, watch, || ())
}

/// As [`output`], for a program that may take long: it is killed when `progress` has the same value as a whole `limit` before.
pub fn output_while<T: PartialEq>(
    command: &mut Command,
    name: &str,
    limit: Duration,
    watch: impl Fn(Option<Pidfd>),
    progress: impl Fn() -> T + Send,
) -> Result<Output, HostError> {
    let failed = |error: std::io::Error| HostError::io(name, "run", &error);
    // A process group of its own, so that its children are killed with it.
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    let group = group(&child);
    watch(Pidfd::of(&child));
    let (ended, end) = mpsc::channel::<()>();
    drop(child.stdin.take());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (read, expired) = std::thread::scope(|scope| {
        let watchdog = scope.spawn(move || {
            let mut before = progress();
            while end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let now = progress();
                if now == before {
                    end_group(group, Signal::KILL);
                    return true;
                }
                before = now;
            }
            false
        });
        let errors = scope.spawn(|| read_all(stderr));
        let read = read_all(stdout).and_then(|stdout| Ok((stdout, errors.join().unwrap_or(Ok(Vec::new()))?)));
        // Until it is waited for, its id, and that of its group, belong to no other.
        if let Some(pid) = group {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), how)).ok();
        }
        drop(ended);
        (read, watchdog.join().unwrap_or_default())
    });
    let status = child.wait().map_err(failed)?;
    watch(None);
    if expired {
        let message = format!("it made no progress for {} s, and was killed", limit.as_secs());
        return Err(HostError::text(name, "run", message));
    }
    let (stdout, stderr) = read.map_err(failed)?;
    Ok(Output { status, stdout, stderr })
}

fn read_all(pipe: Option<impl Read>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Absolute path of a system program, if it is installed.
pub fn find_program(root: &Path, name: &str) -> Option<PathBuf> {
    DIRECTORIES.iter().map(|directory| root.join(directory).join(name)).find(|path| path.is_file())
}

/// Loads a module with modprobe(8), which resolves dependencies. Only direct mode does this; units use
/// `modprobe@zram.service`.
pub fn load_module(root: &Path, name: &str) -> Result<(), HostError> {
    let program = find_program(root, "modprobe")
        .ok_or_else(|| HostError::text(name, "load the module", "modprobe is not installed"))?;
    let mut command = Command::new(program);
    command.arg(name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = output(&mut command, "modprobe", MODPROBE_LIMIT, |_| {})?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("modprobe failed").trim().to_owned();
    Err(HostError::text(name, "load the module", said))
}

/// A command for a program of zramd in the directory of this one. It logs as this one does, with the fields of the present request.
pub fn ours(name: &str) -> Command {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(name)));
    let mut command = Command::new(
        beside.filter(|path| path.exists()).unwrap_or_else(|| Path::new("/usr/lib/zramd").join(name)),
    );
    log::pass_on(&mut command);
    command
}

/// Runs a program of zramd, and returns its reply: a [`Result`] as JSON on standard output. Standard error is inherited.
/// `limit` and `watch` are those of [`output`].
pub fn ask<T: DeserializeOwned>(
    command: &mut Command,
    limit: Duration,
    watch: impl Fn(Option<Pidfd>),
) -> Result<T, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = output(command.stdin(Stdio::null()).stdout(Stdio::piped()), &name, limit, watch)?;
    reply(&name, &output)
}

/// The reply of a program of zramd that has ended.
pub fn reply<T: DeserializeOwned>(name: &str, output: &Output) -> Result<T, Error> {
    serde_json::from_str::<Result<T, Error>>(&String::from_utf8_lossy(&output.stdout)).unwrap_or_else(
        |error| Err(Error::failed(format!("{name}: {}, without a reply ({error})", output.status))),
    )
}

/// A command that runs `zramd-worker` with a reply for [`ask`].
pub fn worker() -> Command {
    let mut command = ours("zramd-worker");
    command.arg("--reply");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Output, HostError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        output(&mut command, "sh", limit, |_| {})
    }

    /// The standard library ignores SIGPIPE in our programs. Others expect the default.
    #[test]
    fn a_program_gets_the_default_of_sigpipe() {
        let done = shell("grep SigIgn /proc/self/status", Duration::from_secs(60)).unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let ignored = u64::from_str_radix(text.split_whitespace().last().unwrap(), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGPIPE - 1), 0, "{text}");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        // The child keeps the pipe open.
        let refused = shell("sleep 600 & wait", Duration::from_millis(50)).unwrap_err();
        assert_eq!(refused.object, "sh");
        let done = shell("echo said; echo why >&2; exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!((done.stdout, done.stderr), (b"said\n".to_vec(), b"why\n".to_vec()));
        assert_eq!(done.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_makes_progress_runs_to_its_end() {
        let limit = Duration::from_millis(20);
        let steps = std::sync::atomic::AtomicU32::new(0);
        let mut command = Command::new("sleep");
        let done = output_while(
            command.arg("0.3"),
            "sleep",
            limit,
            |_| {},
            || steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        );
        assert!(done.unwrap().status.success());
        assert!(steps.into_inner() > 1, "it took longer than the limit");
    }
}
