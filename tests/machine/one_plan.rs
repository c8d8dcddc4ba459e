//! The cost of one request under systemd: programs started, daemon-reloads, and writes of the state file.
//!
//! On the running kernel. PID 1 is simulated on a private bus, and `/run` is a tmpfs in a mount namespace, so the systemd of
//! the machine is not used.
// The interface macro uses every argument, and requires methods.
#![allow(clippy::used_underscore_binding, clippy::unused_self)]

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::private_bus::{Bus, Guarded, run};
use rustix::fs::inotify;
use zbus::object_server::SignalEmitter;
use zbus::{OwnedObjectPath, interface};

use crate::support::session::{swaps, zramdctl};
use crate::support::{can_use_real_kernel, eventually, has_program, real_kernel_lock, skip};

/// `/run` as under systemd, with the generator installed and `zramd.service` enabled.
const RUN: &str = r#"
mount -t tmpfs tmpfs /run
mkdir -p /run/zramd /run/systemd/generator /run/systemd/system-generators /run/systemd/system/multi-user.target.wants
ln -s "$1" /run/systemd/system-generators/zramd-generator
ln -s /usr/lib/systemd/system/zramd.service /run/systemd/system/multi-user.target.wants/
: > "$2"
exec sleep 100000
"#;

/// `systemctl VERB UNIT` as far as zramd needs it. `zramd-setup` is a wrapper that records its calls.
const PID_1: &str = r#"
name=${2#dev-}; name=${name%.swap}
number=${2#zramd-setup@}; number=${number%.service}
case $1-$2 in
reload-) echo daemon-reload >> "$HERE/calls"; rm -rf /run/systemd/generator/*
    if [ -L /run/systemd/system/multi-user.target.wants/zramd.service ]; then
        "$HERE/zramd-setup" generate /run/systemd/generator
    fi
    timer=zramd-maintenance.timer
    [ ! -e "$HERE/$timer" ] || [ -e "/run/systemd/generator/$timer" ] || echo "$timer: failed" >> "$HERE/calls" ;;
start-*.timer) [ ! -e "/run/systemd/generator/$2" ] || : > "$HERE/$2" ;;
stop-*.timer) rm -f "$HERE/$2" ;;
start-dev-*.swap) [ -e "/run/systemd/system/$2" ] || [ -e "/run/systemd/generator/$2" ] || exit 1
    "$HERE/zramd-setup" up "$name" >&2 && swapon "/dev/$name" ;;
stop-dev-*.swap) ! grep -q "^/dev/$name " /proc/swaps || swapoff "/dev/$name" ;;
stop-zramd-setup@*) "$HERE/zramd-setup" down "$number" >&2 ;;
esac
"#;

/// The mount namespace of the daemon and of the units.
#[derive(Debug, Clone)]
struct Namespace {
    pid: u32,
    here: PathBuf,
}

impl Namespace {
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.pid)).arg("--mount").arg("--").arg(program.as_ref());
        command.env("HERE", &self.here).stdin(Stdio::null());
        command
    }

    /// Path of a file in it.
    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid))
    }

    /// Recorded calls of zramd's programs, in order, without arguments that are JSON.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.here.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

struct Pid1(Namespace);

impl Pid1 {
    fn does(&self, verb: &str, unit: &str) -> bool {
        self.0.command("/bin/sh").args(["-c", PID_1, "pid-1", verb, unit]).status().unwrap().success()
    }

    async fn job(&self, verb: &str, unit: &str, emitter: &SignalEmitter<'_>) -> OwnedObjectPath {
        let path: OwnedObjectPath = "/org/freedesktop/systemd1/job/1".try_into().unwrap();
        let result = if self.does(verb, unit) { "done" } else { "failed" };
        Pid1::job_removed(emitter, 1, path.clone(), unit, result).await.unwrap();
        path
    }
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Pid1 {
    fn subscribe(&self) {}

    fn unsubscribe(&self) {}

    fn reload(&self) {
        assert!(self.does("reload", ""));
    }

    async fn start_unit(
        &self,
        unit: String,
        _mode: String,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> OwnedObjectPath {
        self.job("start", &unit, &emitter).await
    }

    async fn stop_unit(
        &self,
        unit: String,
        _mode: String,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> OwnedObjectPath {
        self.job("stop", &unit, &emitter).await
    }

    #[zbus(signal)]
    async fn job_removed(
        emitter: &SignalEmitter<'_>,
        id: u32,
        job: OwnedObjectPath,
        unit: &str,
        result: &str,
    ) -> zbus::Result<()>;
}

/// Runs the simulated PID 1 until the end of the test.
fn start_pid_1(address: &str, namespace: Namespace) {
    let address = address.to_owned();
    let (ready, begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        run(async {
            let connection = zbus::connection::Builder::address(address.as_str())
                .serve_at("/org/freedesktop/systemd1", Pid1(namespace))
                .name("org.freedesktop.systemd1")
                .build();
            let connection = connection.await.unwrap();
            ready.send(()).unwrap();
            connection.closed().await;
        });
    });
    begun.recv().unwrap();
}

/// The machine, dropped in this order: the daemon ends, devices are removed, the lock is released.
struct Machine {
    daemon: Option<Guarded>,
    bus: Bus,
    namespace: Namespace,
    _holder: Guarded,
    _lock: fs::File,
}

impl Machine {
    fn start() -> Option<Machine> {
        if !can_use_real_kernel() {
            return None;
        }
        if !["unshare", "nsenter", "swapon"].into_iter().all(has_program) {
            skip("needs unshare, nsenter and swapon");
            return None;
        }
        let lock = real_kernel_lock();
        let bus = Bus::start()?;
        let here = bus.directory().to_owned();
        let real = Path::new(env!("CARGO_BIN_EXE_zramd-setup"));
        // The daemon looks for the other programs in its own directory.
        fs::copy(env!("CARGO_BIN_EXE_zramd"), here.join("zramd")).unwrap();
        let script = format!(
            "#!/bin/sh\nwords=\nfor word; do case $word in '{{'*) ;; *) words=\"$words $word\" ;; esac; done\n\
             echo \"${{words# }}\" >> '{}'\nexec '{}' \"$@\"\n",
            here.join("calls").display(),
            real.display()
        );
        fs::write(here.join("zramd-setup"), script).unwrap();
        fs::set_permissions(here.join("zramd-setup"), Permissions::from_mode(0o755)).unwrap();
        let mounted = here.join("mounted");
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "/bin/sh", "-ec", RUN, "run"]).arg(here.join("zramd-setup")).arg(&mounted);
        let holder = Guarded(holder.stdin(Stdio::null()).spawn().unwrap());
        eventually("the mount namespace", || mounted.exists());
        let namespace = Namespace { pid: holder.0.id(), here };
        start_pid_1(bus.address(), namespace.clone());
        let daemon = bus.ready(bus.connect(namespace.command(bus.directory().join("zramd"))));
        Some(Machine { daemon: Some(daemon), bus, namespace, _holder: holder, _lock: lock })
    }

    fn configure(&self, text: &str) {
        fs::write(self.namespace.path("/run/zramd/zramd.toml"), text).unwrap();
    }

    /// Runs `zramdctl`, and returns the calls that it caused and the number of writes of the state file.
    #[track_caller]
    fn cost(&self, words: &[&str]) -> (Vec<String>, usize) {
        fs::remove_file(self.namespace.here.join("calls")).ok();
        let directory = self.namespace.path("/run/zramd");
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&events, directory, inotify::WatchFlags::MOVE).unwrap();
        let output = zramdctl(self.bus.address(), words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        (self.namespace.calls(), written(&events, c"operation"))
    }

    /// The swap units in a unit directory.
    fn units(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.namespace.path("/run/systemd").join(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".swap"));
        names.sort();
        names
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.daemon = None;
        for (name, ..) in swaps() {
            Command::new("swapoff").arg(format!("/dev/{name}")).status().ok();
        }
        let setup = env!("CARGO_BIN_EXE_zramd-setup");
        self.namespace.command(setup).arg("revert").stdout(Stdio::null()).status().ok();
    }
}

/// How often a file with this name was renamed into the directory.
fn written(events: &OwnedFd, name: &std::ffi::CStr) -> usize {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    let mut count = 0;
    while let Ok(event) = reader.next() {
        count += usize::from(event.file_name() == Some(name));
    }
    count
}

const TWO: &str = "[zram6]\nzram-size = \"24MiB\"\n[zram7]\nzram-size = \"16MiB\"\n";
const ONE: &str = "[zram6]\nzram-size = \"24MiB\"\n";

/// In a daemon-reload, the generator plans once.
const RELOAD: [&str; 2] = ["daemon-reload", "generate /run/systemd/generator"];

#[test]
fn each_request_is_planned_once() {
    let Some(machine) = Machine::start() else { return };
    let costs = |words: &[&str], expected: &[&str]| {
        let (calls, written) = machine.cost(words);
        assert_eq!(calls, expected, "{words:?}");
        assert_eq!(written, 1, "{words:?}: how often the state file was written");
    };
    machine.configure(TWO);
    costs(&["reload"], &["propose --managed", RELOAD[0], RELOAD[1], "up zram6", "up zram7"]);
    costs(&["resize", "zram6", "32MiB"], &["propose --managed --edit zram6", "down zram6", "up zram6"]);
    costs(&["limit", "zram6", "8MiB"], &["propose --managed --edit zram6", "adapt zram6"]);
    // An override with the configured value is also removed.
    costs(&["limit", "zram6", "none"], &["propose --managed --edit zram6", "adapt zram6"]);
    costs(&["swap", "off", "zram6"], &["propose --managed --edit zram6", "down zram6", RELOAD[0], RELOAD[1]]);
    costs(&["swap", "on", "zram6"], &["propose --managed --edit zram6", RELOAD[0], RELOAD[1], "up zram6"]);
    machine.configure(&TWO.replace("16MiB\"", "16MiB\"\nswap-priority = 7"));
    costs(&["reload"], &["propose --managed", "down zram7", RELOAD[0], RELOAD[1], "up zram7"]);
    machine.configure(ONE);
    costs(&["reload"], &["propose --managed", "down zram7", RELOAD[0], RELOAD[1]]);
    costs(&["reload"], &["propose --managed"]);
    assert_eq!(machine.units("generator"), ["dev-zram6.swap"]);
    assert_eq!(machine.units("system"), [""; 0]);
    let (calls, written) = machine.cost(&["create", "--size", "16MiB"]);
    let plans = calls.iter().filter(|call| call.starts_with("propose ")).count();
    assert_eq!((plans, calls.len(), written), (1, 4, 1), "{calls:?}");
}

/// PID 1 fails a running timer whose unit is gone after a reload (seen on systemd 252).
#[test]
fn the_timer_of_maintenance_ends_before_its_unit() {
    let Some(machine) = Machine::start() else { return };
    let timer = machine.namespace.here.join("zramd-maintenance.timer");
    machine.configure(&format!("{TWO}[maintenance]\nrecompress = true\n"));
    machine.cost(&["reload"]);
    assert!(timer.exists(), "the timer runs");
    machine.configure(ONE);
    let (calls, _) = machine.cost(&["reload"]);
    assert!(calls.iter().any(|call| call == RELOAD[0]), "PID 1 has read the units again: {calls:?}");
    assert!(!calls.iter().any(|call| call.ends_with(": failed")), "{calls:?}");
    assert!(!timer.exists(), "the timer has ended");
}

#[test]
fn without_the_generator_one_reload_is_enough() {
    let Some(machine) = Machine::start() else { return };
    let enabled = "/run/systemd/system/multi-user.target.wants/zramd.service";
    machine.configure(ONE);
    machine.cost(&["reload"]);
    fs::remove_file(machine.namespace.path(enabled)).unwrap();
    for (text, expected, units) in [
        (
            TWO,
            &["propose --managed", "daemon-reload", "up zram7"][..],
            &["dev-zram6.swap", "dev-zram7.swap"][..],
        ),
        (ONE, &["propose --managed", "down zram7", "daemon-reload"], &["dev-zram6.swap"]),
        ("", &["propose --managed", "down zram6", "daemon-reload"], &[]),
    ] {
        machine.configure(text);
        let (calls, written) = machine.cost(&["reload"]);
        assert_eq!(calls, expected);
        assert_eq!(written, 1);
        assert_eq!(machine.units("system"), units);
        assert_eq!(machine.units("generator"), [""; 0]);
    }
    // Units written while the generator was disabled are removed in the same reload.
    machine.configure(ONE);
    machine.cost(&["reload"]);
    std::os::unix::fs::symlink("/usr/lib/systemd/system/zramd.service", machine.namespace.path(enabled))
        .unwrap();
    machine.configure(TWO);
    let (calls, _) = machine.cost(&["reload"]);
    assert_eq!(calls, ["propose --managed", RELOAD[0], RELOAD[1], "up zram7"]);
    assert_eq!(machine.units("system"), [""; 0]);
    assert_eq!(machine.units("generator"), ["dev-zram6.swap", "dev-zram7.swap"]);
}
