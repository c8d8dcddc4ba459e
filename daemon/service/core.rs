//! Shared state of the daemon: the latest sample, the configuration, jobs, subscribers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use zbus::Connection;

use super::call_limits::CallLimits;
use super::claims::Claims;
use super::lock::lock;
use super::names::DEVICES;
use super::next_saves::NextSaves;
use super::samples::{Read, Samples};
use super::setup::Source;
use super::verdict::Verdicts;
use engine::{Error, gather, sample};
use host::Host;
use host::linux::LinuxHost;
use logic::duration::micros;
use logic::finding::{Code, Finding, Level};
use logic::maintain::pressure::Policy;
use logic::neighbours::programs::OtherManager;
use logic::property::has_news;
use logic::sample::Snapshot;
use logic::view::View;

/// Maximum time to wait until the objects on the bus are updated.
const PUBLISHING: Duration = Duration::from_secs(2);

/// The program that activates swap and mounts file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// PID 1.
    Systemd,
    /// `zramd-setup`.
    Direct,
}

/// Phase of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The state of the machine is not known yet.
    Starting,
    /// Running; whether it is degraded depends on the problems.
    Running,
    /// A reload is in progress.
    Reloading,
    /// The daemon is about to exit.
    Stopping,
}

/// Counters of jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Number of the last job.
    pub last: u32,
    /// Jobs that have not ended.
    pub unfinished: usize,
    /// Jobs on the bus.
    pub published: BTreeSet<u32>,
    /// Ended jobs that are still on the bus, oldest first.
    pub ended: VecDeque<u32>,
    /// Description of the change that holds `change_lock`.
    pub changing: String,
}

/// Callers that are subscribed.
#[derive(Debug, Default)]
pub struct Subscribers {
    /// Their tasks, by unique bus name, with the user.
    pub live: BTreeMap<String, (u32, JoinHandle<()>)>,
    /// Whether the task that follows departures from the bus is started.
    pub watched: bool,
    /// True once that task receives signals: from then on no departure is missed.
    pub ready: watch::Sender<bool>,
    /// Notified when a subscription ends.
    pub fewer: Arc<Notify>,
}

/// The objects whose statistics a subscriber receives.
#[derive(Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every device.
    Devices,
    /// Every device and RAM disk, and the totals.
    Everything,
    /// These.
    Objects(Vec<String>),
}

impl Selection {
    /// Whether this object is selected.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Selection::Devices => path.starts_with(DEVICES),
            Selection::Everything => true,
            Selection::Objects(paths) => paths.iter().any(|wanted| wanted == path),
        }
    }
}

/// Reports of memory pressure. The daemon has the right to ask for them only when it starts.
#[derive(Debug, Default)]
pub struct Pressure {
    /// Prompt reports, until a thread waits for them.
    pub prompt: Mutex<Option<Result<OwnedFd, Errno>>>,
    /// Other reports.
    pub reports: OnceLock<Result<OwnedFd, Errno>>,
    /// The task that follows the latter.
    pub task: Mutex<Option<(Policy, JoinHandle<()>)>>,
}

/// Least time from an update of the bus to one that a snapshot asks for: a problem may have figures, which change all the time.
const BETWEEN_NEWS: Duration = Duration::from_secs(2);

/// The shared state.
#[derive(Debug)]
pub struct Core {
    /// Source of the configuration.
    pub source: Source,
    /// The program that activates.
    pub mode: Mode,
    /// Serialises changes to the machine.
    pub change_lock: tokio::sync::Mutex<()>,
    /// Number of changes begun.
    pub changes: AtomicUsize,
    /// Serialises plans: every user may ask for one, and each takes a process and a blocking thread, which samples need as
    /// well.
    pub planning: tokio::sync::Mutex<()>,
    /// Waiting calls, by caller.
    pub call_limits: CallLimits,
    /// Work in progress.
    pub claims: Claims,
    pub jobs: Mutex<Jobs>,
    /// Subscribers to statistics.
    pub subscribers: Mutex<Subscribers>,
    /// Notified to update the published objects.
    pub changed: Notify,
    /// Whether the verdict of the benchmark may have changed since it was published.
    pub verdict_changed: AtomicBool,
    pub verdicts: Verdicts,
    /// The other programs that set up zram here; `None` before they are looked for.
    others: Mutex<Option<Vec<OtherManager>>>,
    /// Notified when the configuration in force changes.
    pub view_changed: Notify,
    /// When RAM disks are saved next; without systemd there is no timer.
    pub next_saves: NextSaves,
    /// Number of requests for publishing.
    requests: AtomicUsize,
    /// Number of the last fulfilled request.
    fulfilled: watch::Sender<usize>,
    samples: Arc<Samples>,
    /// A snapshot with what the bus has announced.
    announced: Mutex<Arc<Snapshot>>,
    view: Mutex<Arc<View>>,
    phase: Mutex<Phase>,
    connection: Mutex<Option<Connection>>,
    pub pressure: Pressure,
    /// The timer of maintenance without systemd.
    pub timer: Mutex<Option<JoinHandle<()>>>,
}

impl Core {
    /// Initial state.
    pub fn new(source: Source, mode: Mode) -> Arc<Core> {
        Arc::new(Core {
            source,
            mode,
            change_lock: tokio::sync::Mutex::new(()),
            changes: AtomicUsize::new(0),
            planning: tokio::sync::Mutex::new(()),
            call_limits: CallLimits::default(),
            claims: Claims::default(),
            jobs: Mutex::default(),
            subscribers: Mutex::default(),
            changed: Notify::new(),
            verdict_changed: AtomicBool::new(true),
            verdicts: Verdicts::new(Path::new("/")),
            others: Mutex::default(),
            view_changed: Notify::new(),
            next_saves: NextSaves::default(),
            requests: AtomicUsize::new(0),
            fulfilled: watch::channel(0).0,
            samples: Arc::default(),
            announced: Mutex::default(),
            view: Mutex::default(),
            phase: Mutex::new(Phase::Starting),
            connection: Mutex::new(None),
            pressure: Pressure::default(),
            timer: Mutex::default(),
        })
    }

    /// The configuration in force.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&lock(&self.view))
    }

    /// Replaces the configuration in force.
    pub fn set_view(&self, view: View) {
        *lock(&self.view) = Arc::new(view);
        // It depends on the configured profile.
        self.verdict_changed.store(true, Ordering::SeqCst);
        self.view_changed.notify_one();
    }

    /// `starting`, `running`, `degraded`, `reloading` or `stopping`.
    pub fn state(&self) -> &'static str {
        match *lock(&self.phase) {
            Phase::Starting => "starting",
            Phase::Reloading => "reloading",
            Phase::Stopping => "stopping",
            Phase::Running if self.latest().problems.iter().any(|found| found.level == Level::Error) => {
                "degraded"
            }
            Phase::Running => "running",
        }
    }

    /// Does something that must not happen after the daemon has begun to stop.
    pub fn unless_stopping<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let phase = lock(&self.phase);
        (*phase != Phase::Stopping).then(work)
    }

    /// Changes the phase and publishes it.
    pub fn enter(&self, phase: Phase) {
        *lock(&self.phase) = phase;
        self.changed.notify_one();
    }

    /// Updates the objects on the bus and waits for it, so that a caller sees a change when the job reports it as done.
    pub async fn publish_changes(&self) {
        let request = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fulfilled = self.fulfilled.subscribe();
        self.changed.notify_one();
        let wait = fulfilled.wait_for(|done| *done >= request);
        // After a timeout the caller may see the previous state for a moment.
        tokio::time::timeout(PUBLISHING, wait).await.ok();
    }

    /// Number of the last request for publishing; the next update fulfils it.
    pub fn request(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Marks a request as fulfilled.
    pub fn fulfil(&self, request: usize) {
        self.fulfilled.send_replace(request);
    }

    /// The connection to the bus, if it is open.
    pub fn connection(&self) -> Option<Connection> {
        lock(&self.connection).clone()
    }

    /// Stores the connection to the bus.
    pub fn connect(&self, connection: Connection) {
        *lock(&self.connection) = Some(connection);
    }

    /// The last sample, of any age.
    pub fn latest(&self) -> Arc<Snapshot> {
        self.samples.latest()
    }

    /// Looks for other programs again with the next sample.
    pub fn forget_others(&self) {
        *lock(&self.others) = None;
    }

    /// A recent sample, or the last one if the kernel takes long.
    pub async fn sample(self: &Arc<Self>) -> Arc<Snapshot> {
        self.samples.fresh(self.reader()).await
    }

    /// A sample begun after this call, or the last one if the kernel takes long.
    pub async fn resample(self: &Arc<Self>) -> Arc<Snapshot> {
        self.samples.next(self.reader()).await
    }

    /// As [`Core::resample`], for callers that have to see the latest change: waits longer, and if the kernel still does not
    /// answer, schedules another update.
    pub async fn resample_patiently(self: &Arc<Self>) -> Arc<Snapshot> {
        self.samples.next_patiently(self.reader()).await.unwrap_or_else(|| {
            self.changed.notify_one();
            self.latest()
        })
    }

    /// Notes a snapshot that has what the bus announces.
    pub fn announce(&self, snapshot: &Arc<Snapshot>) {
        *lock(&self.announced) = Arc::clone(snapshot);
    }

    /// Has the bus updated if a snapshot has news, which come without an event where another program writes to sysfs. Compares only one
    /// snapshot in this time, however many subscribers there are.
    pub fn notice(&self, snapshot: &Arc<Snapshot>) {
        let announced = Arc::clone(&lock(&self.announced));
        let since = snapshot.timestamp_monotonic_usec.saturating_sub(announced.timestamp_monotonic_usec);
        if since < micros(BETWEEN_NEWS) {
            return;
        }
        if has_news(&announced, snapshot) {
            self.changed.notify_one();
        } else {
            self.announce(snapshot);
        }
    }

    fn reader(self: &Arc<Self>) -> impl Read {
        let core = Arc::clone(self);
        move || core.read()
    }

    /// Reads the machine.
    fn read(&self) -> Snapshot {
        let host = LinuxHost::new("/");
        let begun = host.monotonic();
        let others = lock(&self.others).get_or_insert_with(|| gather::other_managers(&host)).clone();
        let mut snapshot = sample::snapshot_beside(&host, &self.view(), others)
            .unwrap_or_else(|error| unreadable(&self.latest(), begun, &error));
        if *lock(&self.phase) == Phase::Reloading {
            // Devices in transition during a reload are not problems.
            snapshot.problems.clone_from(&self.latest().problems);
        }
        snapshot
    }
}

/// The last sample with the finding that reading failed.
fn unreadable(last: &Snapshot, begun: Duration, error: &Error) -> Snapshot {
    // The counters have time stamps of their own.
    let mut snapshot = Snapshot { timestamp_monotonic_usec: micros(begun), ..last.clone() };
    snapshot.problems.retain(|found| found.code != Code::Unreadable);
    snapshot.problems.insert(
        0,
        Finding::new(
            Level::Error,
            Code::Unreadable,
            "",
            format!("the figures are old, because reading the machine failed: {error}"),
            "check the named file",
        ),
    );
    snapshot
}
