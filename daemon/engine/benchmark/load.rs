//! The program that `bench swap` puts under pressure: it fills memory, uses it from beginning to end, then at random.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use crate::Error;
use fastrand::Rng;
use host::linux::files::read_optional;
use host::linux::pressed::{become_expendable, enter, major_faults, read_at, size, standard_input};
use logic::benchmark::latency::Latency;
use logic::benchmark::swap::{Load, counter};

const PAGE: usize = 4096;
/// Random accesses at most.
const ACCESSES: usize = 40_000;
/// How long they may take, in seconds.
const PATIENCE: f64 = 1.0;

/// Does it in the cgroup with this `cgroup.procs`. Standard input has the contents, which are repeated.
pub fn run(processes: &Path, bytes: usize) -> Result<Load, Error> {
    become_expendable()?;
    enter(processes)?;
    let data = standard_input()?;
    let pages = size(&data)? / PAGE as u64;
    if pages == 0 || bytes < PAGE {
        return Err(Error::failed("standard input has less than a page"));
    }
    let mut memory = vec![0; bytes / PAGE * PAGE];
    let before = counted("pswpout")?;
    let began = Instant::now();
    for (page, at) in memory.chunks_mut(PAGE).zip((0..pages).cycle()) {
        read_at(&data, page, at * PAGE as u64)?;
    }
    let fill_ns = nanoseconds(began);
    let after = counted("pswpout")?;

    let came_in = counted("pswpin")?;
    let began = Instant::now();
    for page in memory.chunks_mut(PAGE) {
        touch(page);
    }
    let sequential_ns = nanoseconds(began);
    let sequential_in = counted("pswpin")? - came_in;

    let came_in = counted("pswpin")?;
    let mut random = Rng::with_seed(1);
    let mut times = Vec::with_capacity(ACCESSES);
    let count = (memory.len() / PAGE) as u64;
    let all = Instant::now();
    for _ in 0..ACCESSES {
        let at = usize::try_from(random.u64(..count)).unwrap_or(0) * PAGE;
        let faults = major_faults();
        let began = Instant::now();
        touch(&mut memory[at..at + PAGE]);
        let time = nanoseconds(began);
        if major_faults() > faults {
            times.push(time);
        }
        if all.elapsed().as_secs_f64() > PATIENCE {
            break;
        }
    }
    Ok(Load {
        fill_ns,
        fill_out: after - before,
        sequential_ns,
        sequential_in,
        random_ns: nanoseconds(all),
        random_in: counted("pswpin")? - came_in,
        fault: Latency::of(&mut times),
    })
}

/// Uses a page as a program does: reads of it, and changes it a little.
fn touch(page: &mut [u8]) {
    let word = black_box(&mut page[PAGE / 2]);
    *word = word.wrapping_add(1);
}

fn counted(name: &str) -> Result<u64, Error> {
    let text = read_optional(Path::new("/"), "/proc/vmstat").map_err(Error::failed)?;
    counter(&text, name).ok_or_else(|| Error::failed(format!("/proc/vmstat has no {name}")))
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
