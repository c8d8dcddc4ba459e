//! A private system bus with the built `zramd`.
//!
//! It has the policy of a real system bus (names and calls are refused unless allowed) and `units/org.zramd1.conf`. As on
//! the real one, every user can connect. All processes end with the test, also when it is killed.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{future::poll_fn, pin::Pin};

use futures_core::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use zbus::wire::{DynamicType, Type};
use zbus::{Connection, DBusError, Message, MessageStream, OwnedObjectPath, OwnedVariant};

use crate::support::{DAEMON, copy_program, has_program, no_changes_lock, repository, skip, write_program};

/// Time limit for the start of bus and daemon, much longer than necessary because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Time between SIGTERM and SIGKILL.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The `<standard_system_…>` elements of a distribution's system.conf, without service activation.
const RULES: &str = r#"
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
  </policy>
"#;

/// A process that is ended when dropped.
#[derive(Debug)]
pub struct Guarded(pub Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Sends SIGTERM, and SIGKILL after the time limit.
fn end(child: &mut Child) {
    let id = Pid::from_child(child);
    // It may have ended already.
    if child.try_wait().is_ok_and(|status| status.is_none()) {
        kill_process(id, Signal::TERM).ok();
        if !ends_within(child, LAST_WORDS) {
            eprintln!("process {} ignores SIGTERM", child.id());
            child.kill().ok();
        }
    }
    child.wait().ok();
}

/// Whether a process ends within this time.
pub fn ends_within(child: &Child, time: Duration) -> bool {
    let Ok(handle) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return false };
    let time = Timespec::try_from(time).unwrap();
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&time)).is_ok_and(|ready| ready > 0)
}

/// A command that gets SIGKILL when the test program dies, if `setpriv` is there.
pub fn bound(program: &Path) -> Command {
    if !has_program("setpriv") {
        return crate::command_for(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// A bus without zramd.
#[derive(Debug)]
pub struct Bus {
    process: Guarded,
    directory: tempfile::TempDir,
    address: String,
    program: PathBuf,
}

impl Bus {
    /// Starts a bus; `None`, with the reason printed, without `dbus-daemon`.
    #[track_caller]
    pub fn start() -> Option<Bus> {
        if !has_program("dbus-daemon") {
            skip("needs dbus-daemon");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("zramd-bus-").tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let file = directory.path().join("bus.conf");
        fs::write(&file, configuration(directory.path())).unwrap();
        let mut process = bound(Path::new("dbus-daemon"))
            .args(["--nofork", "--nopidfile", "--nosyslog", "--print-address=1"])
            .arg(format!("--config-file={}", file.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.path().join("bus.log")).unwrap())
            .spawn()
            .unwrap();
        // dbus-daemon prints its address when it is ready.
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("unix:"), "dbus-daemon did not start: {address:?}");
        let program = PathBuf::from(DAEMON);
        Some(Bus { process: Guarded(process), directory, address: address.trim().to_owned(), program })
    }

    /// Its address, as in `DBUS_SYSTEM_BUS_ADDRESS`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// A temporary directory that every user can read.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process of the bus.
    pub fn process(&self) -> &Child {
        &self.process.0
    }

    /// A command for `zramd` on this bus with an empty configuration, which logs to a file.
    pub fn daemon(&self) -> Command {
        fs::write(self.config(), "").unwrap();
        self.prepare(crate::command_for(&self.program))
    }

    /// Starts `zramd` and waits for READY=1.
    #[track_caller]
    fn serve(&self) -> Guarded {
        self.ready(self.prepare(bound(&self.program)))
    }

    /// Starts this command for `zramd` and waits for READY=1.
    #[track_caller]
    pub fn ready(&self, command: Command) -> Guarded {
        self.notifying(command).0
    }

    /// Starts this command for `zramd` and waits for READY=1. Returns also the socket that receives what it notifies.
    #[track_caller]
    pub fn notifying(&self, mut command: Command) -> (Guarded, UnixDatagram) {
        let notified = self.directory.path().join("notify");
        fs::remove_file(&notified).ok();
        let socket = UnixDatagram::bind(&notified).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let daemon = Guarded(command.env("NOTIFY_SOCKET", &notified).spawn().unwrap());
        // READY=1 is sent after it has acquired its name; other notifications may precede it.
        let mut message = [0; 512];
        loop {
            let received = rustix::io::retry_on_intr(|| rustix::io::read(&socket, &mut message[..]));
            let length = received.unwrap_or_else(|error| {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                panic!("zramd does not say that it is ready: {error}\n{log}")
            });
            if String::from_utf8_lossy(&message[..length]).contains("READY=1") {
                return (daemon, socket);
            }
        }
    }

    /// Path of the configuration file of the daemon.
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("zramd.toml")
    }

    fn prepare(&self, mut command: Command) -> Command {
        let unit = fs::read_to_string(repository("units/zramd.service")).unwrap();
        let tunables =
            unit.lines().find_map(|line| line.strip_prefix("Environment=GLIBC_TUNABLES=")).unwrap();
        command.env("GLIBC_TUNABLES", tunables).arg("--config").arg(self.config());
        self.connect(command)
    }

    /// A command that uses this bus and writes to its log.
    pub fn connect(&self, mut command: Command) -> Command {
        command.env("DBUS_SYSTEM_BUS_ADDRESS", &self.address).env_remove("NOTIFY_SOCKET");
        let log = File::options().create(true).append(true).open(self.log()).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("zramd.log")
    }

    /// What the daemon and its programs have logged.
    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap()
    }
}

fn configuration(directory: &Path) -> String {
    let policy = repository("units/org.zramd1.conf");
    // The rights of root on a real system, also if the tests run without root: monitor the bus, and own the names.
    let ours = format!(
        r#"<policy user="{}">
    <allow own="org.zramd1"/>
    <allow own="org.freedesktop.PolicyKit1"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
    <allow own="org.freedesktop.systemd1"/>
    <allow send_destination="org.freedesktop.systemd1"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>"#,
        rustix::process::geteuid().as_raw()
    );
    format!(
        "<busconfig>\n  <type>system</type>\n  <auth>EXTERNAL</auth>\n  <listen>unix:path={}/socket</listen>\n  \
         <limit name=\"max_connections_per_user\">1024</limit>\n{RULES}\n  \
         <include>{}</include>\n  {ours}\n</busconfig>\n",
        directory.display(),
        policy.display(),
    )
}

/// A bus with zramd.
#[derive(Debug)]
pub struct PrivateBus {
    // In this order: the daemon ends before its bus.
    daemon: Guarded,
    bus: Bus,
}

impl PrivateBus {
    /// Starts both and waits for READY=1; `None`, with the reason printed, without `dbus-daemon`.
    #[track_caller]
    pub fn start() -> Option<PrivateBus> {
        PrivateBus::start_with("")
    }

    /// As [`PrivateBus::start`], with this configuration.
    #[track_caller]
    pub fn start_with(text: &str) -> Option<PrivateBus> {
        Some(PrivateBus::serve(Bus::start()?, text))
    }

    /// As [`PrivateBus::start`], but mounts of other tests do not wake up the daemon, where this can be prevented.
    #[track_caller]
    pub fn start_apart() -> Option<PrivateBus> {
        let mut bus = Bus::start()?;
        if rustix::process::geteuid().is_root() && has_program("unshare") {
            let program = bus.directory().join("zramd-apart");
            let apart = format!("exec unshare --mount --propagation private {}", bus.program.display());
            write_program(&program, &format!("#!/bin/sh\n{apart}\n"));
            bus.program = program;
        }
        Some(PrivateBus::serve(bus, ""))
    }

    /// As [`PrivateBus::start_with`], with this shell script as `zramd-worker`. `$HERE` is the directory of the bus.
    #[track_caller]
    pub fn start_with_worker(text: &str, script: &str) -> Option<PrivateBus> {
        let mut bus = Bus::start()?;
        // The daemon looks for the other programs in its own directory.
        for name in ["zramd", "zramd-setup"] {
            copy_program(&Path::new(DAEMON).with_file_name(name), &bus.directory().join(name));
        }
        let worker = bus.directory().join("zramd-worker");
        write_program(&worker, &format!("#!/bin/sh\nHERE={}\n{script}", bus.directory().display()));
        bus.program = bus.directory().join("zramd");
        Some(PrivateBus::serve(bus, text))
    }

    #[track_caller]
    fn serve(bus: Bus, text: &str) -> PrivateBus {
        fs::write(bus.config(), text).unwrap();
        let daemon = bus.serve();
        PrivateBus { daemon, bus }
    }

    /// Kills the daemon with SIGKILL, and waits for its end.
    pub fn crash(&mut self) {
        self.daemon.0.kill().unwrap();
        self.daemon.0.wait().unwrap();
    }

    /// Starts the daemon after [`PrivateBus::crash`], with the current configuration file.
    pub fn start_again(&mut self) {
        self.daemon = self.bus.serve();
    }

    /// The address of the bus, as in `DBUS_SYSTEM_BUS_ADDRESS`.
    pub fn address(&self) -> &str {
        self.bus.address()
    }

    /// The bus.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Process id of zramd.
    pub fn pid(&self) -> u32 {
        self.daemon.0.id()
    }

    /// Ends the bus, and returns the exit status of zramd; `None` if it keeps running.
    pub fn end_bus(&mut self) -> Option<i32> {
        end(&mut self.bus.process.0);
        if !ends_within(&self.daemon.0, PATIENCE) {
            return None;
        }
        self.daemon.0.wait().unwrap().code()
    }

    /// A new client.
    pub async fn client(&self) -> Connection {
        client(self.address()).await
    }

    /// Action and object of each change that a reload would make.
    pub fn plan(&self) -> Vec<String> {
        let options = HashMap::<String, OwnedVariant>::new();
        let rows: Vec<(String, String, String)> = run(async {
            call(&self.client().await, "/org/zramd1", "org.zramd1.Manager.Plan", &options).await
        })
        .unwrap();
        rows.into_iter().map(|(action, object, _)| format!("{action} {object}")).collect()
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        let log = fs::read_to_string(self.bus.log()).unwrap_or_default();
        if std::thread::panicking() && !log.is_empty() {
            eprintln!("zramd said:\n{log}");
        }
    }
}

/// A client of the bus at this address.
pub async fn client(address: &str) -> Connection {
    zbus::connection::Builder::address(address).build().await.unwrap()
}

/// The user ID of `nobody`. The bus accepts only users in `/etc/passwd`, where it always is.
pub const USER: u32 = 65534;

/// Runs `does` with a connection of another user.
pub fn as_user<T: Send>(user: u32, bus: &PrivateBus, does: impl AsyncFnOnce(Connection) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let user = rustix::process::Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            run(async { does(bus.client().await).await })
        });
        thread.join().unwrap()
    })
}

/// Calls a method of zramd; an error is returned by its name.
pub async fn call<A, R>(client: &Connection, path: &str, method: &str, arguments: &A) -> Result<R, String>
where
    A: serde::Serialize + DynamicType + Sync,
    R: serde::de::DeserializeOwned + Type,
{
    let (interface, member) = method.rsplit_once('.').unwrap();
    let call = client.call_method(Some("org.zramd1"), path, Some(interface), member, arguments);
    let reply =
        tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(|_| panic!("{method} is not answered"));
    let error_name = |error: zbus::Error| match error {
        zbus::Error::MethodError(name, ..) => name.to_string(),
        zbus::Error::FDO(error) => error.name().to_string(),
        other => panic!("{method}: {other}"),
    };
    let reply = reply.map_err(error_name)?;
    Ok(reply.body().deserialize().unwrap_or_else(|error| panic!("{method}: {error}")))
}

/// The current value of a property. A proxy of zbus keeps values, and a test that polls one never lets it receive the next.
pub async fn property<T>(client: &Connection, path: &str, interface: &str, name: &str) -> T
where
    T: TryFrom<OwnedVariant, Error: Debug>,
{
    let method = "org.freedesktop.DBus.Properties.Get";
    let value: OwnedVariant = call(client, path, method, &(interface, name)).await.unwrap();
    T::try_from(value).unwrap()
}

/// Objects of the daemon with their interfaces.
pub async fn objects(client: &Connection) -> BTreeMap<String, Vec<String>> {
    type Objects = HashMap<OwnedObjectPath, HashMap<String, HashMap<String, OwnedVariant>>>;
    let method = "org.freedesktop.DBus.ObjectManager.GetManagedObjects";
    let found: Objects = call(client, "/org/zramd1", method, &()).await.unwrap();
    let mut found: BTreeMap<String, Vec<String>> = found
        .into_iter()
        .map(|(path, list)| {
            (path.to_string(), list.into_keys().filter(|name| name.starts_with("org.zramd1.")).collect())
        })
        .collect();
    assert!(
        found.values().all(|list: &Vec<String>| !list.is_empty()),
        "objects without an interface: {found:?}"
    );
    // The object manager does not list its own object.
    found.entry("/org/zramd1".to_owned()).or_default().push("org.zramd1.Manager".to_owned());
    found
}

/// The next message; fails after a time limit.
pub async fn next(stream: &mut MessageStream) -> Message {
    next_of(stream).await.unwrap()
}

/// The next item of such a stream.
pub async fn next_of<S: Stream + Unpin>(stream: &mut S) -> S::Item {
    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context));
    let message = tokio::time::timeout(PATIENCE, next).await;
    message.expect("no message comes").expect("the connection is closed")
}

/// Runs a test with all clients on one thread.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// The guard of [`quiet_devices`].
pub struct QuietDevices {
    added: Option<String>,
    lock: File,
}

/// Prevents concurrent changes of devices by other tests, if permitted, and ensures that there is a device, if possible.
pub fn quiet_devices() -> Option<QuietDevices> {
    let lock = rustix::process::geteuid().is_root().then(no_changes_lock)?;
    let there = fs::read_dir("/sys/block").unwrap().flatten();
    let there = there.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("zram"));
    let add = || fs::read_to_string("/sys/class/zram-control/hot_add").ok();
    Some(QuietDevices { added: if there { None } else { add() }, lock })
}

impl Drop for QuietDevices {
    fn drop(&mut self) {
        if let Some(number) = &self.added {
            // Until no other test needs it.
            flock(&self.lock, FlockOperation::LockExclusive).unwrap();
            fs::write("/sys/class/zram-control/hot_remove", number.trim()).unwrap();
        }
    }
}
