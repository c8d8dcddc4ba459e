//! Texts written by the kernel, and by an earlier zramd.

use std::collections::BTreeMap;

use logic::config;
use logic::device::algorithm::{parse_comp_algorithm, parse_recomp_algorithm};
use logic::device::attribute::Attribute;
use logic::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use logic::facts::{DeviceFacts, Facts};
use logic::neighbours::programs::{Look, at_work};
use logic::neighbours::{Ours, driver, fstab};
use logic::path_kind::PathKind;
use logic::plan::{self, Activation, report};
use logic::proc::{self, Memory, MountLine, SwapLine};
use logic::record::{Record, Target};
use logic::unit;

/// Every parser of a kernel file on the same text. A parsed value is printed in the form of the kernel, and parsed again as
/// the same.
pub fn files(data: &[u8]) {
    if proc::is_zram_event(data) {
        let head = str::from_utf8(data.split(|byte| *byte == 0).next().unwrap()).unwrap();
        let (_, name) = head.rsplit_once("/block/").or(head.rsplit_once("@block/")).unwrap();
        assert!(proc::zram_number(name).is_some(), "{head}");
    }
    swaps(data);
    mounts(data);
    accounts(data);
    let Ok(text) = str::from_utf8(data) else { return };
    meminfo(text);
    algorithms(text);
    if let Some((major, minor)) = proc::parse_device_number(text) {
        assert_eq!(proc::parse_device_number(&format!("{major}:{minor}\n")), Some((major, minor)));
    }
    counters(text);
    neighbours(text);
}

/// Every file of another program has this text.
fn neighbours(text: &str) {
    let count = text.lines().count();
    let lines = fstab::lines(text, |_| None);
    assert!(lines.iter().all(|line| (1..=count).contains(&(line.number as usize))), "{lines:?}");
    let place = lines.first().map(|line| line.place.as_str());
    let device = lines.iter().find_map(|line| line.device);
    let found = fstab::findings(&lines, &[Ours { device, place }]);
    assert!(found.iter().all(|found| !found.one_line().contains(char::is_control)), "{found:?}");
    let look = Look {
        kind: &|_| PathKind::Other,
        names: &|_| vec!["a.rules".to_owned(), "b.conf".to_owned(), "c.wants".to_owned()],
        text: &|_| Some(text.to_owned()),
    };
    let options = driver::lines(&look, text);
    assert!(options.iter().all(|line| (0..=count).contains(&(line.number as usize))), "{options:?}");
    let found = driver::findings(&options, &[Ours { device: Some(0), place: None }]);
    assert!(found.iter().all(|found| !found.one_line().contains(char::is_control)), "{found:?}");
    for other in at_work(&look) {
        if let Some((_, line)) = other.file.rsplit_once(".rules:") {
            assert!((1..=count).contains(&line.parse().unwrap()), "{}", other.file);
        }
    }
}

/// Lines that are not UTF-8 do not affect other lines.
fn accounts(data: &[u8]) {
    let mut words = data.split(|byte| matches!(byte, b'\n' | b':'));
    let Some(word) = words.find_map(|word| str::from_utf8(word).ok()) else { return };
    if let Some(id) = proc::parse_account(data, word) {
        let line = format!("{word}:x:{id}:\n");
        assert_eq!(proc::parse_account(line.as_bytes(), word), Some(id));
        assert_eq!(proc::parse_account(&[b"\xff:\xfe:1\n", line.as_bytes()].concat(), word), Some(id));
    }
}

fn counters(text: &str) {
    if let Some(stat) = IoStat::parse(text) {
        let IoStat { failed_reads, failed_writes, invalid_io, notify_free } = stat;
        let line = format!("{failed_reads} {failed_writes} {invalid_io} {notify_free}\n");
        assert_eq!(IoStat::parse(&line), Some(stat));
    }
    // The parser for more columns accepts no text that the one for fewer refuses.
    assert!(BlockStat::parse(text).is_none() || MmStat::parse(text).is_some());
    assert!(MmStat::parse(text).is_none() || IoStat::parse(text).is_some());
    assert!(IoStat::parse(text).is_none() || BdStat::parse(text).is_some());
    if let Some(stat) = MmStat::parse(text) {
        let MmStat { orig_data_size, compr_data_size, mem_used_total, mem_limit, mem_used_max, .. } = stat;
        let MmStat { same_pages, pages_compacted, huge_pages, huge_pages_since, .. } = stat;
        let line = format!(
            "{orig_data_size} {compr_data_size} {mem_used_total} {mem_limit} {mem_used_max} {same_pages} \
             {pages_compacted} {huge_pages} {huge_pages_since}\n"
        );
        assert_eq!(MmStat::parse(&line), Some(stat));
    }
}

/// As the kernel escapes names (seq_path in fs/seq_file.c).
fn escape(name: &[u8]) -> Vec<u8> {
    let byte = |byte: &u8| match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        other => vec![*other],
    };
    name.iter().flat_map(byte).collect()
}

fn meminfo(text: &str) {
    let memory = proc::parse_meminfo(text);
    let Memory {
        total_kib,
        available_kib,
        anonymous_kib,
        active_anonymous_kib,
        swap_total_kib,
        swap_free_kib,
        zswap_kib,
        zswapped_kib,
        hugetlb_kib,
    } = memory;
    let printed = format!(
        "MemTotal: {total_kib} kB\nMemAvailable: {available_kib} kB\nAnonPages: {anonymous_kib} kB\n\
         Active(anon): {active_anonymous_kib} kB\nSwapTotal: {swap_total_kib} kB\nSwapFree: {swap_free_kib} kB\n\
         Zswap: {zswap_kib} kB\nZswapped: {zswapped_kib} kB\nHugetlb: {hugetlb_kib} kB\n"
    );
    assert_eq!(proc::parse_meminfo(&printed), memory);
    // Sizes are computed from it.
    plan_on(&Facts { memory, cpus: 1, page_size: 4096, ..Facts::default() });
}

fn swaps(text: &[u8]) {
    let swaps = proc::parse_swaps(text);
    let line = |swap: &SwapLine| {
        let SwapLine { path, size_kib, used_kib, priority } = swap;
        let rest = format!(" partition\t{size_kib}\t\t{used_kib}\t\t{priority}\n");
        [escape(path.as_bytes()), rest.into_bytes()].concat()
    };
    let printed: Vec<u8> = swaps.iter().flat_map(line).collect();
    assert_eq!(proc::parse_swaps(&[b"Filename\n", printed.as_slice()].concat()), swaps);
    for swap in &swaps {
        let Some(number) = swap.zram_number() else { continue };
        let name = format!("zram{number}");
        assert!(swap.path.to_string().trim_end_matches(" (deleted)").ends_with(&name), "{swap:?}");
        assert_eq!(proc::zram_number(&name), Some(number));
    }
}

fn mounts(text: &[u8]) {
    let mounts = proc::parse_mountinfo(text);
    let line = |mount: &MountLine| {
        let MountLine { id, device: (major, minor), root, mount_point, fs_type, source, super_options } =
            mount;
        [
            format!("{id} 1 {major}:{minor} ").into_bytes(),
            escape(root.as_bytes()),
            b" ".to_vec(),
            escape(mount_point.as_bytes()),
            format!(" rw shared:1 - {fs_type} ").into_bytes(),
            escape(source.as_bytes()),
            format!(" {super_options}\n").into_bytes(),
        ]
        .concat()
    };
    let printed: Vec<u8> = mounts.iter().flat_map(line).collect();
    assert_eq!(proc::parse_mountinfo(&printed), mounts);
}

fn algorithms(text: &str) {
    let (names, selected) = parse_comp_algorithm(text);
    assert!(selected.as_ref().is_none_or(|selected| names.contains(selected)));
    if names.iter().all(|name| !name.is_empty() && !name.contains(['[', ']'])) {
        let mark = |name: &String| {
            if Some(name) == selected.as_ref() { format!("[{name}] ") } else { format!("{name} ") }
        };
        let printed: String = names.iter().map(mark).collect();
        assert_eq!(parse_comp_algorithm(&format!("{printed}\n")), (names, selected));
    }
    let secondary = parse_recomp_algorithm(text);
    let printed: String =
        secondary.iter().map(|(priority, name)| format!("#{priority}: [{name}] \n")).collect();
    assert_eq!(parse_recomp_algorithm(&printed), secondary);
}

/// A parsed record is the same when written again, and a plan can be made with it: it may be from another version, of an
/// interrupted run, or about a device that has changed.
pub fn record(data: &[u8]) {
    let Ok(record) = serde_json::from_slice::<Record>(data) else { return };
    let printed = serde_json::to_string_pretty(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&printed).unwrap(), record);
    assert!(!record.target.file_name().is_empty());
    for diskseq in [record.diskseq, Some(7)] {
        for initialised in [false, true] {
            let device = DeviceFacts {
                device: Some((253, 0)),
                diskseq,
                initialised,
                disk_size: u64::from(initialised) << 30,
                attributes: Attribute::ALL.into(),
                algorithms: vec!["lzo-rle".to_owned(), "zstd".to_owned()],
                ..DeviceFacts::default()
            };
            let number = match record.target {
                Target::Device(number) => number,
                Target::Ramdisk(_) | Target::Vm | Target::Zswap => 0,
            };
            plan_on(&Facts {
                memory: Memory { total_kib: 8 << 20, ..Memory::default() },
                devices: BTreeMap::from([(number, device)]),
                records: BTreeMap::from([(record.target.clone(), record.clone())]),
                ..Facts::default()
            });
        }
    }
}

/// Makes plans of several kinds, and prints them in all forms.
fn plan_on(facts: &Facts) {
    let text =
        "[zram0]\n[zram1]\nzram-size = \"10%\"\nmount-point = \"/a\"\n[ramdisk.a]\nmount-point = \"/a/b\"\n";
    let loaded = config::load(&[("f".into(), text.to_owned())], "");
    for activation in [Activation::Direct, Activation::Systemd] {
        let plan = plan::plan(&loaded.settings, Vec::new(), facts, activation);
        assert_eq!(plan.items.len(), 3);
        assert!(!report::text(&plan, &loaded).is_empty());
        let steps: usize = plan.groups.iter().map(|group| group.expected_steps().count()).sum();
        let json = serde_json::to_value(report::report(&plan)).unwrap();
        assert_eq!(json["steps"].as_array().unwrap().len(), steps);
        unit::unit_files(&plan);
    }
}
