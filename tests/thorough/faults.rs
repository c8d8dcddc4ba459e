//! Each changing call of a run fails or is killed once; the next run has to converge, and a removal has to leave nothing
//! behind.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::reload::{self, Scope};
use engine::sample::{self, Detail};
use engine::scratch::Scratch;
use engine::{ErrorKind, gather, provision};
use host::{Errno, Host, SwapSpec};
use logic::change::Action;
use logic::config::Loaded;
use logic::config::settings::{
    Backend, BackingSettings, DeviceSettings, Level, MountSettings, RamdiskSettings, Settings, SizeExpr,
    SizeRule, VmSettings, ZswapSettings,
};
use logic::device::algorithm::Algorithm;
use logic::device::attribute::Attribute;
use logic::device::swap_header;
use logic::expr::Expr;
use logic::finding::Code;
use logic::origin::Origin;
use logic::outcome::Outcome;
use logic::plan::{Activation, Decision};
use logic::ramdisk::{KeepSettings, Mode};
use logic::record::{Progress, Record, Target, Undo};
use logic::request::{Choice, Purpose, Store};
use logic::view::View;
use logic::vm::Tunable;
use sim::kernel::KernelConfig;
use sim::{Fault, Module, SimMachine, Snapshot, survive};

const MIB: u64 = 1 << 20;

/// A size expression.
fn size(mib: u32) -> SizeExpr {
    SizeExpr { expr: Expr::number(f64::from(mib)), text: mib.to_string(), origin: Origin::default() }
}

fn mount(path: &str) -> MountSettings {
    MountSettings {
        mount_point: path.to_owned(),
        origin: Origin::default(),
        options: "nosuid".to_owned(),
        mode: Some(0o750),
        owner: None,
        group: None,
        unset: false,
    }
}

fn device(number: u32, mib: u32, purpose: Purpose<MountSettings>, algorithms: &[&str]) -> DeviceSettings {
    let named = |name: &&str| match *name {
        "auto" => Choice::Auto,
        name => Choice::Named(Algorithm::plain(name)),
    };
    DeviceSettings {
        number,
        origin: Origin::default(),
        size: SizeRule::Expression { size: size(mib), max: None },
        host_memory_limit: None,
        yields: false,
        resident_limit: None,
        force_resident_limit: false,
        algorithms: algorithms.iter().map(named).collect(),
        algorithms_origin: Origin::default(),
        recompression: Vec::new(),
        recompression_origin: Origin::default(),
        writeback: None,
        purpose,
        label: None,
    }
}

fn swap() -> DeviceSettings {
    let purpose = Purpose::Swap { priority: 100, options: "discard".to_owned() };
    // An encrypted file, if the kernel supports write-back.
    let store = Store::File { path: "/var/lib/writeback".to_owned(), size: None };
    let writeback = Some(BackingSettings { store, encrypted: true, origin: Origin::default() });
    DeviceSettings {
        resident_limit: Some(size(32)),
        writeback,
        ..device(0, 64, purpose, &["zstd", "lz4", "auto"])
    }
}

fn settings() -> Loaded {
    let purpose = Purpose::Filesystem {
        fs_type: "ext4".to_owned(),
        mount: mount("/srv/data"),
        mkfs_options: Vec::new(),
    };
    let disk = RamdiskSettings {
        name: "cache".to_owned(),
        origin: Origin::default(),
        size: size(16),
        inodes: None,
        mount: mount("/srv/data/cache/small"),
        backend: Backend::Tmpfs { huge: None },
        watch: false,
        required: false,
        keep: None,
        store_limit: None,
        daily_budget: None,
    };
    let kept = RamdiskSettings {
        name: "logs".to_owned(),
        mount: mount("/var/log"),
        keep: Some(KeepSettings {
            mode: Mode::Snapshot,
            store: "/var/lib/zramd/disks/logs".to_owned(),
            generations: 2,
            save_interval: None,
            on_failure: None,
            seed: true,
            pre_save: Vec::new(),
            post_restore: Vec::new(),
            hook_time_limit: 30,
            time_limit: 300,
        }),
        ..disk.clone()
    };
    let zswap = Some(ZswapSettings::off(Origin::default()));
    let devices = vec![swap(), device(2, 128, purpose, &["lzo", "lzo-rle"])];
    Loaded {
        settings: Settings {
            devices,
            ramdisks: vec![disk, kept],
            vm: Some(vm()),
            zswap,
            ..Settings::default()
        },
        ..Loaded::default()
    }
}

fn only_swap() -> Loaded {
    Loaded { settings: Settings { devices: vec![swap()], ..Settings::default() }, ..Loaded::default() }
}

fn vm() -> VmSettings {
    let levels = vec![(Tunable::Swappiness, Level::Auto), (Tunable::PageCluster, Level::Value(0))];
    VmSettings { origin: Origin::default(), levels, tune: true, stops_incompressible: false, protected: None }
}

/// zram0 is free; zram3 is active swap and zram4 has data, both of other programs. So zram1 is created.
fn machine(kernel: KernelConfig) -> SimMachine {
    let machine = SimMachine::new(kernel);
    machine.change().add_directories("/var/lib");
    machine.change().tunables.insert(Tunable::Zswap, "Y".to_owned());
    let mut other = machine.process();
    for number in [3, 4] {
        machine.change().add(number);
        other.write_attribute(number, Attribute::DiskSize, "16M").unwrap();
    }
    other.write_pages(3, 0, &swap_header::build(16 * MIB, 4096, [7; 16], "theirs").unwrap()).unwrap();
    other.swap_on(3, SwapSpec { priority: 5, discard: false }).unwrap();
    other.write_pages(4, 4096, &[0xAB; 4096]).unwrap();
    drop(other);
    machine.take_transcript();
    machine
}

/// The devices of other programs, including `diskseq`.
fn foreign(machine: &SimMachine) -> String {
    let state = machine.look();
    format!(
        "{:?} {:?}",
        [&state.devices[&3], &state.devices[&4]],
        state.swaps.iter().find(|swap| swap.number == 3)
    )
}

fn apply(machine: &SimMachine, loaded: &Loaded) -> Vec<Outcome> {
    engine::apply(&mut machine.process(), loaded).unwrap().outcomes
}

fn errors(outcomes: &[Outcome]) -> Vec<String> {
    outcomes.iter().flat_map(|outcome| &outcome.errors).map(ToString::to_string).collect()
}

fn revert_errors(machine: &SimMachine) -> Vec<String> {
    let results = engine::revert(&mut machine.process()).unwrap();
    results.into_iter().filter_map(|(_, result)| result.err()).map(|error| error.to_string()).collect()
}

/// State before and after a complete run, and its number of calls.
struct Undisturbed {
    initial: Snapshot,
    complete: Snapshot,
    applied: Vec<String>,
    reverted: Vec<String>,
}

fn undisturbed(kernel: &KernelConfig) -> Undisturbed {
    let machine = machine(kernel.clone());
    let initial = machine.snapshot();
    let outcomes = apply(&machine, &settings());
    assert_eq!(errors(&outcomes), Vec::<String>::new());
    let complete = machine.snapshot();
    let applied = machine.take_transcript();
    assert_eq!(revert_errors(&machine), Vec::<String>::new());
    assert_eq!(machine.snapshot(), initial, "reverting leaves nothing behind");
    Undisturbed { initial, complete, applied, reverted: machine.take_transcript() }
}

/// Devices that a killed process may have created, and that no record names. They count as those of another program.
fn unrecorded(machine: &SimMachine, expected: &Undisturbed) -> Vec<u32> {
    let records = gather::records(&machine.process()).unwrap();
    let is_recorded = |number| {
        records.values().flat_map(|record| &record.undo).any(|undo| match undo {
            Undo::RemoveDevice { number: own } | Undo::RemoveSpare { number: own, .. } => *own == number,
            _ => false,
        })
    };
    let numbers = machine.look().devices.keys().copied().collect::<Vec<_>>();
    let is_new = |number: &u32| !expected.initial.devices.contains_key(number) && !is_recorded(*number);
    numbers.into_iter().filter(is_new).collect()
}

fn kernels() -> [KernelConfig; 3] {
    let old = KernelConfig {
        algorithm_params: false,
        reset_keeps_algorithm: true,
        diskseq: false,
        ..KernelConfig::plain()
    };
    [KernelConfig::full(), old, KernelConfig::this_machine()]
}

/// The second run completes the first one, and a removal restores the initial state.
fn converges(machine: &SimMachine, expected: &Undisturbed, fell_back: bool, case: &str) {
    machine.take_transcript();
    let outcomes = apply(machine, &settings());
    assert_eq!(errors(&outcomes), Vec::<String>::new(), "{case}: the second run");
    let (found, complete) = (machine.snapshot(), expected.complete.clone());
    if fell_back {
        let (found, complete) = (without_algorithms(found), without_algorithms(complete));
        assert!(found == complete, "{case}: {}", difference(&found, &complete));
    } else {
        assert!(found == complete, "{case}: {}", difference(&found, &complete));
    }
    reverts(machine, expected, case);
}

fn reverts(machine: &SimMachine, expected: &Undisturbed, case: &str) {
    machine.take_transcript();
    assert_eq!(revert_errors(machine), Vec::<String>::new(), "{case}: revert");
    let found = machine.snapshot();
    assert!(found == expected.initial, "{case}: after revert: {}", difference(&found, &expected.initial));
}

/// A device with a fallback algorithm keeps it, and one without write-back stays without; everything else is equal.
/// everything else is the same.
fn without_algorithms(mut snapshot: Snapshot) -> Snapshot {
    for device in snapshot.devices.values_mut() {
        device.algorithms.clear();
        device.backing = None;
    }
    snapshot.loops.clear();
    snapshot.mappings.clear();
    for text in snapshot.records.values_mut() {
        let Ok(mut record) = serde_json::from_str::<Record>(text) else { continue };
        record.algorithm = None;
        record.carries.iter_mut().for_each(|carries| carries.algorithm = None);
        record.undo.retain(|undo| !matches!(undo, Undo::DetachFile { .. } | Undo::CloseCrypt { .. }));
        *text = serde_json::to_string(&record).unwrap();
    }
    snapshot
}

/// The parts of two snapshots that differ, without contents of pages.
fn difference(found: &Snapshot, wanted: &Snapshot) -> String {
    let show = |snapshot: &Snapshot| {
        let mut snapshot = snapshot.clone();
        for page in snapshot.devices.values_mut().flat_map(|device| device.pages.values_mut()) {
            page.truncate(8);
        }
        format!("{snapshot:#?}")
    };
    let (found, wanted) = (show(found), show(wanted));
    let only = |text: &str, other: &str, sign: &str| -> String {
        let lines = text.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{sign}{line}\n")).collect::<Vec<_>>().concat()
    };
    format!("\n{}{}", only(&found, &wanted, "+"), only(&wanted, &found, "-"))
}

#[test]
fn everything_is_put_in_place_and_a_second_run_has_nothing_to_do() {
    for kernel in kernels() {
        let machine = machine(kernel);
        let others = foreign(&machine);
        assert_eq!(errors(&apply(&machine, &settings())), Vec::<String>::new());
        let complete = machine.snapshot();
        assert_eq!(complete.devices[&0].disk_size, 64 * MIB);
        assert_eq!(complete.devices[&0].memory_limit, 32 * MIB);
        assert_eq!(complete.devices.keys().copied().collect::<Vec<_>>(), [0, 2, 3, 4]);
        assert_eq!(complete.swaps.iter().map(|swap| swap.priority).collect::<Vec<_>>(), [100, 5]);
        let value = |tunable| complete.tunables[&tunable].as_str();
        assert_eq!(
            [value(Tunable::Zswap), value(Tunable::Swappiness), value(Tunable::PageCluster)],
            ["N", "150", "0"]
        );
        let mounts: Vec<&str> = complete.mounts.iter().map(|(mount, _)| mount.mount_point.as_str()).collect();
        assert_eq!(
            mounts,
            ["/", "/run/zramd/ramdisk/logs", "/srv/data", "/srv/data/cache/small", "/var/log"]
        );
        assert!(
            machine.take_transcript().contains(&"zram1: hot_remove".to_owned()),
            "one was created on the way"
        );

        let applied = engine::apply(&mut machine.process(), &settings()).unwrap();
        assert!(applied.plan.is_empty(), "{:#?}", applied.plan.groups);
        assert_eq!(machine.take_transcript(), Vec::<String>::new());
        assert_eq!(machine.snapshot(), complete);
        assert_eq!(foreign(&machine), others);
    }
}

#[test]
fn a_kill_at_any_call_of_apply_is_repaired_by_the_next_run() {
    for kernel in kernels() {
        let expected = undisturbed(&kernel);
        let mut left = BTreeSet::new();
        for (index, call) in expected.applied.iter().enumerate() {
            for fault in [Fault::KillBefore, Fault::KillAfter] {
                for at_once in [false, true] {
                    let case = format!("{fault:?} call {} ({call}), revert at once: {at_once}", index + 1);
                    let machine = machine(kernel.clone());
                    let others = foreign(&machine);
                    machine.script(index + 1, fault);
                    let done = survive(|| apply(&machine, &settings()));
                    assert!(done.is_none(), "{case}: no process was killed");
                    let kept = unrecorded(&machine, &expected);
                    left.insert(kept);
                    // What was added without being recorded goes with the record of the intention.
                    if at_once {
                        reverts(&machine, &expected, &case);
                    } else {
                        converges(&machine, &expected, false, &case);
                    }
                    assert_eq!(foreign(&machine), others, "{case}");
                }
            }
        }
        // Only between the creation of a device and its record.
        assert_eq!(left, BTreeSet::from([vec![], vec![1], vec![2]]));
    }
}

#[test]
fn a_failure_at_any_call_of_apply_leaves_nothing_half_done() {
    for kernel in kernels() {
        let expected = undisturbed(&kernel);
        for (index, call) in expected.applied.iter().enumerate() {
            for errno in [Errno::BUSY, Errno::IO, Errno::NOMEM, Errno::INVAL] {
                let case = format!("call {} ({call}): {errno}", index + 1);
                let machine = machine(kernel.clone());
                let others = foreign(&machine);
                machine.fail_at(index + 1, errno);
                let outcomes = apply(&machine, &settings());
                half_done(&machine, &outcomes, &expected, &case);
                let fell_back = outcomes.iter().any(|outcome| !outcome.warnings.is_empty());
                converges(&machine, &expected, fell_back, &case);
                assert_eq!(foreign(&machine), others, "{case}");
            }
        }
    }
}

/// A target either has a complete record, or is in its initial state.
fn half_done(machine: &SimMachine, outcomes: &[Outcome], expected: &Undisturbed, case: &str) {
    let snapshot = machine.snapshot();
    for outcome in outcomes {
        let record = machine.look().records.get(&outcome.target.file_name()).cloned();
        let Some(record) = record else {
            // When the swap is removed, zswap is restored.
            let goes =
                outcome.target == Target::Zswap && outcomes.iter().any(|other| !other.errors.is_empty());
            assert!(goes || !outcome.errors.is_empty(), "{case}: {} has no record", outcome.target);
            if let Target::Device(number) = outcome.target {
                let (found, before) = (snapshot.devices.get(&number), expected.initial.devices.get(&number));
                assert_eq!(found, before, "{case}: {} is as it was", outcome.target);
            }
            continue;
        };
        let record: Record = serde_json::from_str(&record).unwrap();
        assert_eq!(record.progress, Progress::Done, "{case}: {}: {:?}", outcome.target, outcome.errors);
    }
}

#[test]
fn a_kill_or_failure_at_any_call_of_revert_is_repaired_by_the_next_one() {
    let failures = [Errno::BUSY, Errno::IO, Errno::NOMEM, Errno::INVAL].map(Fault::Fail);
    for kernel in kernels() {
        let expected = undisturbed(&kernel);
        for (index, call) in expected.reverted.iter().enumerate() {
            for fault in [Fault::KillBefore, Fault::KillAfter].into_iter().chain(failures) {
                let case = format!("{fault:?} at call {} ({call}) of revert", index + 1);
                let machine = machine(kernel.clone());
                let others = foreign(&machine);
                for again in [false, true] {
                    assert_eq!(errors(&apply(&machine, &settings())), Vec::<String>::new(), "{case}");
                    machine.script(index + 1, fault);
                    let errors = survive(|| revert_errors(&machine));
                    assert_eq!(errors.is_none(), !matches!(fault, Fault::Fail(_)), "{case}");
                    if again {
                        converges(&machine, &expected, false, &case);
                    } else {
                        reverts(&machine, &expected, &case);
                    }
                }
                assert_eq!(foreign(&machine), others, "{case}");
            }
        }
    }
}

#[test]
fn a_directory_that_two_targets_share_goes_with_the_last_of_them() {
    let mut loaded = settings();
    loaded.settings.devices.clear();
    let first = RamdiskSettings { mount: mount("/srv/shared/a"), ..loaded.settings.ramdisks[0].clone() };
    let second =
        RamdiskSettings { name: "second".to_owned(), mount: mount("/srv/shared/b"), ..first.clone() };
    loaded.settings.ramdisks = vec![first, second];
    for target in ["cache", "second"] {
        let machine = machine(KernelConfig::full());
        let initial = machine.snapshot();
        assert_eq!(errors(&apply(&machine, &loaded)), Vec::<String>::new());
        let target = Target::Ramdisk(target.to_owned());
        assert_eq!(engine::down(&mut machine.process(), &target), Ok(true));
        assert_eq!(revert_errors(&machine), Vec::<String>::new());
        assert_eq!(machine.snapshot(), initial, "{target} first");
    }
    let machine = machine(KernelConfig::full());
    machine.change().add_directories("/srv");
    let initial = machine.snapshot();
    apply(&machine, &loaded);
    revert_errors(&machine);
    assert_eq!(machine.snapshot(), initial, "a directory of another program stays");
}

#[test]
fn nothing_is_mounted_below_a_mount_that_failed() {
    let prepared = || {
        let machine = machine(KernelConfig::full());
        machine.change().add_directories("/srv/data/cache/small");
        machine
    };
    let machine = prepared();
    let initial = machine.snapshot();
    apply(&machine, &settings());
    let complete = machine.snapshot();
    let transcript = machine.take_transcript();
    let at = transcript.iter().position(|call| call.starts_with("/srv/data: mount")).unwrap() + 1;

    let machine = prepared();
    machine.fail_at(at, Errno::IO);
    let found = errors(&apply(&machine, &settings()));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].contains("zram2"), "{found:?}");
    let below = |snapshot: &sim::Snapshot| {
        let mounts = snapshot.mounts.iter().map(|(mount, _)| mount.mount_point.clone());
        mounts.filter(|path| path.starts_with("/srv")).collect::<Vec<_>>()
    };
    assert_eq!(below(&machine.snapshot()), below(&initial));
    assert_eq!(errors(&apply(&machine, &settings())), Vec::<String>::new());
    assert!(machine.snapshot() == complete, "{}", difference(&machine.snapshot(), &complete));
    assert_eq!(revert_errors(&machine), Vec::<String>::new());
    assert!(machine.snapshot() == initial, "{}", difference(&machine.snapshot(), &initial));
}

#[test]
fn the_holder_of_a_device_is_waited_for_and_then_named() {
    let machine = machine(KernelConfig::full());
    let initial = machine.snapshot();
    apply(&machine, &only_swap());
    let active = machine.snapshot();

    machine.hold(0, 4711, "blkid", None);
    let started = machine.look().clock;
    let error = engine::down(&mut machine.process(), &Target::Device(0)).unwrap_err();
    assert!(error.message.contains("blkid (pid 4711)"), "{error}");
    assert_eq!(machine.snapshot(), active, "nothing has changed, the swap is still active");
    assert!(machine.look().clock < started + Duration::from_secs(10));
    machine.change().release_all();

    machine.hold(0, 4712, "blkid", Some(Duration::from_secs(1)));
    assert_eq!(engine::down(&mut machine.process(), &Target::Device(0)), Ok(true));
    assert_eq!(machine.snapshot(), initial);
    assert_eq!(engine::down(&mut machine.process(), &Target::Device(0)), Ok(false));
}

#[test]
fn the_user_of_a_mount_is_named_and_a_later_run_removes_it() {
    let machine = machine(KernelConfig::full());
    let initial = machine.snapshot();
    apply(&machine, &settings());
    machine.hold_mount("/srv/data", 4713, "bash", None);
    let found = revert_errors(&machine);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("bash (pid 4713)"), "{found:?}");
    machine.change().release_all();
    assert_eq!(revert_errors(&machine), Vec::<String>::new());
    assert_eq!(machine.snapshot(), initial);
}

#[test]
fn the_next_algorithm_is_tried_when_the_self_test_fails() {
    let reference = machine(KernelConfig::full());
    apply(&reference, &only_swap());
    let transcript = reference.take_transcript();
    let write = transcript.iter().position(|call| call.starts_with("zram0: write at")).unwrap() + 1;

    let machine = machine(KernelConfig::full());
    machine.fail_at(write, Errno::IO);
    let outcomes = apply(&machine, &only_swap());
    assert_eq!(errors(&outcomes), Vec::<String>::new());
    assert_eq!(outcomes[0].warnings.len(), 1, "{:?}", outcomes[0].warnings);
    assert_eq!(machine.look().devices[&0].algorithms[&0], "lz4");
    assert_eq!(machine.look().swaps.len(), 2);
    let record: Record = serde_json::from_str(&machine.look().records["zram0.json"]).unwrap();
    assert_eq!(record.algorithm, Some(Algorithm::plain("lz4")));
    machine.take_transcript();
    assert!(engine::apply(&mut machine.process(), &only_swap()).unwrap().plan.is_empty());
}

#[test]
fn without_rights_or_zram_nothing_is_done() {
    let machine = machine(KernelConfig::full());
    let initial = machine.snapshot();
    machine.change().privileged = false;
    let error = engine::apply(&mut machine.process(), &settings()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotPermitted);
    let error = engine::revert(&mut machine.process()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotPermitted);
    machine.change().privileged = true;

    machine.change().container = Some("lxc".to_owned());
    let applied = engine::apply(&mut machine.process(), &settings()).unwrap();
    let kinds: Vec<_> = applied.plan.items.iter().map(|item| (item.decision, item.kind)).collect();
    assert_eq!(kinds[..4], [(Decision::Refused, Some(logic::error::ErrorKind::Unsupported)); 4]);
    assert_eq!(kinds[4..], [(Decision::Skipped, None); 2], "without swap, its settings are not wanted");
    assert_eq!(applied.outcomes, []);
    assert_eq!(machine.take_transcript(), Vec::<String>::new());
    assert_eq!(machine.snapshot(), initial);

    let bare = SimMachine::new(KernelConfig::full());
    bare.change().module = Module::Absent;
    bare.change().devices.clear();
    let initial = bare.snapshot();
    let outcomes = apply(&bare, &only_swap());
    assert_eq!(outcomes[0].errors[0].kind, ErrorKind::Unsupported);
    assert_eq!(bare.snapshot(), initial);
}

#[test]
fn a_module_that_is_not_loaded_is_loaded() {
    let machine = SimMachine::new(KernelConfig::this_machine());
    machine.change().module = Module::Loadable;
    machine.change().devices.clear();
    assert_eq!(errors(&apply(&machine, &only_swap())), Vec::<String>::new());
    assert_eq!(machine.look().swaps.len(), 1);
    assert!(engine::apply(&mut machine.process(), &only_swap()).unwrap().plan.is_empty());
    assert_eq!(revert_errors(&machine), Vec::<String>::new());
    assert_eq!(machine.snapshot(), SimMachine::new(KernelConfig::this_machine()).snapshot());
}

/// Damaged records: empty, garbage, truncated, of a newer version, of another target.
fn damages() -> [String; 6] {
    let machine = machine(KernelConfig::full());
    apply(&machine, &only_swap());
    let good = machine.look().records["zram0.json"].clone();
    let newer = good.replacen("\"version\": 2", "\"version\": 3", 1);
    assert_ne!(newer, good);
    let half = good[..good.len() / 2].to_owned();
    [
        String::new(),
        "{}".to_owned(),
        "\u{0}[".to_owned(),
        half,
        newer,
        good.replace("\"number\": 0", "\"number\": 7"),
    ]
}

fn codes_of_records(machine: &SimMachine) -> Vec<String> {
    let snapshot = sample::snapshot(&machine.process(), &View::default()).unwrap();
    let found = snapshot.problems.into_iter().filter(|finding| finding.code == Code::RecordDamaged);
    found.map(|finding| finding.object).collect()
}

#[test]
fn a_damaged_record_stops_its_own_target_alone() {
    let files = ["zram9.json", "ramdisk-gone.json", "vm.json", "zswap.json", "unknown.json", "zram9.scratch"];
    for (file, text) in files.into_iter().flat_map(|file| damages().map(|text| (file, text))) {
        let case = format!("{file}: {text:?}");
        let machine = machine(KernelConfig::full());
        machine.change().records.insert(file.to_owned(), text.clone());
        let own = Target::of_file(file);
        let object = own.as_ref().map_or_else(|| file.to_owned(), ToString::to_string);

        let applied = engine::apply(&mut machine.process(), &settings()).unwrap();
        assert_eq!(errors(&applied.outcomes), Vec::<String>::new(), "{case}");
        for item in &applied.plan.items {
            let is_own = Some(&item.target) == own.as_ref();
            assert_eq!(item.decision == Decision::Refused, is_own, "{case}: {item:?}");
        }
        assert_eq!(codes_of_records(&machine), [object], "{case}");
        let host = &mut machine.process();
        assert_eq!(
            sample::figures(host, &View::default(), Detail::Listed).unwrap().devices.len(),
            4,
            "{case}"
        );
        engine::status::rows(host).unwrap();
        let survey = reload::survey(host, &settings(), Activation::Direct, &Scope::default()).unwrap();
        let mut refused = survey.changes.iter().filter(|change| change.action == Action::Refuse);
        assert!(refused.all(|change| Some(&change.target) == own.as_ref()), "{case}");
        engine::device::control::must_be_ours(host, 0).unwrap();
        engine::device::control::compact(host, 0).unwrap();
        Scratch::create(host, &BTreeSet::new()).unwrap().release(host).unwrap();
        assert_eq!(engine::down(host, &Target::Device(0)), Ok(true), "{case}");
        assert_eq!(
            errors(&engine::up(host, &only_swap(), 0).unwrap().outcomes),
            Vec::<String>::new(),
            "{case}"
        );

        if let Some(own) = &own {
            assert_eq!(engine::down(host, own).unwrap_err().kind, ErrorKind::Unsafe, "{case}");
        }
        let stays = engine::revert(host).unwrap().into_iter().filter(|(_, result)| result.is_err());
        assert_eq!(
            stays.map(|(target, _)| target).collect::<Vec<_>>(),
            own.into_iter().collect::<Vec<_>>(),
            "{case}"
        );
        let left = machine.look().records.clone();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [(file.to_owned(), text)], "{case}");
    }
}

#[test]
fn the_target_of_a_damaged_record_is_neither_changed_nor_forgotten() {
    for text in damages() {
        let machine = machine(KernelConfig::full());
        apply(&machine, &settings());
        machine.change().records.insert("zram0.json".to_owned(), text.clone());
        let before = machine.snapshot();
        let host = &mut machine.process();
        let refused = engine::up(host, &only_swap(), 0).unwrap();
        assert_eq!(refused.plan.items[0].decision, Decision::Refused, "{text:?}");
        let kinds = [
            engine::down(host, &Target::Device(0)).map(drop),
            engine::device::control::must_be_ours(host, 0),
            engine::device::control::compact(host, 0),
        ];
        assert_eq!(kinds.map(|result| result.unwrap_err().kind), [ErrorKind::Unsafe; 3], "{text:?}");
        // The settings depend on its swap as well.
        assert_eq!(engine::down(host, &Target::Ramdisk("cache".to_owned())), Ok(true));
        let targets: Vec<Target> = gather::records(host).unwrap().into_keys().collect();
        assert!(targets.contains(&Target::Vm) && targets.contains(&Target::Zswap), "{targets:?}");
        apply(&machine, &settings());
        assert_eq!(machine.snapshot(), before, "{text:?}");
    }
}

/// A record as [`apply`] leaves it, without undo steps that adoption cannot know: creation of the device and of directories.
fn adopted(record: &Record) -> Record {
    let mut record = Record { found_algorithm: None, ..record.clone() };
    record.undo.retain(|undo| !matches!(undo, Undo::RemoveDevice { .. } | Undo::RemoveDirectory { .. }));
    record
}

#[test]
fn a_device_whose_record_is_lost_or_damaged_is_taken_over_as_it_is() {
    let no_text = [None].into_iter().chain(damages().map(Some));
    for (text, kernel) in no_text.flat_map(|text| kernels().map(|kernel| (text.clone(), kernel))) {
        let case = format!("{text:?}, {kernel:?}");
        let machine = machine(kernel);
        apply(&machine, &settings());
        let records = gather::records(&machine.process()).unwrap();
        let before = machine.snapshot();
        for number in [0, 2] {
            let file = Target::Device(number).file_name();
            match &text {
                Some(text) => machine.change().records.insert(file, text.clone()),
                None => machine.change().records.remove(&file),
            };
        }
        let host = &mut machine.process();
        for number in [0, 2] {
            let adopt = |host: &mut _| provision::adopt(host, &settings(), number, Activation::Direct);
            assert_eq!(adopt(host), Ok(true), "{case}");
            let found = &gather::records(host).unwrap()[&Target::Device(number)];
            assert_eq!(*found, adopted(&records[&Target::Device(number)]), "{case}");
            assert_eq!(adopt(host), Ok(false), "{case}");
        }
        assert_eq!(machine.snapshot().devices, before.devices, "{case}");
        assert!(engine::apply(host, &settings()).unwrap().plan.is_empty(), "{case}");
        let free = |number: u32| !machine.look().devices[&number].is_initialised();
        assert_eq!(engine::down(host, &Target::Device(0)), Ok(true), "{case}");
        assert!(free(0) && !free(2), "{case}");
        assert_eq!(revert_errors(&machine), Vec::<String>::new());
        assert!(free(2) && !free(3) && !free(4), "{case}");
    }
}

#[test]
fn what_is_not_as_configured_is_not_taken_over() {
    let machine = machine(KernelConfig::full());
    apply(&machine, &only_swap());
    machine.change().records.remove("zram0.json");
    let before = machine.snapshot();
    let adopt = |device: DeviceSettings| {
        let settings = Settings { devices: vec![device.clone()], ..Settings::default() };
        let loaded = Loaded { settings, ..Loaded::default() };
        let host = &mut machine.process();
        provision::adopt(host, &loaded, device.number, Activation::Direct).map_err(|error| error.kind)
    };
    let swap_of = |priority| Purpose::Swap { priority, options: String::new() };
    let filesystem = Purpose::Filesystem {
        fs_type: "ext4".to_owned(),
        mount: mount("/srv/data"),
        mkfs_options: Vec::new(),
    };
    let ours = swap();
    let sized = |mib| SizeRule::Expression { size: size(mib), max: None };
    for (case, device) in [
        ("another size", DeviceSettings { size: sized(65), ..ours.clone() }),
        ("another priority", DeviceSettings { purpose: swap_of(99), ..ours.clone() }),
        ("another use", DeviceSettings { purpose: filesystem, ..ours.clone() }),
        (
            "another algorithm",
            DeviceSettings { algorithms: device(0, 64, swap_of(1), &["lzo"]).algorithms, ..ours.clone() },
        ),
        ("no write-back", DeviceSettings { writeback: None, ..ours.clone() }),
        ("a swap of another program", device(3, 16, swap_of(100), &["auto"])),
        ("data of another program", device(4, 16, swap_of(100), &["auto"])),
        ("a device that is not there", device(9, 64, swap_of(100), &["auto"])),
    ] {
        assert_eq!(adopt(device), Err(ErrorKind::Unsafe), "{case}");
    }
    let host = &mut machine.process();
    let unknown = provision::adopt(host, &only_swap(), 3, Activation::Direct);
    assert_eq!(unknown.unwrap_err().kind, ErrorKind::NotFound);
    let after = machine.snapshot();
    assert!(after.devices == before.devices && after.swaps == before.swaps && after.records.is_empty());
    assert_eq!(adopt(ours), Ok(true));
}

#[test]
fn without_a_sequence_number_a_device_of_another_program_is_not_ours() {
    let machine = machine(KernelConfig { diskseq: false, ..KernelConfig::full() });
    apply(&machine, &only_swap());
    let host = &mut machine.process();
    engine::device::control::must_be_ours(host, 0).unwrap();
    // Another program recreates the device and uses it.
    host.swap_off(0).unwrap();
    host.write_attribute(0, Attribute::Reset, "1").unwrap();
    host.hot_remove(0).unwrap();
    assert_eq!(host.hot_add().unwrap(), 0);
    host.write_attribute(0, Attribute::DiskSize, "16M").unwrap();
    let theirs = machine.look().devices[&0].clone();
    assert_eq!(engine::device::control::must_be_ours(host, 0).unwrap_err().kind, ErrorKind::Unmanaged);
    let planned = engine::plan(host, &only_swap(), Activation::Direct).unwrap();
    assert_eq!(planned.items[0].decision, Decision::Refused);
    assert_eq!(engine::down(host, &Target::Device(0)), Ok(true), "what is gone is forgotten");
    assert_eq!(machine.look().devices[&0], theirs);
}

#[test]
fn a_removed_device_is_not_reported_as_one_of_another_program() {
    let machine = machine(KernelConfig::full());
    let host = &mut machine.process();
    let kind = |number| engine::device::control::must_be_ours(host, number).unwrap_err().kind;
    assert_eq!([0, 3, 9].map(kind), [ErrorKind::NotFound, ErrorKind::Unmanaged, ErrorKind::NotFound]);
}

#[test]
fn a_device_that_another_program_has_created_since_a_kill_is_not_removed() {
    let expected = undisturbed(&KernelConfig::full());
    let mut replaced = 0;
    for index in 0..expected.applied.len() {
        let machine = machine(KernelConfig::full());
        machine.script(index + 1, Fault::KillBefore);
        assert!(survive(|| apply(&machine, &settings())).is_none());
        let records = gather::records(&machine.process()).unwrap();
        let is_spare = |undo: &Undo| matches!(undo, Undo::RemoveSpare { number: 1, .. });
        let known = records.get(&Target::Device(2)).is_some_and(|record| record.undo.iter().any(is_spare));
        let other = &mut machine.process();
        if known && machine.look().devices.contains_key(&1) {
            other.hot_remove(1).unwrap();
            replaced += 1;
        }
        // Some time after the kill.
        machine.change().clock += Duration::from_secs(10);
        let number = other.hot_add().unwrap();
        let diskseq = machine.look().devices[&number].diskseq;
        assert_eq!(errors(&apply(&machine, &settings())), Vec::<String>::new());
        assert_eq!(revert_errors(&machine), Vec::<String>::new());
        let kept = machine.look().devices.get(&number).map(|device| device.diskseq);
        assert_eq!(kept, Some(diskseq), "call {index}: zram{number}");
    }
    assert!(replaced > 0);
}
