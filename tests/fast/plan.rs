//! The planner: refusals, order of steps, and that an unchanged configuration needs no steps.

use std::path::PathBuf;

use logic::config;
use logic::config::settings::SizeRule;
use logic::device::algorithm::Algorithm;
use logic::device::attribute::Attribute;
use logic::error::ErrorKind;
use logic::facts::{BackingFacts, DeviceFacts, Facts, Support};
use logic::finding::Code;
use logic::finding::{Finding, Level};
use logic::neighbours::programs::{Does, OtherManager};
use logic::path_kind::PathKind;
use logic::plan::{self, Activation, Decision, Plan, Step, Taken};
use logic::proc::{Memory, MountLine, SwapLine};
use logic::ramdisk::UnitRamdisk;
use logic::record::{Damaged, Record, Target};
use proptest::prelude::*;

fn device(initialised: bool, algorithms: &[&str]) -> DeviceFacts {
    DeviceFacts {
        device: Some((252, 0)),
        diskseq: Some(7),
        initialised,
        disk_size: if initialised { 1 << 20 } else { 0 },
        attributes: [Attribute::AlgorithmParams, Attribute::RecompAlgorithm, Attribute::BackingDev].into(),
        algorithms: algorithms.iter().map(|&name| name.to_owned()).collect(),
        ..DeviceFacts::default()
    }
}

/// 8 GiB, with the unused zram0 that the module creates.
fn facts() -> Facts {
    Facts {
        memory: Memory { total_kib: 8 << 20, available_kib: 7 << 20, ..Memory::default() },
        cpus: 4,
        page_size: 4096,
        devices: [(0, device(false, &["lzo-rle", "lzo", "lz4", "zstd"]))].into(),
        ..Facts::default()
    }
}

fn plan_of(text: &str, facts: &Facts) -> Plan {
    let loaded = config::load(&[(PathBuf::from("z.toml"), text.to_owned())], "");
    assert_eq!(loaded.problems, [], "{text}");
    plan::plan(&loaded.settings, Vec::new(), facts, Activation::Direct)
}

#[test]
fn sizes_that_only_exceed_the_memory_together_are_a_warning() {
    // 8 GiB hold four times as much.
    for (sizes, warns) in [(["10GiB", "22GiB"], false), (["10GiB", "23GiB"], true)] {
        let text = format!("[zram0]\nzram-size = \"{}\"\n[zram1]\nzram-size = \"{}\"\n", sizes[0], sizes[1]);
        let plan = plan_of(&text, &facts());
        assert!(plan.items.iter().all(|item| item.decision == Decision::Planned), "{text}");
        assert_eq!(plan.problems.len(), usize::from(warns), "{:?}", plan.problems);
        assert!(plan.problems.iter().all(|problem| problem.level == Level::Warning));
        assert!(plan.problems.iter().all(|problem| problem.line() == 4));
    }
}

#[test]
fn ram_disks_that_exceed_the_memory_are_a_warning() {
    for (size, backend, warns) in [
        ("8GiB", "tmpfs", false),
        ("99999T", "tmpfs", true),
        ("9GiB", "tmpfs", true),
        ("9GiB", "zram", false),
    ] {
        let disk = format!("mount-point = \"/srv/a\"\nbackend = \"{backend}\"\nsize = \"{size}\"\n");
        let plan = plan_of(&format!("[ramdisk.a]\n{disk}"), &facts());
        let found: Vec<_> = plan.problems.iter().map(|problem| (problem.level, problem.code)).collect();
        let expected = (Level::Warning, Code::RamdisksExceedMemory);
        assert_eq!(found, vec![expected; usize::from(warns)], "{disk}");
    }
    let text = "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"60%\"\n[ramdisk.b]\nmount-point = \"/b\"\nsize = \"60%\"\n";
    let [together] = &plan_of(text, &facts()).problems[..] else { panic!("{text}") };
    assert_eq!((together.code, together.line()), (Code::RamdisksExceedMemory, 6));
}

fn mount(device: (u32, u32), mount_point: &str) -> MountLine {
    MountLine {
        id: 1,
        device,
        root: "/".into(),
        mount_point: mount_point.into(),
        fs_type: "ext4".into(),
        source: "/dev/sda1".into(),
        super_options: String::new(),
    }
}

fn block(signature: Option<&str>, holders: &[&str]) -> BackingFacts {
    BackingFacts::Block {
        device: (8, 1),
        signature: signature.map(str::to_owned),
        holders: holders.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[track_caller]
fn check(text: &str, facts: &Facts, expected: Option<(ErrorKind, &str)>) {
    let plan = plan_of(text, facts);
    let item = plan.items.last().unwrap();
    match expected {
        None => assert_eq!((item.decision, item.reason.as_str()), (Decision::Planned, ""), "{text}"),
        Some((kind, reason)) => {
            assert_eq!(
                (item.decision, item.kind),
                (Decision::Refused, Some(kind)),
                "{text}: {}",
                item.reason
            );
            assert!(item.reason.contains(reason), "{text}: {}", item.reason);
            let problem = plan.problems.iter().find(|problem| problem.message == item.reason).unwrap();
            assert!(problem.line() > 0, "{text}: it says where");
            assert!(plan.groups.iter().all(|group| group.target != item.target), "nothing is done about it");
        }
    }
}

#[test]
fn sizes_that_would_hurt_are_refused() {
    // 16 bytes for each page of 4 KiB are 2 % of RAM at 5.12 times RAM.
    check("[zram0]\nzram-size = \"40GiB\"", &facts(), None);
    check("[zram0]\nzram-size = \"41GiB\"", &facts(), Some((ErrorKind::Unsafe, "2 %")));
    check("[zram0]\nzram-size = 1", &facts(), None);
    check("[zram0]\nzram-size = \"1023KiB\"", &facts(), Some((ErrorKind::Config, "1.0 MiB")));
    check("[ramdisk.a]\nmount-point = \"/a\"\nsize = \"5B\"", &facts(), Some((ErrorKind::Config, "1.0 MiB")));
}

/// A configuration for a machine with 8 GiB, and what its warnings say.
#[test]
fn what_cannot_be_meant_is_a_warning() {
    let swap = |size: &str, more: &str| format!("[zram0]\nzram-size = \"{size}\"\n{more}");
    let recompressed = "recompression-algorithm = \"zstd\"\n";
    for (text, key, parts) in [
        (swap("32GiB", ""), "", &[][..]),
        (swap("33GiB", ""), "zram0.zram-size", &["the device", "33.0 GiB", "32.0 GiB"]),
        (
            swap("20GiB", "[zram1]\nmount-point = \"/a\"\nzram-size = \"20GiB\""),
            "zram1.zram-size",
            &["all devices together", "40.0 GiB", "for all devices together suits"],
        ),
        (swap("1GiB", "zram-resident-limit = \"1KiB\""), "zram0.zram-resident-limit", &["1.0 KiB", "fail"]),
        (
            swap("1GiB", "zram-resident-limit = \"2GiB\""),
            "zram0.zram-resident-limit",
            &["2.0 GiB", "no effect"],
        ),
        (swap("1GiB", "zram-resident-limit = \"1GiB\""), "", &[]),
        (
            swap("1GiB", "zram-resident-limit = \"512MiB\""),
            "zram0.zram-resident-limit",
            &["hang", "smaller zram-size"],
        ),
        (swap("1GiB", recompressed), "zram0.recompression-algorithm", &["recompress = true"]),
        (
            swap("1GiB", &format!("{recompressed}[maintenance]\npressure = true")),
            "zram0.recompression-algorithm",
            &["recompress = true"],
        ),
        (swap("1GiB", &format!("{recompressed}[maintenance]\nrecompress = true")), "", &[]),
    ] {
        let problems = plan_of(&text, &facts()).problems;
        let found: Vec<&str> = problems.iter().map(Finding::key).collect();
        assert_eq!(
            found,
            Some(key).filter(|key| !key.is_empty()).into_iter().collect::<Vec<_>>(),
            "{text}: {problems:?}"
        );
        let said: String = problems.iter().map(Finding::text).collect();
        assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        assert!(problems.iter().all(|problem| problem.level == Level::Warning), "{problems:?}");
    }
}

/// The size in the hint is the one that is shipped, which causes no warning.
#[test]
fn the_recommended_size_is_the_shipped_one() {
    let loaded =
        config::load(&[("z.toml".into(), include_str!("../../config/defaults.toml").to_owned())], "");
    let SizeRule::Expression { size, .. } = &loaded.settings.devices[0].size else { panic!() };
    let problems = plan_of("[zram0]\nzram-size = \"33GiB\"", &facts()).problems;
    assert!(problems.iter().any(|problem| problem.text().contains(&size.text)), "{problems:?}");
}

#[test]
fn limits_are_shown_with_units() {
    let item = &plan_of("[zram0]\nhost-memory-limit = \"1KiB\"\n", &facts()).items[0];
    assert_eq!(item.decision, Decision::Skipped);
    assert!(item.reason.contains("8.0 GiB") && item.reason.contains("1.0 KiB"), "{}", item.reason);
    // Callers on the bus get the reason without the hint.
    let item = &plan_of("[zram0]\nzram-size = \"200GiB\"\n", &facts()).items[0];
    assert!(item.reason.ends_with("choose at most 32768MiB"), "{}", item.reason);
}

#[test]
fn any_amount_of_memory_is_handled() {
    let memory = Memory { total_kib: u64::MAX, ..Memory::default() };
    let largest = "[zram0]\nzram-size = \"8388607TiB\"\n[zram1]\nzram-fraction = 1";
    plan_of(largest, &Facts { memory, page_size: 1, ..facts() });
}

/// The kernel rounds the size up to whole pages.
#[test]
fn a_size_is_whole_pages_of_any_size() {
    for page in [4096, 16384, 65536] {
        let plan = plan_of("[zram0]\nzram-size = \"65537KiB\"", &Facts { page_size: page, ..facts() });
        let steps = plan.groups.iter().flat_map(|group| &group.ways).flat_map(|way| &way.steps);
        let tested: Vec<u64> = steps
            .filter_map(|step| match step {
                Step::SelfTest { bytes, .. } => Some(*bytes),
                _ => None,
            })
            .collect();
        assert!(!tested.is_empty() && tested.iter().all(|bytes| *bytes == (64 << 20) + page), "{tested:?}");
    }
}

#[test]
fn a_memory_limit_on_a_mounted_file_system_has_to_be_forced() {
    let text = "[zram0]\nmount-point = \"/a\"\nzram-resident-limit = 100";
    check(text, &facts(), Some((ErrorKind::Unsafe, "")));
    check(&format!("{text}\nforce-resident-limit = true"), &facts(), None);
    check("[zram0]\nzram-resident-limit = 100", &facts(), None);
}

#[test]
fn write_back_never_overwrites_anything() {
    let text = "[zram0]\nwriteback-device = \"/dev/x\"";
    let with = |backing| Facts { backing: [("/dev/x".to_owned(), backing)].into(), ..facts() };
    check(text, &with(block(None, &[])), None);
    check(text, &with(BackingFacts::Missing), Some((ErrorKind::Config, "/dev/x")));
    check(text, &with(BackingFacts::NotABlockDevice), Some((ErrorKind::Config, "/dev/x")));
    let unreadable = with(BackingFacts::Unreadable("/dev/x: open: no medium found".to_owned()));
    check(text, &unreadable, Some((ErrorKind::Unsupported, "no medium found")));
    check(&format!("{text}\n[zram1]"), &unreadable, None);
    check(text, &with(block(Some("LUKS volume"), &[])), Some((ErrorKind::Unsafe, "LUKS volume")));
    check(text, &with(block(None, &["dm-0"])), Some((ErrorKind::Unsafe, "dm-0")));
    let mounted = Facts { mounts: vec![mount((8, 1), "/home")], ..with(block(None, &[])) };
    check(text, &mounted, Some((ErrorKind::Unsafe, "/home")));
}

#[test]
fn mount_points_do_not_hide_anything() {
    check("[zram0]\nmount-point = \"/usr\"", &facts(), Some((ErrorKind::Unsafe, "/usr")));
    let same = "[zram0]\nmount-point = \"/a\"\n[ramdisk.b]\nmount-point = \"/a\"";
    check(same, &facts(), Some((ErrorKind::Config, "[zram0]")));
    let text = "[zram0]\nmount-point = \"/a\"";
    let taken = Facts { mounts: vec![mount((8, 1), "/a")], ..facts() };
    check(text, &taken, Some((ErrorKind::Unsafe, "/a ")));
    // What PID 1 has mounted for us there is no other program's.
    let disk = "[ramdisk.b]\nmount-point = \"/a\"\nsize = \"9MiB\"";
    for (mount_point, expected) in [("/a", None), ("/b", Some((ErrorKind::Unsafe, "/a ")))] {
        let of_unit = UnitRamdisk {
            name: "b".to_owned(),
            mount_point: mount_point.to_owned(),
            ..UnitRamdisk::default()
        };
        check(disk, &Facts { unit_ramdisks: vec![of_unit], ..taken.clone() }, expected);
    }
    let below = Facts { mounts: vec![mount((8, 1), "/a/b")], ..facts() };
    check(text, &below, Some((ErrorKind::Unsafe, "/a/b")));
    let beside = Facts { mounts: vec![mount((8, 1), "/ab")], ..facts() };
    check(text, &beside, None);
    let file = Facts { mount_points: [("/a".to_owned(), PathKind::Other)].into(), ..facts() };
    check(text, &file, Some((ErrorKind::Config, "/a ")));
    let why = PathKind::Unreadable("permission denied");
    let unknown = Facts { mount_points: [("/a".to_owned(), why)].into(), ..facts() };
    check(text, &unknown, Some((ErrorKind::Failed, "/a cannot be looked at: permission denied")));
    let below = "[zram0]\nmount-point = \"/a/b\"";
    check(below, &unknown, Some((ErrorKind::Failed, "/a cannot be looked at: permission denied")));
}

#[test]
fn mount_points_below_system_directories_are_refused() {
    let refused = [
        "/",
        "/bin/x",
        "/boot/efi",
        "/dev",
        "/dev/shm",
        "/efi",
        "/etc/cron.d",
        "/lib/systemd",
        "/lib64/x",
        "/proc/x",
        "/root",
        "/root/.ssh",
        "/run",
        "/run/systemd/system",
        "/run/udev/rules.d",
        "/run/user",
        "/run/zramd/x",
        "/sbin",
        "/sys/x",
        "/usr/lib/x",
        "/usr/local/bin",
        "/var",
        "/var/lib",
        "/var/spool/cron/crontabs",
        "/var/lib/zramd/disks",
    ];
    let allowed = [
        "/binary",
        "/etcetera",
        "/home/a/.cache",
        "/library",
        "/mnt/x",
        "/opt",
        "/run/x",
        "/run/systemd-x",
        "/run/user/1000/x",
        "/scratch",
        "/srv",
        "/tmp",
        "/usr2",
        "/var/cache/build",
        "/var/lib/ci-workspace",
        "/var/log",
        "/var/tmp",
    ];
    for (paths, expected) in [(&refused[..], Some((ErrorKind::Unsafe, ""))), (&allowed, None)] {
        for path in paths {
            check(&format!("[zram0]\nmount-point = \"{path}\""), &facts(), expected);
            check(&format!("[ramdisk.a]\nmount-point = \"{path}\"\nsize = 9"), &facts(), expected);
        }
    }
    let links = Facts { links: [("/srv/a".to_owned(), "/etc/cron.d".to_owned())].into(), ..facts() };
    check("[zram0]\nmount-point = \"/srv/a\"", &links, Some((ErrorKind::Unsafe, "/etc/cron.d")));
    check("[zram0]\nmount-point = \"/srv/b\"", &links, None);
}

/// The private mount point of a RAM disk on zram is below a system directory.
#[test]
fn the_private_mount_point_of_a_disk_is_allowed() {
    let text = "[ramdisk.a]\nmount-point = \"/srv/a\"\nsize = 9\nbackend = \"zram\"\npersist = \"snapshot\"";
    let plan = plan_of(text, &facts());
    assert!(plan.items.iter().all(|item| item.decision == Decision::Planned), "{:?}", plan.items);
}

#[test]
fn missing_features_of_the_machine_are_named() {
    let text = "[zram0]\nmount-point = \"/a\"\nfs-type = \"btrfs\"";
    let without = Facts { mkfs: [("btrfs".to_owned(), false)].into(), ..facts() };
    check(text, &without, Some((ErrorKind::Unsupported, "mkfs.btrfs")));
    for (fs_type, size, smallest) in [("xfs", 299, "300.0 MiB"), ("btrfs", 44, "45.0 MiB")] {
        let text = |size| {
            format!("[zram0]\nmount-point = \"/a\"\nfs-type = \"{fs_type}\"\nzram-size = \"{size}MiB\"")
        };
        check(&text(size), &facts(), Some((ErrorKind::Config, smallest)));
        check(&text(size + 1), &facts(), None);
    }
    let text = "[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\nfs-type = \"xfs\"\nsize = \"1MiB\"";
    let plan = plan_of(text, &facts());
    assert_eq!(plan.groups.len(), 0, "without its device there is no disk");
    assert_eq!(plan.problems.len(), 1, "which is reported once: {:?}", plan.problems);
    check("[zram0]\nmount-point = \"/a\"\nowner = \"joe\"", &facts(), Some((ErrorKind::Config, "`joe`")));
    let contained = Facts { support: Support::Container("lxc".to_owned()), ..facts() };
    check("[zram0]", &contained, Some((ErrorKind::Unsupported, "lxc")));
    let text = "[zram0]\ncompression-algorithm = \"deflate\"";
    check(text, &facts(), Some((ErrorKind::Unsupported, "lzo-rle, lzo, lz4, zstd")));
    check("[zram0]\ncompression-algorithm = [\"deflate\", \"auto\"]", &facts(), None);
}

#[test]
fn a_target_with_a_damaged_record_is_left_as_it_is() {
    let damaged = Damaged {
        file: "zram0.json".to_owned(),
        target: Some(Target::Device(0)),
        why: "it ends too early".to_owned(),
    };
    let facts = Facts { damaged: vec![damaged], ..facts() };
    let why = "/run/zramd/zram0.json is not a usable record: it ends too early";
    check("[zram0]", &facts, Some((ErrorKind::Unsafe, why)));
    check("[zram1]", &facts, None);
}

#[test]
fn a_device_of_another_program_is_refused_and_its_user_named() {
    let mut facts = facts();
    facts.devices.insert(0, device(true, &["lz4"]));
    check("[zram0]", &facts, Some((ErrorKind::Unsafe, "1.0 MiB")));
    facts.mounts = vec![mount((252, 0), "/opt")];
    check("[zram0]", &facts, Some((ErrorKind::Unsafe, "/opt")));
    facts.swaps = vec![SwapLine { path: "/dev/zram0".into(), size_kib: 9, used_kib: 0, priority: 3 }];
    check("[zram0]", &facts, Some((ErrorKind::Unsafe, " 3")));
}

#[test]
fn other_swap_has_to_have_a_lower_priority() {
    let swap = |priority| SwapLine { path: "/dev/sda2".into(), size_kib: 9, used_kib: 0, priority };
    for (priority, warned) in [(99, false), (100, true), (101, true)] {
        let facts = Facts { swaps: vec![swap(priority)], ..facts() };
        let found = plan_of("[zram0]\nswap-priority = 100", &facts).neighbours;
        assert_eq!(found.iter().any(|found| found.code == Code::PriorityInverted), warned);
    }
}

/// Without recompression or write-back the device is still of use; with another primary algorithm, not.
#[test]
fn only_steps_of_extra_features_may_fail_with_a_warning() {
    let algorithm = |text: &str| Algorithm::parse(text).unwrap();
    let parameters =
        |priority| Step::SetParameters { number: 0, algorithm: algorithm("zstd(level=9)"), priority };
    for (step, optional) in [
        (parameters(0), false),
        (parameters(1), true),
        (Step::SetRecompression { number: 0, algorithm: "zstd".to_owned(), priority: 1 }, true),
        (Step::LoadModule, false),
        (Step::CreateDevice { number: 0 }, false),
    ] {
        assert_eq!(step.is_optional(), optional, "{step}");
    }
}

fn other(does: Does) -> OtherManager {
    let (file, off) = ("/etc/x.conf".to_owned(), "remove it".to_owned());
    OtherManager { name: "x", does, file, import: None, enabled: true, off }
}

#[test]
fn conflicts_cause_a_warning() {
    let better = SwapLine { path: "/dev/sda2".into(), size_kib: 9, used_kib: 0, priority: 200 };
    let tunables = [(logic::vm::Tunable::Zswap, "Y".to_owned())].into();
    let other_managers = vec![other(Does::Devices)];
    let facts = Facts { tunables, swaps: vec![better], other_managers, ..facts() };
    let plan = plan_of("[zram0]", &facts);
    assert_eq!(plan.problems, [], "none of them is a mistake");
    let found: Vec<_> = plan.neighbours.iter().map(|found| (found.code, found.object.as_str())).collect();
    let manager = (Code::ForeignManager, "/etc/x.conf");
    assert_eq!(found, [(Code::ZswapActive, ""), (Code::PriorityInverted, "/dev/sda2"), manager]);
    assert!(plan.neighbours[1].message.contains("200"), "{}", plan.neighbours[1].message);
    assert_eq!(plan.items[0].decision, Decision::Planned, "and the device comes up all the same");
}

#[test]
fn a_device_that_yields_is_not_created_beside_another_program() {
    let decision = |facts: &Facts| plan_of("[zram0]\nyield = true", facts).items[0].decision;
    let mut facts = facts();
    assert_eq!(decision(&facts), Decision::Planned);
    facts.other_managers = vec![other(Does::Directories)];
    assert_eq!(decision(&facts), Decision::Planned, "it has no zram");
    facts.other_managers.push(other(Does::Devices));
    assert_eq!(decision(&facts), Decision::Skipped);
    assert_eq!(plan_of("[zram0]", &facts).items[0].decision, Decision::Planned);
    // Installed while our swap is in use.
    let request = plan_of("[zram0]", &facts).items[0].request.clone().unwrap();
    facts.records.insert(Target::Device(0), Record::begin(Target::Device(0), request));
    assert_eq!(decision(&facts), Decision::Planned, "what exists stays");
}

#[test]
fn a_mount_point_below_another_one_comes_after_it() {
    let plan = plan_of(
        "[zram0]\nmount-point = \"/a/b/c\"\n[zram1]\nmount-point = \"/a\"\n[ramdisk.x]\nmount-point = \"/a/b\"",
        &facts(),
    );
    let order: Vec<String> = plan.groups.iter().map(|group| group.target.to_string()).collect();
    assert_eq!(order, ["zram1", "ramdisk.x", "zram0"]);
    assert_eq!(plan.items.iter().filter(|item| item.decision == Decision::Planned).count(), 3);
}

#[test]
fn the_order_of_configuration_is_the_one_that_all_kernels_accept() {
    let text = "[zram0]\ncompression-algorithm = \"zstd(level=1)\"\nrecompression-algorithm = [\"zstd(level=9)\", \"deflate\"]\n\
                zram-resident-limit = 50\nwriteback-device = \"/dev/x\"\nlabel = \"fast\"";
    let facts = Facts { backing: [("/dev/x".to_owned(), block(None, &[]))].into(), ..facts() };
    let plan = plan_of(text, &facts);
    let sentences: Vec<String> = plan.groups[0].expected_steps().map(|step| step.to_string()).collect();
    assert_eq!(
        sentences,
        [
            "map /dev/x as zramd-zram0, encrypted with a random key",
            "take /dev/zram0, record it in /run/zramd and keep udev from probing it",
            "select zstd as compression algorithm",
            "set the parameters of zstd(level=1)",
            "select zstd as secondary algorithm with priority 1",
            "set the parameters of zstd(level=9) at priority 1",
            "select deflate as secondary algorithm with priority 2",
            "attach /dev/x, encrypted, as write-back device",
            "set the size to 4.0 GiB (disksize)",
            "limit the memory used to 50.0 MiB (mem_limit)",
            "write compressible, incompressible and zero pages, read them back and compare",
            "write a swap header with label fast",
            "let udev see /dev/zram0",
            "activate swap on /dev/zram0 with priority 100",
        ]
    );
}

proptest! {
    /// For any configuration: each step has an undo or a reason for having none, and all steps are about planned targets.
    #[test]
    fn every_step_has_an_undo_or_a_reason(
        sections in prop::collection::vec((0u32..6, prop::sample::select(vec![
            "", "zram-size = \"1GiB\"", "mount-point = \"/a\"", "mount-point = \"/a/b\"\nmode = \"0700\"", "zram-size = 0",
            "zram-size = \"90GiB\"", "fs-type = \"none\"", "compression-algorithm = [\"842\", \"zstd(level=3)\"]",
        ])), 0..5),
        ram in 64u64..65536,
    ) {
        let sections: std::collections::BTreeMap<u32, &str> = sections.into_iter().collect();
        let text: String = sections.iter().map(|(number, body)| format!("[zram{number}]\n{body}\n")).collect();
        let facts = Facts { memory: Memory { total_kib: ram * 1024, ..Memory::default() }, ..facts() };
        let plan = plan_of(&text, &facts);
        prop_assert_eq!(plan.items.len(), sections.len());
        for group in &plan.groups {
            prop_assert_eq!(plan.item(&group.target).unwrap().decision, Decision::Planned);
            let mut earlier = 0;
            for step in group.expected_steps() {
                match step.taken_back() {
                    Taken::By(_) => earlier += 1,
                    Taken::WithEarlier => prop_assert!(earlier > 0, "{} relies on an earlier undo", step),
                    Taken::Never(why) => prop_assert!(!why.is_empty()),
                }
            }
        }
        for item in plan.items.iter().filter(|item| item.decision != Decision::Planned) {
            prop_assert!(!item.reason.is_empty());
            prop_assert!(plan.groups.iter().all(|group| group.target != item.target));
        }
        let first_steps = plan.groups.iter().filter_map(|group| group.before.first());
        let created = first_steps.filter(|step| matches!(step, Step::CreateDevice { .. })).count();
        let missing = plan.groups.iter().filter(|group| group.target.to_string() != "zram0").count();
        prop_assert_eq!(created, missing, "zram0 is there already, all others are created");
    }
}
