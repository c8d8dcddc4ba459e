//! The same scenario on the simulator and on a real device, with equal observations.
//!
//! Needs root and the zram driver; otherwise it is skipped with the reason.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::support::{can_use_real_kernel, real_kernel_lock};
use host::linux::LinuxHost;
use host::{Errno, Host, HostError, MachineFile, MountSpec, Priority, SwapSpec};
use logic::device::algorithm::parse_comp_algorithm;
use logic::device::attribute::Attribute;
use logic::device::swap_header;
use logic::path_kind::PathKind;
use logic::proc::{parse_device_number, parse_mountinfo, parse_swaps};
use logic::record::MountId;
use sim::SimMachine;
use sim::kernel::KernelConfig;

const SIZE: u64 = 16 << 20;
const SPEC: SwapSpec = SwapSpec { priority: 1, discard: false };

/// All observations, in order.
struct Observer<'a, H: Host> {
    host: &'a mut H,
    number: u32,
    seen: Vec<String>,
}

impl<H: Host> Observer<'_, H> {
    fn note<T: std::fmt::Debug>(&mut self, what: &str, result: Result<T, HostError>) {
        let result = match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => match error.errno() {
                Some(Errno(number)) => std::io::Error::from_raw_os_error(number).to_string(),
                None => error.to_string(),
            },
        };
        self.seen.push(format!("{what}: {result}"));
    }

    fn write(&mut self, attribute: Attribute, value: &str) {
        let result = self.host.write_attribute(self.number, attribute, value);
        self.note(&format!("write `{value}` to {attribute}"), result);
        self.look();
    }

    fn look(&mut self) {
        for attribute in [Attribute::CompAlgorithm, Attribute::DiskSize, Attribute::InitState] {
            let text = self.host.read_attribute(self.number, attribute);
            self.note(&attribute.to_string(), text);
        }
        // Stored bytes and the limit; the memory used differs.
        let text = self.host.read_attribute(self.number, Attribute::MmStat);
        let columns = text.map(|text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            (words[0].to_owned(), words[3].to_owned(), words.len())
        });
        self.note("mm_stat", columns);
    }

    fn swaps(&mut self) {
        let number = self.number;
        let swaps = self.host.bytes(MachineFile::Swaps).map(|text| {
            let lines = parse_swaps(&text).into_iter().filter(|swap| swap.zram_number() == Some(number));
            lines.map(|swap| (swap.size_kib, swap.used_kib, swap.priority)).collect::<Vec<_>>()
        });
        self.note("swaps", swaps);
    }
}

fn device_scenario<H: Host>(host: &mut H, number: u32) -> Vec<String> {
    let mut seen = Observer { host, number, seen: Vec::new() };
    for attribute in Attribute::ALL {
        let has = seen.host.has_attribute(number, attribute);
        seen.note(&format!("has {attribute}"), Ok(has));
    }
    let dev = seen.host.read_attribute(number, Attribute::Dev);
    seen.note("minor", dev.map(|text| parse_device_number(&text).unwrap().1 == number));
    let diskseq = seen.host.read_attribute(number, Attribute::DiskSeq);
    seen.note("diskseq", diskseq.map(|text| text.ends_with('\n') && text.trim().parse::<u64>().is_ok()));
    let absent = seen.host.read_attribute(number, Attribute::BackingDev);
    seen.note("backing_dev", absent);
    let absent = seen.host.write_attribute(number, Attribute::RecompAlgorithm, "algo=lz4 priority=1");
    seen.note("recomp_algorithm", absent);
    seen.look();

    for (attribute, value) in [
        (Attribute::CompAlgorithm, "nonsense"),
        (Attribute::CompAlgorithm, "lz4"),
        (Attribute::AlgorithmParams, "priority=1 level=3"),
        (Attribute::AlgorithmParams, "algo=lzo level=3"),
        (Attribute::AlgorithmParams, "priority=0 level=x"),
        (Attribute::AlgorithmParams, "priority=0 level=3"),
        (Attribute::DiskSize, "0"),
        (Attribute::DiskSize, "garbage"),
        (Attribute::Reset, "0"),
        (Attribute::MemLimit, "1000001"),
        (Attribute::DiskSize, "16773121"),
        (Attribute::DiskSize, "16777216"),
        (Attribute::CompAlgorithm, "nonsense"),
        (Attribute::CompAlgorithm, "lzo"),
        (Attribute::MemLimit, "4M"),
    ] {
        seen.write(attribute, value);
    }

    let page = vec![0xA5; 4096];
    for offset in [0, SIZE - 4096, SIZE] {
        let result = seen.host.write_pages(number, offset, &page);
        seen.note(&format!("write at {offset}"), result.map_err(beyond_the_end));
    }
    let read = seen.host.read_pages(number, SIZE - 4096, 4096).map(|data| data == page);
    seen.note("read back", read);
    let read = seen.host.read_pages(number, 8192, 4096).map(|data| data.iter().all(|byte| *byte == 0));
    seen.note("read what was never written", read);
    seen.look();
    let result = seen.host.discard(number, 0, SIZE);
    seen.note("discard", result);
    seen.look();

    let result = seen.host.swap_on(number, SPEC);
    seen.note("swapon without a header", result);
    let header = swap_header::build(SIZE, 4096, [1; 16], "conformance").unwrap();
    let result = seen.host.write_pages(number, 0, &header);
    seen.note("header", result);
    for _ in 0..2 {
        let result = seen.host.swap_on(number, SPEC);
        seen.note("swapon", result);
        seen.swaps();
    }
    seen.write(Attribute::Reset, "1");
    let result = seen.host.hot_remove(number);
    seen.note("remove active swap", result);
    for _ in 0..2 {
        let result = seen.host.swap_off(number);
        seen.note("swapoff", result);
        seen.swaps();
    }

    let result = seen.host.lock_device(number);
    seen.note("lock", result);
    seen.write(Attribute::Reset, "1");
    let result = seen.host.unlock_device(number);
    seen.note("unlock", result);
    seen.write(Attribute::Reset, "1");
    let read = seen.host.write_pages(number, 0, &page).map_err(beyond_the_end);
    seen.note("write after reset", read);
    let result = seen.host.swap_on(number, SPEC);
    seen.note("swapon after reset", result);
    seen.write(Attribute::DiskSize, "4M");
    seen.seen
}

/// Beyond the end, the kernel returns `ENOSPC` for a write and 0 for a read; both count as this error.
fn beyond_the_end(error: HostError) -> HostError {
    if error.is(Errno::NOSPC) { HostError::new("", "", Errno::IO) } else { error }
}

fn directory_scenario<H: Host>(host: &mut H, base: &str) -> Vec<String> {
    let mut seen = Observer { host, number: 0, seen: Vec::new() };
    let (inner, deep) = (format!("{base}/a"), format!("{base}/a/b"));
    for path in [&deep, &inner, &inner, &deep] {
        let result = seen.host.make_directory(path);
        seen.note("create", result);
    }
    let result = seen.host.remove_directory(&inner);
    seen.note("remove a directory that is not empty", result);
    let spec = |options: &str| MountSpec {
        source: "tmpfs".to_owned(),
        mount_point: inner.clone(),
        fs_type: "tmpfs".to_owned(),
        options: options.to_owned(),
    };
    let any = MountId::default();
    let result = seen.host.unmount(inner.as_bytes(), &any);
    seen.note("unmount what is not mounted", result);
    let result = seen.host.remount(&spec("size=1m"));
    seen.note("remount what is not mounted", result);
    let result = seen.host.mount(&spec("size=1m"));
    seen.note("mount", result);
    let kind = seen.host.path_kind(&deep);
    seen.note("hidden", Ok(kind == PathKind::Missing));
    let mounts = seen.host.bytes(MachineFile::Mountinfo).map(|text| {
        let mounts = parse_mountinfo(&text).into_iter().filter(|mount| mount.mount_point == inner);
        mounts.map(|mount| (mount.fs_type, mount.source, mount.root, mount.device.0)).collect::<Vec<_>>()
    });
    seen.note("mounts", mounts);
    let result = seen.host.remount(&spec("size=2m"));
    seen.note("remount", result);
    let result = seen.host.remove_directory(&inner);
    seen.note("remove a mount point", result);
    let ours = seen.host.mount_id(&inner).unwrap().unwrap();
    for other in [MountId { id: ours.id + 1000, unique: 0, ..ours }, MountId { device: (0, 1 << 20), ..any }]
    {
        let result = seen.host.unmount(inner.as_bytes(), &other);
        seen.note("unmount another", result);
    }
    let result = seen.host.unmount(inner.as_bytes(), &ours);
    seen.note("unmount", result);
    let result = seen.host.mount_id(&inner).map(|id| id.is_some());
    seen.note("still mounted", result);
    for path in [&deep, &inner, &inner] {
        let result = seen.host.remove_directory(path);
        seen.note("remove", result);
    }
    seen.seen
}

/// A device number that is not in use, so that removing it affects no device.
const UNUSED_NUMBER: u32 = 1_000_000;

/// Runs a scenario on a new device, and removes it in any case.
///
/// Other programs may add and remove devices at the same time and get the same number, so the device is removed only if it
/// has our `diskseq`, and never twice.
fn on_new_device<H: Host>(host: &mut H) -> Vec<String> {
    let number = host.hot_add().unwrap();
    let diskseq = |host: &H| host.read_attribute(number, Attribute::DiskSeq).ok();
    let ours = diskseq(host);
    assert!(ours.is_some(), "the owner of a device is known by diskseq");
    let result = catch_unwind(AssertUnwindSafe(|| device_scenario(host, number)));
    host.unlock_device(number).unwrap();
    for _ in 0..50 {
        if diskseq(host) != ours {
            break;
        }
        // Only needed if the scenario failed.
        host.swap_off(number).ok();
        match host.hot_remove(number) {
            Err(error) if error.is(Errno::BUSY) => host.sleep(std::time::Duration::from_millis(100)),
            _ => break,
        }
    }
    assert!(diskseq(host) != ours, "zram{number} is still there");
    let mut seen = result.unwrap_or_else(|payload| resume_unwind(payload));
    seen.push(format!("{:?}", host.hot_remove(UNUSED_NUMBER).unwrap_err().errno()));
    seen
}

#[test]
fn a_device_behaves_like_a_real_one() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let mut host = LinuxHost::new("/");
    let specimen = host.device_numbers().unwrap().into_iter().next();
    let mut kernel = KernelConfig::this_machine();
    if let Some(number) = specimen {
        // On another kernel than expected: the simulator gets its features, and the rules are compared.
        let has = |attribute| host.has_attribute(number, attribute);
        kernel.multi_comp = has(Attribute::RecompAlgorithm);
        kernel.writeback = has(Attribute::BackingDev);
        kernel.algorithm_params = has(Attribute::AlgorithmParams);
        let (algorithms, _) =
            parse_comp_algorithm(&host.read_attribute(number, Attribute::CompAlgorithm).unwrap());
        kernel.algorithms = algorithms;
    }
    let seen = on_new_device(&mut host);
    let expected = on_new_device(&mut SimMachine::new(kernel).process());
    compare(&seen, &expected);
}

#[test]
fn directories_and_mounts_behave_like_real_ones() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let mut host = LinuxHost::new("/");
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().to_str().unwrap();
    let seen = catch_unwind(AssertUnwindSafe(|| directory_scenario(&mut host, base)));
    // Only needed if the scenario failed.
    host.unmount(format!("{base}/a").as_bytes(), &MountId::default()).ok();
    let machine = SimMachine::new(KernelConfig::this_machine());
    machine.change().add_directories(base);
    let expected = directory_scenario(&mut machine.process(), base);
    compare(&seen.unwrap_or_else(|payload| resume_unwind(payload)), &expected);
}

fn compare(seen: &[String], expected: &[String]) {
    let pairs = seen.iter().zip(expected).enumerate().filter(|(_, (seen, expected))| seen != expected);
    let differences: Vec<String> = pairs
        .map(|(at, (seen, expected))| format!("{at}: kernel `{seen}`, simulator `{expected}`"))
        .collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    assert_eq!(seen.len(), expected.len());
}

#[test]
fn real_time_priority_is_set_and_taken_back() {
    if !can_use_real_kernel() {
        return;
    }
    let mut host = LinuxHost::new("/");
    for (priority, policy) in [(Priority::RealTime, "1"), (Priority::Normal, "0")] {
        host.set_priority(priority);
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The name of the thread, in parentheses, is field 2, and the policy is field 41.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        assert_eq!(fields.split(' ').nth(41 - 3), Some(policy), "{priority:?}");
    }
}
