//! Reloads on the simulator: actions for changes of the configuration, their execution, and what readers see before and
//! after.

use crate::support::maintenance::store;
use client::cell::Cell;
use client::columns::{COLUMNS, Row};
use engine::ErrorKind;
use engine::reload::{Scope, carry_out, survey};
use engine::sample;
use engine::sample::Detail;
use host::{Errno, Host};
use logic::change::Action;
use logic::config::{self, Loaded};
use logic::finding::Code;
use logic::plan::Activation;
use logic::ramdisk::UnitRamdisk;
use logic::record::{MountId, Target};
use logic::sample::{ReasonView, RoleView, Snapshot, StateView};
use logic::verdict::Profile;
use logic::view::{Proposal, View};
use logic::word::word;
use sim::kernel::KernelConfig;
use sim::{SimMachine, Swap};

/// Valid for both kinds of activation; differences are in `reload_direct.rs`.
const ACTIVATION: Activation = Activation::Managed;

const BEFORE: &str = r#"
[zram0]
zram-size = "64MiB"
swap-priority = 100
compression-algorithm = ["zstd(level=3)", "lz4"]

[zram1]
zram-size = "32MiB"
mount-point = "/srv/data"
fs-type = "ext4"

[ramdisk.small]
mount-point = "/srv/small"
size = "16MiB"
"#;

fn loaded(text: &str) -> Loaded {
    let loaded = config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, [], "{text}");
    loaded
}

/// A machine with `BEFORE` applied.
fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    let applied = engine::apply(&mut machine.process(), &loaded(BEFORE)).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    machine
}

fn actions(machine: &SimMachine, text: &str, scope: &Scope) -> Vec<(String, Action, String)> {
    let survey = survey(&machine.process(), &loaded(text), ACTIVATION, scope).unwrap();
    let changes = survey.changes.into_iter().filter(|change| change.action != Action::Keep);
    changes.map(|change| (change.target.to_string(), change.action, change.detail)).collect()
}

/// Changes `BEFORE`, and expects this action for one target with both kinds of activation.
fn check(from: &str, to: &str, forced: bool, expected: (&str, Action, &str)) {
    assert!(BEFORE.contains(from), "{from}");
    let text = BEFORE.replace(from, to);
    let scope = Scope { forced, ..Scope::default() };
    let found = actions(&machine(), &text, &scope);
    assert_eq!(found.len(), 1, "{from} → {to}: {found:?}");
    let (target, action, detail) = &found[0];
    assert_eq!((target.as_str(), *action), (expected.0, expected.1), "{from} → {to}: {detail}");
    assert!(detail.contains(expected.2), "{from} → {to}: {detail}");
}

/// Recreating swap moves its pages through memory.
#[test]
fn another_verdict_recreates_only_swap_that_is_nearly_empty() {
    let text = "[zram0]\nzram-size = \"64MiB\"\ncompression-algorithm = \"auto\"\n";
    let machine = SimMachine::new(KernelConfig::full());
    engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    machine.change().cpus = 4;
    machine.change().verdict = crate::vm::verdict("6.12.2-simulated", Profile::Balanced, None);
    for (used_kib, expected) in [(0, Some(Action::Recreate)), (1024, Some(Action::Recreate)), (1025, None)] {
        machine.change().swaps[0].used_kib = used_kib;
        let found = actions(&machine, text, &Scope::default());
        assert_eq!(found.first().map(|(_, action, _)| *action), expected, "{used_kib} KiB: {found:?}");
    }
    for (available_kib, expected) in [(2047, 0), (2048, 1)] {
        machine.change().swaps[0].used_kib = 1024;
        machine.change().available_kib = available_kib;
        let found = actions(&machine, text, &Scope::default());
        assert_eq!(found.len(), expected, "{available_kib} KiB of memory are left: {found:?}");
    }
}

/// An update of the kernel does not put another algorithm in the place of the one that was measured.
#[test]
fn a_verdict_of_another_kernel_is_used_until_it_is_measured_again() {
    let text = "[zram0]\nzram-size = \"64MiB\"\ncompression-algorithm = \"auto\"\n";
    let used = |verdict: String| {
        let machine = SimMachine::new(KernelConfig::full());
        machine.change().cpus = 4;
        machine.change().verdict = verdict;
        let applied = engine::apply(&mut machine.process(), &loaded(text)).unwrap();
        let candidate = applied.plan.items[0].algorithm().unwrap().clone();
        (candidate.algorithm.unwrap().to_string(), candidate.reason)
    };
    let verdict = |kernel: &str| crate::vm::verdict(kernel, Profile::Balanced, None);
    assert_eq!(
        used(verdict("6.12.2-simulated")),
        ("lz4".into(), "auto: the verdict of the benchmark".into())
    );
    let (algorithm, reason) = used(verdict("6.11.0"));
    assert_eq!(algorithm, "lz4");
    for part in ["provisional", "the kernel is 6.12.2-simulated now, and was 6.11.0"] {
        assert!(reason.contains(part), "{reason}");
    }
    let (algorithm, reason) = used(verdict("6.11.0").replace("lz4", "gone"));
    assert_eq!(algorithm, "zstd");
    assert!(reason.contains("this kernel does not offer gone"), "{reason}");
    assert_eq!(used(String::new()).0, "zstd");
}

#[test]
fn nothing_changed_means_nothing_to_do() {
    assert_eq!(actions(&machine(), BEFORE, &Scope::default()), []);
}

#[test]
fn each_change_has_the_least_disruptive_action() {
    check(
        "swap-priority = 100",
        "swap-priority = 50",
        false,
        ("zram0", Action::Reactivate, "priority 100 → 50"),
    );
    check(
        "zram-size = \"64MiB\"",
        "zram-size = \"48MiB\"",
        false,
        ("zram0", Action::Recreate, "size 64.0 MiB → 48.0 MiB"),
    );
    check(
        "swap-priority = 100",
        "swap-priority = 100\nzram-resident-limit = \"32MiB\"",
        false,
        ("zram0", Action::Adapt, "memory limit none → 32.0 MiB"),
    );
    check(
        "[\"zstd(level=3)\", \"lz4\"]",
        "\"lz4\"",
        false,
        ("zram0", Action::Recreate, "algorithm zstd(level=3) or lz4 → lz4"),
    );
    check(
        "size = \"16MiB\"",
        "size = \"24MiB\"",
        false,
        ("ramdisk.small", Action::Adapt, "16.0 MiB → 24.0 MiB"),
    );
    check(
        "size = \"16MiB\"",
        "size = \"16MiB\"\ninodes = 500",
        false,
        ("ramdisk.small", Action::Adapt, "inodes default → 500"),
    );
}

#[test]
fn what_would_lose_contents_is_refused_unless_forced() {
    let size = ("zram-size = \"32MiB\"", "zram-size = \"40MiB\"");
    check(size.0, size.1, false, ("zram1", Action::Refuse, "would lose its contents"));
    check(size.0, size.1, true, ("zram1", Action::Recreate, "size 32.0 MiB → 40.0 MiB"));
    let section = "[zram1]\nzram-size = \"32MiB\"\nmount-point = \"/srv/data\"\nfs-type = \"ext4\"\n";
    check(section, "", false, ("zram1", Action::Refuse, "would lose its contents"));
    check(section, "", true, ("zram1", Action::Remove, "no longer configured"));
}

#[test]
fn a_memory_limit_below_what_is_used_is_refused() {
    let machine = machine();
    store(&machine, true, 0..300);
    let limited = |limit: &str| {
        let text = BEFORE.replace(
            "zram-size = \"64MiB\"",
            &format!("zram-size = \"64MiB\"\nzram-resident-limit = \"{limit}\""),
        );
        survey(&machine.process(), &loaded(&text), ACTIVATION, &Scope::default()).unwrap().changes
    };
    let action =
        |limit| limited(limit).into_iter().find(|change| change.target == Target::Device(0)).unwrap();
    assert_eq!(action("4MiB").action, Action::Adapt);
    let refused = action("1MiB");
    assert_eq!(
        (refused.action, refused.kind),
        (Action::Refuse, Some(ErrorKind::Unsafe)),
        "{}",
        refused.detail
    );
}

#[test]
fn a_removed_or_disabled_section_removes_its_target() {
    let section = "[zram0]\nzram-size = \"64MiB\"";
    check(section, &section.replace(']', "]\nenabled = false"), false, ("zram0", Action::Remove, ""));
    check(
        "[ramdisk.small]\nmount-point = \"/srv/small\"\nsize = \"16MiB\"\n",
        "",
        false,
        ("ramdisk.small", Action::Remove, "/srv/small"),
    );
}

#[test]
fn a_disk_mounted_by_pid_1_is_ours_without_a_record() {
    let machine = machine();
    machine.change().records.remove("ramdisk-small.json");
    let disks = vec![UnitRamdisk {
        name: "small".to_owned(),
        mount_point: "/srv/small".to_owned(),
        ..UnitRamdisk::default()
    }];
    let scope = Scope { ramdisks: disks, ..Scope::default() };
    assert_eq!(actions(&machine, BEFORE, &scope), []);
    let gone = BEFORE.split("[ramdisk.small]").next().unwrap();
    let found = actions(&machine, gone, &scope);
    assert_eq!((found[0].0.as_str(), found[0].1), ("ramdisk.small", Action::Remove));
    let moved = BEFORE.replace("/srv/small", "/srv/other");
    let found = actions(&machine, &moved, &scope);
    assert_eq!((found[0].0.as_str(), found[0].1), ("ramdisk.small", Action::Recreate));
}

const AFTER: &str = r#"
[zram0]
zram-size = "48MiB"
swap-priority = 50
compression-algorithm = "lz4"

[zram3]
zram-size = "16MiB"

[zram1]
zram-size = "32MiB"
mount-point = "/srv/data"
fs-type = "ext4"
"#;

fn reload(machine: &SimMachine, text: &str) -> Vec<String> {
    let loaded = loaded(text);
    let mut host = machine.process();
    let survey = survey(&host, &loaded, ACTIVATION, &Scope::default()).unwrap();
    let outcomes = match carry_out(&mut host, &loaded, &survey) {
        Ok(outcomes) => outcomes,
        Err(error) => return vec![error.to_string()],
    };
    outcomes.into_iter().flat_map(|outcome| outcome.errors).map(|error| error.to_string()).collect()
}

#[test]
fn after_a_reload_the_machine_matches_the_configuration() {
    let machine = machine();
    assert_eq!(reload(&machine, AFTER), [""; 0]);
    assert_eq!(actions(&machine, AFTER, &Scope::default()), []);
    let seen = look(&machine, AFTER);
    let names: Vec<&str> = seen.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["zram0", "zram1", "zram3"]);
    assert_eq!(seen.device("zram0").unwrap().swap.unwrap().priority, 50);
    assert_eq!(seen.ramdisks, []);
    engine::revert(&mut machine.process()).unwrap();
    assert_eq!(look(&machine, "").problems, []);
}

#[test]
fn after_a_failure_at_any_call_the_next_reload_converges() {
    let calls = {
        let machine = machine();
        machine.take_transcript();
        assert_eq!(reload(&machine, AFTER), [""; 0]);
        machine.take_transcript().len()
    };
    assert!(calls > 20, "only {calls} calls");
    for number in 1..=calls {
        let machine = machine();
        machine.take_transcript();
        machine.fail_at(number, Errno::IO);
        reload(&machine, AFTER);
        assert_eq!(reload(&machine, AFTER), [""; 0], "after a failure at call {number}");
        assert_eq!(actions(&machine, AFTER, &Scope::default()), [], "call {number}");
    }
}

fn look(machine: &SimMachine, text: &str) -> Snapshot {
    sample::snapshot(&machine.process(), &View::of(&loaded(text))).unwrap()
}

#[test]
fn all_readers_agree_with_the_machine() {
    let seen = look(&machine(), BEFORE);
    let swap = seen.device("zram0").unwrap();
    assert_eq!((swap.role, swap.state, swap.managed), (RoleView::Swap, StateView::Active, true));
    assert_eq!((swap.disk_size_bytes, swap.algorithm.as_str()), (64 << 20, "zstd"));
    assert_eq!(swap.algorithm_reason, ReasonView::Config);
    assert_eq!(swap.algorithm_parameters.get("level").map(String::as_str), Some("3"));
    assert_eq!((swap.swap.unwrap().priority, swap.config_section.as_str()), (100, "zram0"));
    let mounted = seen.device("zram1").unwrap();
    assert_eq!((mounted.role, mounted.state), (RoleView::Filesystem, StateView::Mounted));
    assert_eq!(mounted.mount.as_ref().unwrap().mount_point, "/srv/data");
    let disk = seen.ramdisk("small").unwrap();
    assert_eq!((disk.mount_point.as_str(), disk.mounted), ("/srv/small", true));
    assert_eq!(seen.problems, []);
}

#[test]
fn a_ram_disk_on_zram_that_is_not_mounted_has_its_file_system() {
    let text = "[ramdisk.a]\nmount-point = \"/srv/a\"\nbackend = \"zram\"\nsize = \"64MiB\"\n";
    let machine = SimMachine::new(KernelConfig::full());
    let applied = engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    let seen = || {
        let disk = look(&machine, text).ramdisk("a").unwrap().clone();
        (disk.mounted, disk.backend(), disk.fs_type)
    };
    assert_eq!(seen(), (true, "zram", "ext4".to_owned()));
    machine.process().unmount(b"/srv/a", &MountId::default()).unwrap();
    assert_eq!(seen(), (false, "zram", "ext4".to_owned()));
}

#[test]
fn the_obstacle_to_a_removal_is_named() {
    let machine = SimMachine::new(KernelConfig::full());
    let swap = loaded("[zram0]\nzram-size = \"64MiB\"\n");
    // PID 1 activates the swap; zramd-setup only sets up the device.
    engine::up(&mut machine.process(), &swap, 0).unwrap();
    machine.change().swaps.push(Swap { number: 0, priority: 100, discard: false, used_kib: 0 });
    let error = engine::down(&mut machine.process(), &Target::Device(0)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InUse);
    assert!(error.message.contains("`swapoff /dev/zram0`"), "{error:?}");
    machine.change().swaps.clear();
    assert_eq!(engine::down(&mut machine.process(), &Target::Device(0)), Ok(true));
}

/// The shorter survey reads less, but must find the same.
#[test]
fn the_short_survey_is_sufficient_for_a_list() {
    let machine = machine();
    machine.change().kernel.streams = true;
    machine.change().add(7);
    let config = View::of(&loaded(BEFORE));
    let [listed, full] = [Detail::Listed, Detail::Full]
        .map(|detail| sample::figures(&machine.process(), &config, detail).unwrap());
    assert_ne!(listed, full, "nothing is left out");
    let shown = |snapshot: &Snapshot| -> Vec<Vec<Cell>> {
        let columns: Vec<_> = COLUMNS.iter().filter(|column| column.default).collect();
        Row::all(snapshot)
            .into_iter()
            .map(|row| columns.iter().map(|column| column.cell(row)).collect())
            .collect()
    };
    assert_eq!(shown(&listed), shown(&full));
    assert_eq!(shown(&listed).len(), 4, "three devices and a disk");
}

#[test]
fn foreign_and_missing_devices_are_distinguished() {
    let machine = machine();
    machine.change().add(7);
    let seen = look(&machine, BEFORE);
    let stranger = seen.device("zram7").unwrap();
    assert_eq!(
        (stranger.managed, stranger.role, stranger.algorithm_reason),
        (false, RoleView::Unused, ReasonView::Unknown)
    );
    machine.change().devices.remove(&0);
    let seen = look(&machine, BEFORE);
    let codes: Vec<(Code, &str)> =
        seen.problems.iter().map(|found| (found.code, found.object.as_str())).collect();
    assert_eq!(codes, [(Code::DeviceLost, "zram0")]);
}

#[test]
fn changes_name_the_units() {
    let text = BEFORE
        .replace("swap-priority = 100", "swap-priority = 50")
        .replace("size = \"16MiB\"", "size = \"24MiB\"");
    let loaded = loaded(&text);
    let survey = survey(&machine().process(), &loaded, ACTIVATION, &Scope::default()).unwrap();
    let proposal = Proposal { view: View::of(&loaded), changes: survey.changes, ..Proposal::default() };
    let json = serde_json::to_string(&proposal).unwrap();
    assert_eq!(serde_json::from_str::<Proposal>(&json).unwrap(), proposal);
    let change = |target: Target| proposal.changes.iter().find(|change| change.target == target).unwrap();
    let swap = change(Target::Device(0));
    assert_eq!(
        (swap.stop.as_deref(), swap.setup.as_deref(), swap.start.as_deref()),
        (Some("dev-zram0.swap"), Some("zramd-setup@zram0.service"), Some("dev-zram0.swap"))
    );
    let disk = change(Target::Ramdisk("small".to_owned()));
    assert_eq!(
        (disk.start.as_deref(), disk.remount.as_deref()),
        (Some("srv-small.mount"), Some("srv-small.mount"))
    );
    assert_eq!(proposal.view.sections["ramdisk.small"], "/etc/zramd/zramd.toml");
}

/// A device that is removed during a read is not an error, and is not shown partially.
#[test]
fn a_device_may_be_removed_during_a_read() {
    let text = "[zram0]\nzram-size = \"64MiB\"\n";
    let machine = SimMachine::new(KernelConfig::full());
    engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    let whole = look(&machine, text);
    assert_eq!(whole.devices.len(), 1);
    for reads in 0.. {
        machine.look().reads_left.set(Some(reads));
        let seen = look(&machine, text);
        if machine.look().reads_left.get() > Some(0) {
            assert!(reads > 5);
            break;
        }
        let half = seen.devices.iter().find(|device| device.disk_size_bytes != 64 << 20);
        assert_eq!(half, None, "after {reads} reads");
    }
}

#[test]
fn a_device_says_what_it_has_to_do_with_the_verdict() {
    // The section when the device was set up without a verdict, and how much is stored; the section now.
    let follower = |then: &str, used_kib: u64, now: &str| {
        let section = |list: &str| loaded(&format!("[zram0]\nzram-size = \"64MiB\"\n{list}\n"));
        let machine = SimMachine::new(KernelConfig::full());
        engine::apply(&mut machine.process(), &section(then)).unwrap();
        machine.change().cpus = 4;
        machine.change().swaps[0].used_kib = used_kib;
        machine.change().verdict = crate::vm::verdict("6.12.2-simulated", Profile::Balanced, None);
        let (host, now) = (machine.process(), section(now));
        let survey = survey(&host, &now, ACTIVATION, &Scope::default()).unwrap();
        let mut found = survey.followers(&host, &now);
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        let (state, told) = (word(found.state), found.finding().is_some());
        (state, told, format!("{} {}", found.sentence, found.remedy))
    };
    let (auto, full) = ("compression-algorithm = \"auto\"", 60 << 10);
    let (zstd, lz4) = ("compression-algorithm = \"zstd\"", "compression-algorithm = \"lz4\"");
    for (then, used_kib, now, state, told, expected) in [
        (lz4, full, "compression-algorithm = [\"gone\", \"auto\"]", "follows", false, "follows the verdict"),
        (auto, full, auto, "later", false, "zram0 uses zstd, and from the next boot on lz4"),
        (auto, 0, auto, "later", false, "`zramdctl bench adopt`"),
        (zstd, full, zstd, "not", true, "names zstd first write compression-algorithm = \"auto\""),
        (lz4, full, lz4, "not", false, "is the verdict of the benchmark too"),
        ("", full, "", "not", true, "the kernel's default is used"),
    ] {
        let (found, is_told, text) = follower(then, used_kib, now);
        assert_eq!((found, is_told), (state, told), "{then} → {now}: {text}");
        assert!(text.contains(expected), "{then} → {now}: {text}");
    }
}
