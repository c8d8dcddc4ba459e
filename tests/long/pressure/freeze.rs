//! A session and programs that take its memory, for `tests/bench/freeze`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::{PAGE, Set, Stalls, stamp};

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);
/// Pages that each beat touches.
const TOUCHED: u64 = 256;

/// Every 100 ms, touches memory, starts a program, and reads the next file of a directory; prints milliseconds since the start and
/// what the beat took. A beat that is late begins at once.
pub fn heartbeat(pages: &Path, directory: &Path, mib: u64, seed: u64) -> ! {
    let files: Vec<_> =
        fs::read_dir(directory).expect("the files").map(|entry| entry.unwrap().path()).collect();
    let mut set = Set::new(mib);
    set.fill(pages, crate::shares_of("desktop"), seed, &mut Stalls::default());
    let mut random = Rng::with_seed(seed);
    let begun = Instant::now();
    for beat in 0_u32.. {
        let due = begun + BEAT * beat;
        let now = Instant::now();
        let since = if now < due {
            std::thread::sleep(due - now);
            due
        } else {
            // It was due while the previous one lasted, which has been counted.
            now
        };
        for _ in 0..TOUCHED {
            let number = random.u64(..set.count);
            stamp(set.page(number), number, u64::from(beat));
        }
        let status = Command::new("/usr/bin/true").stdin(Stdio::null()).status().expect("true");
        assert!(status.success(), "{status}");
        fs::read(&files[beat as usize % files.len()]).unwrap();
        println!("{}\t{}", (since - begun).as_millis(), since.elapsed().as_millis());
    }
    unreachable!("2^32 beats take years");
}

/// Grows by MIB_PER_S, and uses all of it again and again.
pub fn growth(pages: &Path, mib: u64, mib_per_s: u64, seed: u64) -> ! {
    let mut random = Rng::with_seed(seed);
    let begun = Instant::now();
    let mut parts: Vec<Set> = Vec::new();
    loop {
        let due = begun.elapsed().as_secs_f64() * mib_per_s as f64;
        if (parts.len() as f64) < due.min(mib as f64) {
            let mut part = Set::new(1);
            part.fill(pages, crate::shares_of("desktop"), seed + parts.len() as u64, &mut Stalls::default());
            parts.push(part);
        }
        for _ in 0..256 {
            let which = random.usize(..parts.len());
            let number = random.u64(..parts[which].count);
            stamp(parts[which].page(number), number, 1);
        }
    }
}

/// Reads pages of a mapped file in random order, for this time.
pub fn map(file: &Path, seconds: u64, seed: u64) {
    let file = fs::File::open(file).expect("the file");
    let length = file.metadata().unwrap().len() as usize;
    // SAFETY: a new mapping of a file that does not change.
    let bytes = unsafe {
        let place = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            std::os::fd::AsRawFd::as_raw_fd(&file),
            0,
        );
        assert!(place != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        std::slice::from_raw_parts(place.cast::<u8>(), length)
    };
    let mut random = Rng::with_seed(seed);
    let begun = Instant::now();
    let mut sum = 0_u64;
    while begun.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..256 {
            sum += u64::from(std::hint::black_box(bytes[random.usize(..length / PAGE) * PAGE]));
        }
    }
    println!("{sum}");
}
