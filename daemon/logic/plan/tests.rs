//! Rules of the planner on made-up machines, and what its other tests need. tests/fast/plan.rs has more, and
//! tests/golden/plans whole plans.

use super::*;
use crate::config;
use crate::device::attribute::Attribute;
use crate::device::swap_header::MOST_SWAPS;
use crate::expr::UNKNOWN_MEMORY;
use crate::facts::{Best, DeviceFacts, Permissions};
use crate::finding::Code;
use crate::proc::{Memory, MountLine, SwapLine};
use crate::ramdisk::UnitRamdisk;
use crate::ramdisk::status::SnapshotLine;
use crate::record::{Carried, Damaged, Progress};
use crate::request::VmRequest;
use crate::verdict::Unusable;
use crate::vm::Tunable;

/// A machine with 8 GiB, and the unused zram0 that the module creates.
pub(super) fn facts() -> Facts {
    let device = DeviceFacts {
        device: Some((252, 0)),
        diskseq: Some(7),
        attributes: [Attribute::AlgorithmParams, Attribute::RecompAlgorithm, Attribute::BackingDev].into(),
        algorithms: ["lzo-rle", "lz4", "zstd"].map(str::to_owned).to_vec(),
        algorithm: Some("lzo-rle".to_owned()),
        ..DeviceFacts::default()
    };
    Facts { cpus: 4, page_size: 4096, devices: [(0, device)].into(), ..with_memory(8 << 20) }
}

/// Only this much memory in KiB.
fn with_memory(total_kib: u64) -> Facts {
    let memory = Memory { total_kib, ..Memory::default() };
    Facts { memory, page_size: 4096, ..Facts::default() }
}

pub(crate) fn plan_of(text: &str, facts: &Facts, activation: Activation) -> Plan {
    let loaded = config::load(&[("z.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, [], "{text}");
    plan(&loaded.settings, Vec::new(), facts, activation)
}

pub(super) fn mount(id: u64, device: (u32, u32), mount_point: &str, fs_type: &str) -> MountLine {
    MountLine {
        id,
        device,
        root: "/".into(),
        mount_point: mount_point.into(),
        fs_type: fs_type.to_owned(),
        source: fs_type.to_owned(),
        super_options: String::new(),
    }
}

fn swap(path: &str, priority: i32) -> SwapLine {
    SwapLine { path: path.into(), size_kib: 9, used_kib: 0, priority }
}

/// The undo list of a target on which these steps were done.
pub(super) fn undo_of(steps: impl IntoIterator<Item = Step>) -> Vec<Undo> {
    let taken = steps.into_iter().filter_map(|step| match step.taken_back() {
        Taken::By(undo) => Some(undo),
        Taken::WithEarlier | Taken::Never(_) => None,
    });
    taken.collect()
}

/// The machine after zramd has set up zram0, the only device of `text`.
pub(super) fn set_up(text: &str) -> Facts {
    let mut facts = facts();
    let plan = plan_of(text, &facts, Activation::Direct);
    let request = plan.items[0].request.clone().unwrap();
    let wanted = request.device().unwrap();
    let device = facts.devices.get_mut(&0).unwrap();
    (device.initialised, device.disk_size) = (true, wanted.disk_size);
    let carries =
        Carried { disk_size: device.disk_size, algorithm: device.algorithm.clone(), signature: None };
    match &wanted.purpose {
        Purpose::Swap { priority, .. } => facts.swaps.push(swap("/dev/zram0", *priority)),
        Purpose::Filesystem { fs_type, mount: wanted, .. } => {
            facts.mounts.push(mount(1, (252, 0), &wanted.mount_point, fs_type));
        }
        Purpose::Raw { .. } => {}
    }
    let record = Record {
        diskseq: Some(7),
        carries: Some(carries),
        progress: Progress::Done,
        undo: undo_of(plan.groups[0].expected_steps()),
        ..Record::begin(Target::Device(0), request)
    };
    facts.records.insert(Target::Device(0), record);
    facts
}

pub(super) fn words(steps: impl IntoIterator<Item = Step>) -> Vec<String> {
    steps.into_iter().map(|step| step.to_string()).collect()
}

fn settings(values: &[(Tunable, &str)]) -> Request {
    let values = values.iter().map(|(tunable, value)| (*tunable, (*value).to_owned())).collect();
    Request::Vm(VmRequest { values, compressors: Vec::new() })
}

/// The problems of a plan, each with its remedy.
fn problems(text: &str, facts: &Facts) -> Vec<String> {
    plan_of(text, facts, Activation::Direct).problems.iter().map(Finding::text).collect()
}

/// One problem with this part, or none.
#[track_caller]
fn warns(text: &str, facts: &Facts, expected: Option<&str>) {
    let found = problems(text, facts);
    assert_eq!(found.len(), usize::from(expected.is_some()), "{text}: {found:?}");
    assert!(found.iter().all(|found| expected.is_some_and(|part| found.contains(part))), "{text}: {found:?}");
}

#[test]
fn the_slot_table_of_a_device_takes_at_most_2_percent_of_the_memory() {
    let decision = |size: &str| {
        let item = plan_of(&format!("[zram0]\nzram-size = \"{size}\""), &facts(), Activation::Direct).items;
        (item[0].decision, item[0].reason.clone())
    };
    // 16 bytes for each page: 8 GiB / 50 / 16 pages, rounded down.
    assert_eq!(decision("43980464128B"), (Decision::Planned, String::new()));
    assert_eq!(decision("43980464129B").0, Decision::Refused);
    assert!(decision("41GiB").1.contains("a table of 164.0 MiB"), "{:?}", decision("41GiB"));
}

#[test]
fn without_knowing_the_memory_only_fixed_sizes_are_planned() {
    for (size, expected) in [
        ("zram-size = \"64GiB\"", ""),
        ("zram-size = \"ram / 2\"", UNKNOWN_MEMORY),
        ("zram-fraction = 0.5", UNKNOWN_MEMORY),
        ("zram-size = \"1GiB\"\nhost-memory-limit = \"4GiB\"", UNKNOWN_MEMORY),
    ] {
        let plan = plan_of(&format!("[zram0]\n{size}"), &with_memory(0), Activation::Direct);
        let (item, is_planned) = (&plan.items[0], expected.is_empty());
        assert!(item.reason.ends_with(expected), "{size}: {}", item.reason);
        assert_eq!(item.decision == Decision::Planned, is_planned, "{size}: {}", item.reason);
        assert_eq!(plan.problems.is_empty(), is_planned, "{size}: {:?}", plan.problems);
    }
}

/// An image does not tell the memory of the machine that it boots.
#[test]
fn for_an_image_sizes_that_depend_on_the_memory_are_left_to_the_boot() {
    let image = Facts { is_image: true, ..with_memory(0) };
    for (text, is_known) in [
        ("[zram0]\nzram-size = \"1GiB\"", true),
        ("[zram0]\nzram-size = \"ram / 2\"", false),
        ("[zram0]\nzram-fraction = 0.5", false),
        ("[zram0]\nzram-size = \"1GiB\"\nmax-zram-size = \"50%\"", false),
        ("[zram0]\nzram-size = \"1GiB\"\nzram-resident-limit = \"ram / 4\"", false),
        ("[zram0]\nzram-size = \"1GiB\"\nhost-memory-limit = \"4GiB\"", false),
        ("[ramdisk.a]\nmount-point = \"/a\"\nsize = \"64MiB\"", true),
        ("[ramdisk.a]\nmount-point = \"/a\"\nsize = \"50%\"", false),
    ] {
        let item = &plan_of(text, &image, Activation::Systemd).items[0];
        assert_eq!((item.decision, item.request.is_some()), (Decision::Planned, is_known), "{text}");
        assert_eq!(item.reason.contains("evaluated at boot"), !is_known, "{text}: {}", item.reason);
    }
    // Nor whether its kernel enables zswap.
    let reason = |facts: &Facts| {
        plan_of("[zram0]\nzram-size = \"1GiB\"\nyield = true", facts, Activation::Systemd).items[0]
            .reason
            .clone()
    };
    assert!(reason(&image).starts_with("it yields to zswap"), "{}", reason(&image));
    assert_eq!(reason(&facts()), "");
}

#[test]
fn sessions_keep_at_most_a_quarter_of_the_memory() {
    for (size, kept) in [("ram / 4", 2 << 30), ("ram / 4 + 1KiB", 0)] {
        let text = format!("[zram0]\n[vm]\nprotect-sessions = \"{size}\"");
        let plan = plan_of(&text, &facts(), Activation::Direct);
        assert_eq!((plan.protected, plan.problems.len()), (kept, usize::from(kept == 0)), "{size}");
    }
}

/// A number of MiB may be meant in GiB.
#[test]
fn a_number_below_64_and_below_1_percent_of_the_memory_is_doubtful() {
    for (gib, key, is_doubtful) in [
        (8, "zram-size = 63", true),
        (8, "zram-size = 64", false),
        (4, "zram-size = 40", true),
        (4, "zram-size = 41", false),
        (8, "host-memory-limit = 0", false),
    ] {
        let said = is_doubtful.then_some("less than 1 % of this machine's RAM");
        warns(&format!("[zram0]\n{key}"), &with_memory(gib << 20), said);
    }
}

#[test]
fn the_kind_of_a_doubtful_limit_or_size_is_named() {
    let limited = |limit: &str| format!("[zram0]\nzram-size = \"1GiB\"\nzram-resident-limit = \"{limit}\"");
    warns(&limited("0"), &facts(), None);
    warns(&limited("4095KiB"), &facts(), Some("writes fail as soon as"));
    warns(&limited("4MiB"), &facts(), Some("when the limit is reached"));
    // last_page of a swap header has 32 bits.
    let large = with_memory(64 << 30);
    warns("[zram0]\nzram-size = \"16TiB\"", &large, None);
    warns("[zram0]\nzram-size = \"16TiB + 4KiB\"", &large, Some("uses the first 16.0 TiB"));
    let [alone] = &problems("[zram0]\nzram-size = \"33GiB\"", &facts())[..] else { panic!() };
    assert!(alone.contains(" suits most data") && !alone.contains("for all devices together"), "{alone}");
}

#[test]
fn other_swap_counts_where_there_are_more_swap_areas_than_some_kernels_allow() {
    let number = MOST_SWAPS + 1;
    let section = |number| format!("[zram{number}]\nzram-size = \"16MiB\"\n");
    let text = (0..number).map(section).collect::<Vec<_>>().concat();
    warns(&text, &facts(), Some(&format!("there are {number} swap devices, and some kernels allow")));
    let disks = Facts { swaps: vec![swap("/dev/sda2", -2), swap("/dev/sda3", -3)], ..facts() };
    warns(&text, &disks, Some(&format!("{number} swap devices and 2 others that are active, and some")));
}

#[test]
fn the_package_of_a_missing_mkfs_is_named() {
    for (fs_type, package) in [
        ("ext2", "install e2fsprogs"),
        ("ext4", "install e2fsprogs"),
        ("xfs", "install xfsprogs"),
        ("btrfs", "install btrfs-progs"),
        ("f2fs", "install f2fs-tools"),
        ("vfat", "install dosfstools"),
        ("minix", "install the package that has mkfs.minix"),
    ] {
        let text = format!("[zram0]\nzram-size = \"1GiB\"\nmount-point = \"/a\"\nfs-type = \"{fs_type}\"");
        let facts = Facts { mkfs: [(fs_type.to_owned(), false)].into(), ..facts() };
        warns(&text, &facts, Some(package));
    }
}

#[test]
fn what_a_mount_would_hide_is_named() {
    for (path, reason) in [
        ("/usr", "mounting on /usr would hide the running system"),
        ("/usr/local", "/usr/local is below /usr, a directory of the system"),
        ("/var", "mounting on /var would hide /var/lib/polkit-1"),
        ("/run", "mounting on /run would hide the running system"),
    ] {
        let text = format!("[ramdisk.a]\nmount-point = \"{path}\"\nsize = \"64MiB\"");
        assert_eq!(plan_of(&text, &facts(), Activation::Direct).items[0].reason, reason);
    }
}

#[test]
fn each_difference_of_a_hidden_directory_is_named() {
    let text = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = \"64MiB\"";
    for (mode, uid, gid, keys) in [
        (0o755, 0, 0, None),
        (0o700, 0, 0, Some("(write mode = \"0700\", or ")),
        (0o755, 7, 0, Some("(write owner = 7, or ")),
        (0o755, 0, 7, Some("(write group = 7, or ")),
    ] {
        let directories = [("/srv".to_owned(), Permissions { mode, uid, gid })].into();
        warns(text, &Facts { directories, ..facts() }, keys);
    }
}

#[test]
fn a_snapshot_that_does_not_fit_into_its_ram_disk_is_a_warning() {
    let text = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = \"16MiB\"\ninodes = 100\npersist = \"snapshot\"";
    for (occupied_bytes, inodes, expected) in
        [(16 << 20, 100, None), ((16 << 20) + 1, 100, Some("`size`")), (16 << 20, 101, Some("`inodes`"))]
    {
        let newest = SnapshotLine { generation: 3, occupied_bytes, inodes, ..SnapshotLine::default() };
        let facts = Facts { snapshots: [("a".to_owned(), newest)].into(), ..facts() };
        warns(text, &facts, expected);
        let found = plan_of(text, &facts, Activation::Direct).problems;
        assert!(found.iter().all(|found| found.code == Code::SnapshotHeld), "{found:?}");
    }
}

#[test]
fn a_target_with_a_damaged_record_is_left_as_it_is() {
    let text =
        "[zram0]\n[zram1]\n[ramdisk.a]\nmount-point = \"/a\"\n[vm]\ntune = true\n[zswap]\nenabled = false\n";
    for target in [Target::Device(0), Target::Ramdisk("a".to_owned()), Target::Vm, Target::Zswap] {
        let (file, why) = (target.file_name(), "it is empty".to_owned());
        let damaged = vec![Damaged { file, target: Some(target.clone()), why }];
        let plan = plan_of(text, &Facts { damaged, ..facts() }, Activation::Direct);
        let refused: Vec<&Target> = plan
            .items
            .iter()
            .filter(|item| item.decision == Decision::Refused)
            .map(|item| &item.target)
            .collect();
        assert_eq!(refused, [&target]);
        assert_eq!(plan.problems.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::RecordDamaged]);
    }
}

#[test]
fn a_ram_disk_that_is_set_up_stays_without_its_device() {
    let text = "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"64MiB\"\nbackend = \"zram\"";
    let target = Target::Ramdisk("a".to_owned());
    let without = Facts { mkfs: [("ext4".to_owned(), false)].into(), ..facts() };
    let decision = |facts: &Facts| plan_of(text, facts, Activation::Systemd).item(&target).unwrap().decision;
    assert_eq!(decision(&without), Decision::Refused);
    let request =
        plan_of(text, &facts(), Activation::Systemd).item(&target).unwrap().request.clone().unwrap();
    let records = [(target.clone(), Record::begin(target.clone(), request))].into();
    assert_eq!(decision(&Facts { records, ..without.clone() }), Decision::Planned);
    let mounted =
        UnitRamdisk { name: "a".to_owned(), mount_point: "/a".to_owned(), ..UnitRamdisk::default() };
    assert_eq!(decision(&Facts { unit_ramdisks: vec![mounted], ..without }), Decision::Planned);
}

#[test]
fn only_swap_that_is_planned_is_compared_with_other_swap() {
    let refused = "[zram1]\nzram-size = \"1TiB\"\nswap-priority = 5\n";
    for (ours, other, more, is_inverted) in [
        (100, 50, "", false),
        (100, 50, refused, false),
        (0, 5, "", true),
        (0, -2, "", false),
        // The kernel's own, which is known when it is active.
        (-1, 5, "", false),
    ] {
        let text = format!("[zram0]\nzram-size = \"1GiB\"\nswap-priority = {ours}\n{more}");
        let facts = Facts { swaps: vec![swap("/dev/sda2", other)], ..facts() };
        let found = plan_of(&text, &facts, Activation::Direct).neighbours;
        let is_found = found.iter().any(|found| found.code == Code::PriorityInverted);
        assert_eq!(is_found, is_inverted, "{text} {other}");
    }
}

#[test]
fn what_is_found_for_several_devices_is_reported_once() {
    let text = "[zram0]\n[zram1]\n[zram2]\n[maintenance]\nrecompress = true\n";
    let mut old = facts();
    old.devices.get_mut(&0).unwrap().attributes.remove(&Attribute::RecompAlgorithm);
    warns(text, &old, Some("this kernel cannot recompress"));
}

#[test]
fn a_secondary_algorithm_that_is_not_denser_is_left_out() {
    let text = "[zram0]\nzram-size = \"1GiB\"\ncompression-algorithm = \"zstd\"\nrecompression-algorithm = [\"lz4\", \"zstd(level=9)\"]\n[maintenance]\nrecompress = true\n";
    let plan = plan_of(text, &facts(), Activation::Direct);
    let request = plan.items[0].request.as_ref().and_then(Request::device).unwrap();
    assert_eq!(request.recompression, [Algorithm::parse("zstd(level=9)").unwrap()]);
    warns(text, &facts(), Some("lz4 is not denser"));
}

/// A missing measurement is no reason to remark on: the machine is new.
#[test]
fn why_there_is_no_verdict_is_said_unless_nothing_was_measured() {
    let text = "[zram0]\ncompression-algorithm = \"auto\"\n[zswap]\nenabled = true\ncompressor = \"auto\"\n";
    let verdict = Best { algorithm: Algorithm::plain("lz4"), provisional: String::new() };
    for (best, expected) in [
        (None, ""),
        (Some(Err(Unusable::Absent)), ""),
        (Some(Err(Unusable::Outdated("why".to_owned()))), "out of date: why"),
        (Some(Ok(verdict)), "auto: the verdict"),
    ] {
        let plan = plan_of(text, &Facts { best: best.clone(), ..facts() }, Activation::Direct);
        for target in [Target::Device(0), Target::Zswap] {
            let reason = &plan.item(&target).unwrap().candidates[0].reason;
            let is_said = reason.contains(expected) && (!expected.is_empty() || !reason.contains(';'));
            assert!(is_said, "{best:?} {target}: {reason}");
        }
    }
}

#[test]
fn the_settings_wait_for_the_swap_that_is_activated_for_them() {
    let text = "[zram0]\nzram-size = 64\n[vm]\ntune = true\n";
    let needs = |facts: &Facts| {
        let plan = plan_of(text, facts, Activation::Direct);
        plan.groups.into_iter().find(|group| group.target == Target::Vm).unwrap().needs
    };
    assert_eq!(needs(&facts()), Some(Target::Device(0)));
    assert_eq!(needs(&set_up("[zram0]\nzram-size = 64\n")), None, "it is active");
}

#[test]
fn settings_that_are_not_configured_are_not_missed() {
    let better = Facts { swaps: vec![swap("/dev/sda2", 200)], ..facts() };
    for (section, is_said) in [("[vm]\ntune = true\n", true), ("[vm]\n", false)] {
        let found = plan_of(&format!("[zram0]\n{section}"), &better, Activation::Direct).neighbours;
        assert_eq!(found.iter().any(|found| found.message.contains("[vm] is not applied")), is_said);
    }
}

/// A kernel that lacks the compressor takes another one when zswap is enabled.
#[test]
fn the_compressor_is_checked_after_each_change_of_it_or_of_the_switch() {
    let text = "[zswap]\nenabled = true\ncompressor = \"zstd\"\n";
    let select = "set zswap.compressor from lzo to zstd";
    let (switch, check) = ("set zswap.enabled from N to Y", "check that zswap.compressor is zstd");
    for (enabled, compressor, expected) in [
        ("N", "lzo", &[select, switch, check][..]),
        ("N", "zstd", &[switch, check]),
        ("Y", "lzo", &[select, check]),
        ("Y", "zstd", &[]),
    ] {
        let found = [(Tunable::Zswap, enabled), (Tunable::ZswapCompressor, compressor)];
        let tunables = found.map(|(tunable, value)| (tunable, value.to_owned())).into();
        let plan = plan_of(text, &Facts { tunables, ..facts() }, Activation::Direct);
        assert_eq!(words(plan.groups[0].expected_steps()), expected, "{enabled} {compressor}");
    }
}

#[test]
fn what_was_set_before_is_restored_when_the_settings_change() {
    for (target, text, before) in [
        (Target::Zswap, "[zswap]\nenabled = true\n", settings(&[(Tunable::ZswapMaxPool, "40")])),
        (Target::Vm, "[zram0]\n[vm]\ntune = true\n", settings(&[(Tunable::Swappiness, "100")])),
    ] {
        let record = Record { progress: Progress::Done, ..Record::begin(target.clone(), before) };
        let facts = Facts { records: [(target.clone(), record.clone())].into(), ..facts() };
        let plan = plan_of(text, &facts, Activation::Direct);
        let group = plan.groups.iter().find(|group| group.target == target).unwrap();
        assert_eq!(group.retire, Some(record), "{target}");
    }
}

/// Whether each group about the target sets it up; the others only take away what an interrupted run has begun.
#[test]
fn what_an_interrupted_run_has_begun_is_taken_away_unless_it_is_set_up_again() {
    let swap = plan_of("[zram0]", &facts(), Activation::Direct).items[0].request.clone().unwrap();
    let vm = settings(&[(Tunable::Swappiness, "100")]);
    for (text, target, request, progress, expected) in [
        ("[zram0]", Target::Device(0), &swap, Progress::Working, &[true][..]),
        ("[zram1]", Target::Device(0), &swap, Progress::Working, &[false]),
        ("[zram0]\nzram-size = \"1TiB\"", Target::Device(0), &swap, Progress::Working, &[false]),
        ("[zram1]", Target::Device(0), &swap, Progress::Done, &[]),
        ("[zram0]\n[vm]\ntune = true", Target::Vm, &vm, Progress::Working, &[true]),
        ("[zram0]", Target::Vm, &vm, Progress::Working, &[false]),
        ("[zram0]", Target::Vm, &vm, Progress::Done, &[]),
    ] {
        let record = Record { progress, ..Record::begin(target.clone(), request.clone()) };
        let facts = Facts { records: [(target.clone(), record)].into(), ..facts() };
        let groups = plan_of(text, &facts, Activation::Direct).groups;
        let about = groups.iter().filter(|group| group.target == target);
        let found: Vec<bool> = about.map(|group| group.request.is_some()).collect();
        assert_eq!(found, expected, "{text}: {target} {progress:?}");
    }
}

#[test]
fn discard_is_an_option_with_or_without_a_value() {
    for (options, expected) in [
        ("discard", true),
        ("nofail, discard=once", true),
        ("", false),
        ("nodiscard", false),
        ("x=discard", false),
    ] {
        assert_eq!(wants_discard(options), expected, "{options}");
    }
}
