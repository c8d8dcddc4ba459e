//! Measuring on the running kernel. Needs root and zram; elsewhere each test says why it was skipped.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use support::{can_use_real_kernel, real_kernel_lock};
use zramd::engine::benchmark::measure::{Direction, Pass, Spec, pass};
use zramd::engine::scratch::Scratch;
use zramd::host::Host;
use zramd::host::linux::LinuxHost;
use zramd::host::linux::pages::Pages;
use zramd::logic::algorithm::Algorithm;

const COUNT: usize = 1024;

/// Half of each page is noise, so that it takes half a page.
fn half_noise() -> Pages {
    let mut random = zramd::logic::benchmark::random::Random::new(1);
    let mut pages = Pages::new(COUNT).unwrap();
    let half = pages.page_size() / 2;
    for index in 0..COUNT {
        for word in pages.page_mut(index)[..half].chunks_mut(8) {
            word.copy_from_slice(&random.number().to_ne_bytes());
        }
    }
    pages
}

#[test]
fn requests_are_counted_timed_and_read_back() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let mut host = LinuxHost::new("/");
    let before = host.device_numbers().unwrap();
    let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
    let node = PathBuf::from(format!("/dev/zram{}", scratch.number()));
    let algorithm = Algorithm::parse(&scratch.offered(&host).unwrap()[0]).unwrap();
    scratch.configure(&mut host, &algorithm, (COUNT * 4096) as u64).unwrap();
    let data = half_noise();
    let written = pass(&node, &data, &Spec::new(Direction::Write, 0..COUNT)).unwrap();
    let memory = scratch.memory(&host).unwrap();
    let spec = Spec { verify: true, shuffle: Some(1), ..Spec::new(Direction::Read, 0..COUNT) };
    let read = pass(&node, &data, &spec).unwrap();
    let threads = pass(&node, &data, &Spec { threads: 2, ..spec.clone() }).unwrap();
    let clusters = pass(&node, &data, &Spec { pages_per_request: 8, ..spec.clone() }).unwrap();
    // What is not on the device is noticed.
    let other = pass(&node, &Pages::new(COUNT).unwrap(), &spec);
    scratch.release(&mut host).unwrap();
    assert_eq!(host.device_numbers().unwrap(), before);

    let show = |pass: &Pass| {
        println!(
            "{:.0} ns, p99 {} ns, {:.0} MB/s",
            pass.mean_ns(),
            pass.quantile_ns(0.99),
            pass.bytes_per_second() / 1e6
        );
    };
    for pass in [&written, &read, &threads, &clusters] {
        show(pass);
    }
    assert_eq!([written.requests(), read.requests(), threads.requests()], [COUNT as u64; 3]);
    assert_eq!((clusters.requests(), clusters.bytes()), (COUNT as u64 / 8, read.bytes()));
    assert_eq!(memory.orig_data_size, (COUNT * 4096) as u64);
    let ratio = memory.orig_data_size as f64 / memory.mem_used_total as f64;
    assert!((1.5..2.1).contains(&ratio), "{memory:?}");
    assert!(read.quantile_ns(0.5) > 0 && read.quantile_ns(0.5) <= read.quantile_ns(0.99));
    assert!(clusters.mean_ns() > read.mean_ns(), "eight pages take longer than one");
    assert!(other.is_err_and(|error| error.message.contains("reads back differently")));
}
