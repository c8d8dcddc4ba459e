//! Timing requests to a device, one by one.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::latency::at_share;
use crate::statistics::Estimate;
use engine::Error;
use fastrand::Rng;
use host::HostError;
use host::linux::clock;
use host::linux::direct::Direct;
use host::linux::interrupt;
use host::linux::pages::Pages;

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the device: the cost of swapping a page out.
    Write,
    /// From the device: the cost of a page fault.
    Read,
}

/// Parameters of one pass over a device.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Which way.
    pub direction: Direction,
    /// Which pages of the data.
    pub pages: Range<usize>,
    /// Page of the device at which the data begins.
    pub at: usize,
    /// Pages in one request: 1, or 2 to the power of `vm.page-cluster`.
    pub pages_per_request: usize,
    /// Number of threads; each does an equal share.
    pub threads: usize,
    /// Shuffle the requests with this seed; in order without one.
    pub shuffle: Option<u64>,
    /// Processor time of each thread after which the remaining pages are skipped. Other programs lengthen a pass, and do not shorten its
    /// work.
    pub limit: Duration,
    /// Requests of each thread that are made even so.
    pub least: usize,
    /// Compare the data read with the data written; the comparison is not timed.
    pub verify: bool,
}

impl Spec {
    /// One thread, one page per request, all pages in order, no limit.
    pub fn new(direction: Direction, pages: Range<usize>) -> Spec {
        Spec {
            direction,
            pages,
            at: 0,
            pages_per_request: 1,
            threads: 1,
            shuffle: None,
            limit: Duration::MAX,
            least: 0,
            verify: false,
        }
    }
}

/// Result of one pass.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Nanoseconds of each request.
    times: Vec<u64>,
    /// Mean processor time of the requests of each batch, in nanoseconds.
    batches: Vec<f64>,
    sum: Duration,
    /// Processor time of all batches.
    processor: Duration,
    /// Time in which it was spent.
    elapsed: Duration,
    bytes: u64,
    busy: Duration,
}

/// Requests averaged into one value for [`Estimate`]: enough to even out the clock's resolution, which is read only once for all of them,
/// and still many values.
const BATCH: usize = 64;

impl Pass {
    /// Requests that were made.
    pub fn requests(&self) -> u64 {
        self.times.len() as u64
    }

    /// Bytes that were moved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Mean time of a request, in nanoseconds; 0 when there was none.
    pub fn mean_ns(&self) -> f64 {
        if self.requests() == 0 { 0.0 } else { self.sum.as_nanos() as f64 / self.requests() as f64 }
    }

    /// The shortest time, in nanoseconds, that this many thousandths of the requests did not exceed; 0 without
    /// requests.
    pub fn quantile_ns(&self, thousandths: usize) -> u64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        at_share(&times, thousandths)
    }

    /// Bytes per second of all threads together; 0 when nothing was moved.
    pub fn bytes_per_second(&self) -> f64 {
        if self.busy.is_zero() { 0.0 } else { self.bytes as f64 / self.busy.as_secs_f64() }
    }

    /// Usual processor time of a request in nanoseconds, and its uncertainty. Computed from the means of batches, so that single
    /// interruptions do not count. Other programs lengthen a request by the time that they run, and its processor time hardly.
    pub fn usual_ns(&self) -> Estimate {
        match self.requests() {
            0 => Estimate::of(&[0.0]),
            requests if self.batches.is_empty() => {
                Estimate::of(&[self.processor.as_nanos() as f64 / requests as f64])
            }
            _ => Estimate::of(&self.batches),
        }
    }

    /// Processor time, and the time in which it was spent: it is longer where the thread had to wait for its CPU.
    pub fn processor_and_elapsed(&self) -> (Duration, Duration) {
        (self.processor, self.elapsed)
    }

    /// Appends the requests of another pass that ran before or after this one.
    pub fn append(&mut self, other: &Pass) {
        self.busy += other.busy;
        self.merge(other);
    }

    fn merge(&mut self, other: &Pass) {
        self.times.extend_from_slice(&other.times);
        self.batches.extend_from_slice(&other.batches);
        self.sum += other.sum;
        self.processor += other.processor;
        self.elapsed += other.elapsed;
        self.bytes += other.bytes;
    }

    fn note(&mut self, time: Duration, bytes: usize) {
        self.times.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.sum += time;
        self.bytes += bytes as u64;
    }

    /// The processor time of the last requests. Those of a batch that is not full count only where there is no other.
    fn note_batch(&mut self, processor: Duration, elapsed: Duration, requests: usize) {
        self.processor += processor;
        self.elapsed += elapsed;
        if requests == BATCH {
            self.batches.push(processor.as_nanos() as f64 / BATCH as f64);
        }
    }
}

/// The first page of each request, of a sample with this number of pages.
fn requests(spec: &Spec, count: usize) -> Vec<usize> {
    let size = spec.pages_per_request.max(1);
    let end = spec.pages.end.min(count);
    // A shorter last request would not be comparable.
    let mut requests: Vec<usize> =
        (spec.pages.start..end).step_by(size).filter(|first| first + size <= end).collect();
    if let Some(seed) = spec.shuffle {
        Rng::with_seed(seed).shuffle(&mut requests);
    }
    requests
}

/// Does one pass over the device at `node`. Ends early, without an error, at its limit and when cancelled.
pub fn pass(node: &Path, data: &Pages, spec: &Spec) -> Result<Pass, Error> {
    let requests = requests(spec, data.count());
    let threads = spec.threads.clamp(1, requests.len().max(1));
    let share = requests.len().div_ceil(threads).max(1);
    let results: Vec<Result<Pass, Error>> = if threads == 1 {
        vec![one_thread(node, data, spec, &requests)]
    } else {
        std::thread::scope(|scope| {
            let work = |list| scope.spawn(move || one_thread(node, data, spec, list));
            let running: Vec<_> = requests.chunks(share).map(work).collect();
            let ended = running.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(Error::failed("a measuring thread ended early")))
            });
            ended.collect()
        })
    };
    let mut whole = Pass::default();
    for result in results {
        let part = result?;
        whole.busy = whole.busy.max(part.busy);
        whole.merge(&part);
    }
    Ok(whole)
}

fn one_thread(node: &Path, data: &Pages, spec: &Spec, requests: &[usize]) -> Result<Pass, Error> {
    let writes = spec.direction == Direction::Write;
    let device = Direct::open(node, writes)?;
    let page = data.page_size();
    let length = page * spec.pages_per_request.max(1);
    // What was read in a batch is compared after it.
    let mut buffer = Pages::new(spec.pages_per_request.max(1) * if spec.verify { BATCH } else { 1 })?;
    let mut pass = Pass::default();
    for batch in requests.chunks(BATCH) {
        let is_over = pass.processor > spec.limit && pass.times.len() >= spec.least;
        if is_over || interrupt::is_asked() {
            break;
        }
        let (began, before) = (Instant::now(), clock::thread_processor_time());
        for (place, &first) in batch.iter().enumerate() {
            let wanted = &data.bytes()[first * page..][..length];
            let offset = ((spec.at + first) * page) as u64;
            let slot = if spec.verify { place * length } else { 0 };
            let start = Instant::now();
            let result: Result<(), HostError> = if writes {
                device.write(offset, wanted)
            } else {
                device.read(offset, &mut buffer.bytes_mut()[slot..][..length])
            };
            pass.note(start.elapsed(), length);
            result?;
        }
        let processor = clock::thread_processor_time_since(before);
        pass.note_batch(processor, began.elapsed(), batch.len());
        for (place, &first) in batch.iter().enumerate().filter(|_| !writes && spec.verify) {
            if buffer.bytes()[place * length..][..length] != data.bytes()[first * page..][..length] {
                return Err(Error::failed(format!(
                    "{}: page {first} reads back differently from what was written",
                    node.display()
                )));
            }
        }
    }
    pass.busy = pass.sum;
    Ok(pass)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
pub(crate) mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_and_in_the_sample() {
        let spec = |pages, pages_per_request| Spec { pages_per_request, ..Spec::new(Direction::Read, pages) };
        assert_eq!(requests(&spec(0..10, 4), 100), [0, 4]);
        assert_eq!(requests(&spec(2..10, 4), 100), [2, 6]);
        assert_eq!(requests(&spec(0..10, 4), 7), [0], "the sample is smaller");
        assert_eq!(requests(&spec(0..3, 0), 100), [0, 1, 2]);
        let shuffled = |seed| requests(&Spec { shuffle: Some(seed), ..spec(0..100, 1) }, 100);
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, requests(&spec(0..100, 1), 100));
    }

    /// A pass with requests of these times, in nanoseconds, of 4096 bytes each.
    pub(crate) fn pass_of(times: impl IntoIterator<Item = u64>) -> Pass {
        let mut pass = Pass::default();
        let times: Vec<u64> = times.into_iter().collect();
        for batch in times.chunks(BATCH) {
            for time in batch {
                pass.note(Duration::from_nanos(*time), 4096);
            }
            let time = Duration::from_nanos(batch.iter().sum());
            pass.note_batch(time, time, batch.len());
        }
        pass.busy = pass.sum;
        pass
    }

    #[test]
    fn figures_of_a_pass_are_those_of_its_requests() {
        let none = Pass::default();
        assert_eq!((none.mean_ns(), none.bytes_per_second(), none.usual_ns().value), (0.0, 0.0, 0.0));
        let pass = pass_of([100, 400, 200, 300]);
        assert_eq!((pass.requests(), pass.bytes(), pass.mean_ns()), (4, 4 * 4096, 250.0));
        assert_eq!([250, 500, 990].map(|share| pass.quantile_ns(share)), [100, 200, 400]);
        assert_eq!(pass.bytes_per_second().round(), 16_384e6);
        assert_eq!(pass.usual_ns().value, 250.0, "the mean, as no batch is full");
    }

    #[test]
    fn one_interruption_does_not_change_the_usual_time() {
        let batch = BATCH as u64;
        let pass = pass_of((0..5 * batch).map(|index| if index == batch { 1_000_000 } else { 500 }));
        assert_eq!(pass.usual_ns().value, 500.0);
        assert!(pass.mean_ns() > 3_000.0, "{}", pass.mean_ns());
    }

    #[test]
    fn time_that_other_programs_take_does_not_change_the_price() {
        let mut pass = Pass::default();
        for index in 0..10 {
            for _ in 0..BATCH {
                pass.note(Duration::from_nanos(500 + 1000 * index), 4096);
            }
            let (processor, each) = (Duration::from_nanos(500 * BATCH as u64), 500 + 1000 * index);
            pass.note_batch(processor, Duration::from_nanos(each * BATCH as u64), BATCH);
        }
        assert_eq!(pass.processor_and_elapsed().0 * 10, pass.processor_and_elapsed().1);
        assert_eq!(pass.usual_ns().value, 500.0);
    }

    #[test]
    fn passes_one_after_the_other_are_added() {
        let mut pass = pass_of([100; 64]);
        pass.append(&pass_of([300; 64]));
        assert_eq!((pass.requests(), pass.bytes(), pass.mean_ns()), (128, 128 * 4096, 200.0));
        assert_eq!((pass.usual_ns().value, pass.busy), (200.0, Duration::from_nanos(64 * 400)));
    }
}
