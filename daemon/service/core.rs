//! What all parts of the daemon share: the latest sample, the configuration, the jobs, the subscribers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use zbus::Connection;

use super::bus::turn::Turns;
use super::claims::Claims;
use super::lock::lock;
use super::setup::Source;
use engine::{Error, sample};
use host::Host;
use host::linux::{LinuxHost, heap};
use logic::duration::micros;
use logic::finding::{Code, Finding, Level};
use logic::maintain::pressure::Thresholds;
use logic::sample::Snapshot;
use logic::view::View;

/// How old a sample may be for whoever asks. It bounds what ten thousand callers in a second can cost.
const FRESH: Duration = Duration::from_millis(20);
/// How long a caller waits for a new sample, at most, before it gets the last one, which says how old it is. Linux holds back
/// the reading of statistics while it recompresses or writes pages back.
const PATIENCE: Duration = Duration::from_millis(100);
/// And at least. In between it is a tenth of the age of the last one: whoever asks every 50 ms loses little with the one before, and
/// is answered within 20 ms during a whole pass of recompression (tests/lab/scenarios/maintenance-statistics).
const SHORT_PATIENCE: Duration = Duration::from_millis(5);

/// How long after a sample freed memory is given back.
const TIDY: Duration = Duration::from_secs(2);

/// How often [`PATIENCE`] is had with the kernel before what has happened is published.
const TRIES: u32 = 20;

/// How long somebody waits for the objects on the bus to be brought up to date.
const PUBLISHING: Duration = Duration::from_secs(2);

/// Who activates swap and mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// PID 1.
    Systemd,
    /// We do.
    Direct,
}

/// How the daemon is doing as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has not looked around yet.
    Starting,
    /// All is well, or not: that depends on the problems.
    Running,
    /// A reload is going on.
    Reloading,
    /// It is about to end.
    Stopping,
}

/// How many jobs there are.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Number of the last one.
    pub last: u32,
    /// Those that have not ended.
    pub unfinished: usize,
    /// Those on the bus that have ended, oldest first.
    pub ended: VecDeque<u32>,
    /// The change that has the lane, in words.
    pub changing: String,
}

/// The subscribed callers.
#[derive(Debug, Default)]
pub struct Subscribers {
    /// By their unique name on the bus, with the user that each belongs to.
    pub live: BTreeMap<String, (u32, JoinHandle<()>)>,
    /// Whether somebody looks who leaves the bus, or is about to.
    pub watched: bool,
    /// Whether nobody leaves unseen any more.
    pub ready: watch::Sender<bool>,
    /// Somebody has unsubscribed.
    pub fewer: Arc<Notify>,
}

/// The shared state.
#[derive(Debug)]
pub struct Core {
    /// Where the configuration comes from.
    pub source: Source,
    /// Who activates.
    pub mode: Mode,
    /// One change to the machine at a time.
    pub lane: tokio::sync::Mutex<()>,
    /// How many changes have begun.
    pub changes: AtomicU64,
    /// One plan at a time: every user may have one made, and each takes a process, and a thread that samples are read on, too.
    pub planning: tokio::sync::Mutex<()>,
    /// Calls that wait, by caller.
    pub turns: Turns,
    /// What is being worked on.
    pub claims: Claims,
    /// Work that takes long.
    pub jobs: Mutex<Jobs>,
    /// Who wants statistics without asking.
    pub subscribers: Mutex<Subscribers>,
    /// Asks for the published objects to be brought up to date.
    pub changed: Notify,
    /// Another configuration is in force.
    pub view_changed: Notify,
    /// How often publishing was asked for.
    requests: AtomicU64,
    /// The last of those requests that was fulfilled.
    fulfilled: watch::Sender<u64>,
    latest: watch::Sender<Arc<Snapshot>>,
    reading: AtomicBool,
    /// Whether freed memory is going to be given back.
    tidying: AtomicBool,
    /// When the read in progress began, in microseconds since boot.
    read_began: AtomicU64,
    view: Mutex<Arc<View>>,
    phase: Mutex<Phase>,
    connection: Mutex<Option<Connection>>,
    /// Who follows that.
    pub pressure_watch: Mutex<Option<(Thresholds, JoinHandle<()>)>>,
    /// Who lets maintenance run now and then where there is no systemd.
    pub timer: Mutex<Option<JoinHandle<()>>>,
}

impl Core {
    /// A daemon that knows nothing yet.
    pub fn new(source: Source, mode: Mode) -> Arc<Core> {
        Arc::new(Core {
            source,
            mode,
            lane: tokio::sync::Mutex::new(()),
            changes: AtomicU64::new(0),
            planning: tokio::sync::Mutex::new(()),
            turns: Turns::default(),
            claims: Claims::default(),
            jobs: Mutex::default(),
            subscribers: Mutex::default(),
            changed: Notify::new(),
            view_changed: Notify::new(),
            requests: AtomicU64::new(0),
            fulfilled: watch::channel(0).0,
            latest: watch::channel(Arc::new(Snapshot::default())).0,
            reading: AtomicBool::new(false),
            tidying: AtomicBool::new(false),
            read_began: AtomicU64::new(u64::MAX),
            view: Mutex::default(),
            phase: Mutex::new(Phase::Starting),
            connection: Mutex::new(None),
            pressure_watch: Mutex::default(),
            timer: Mutex::default(),
        })
    }

    /// The configuration in force.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&lock(&self.view))
    }

    /// Puts another configuration in force.
    pub fn set_view(&self, view: View) {
        *lock(&self.view) = Arc::new(view);
        self.view_changed.notify_one();
    }

    /// How the daemon is doing: `starting`, `running`, `degraded`, `reloading` or `stopping`.
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

    /// Enters a phase, and has that published.
    pub fn enter(&self, phase: Phase) {
        *lock(&self.phase) = phase;
        self.changed.notify_one();
    }

    /// Has the objects on the bus brought up to date, and waits until they are: whoever is told that something is done
    /// can look at it.
    pub async fn publish_changes(&self) {
        let request = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fulfilled = self.fulfilled.subscribe();
        self.changed.notify_one();
        let wait = fulfilled.wait_for(|done| *done >= request);
        // At worst the caller sees what was before for a moment.
        tokio::time::timeout(PUBLISHING, wait).await.ok();
    }

    /// The last request for publishing; what is published from now on fulfils it.
    pub fn request(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// A request is fulfilled.
    pub fn fulfil(&self, request: u64) {
        self.fulfilled.send_replace(request);
    }

    /// The connection to the bus, once there is one.
    pub fn connection(&self) -> Option<Connection> {
        lock(&self.connection).clone()
    }

    /// Notes the connection to the bus.
    pub fn connect(&self, connection: Connection) {
        *lock(&self.connection) = Some(connection);
    }

    /// The last sample, however old.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.borrow())
    }

    /// A sample that is at most [`FRESH`] old, or the last one if the kernel takes longer than [`patience`].
    pub async fn sample(self: &Arc<Self>) -> Arc<Snapshot> {
        let last = self.latest();
        // A read that the kernel holds back was waited for once; whoever comes later need not wait again.
        let age = age(&last);
        if age <= FRESH || self.is_held_back(patience(age)) {
            return last;
        }
        self.resample_within(patience(age)).await
    }

    /// Whether the read in progress has taken so long already.
    fn is_held_back(&self, patience: Duration) -> bool {
        let began = Duration::from_micros(self.read_began.load(Ordering::SeqCst));
        let now = LinuxHost::new("/").monotonic();
        self.reading.load(Ordering::SeqCst) && now.saturating_sub(began) > patience
    }

    /// A sample that was begun after this was called, unless the kernel takes longer than [`PATIENCE`].
    pub async fn resample(self: &Arc<Self>) -> Arc<Snapshot> {
        self.resample_within(PATIENCE).await
    }

    async fn resample_within(self: &Arc<Self>, patience: Duration) -> Arc<Snapshot> {
        let asked = LinuxHost::new("/").monotonic();
        let mut news = self.latest.subscribe();
        let wait = async {
            while self.latest().timestamp_monotonic_usec < micros(asked) {
                if !self.reading.swap(true, Ordering::SeqCst) {
                    self.read_began.store(micros(LinuxHost::new("/").monotonic()), Ordering::SeqCst);
                    let core = Arc::clone(self);
                    tokio::task::spawn_blocking(move || core.read());
                    self.tidy_up_later();
                }
                if news.changed().await.is_err() {
                    break;
                }
            }
        };
        // Whether it came in time or not, the last one is what there is.
        tokio::time::timeout(patience, wait).await.ok();
        self.latest()
    }

    /// As [`Core::resample`], for whoever must not miss what has just happened: waits until the kernel answers, within reason,
    /// and has that tried again if it does not.
    pub async fn resample_patiently(self: &Arc<Self>) -> Arc<Snapshot> {
        let asked = micros(LinuxHost::new("/").monotonic());
        for _ in 0..TRIES {
            let snapshot = self.resample().await;
            if snapshot.timestamp_monotonic_usec >= asked {
                return snapshot;
            }
        }
        self.changed.notify_one();
        self.latest()
    }

    /// Has the memory that answers took given back in a moment; once for all that happen until then.
    fn tidy_up_later(self: &Arc<Self>) {
        if !self.tidying.swap(true, Ordering::SeqCst) {
            let core = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(TIDY).await;
                core.tidying.store(false, Ordering::SeqCst);
                heap::give_back_now();
            });
        }
    }

    /// Reads the machine; on a thread of its own.
    fn read(&self) {
        let begun = LinuxHost::new("/").monotonic();
        let snapshot = match sample::snapshot(&LinuxHost::new("/"), &self.view()) {
            Ok(snapshot) => snapshot,
            Err(error) => unreadable(&self.latest(), begun, &error),
        };
        let mut snapshot = snapshot;
        if *lock(&self.phase) == Phase::Reloading {
            // What is half-done because we are doing it is no problem of anybody.
            snapshot.problems.clone_from(&self.latest().problems);
        }
        // In this order: whoever finds this sample too old must be able to begin another read.
        self.reading.store(false, Ordering::SeqCst);
        self.latest.send_replace(Arc::new(snapshot));
    }
}

/// What was known last, and that nothing newer can be had.
fn unreadable(last: &Snapshot, begun: Duration, error: &Error) -> Snapshot {
    // The counters keep the time stamps of their own.
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

fn age(snapshot: &Snapshot) -> Duration {
    let now = LinuxHost::new("/").monotonic();
    now.saturating_sub(Duration::from_micros(snapshot.timestamp_monotonic_usec))
}

/// How long whoever has a sample of this age waits for a newer one.
fn patience(age: Duration) -> Duration {
    (age / 10).clamp(SHORT_PATIENCE, PATIENCE)
}
