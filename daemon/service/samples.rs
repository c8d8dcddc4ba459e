//! Samples of the machine: each call gets the newest that the kernel gives in time, and no call waits for a blocked read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::lock::lock;
use host::Host;
use host::linux::{LinuxHost, heap};
use logic::duration::micros;
use logic::sample::Snapshot;

/// Maximum age of a sample that is returned without a new read. This bounds the cost of callers that ask in a loop.
const FRESH: Duration = Duration::from_millis(20);
/// Maximum time that a caller waits for a new sample. After that it gets the last one, with its age: Linux blocks reads of
/// statistics during recompression and write-back.
const PATIENCE: Duration = Duration::from_millis(100);
/// Minimum of the same. In between, callers wait a tenth of the age of the last sample: one that asks every 50 ms gets a
/// reply within 20 ms during a pass of recompression (tests/lab/scenarios/maintenance-statistics).
const SHORT_PATIENCE: Duration = Duration::from_millis(5);

/// Time between a sample and the trimming of the heap.
const TIDY: Duration = Duration::from_secs(2);

/// Number of waits of [`PATIENCE`] before a change is published with old figures.
const TRIES: u32 = 20;

/// Reads the machine; on a blocking thread.
pub trait Read: Fn() -> Snapshot + Clone + Send + 'static {}

impl<F: Fn() -> Snapshot + Clone + Send + 'static> Read for F {}

/// The last sample, and the read of the next.
#[derive(Debug)]
pub struct Samples {
    latest: watch::Sender<Arc<Snapshot>>,
    reading: AtomicBool,
    /// Start of the read in progress, since boot.
    read_began: Mutex<Duration>,
    /// Whether trimming of the heap is scheduled.
    tidying: AtomicBool,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            latest: watch::channel(Arc::new(Snapshot::default())).0,
            reading: AtomicBool::new(false),
            read_began: Mutex::new(Duration::MAX),
            tidying: AtomicBool::new(false),
        }
    }
}

impl Samples {
    /// The last sample, of any age.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.borrow())
    }

    /// A sample that is at most [`FRESH`] old, or the last one if the kernel takes longer than [`patience`].
    pub async fn fresh(self: &Arc<Self>, read: impl Read) -> Arc<Snapshot> {
        let last = self.latest();
        // The wait for a blocked read is paid once; later callers get the last sample at once.
        let age = age(&last);
        if age <= FRESH || self.is_held_back(patience(age)) {
            return last;
        }
        self.next_within(patience(age), read).await
    }

    /// Whether the read in progress takes longer than `patience`.
    fn is_held_back(&self, patience: Duration) -> bool {
        let began = *lock(&self.read_began);
        self.reading.load(Ordering::SeqCst) && now().saturating_sub(began) > patience
    }

    /// A sample begun after this call, or the last one if the kernel takes longer than [`PATIENCE`].
    pub async fn next(self: &Arc<Self>, read: impl Read) -> Arc<Snapshot> {
        self.next_within(PATIENCE, read).await
    }

    async fn next_within(self: &Arc<Self>, patience: Duration, read: impl Read) -> Arc<Snapshot> {
        let asked = now();
        let mut news = self.latest.subscribe();
        let wait = async {
            while self.latest().timestamp_monotonic_usec < micros(asked) {
                if !self.reading.swap(true, Ordering::SeqCst) {
                    *lock(&self.read_began) = now();
                    let (samples, read) = (Arc::clone(self), read.clone());
                    tokio::task::spawn_blocking(move || {
                        let snapshot = read();
                        // In this order, so that a caller for which this sample is too old can start another read.
                        samples.reading.store(false, Ordering::SeqCst);
                        samples.latest.send_replace(Arc::new(snapshot));
                    });
                    self.tidy_up_later();
                }
                if news.changed().await.is_err() {
                    break;
                }
            }
        };
        // With or without a timeout, the last sample is the best there is.
        tokio::time::timeout(patience, wait).await.ok();
        self.latest()
    }

    /// A sample begun after this call, for callers that have to see the latest change: waits longer than [`Samples::next`]. `None` if the
    /// kernel still does not answer.
    pub async fn next_patiently(self: &Arc<Self>, read: impl Read) -> Option<Arc<Snapshot>> {
        let asked = micros(now());
        for _ in 0..TRIES {
            let snapshot = self.next(read.clone()).await;
            if snapshot.timestamp_monotonic_usec >= asked {
                return Some(snapshot);
            }
        }
        None
    }

    /// Schedules trimming of the heap; at most one is scheduled.
    fn tidy_up_later(self: &Arc<Self>) {
        if !self.tidying.swap(true, Ordering::SeqCst) {
            let samples = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(TIDY).await;
                samples.tidying.store(false, Ordering::SeqCst);
                heap::give_back_now();
            });
        }
    }
}

fn now() -> Duration {
    LinuxHost::new("/").monotonic()
}

fn age(snapshot: &Snapshot) -> Duration {
    now().saturating_sub(Duration::from_micros(snapshot.timestamp_monotonic_usec))
}

/// How long to wait for a newer sample than one of this age.
fn patience(age: Duration) -> Duration {
    (age / 10).clamp(SHORT_PATIENCE, PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_read_that_the_kernel_blocks_is_waited_for_once() {
        let (release, blocked) = mpsc::channel();
        let blocked = Arc::new(Mutex::new(blocked));
        let read = move || {
            let timestamp_monotonic_usec = micros(now());
            lock(&blocked).recv().ok();
            Snapshot { timestamp_monotonic_usec, ..Snapshot::default() }
        };
        let samples = Arc::<Samples>::default();
        assert_eq!(samples.next(read.clone()).await.timestamp_monotonic_usec, 0, "the last one");
        assert!(samples.is_held_back(PATIENCE / 2));
        assert_eq!(samples.fresh(read.clone()).await.timestamp_monotonic_usec, 0);
        // The read that was blocked began too early, so there is another one.
        let asked = micros(now());
        release.send(()).unwrap();
        release.send(()).unwrap();
        let sample = samples.next_patiently(read).await.unwrap();
        assert!(sample.timestamp_monotonic_usec >= asked);
        assert!(!samples.is_held_back(Duration::ZERO));
    }
}
