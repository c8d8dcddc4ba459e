//! A device that another program has reset and set up since zramd did keeps its `diskseq`. It is named, and neither changed
//! nor removed. On the simulated machine; tests/machine/taken_over.rs has the real one.

use engine::device::control;
use engine::reload::{self, Scope};
use engine::sample;
use engine::{ErrorKind, gather};
use host::{Errno, Host, MkfsSpec, SwapSpec};
use logic::change::Action;
use logic::config::{self, Loaded};
use logic::device::attribute::Attribute;
use logic::device::swap_header;
use logic::finding::Code;
use logic::plan::{Activation, Decision};
use logic::record::{Progress, Record, Target};
use logic::view::View;
use sim::kernel::KernelConfig;
use sim::{SimHost, SimMachine, survive};

const SWAP: &str = "[zram9]\nzram-size = 32\n";
const FILES: &str = "[zram9]\nzram-size = 32\nmount-point = \"/srv\"\n";
const RAW: &str = "[zram9]\nzram-size = 32\nfs-type = \"none\"\n";
const FORMATTED: &str = "[zram9]\nzram-size = 32\nfs-type = \"ext4\"\n";

fn loaded(text: &str) -> Loaded {
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

fn machine(text: &str) -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().add_directories("/srv");
    let applied = engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    let errors: Vec<_> = applied.outcomes.iter().flat_map(|outcome| &outcome.errors).collect();
    assert!(errors.is_empty(), "{errors:?}");
    machine
}

/// Frees the device, as another program can.
fn free(host: &mut SimHost) {
    host.swap_off(9).ok();
    host.unmount(b"/srv", &logic::record::MountId::default()).ok();
    host.write_attribute(9, Attribute::Reset, "1").unwrap();
}

fn size(host: &mut SimHost, size: &str) {
    host.write_attribute(9, Attribute::DiskSize, size).unwrap();
}

fn swap(host: &mut SimHost, mib: u64, uuid: u8) {
    size(host, &format!("{mib}M"));
    let header = swap_header::build(mib << 20, 4096, [uuid; 16], "zram9").unwrap();
    host.write_pages(9, 0, &header).unwrap();
    host.swap_on(9, SwapSpec { priority: 1, discard: false }).unwrap();
}

fn mkfs(host: &mut SimHost, uuid: &str, label: &str) {
    size(host, "32M");
    let arguments = ["-U", uuid, "-L", label].map(str::to_owned).to_vec();
    host.mkfs(9, &MkfsSpec { fs_type: "ext4".to_owned(), arguments }).unwrap();
}

/// UUIDs of the simulated machine, whose random numbers are fixed, and of another program.
const OURS: &str = "5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a";
const THEIRS: &str = "11111111-1111-4111-9111-111111111111";

/// Name, our configuration, what another program does with the device, and a part of what is said about it.
type Takeover = (&'static str, &'static str, fn(&mut SimHost), &'static str);

const TAKEOVERS: [Takeover; 8] = [
    ("swap of another size", SWAP, |host| swap(host, 48, 7), "its size is"),
    ("swap with another UUID", SWAP, |host| swap(host, 32, 7), "with UUID"),
    ("another algorithm", SWAP, with_842, "its algorithm is 842"),
    ("a file system instead of swap", SWAP, |host| mkfs(host, THEIRS, "zram9"), "file system"),
    ("nothing yet", SWAP, |host| size(host, "32M"), "it is empty"),
    ("another file system", FILES, |host| mkfs(host, THEIRS, "zram9"), "with UUID"),
    ("swap instead of a file system", FILES, |host| swap(host, 32, 7), "swap area"),
    ("another label", FORMATTED, |host| mkfs(host, OURS, "theirs"), "theirs"),
];

fn with_842(host: &mut SimHost) {
    host.write_attribute(9, Attribute::CompAlgorithm, "842").unwrap();
    swap(host, 32, 0x5A);
}

#[test]
fn a_device_that_another_program_has_taken_over_is_named_and_not_touched() {
    for (case, text, takes, said) in TAKEOVERS {
        let machine = machine(text);
        let other = &mut machine.process();
        free(other);
        takes(other);
        machine.take_transcript();
        let before = (machine.look().devices[&9].clone(), machine.look().swaps.clone());
        let host = &mut machine.process();

        let planned = engine::plan(host, &loaded(text), Activation::Direct).unwrap();
        assert_eq!(planned.items[0].decision, Decision::Refused, "{case}");
        assert!(planned.items[0].reason.contains(said), "{case}: {}", planned.items[0].reason);
        for empty in [false, true] {
            // Also if the section was removed.
            let loaded = if empty { Loaded::default() } else { loaded(text) };
            let survey = reload::survey(host, &loaded, Activation::Managed, &Scope::default()).unwrap();
            let changes: Vec<_> =
                survey.changes.iter().filter(|change| change.target == Target::Device(9)).collect();
            assert_eq!(changes[0].action, Action::Refuse, "{case}");
            assert!(changes[0].detail.contains(said), "{case}: {}", changes[0].detail);
            engine::apply(host, &loaded).unwrap();
            engine::up(host, &self::loaded(text), 9).unwrap();
        }
        let removals = engine::revert(host).unwrap();
        let refused = [
            control::must_be_ours(host, 9).unwrap_err(),
            control::compact(host, 9).unwrap_err(),
            engine::down(host, &Target::Device(9)).unwrap_err(),
            removals
                .into_iter()
                .find_map(|(target, result)| (target == Target::Device(9)).then_some(result))
                .unwrap()
                .unwrap_err(),
        ];
        for error in &refused[2..] {
            assert!(error.message.contains(said), "{case}: {error}");
            assert!(error.message.contains("zramdctl adopt zram9"), "{case}: {error}");
            assert!(error.message.contains("/run/zramd/zram9.json"), "{case}: {error}");
        }
        assert!(refused.iter().all(|error| error.kind == ErrorKind::Unmanaged), "{case}: {refused:?}");
        assert!(gather::records(host).unwrap().contains_key(&Target::Device(9)), "{case}");
        assert_eq!((machine.look().devices[&9].clone(), machine.look().swaps.clone()), before, "{case}");

        // Without the record, it is a device of another program like any other.
        machine.change().records.remove("zram9.json");
        assert_eq!(engine::down(host, &Target::Device(9)), Ok(false), "{case}");
        let errors = engine::revert(host).unwrap().into_iter().filter(|(_, result)| result.is_err());
        assert_eq!(errors.count(), 0, "{case}");
        assert_eq!((machine.look().devices[&9].clone(), machine.look().swaps.clone()), before, "{case}");
    }
}

#[test]
fn a_raw_device_is_for_other_programs_and_is_not_reset_with_what_they_wrote() {
    let machine = machine(RAW);
    let host = &mut machine.process();
    host.write_pages(9, 8192, &[3; 4096]).unwrap();
    let before = machine.look().devices[&9].clone();
    let planned = engine::plan(host, &loaded(RAW), Activation::Direct).unwrap();
    assert_eq!(planned.items[0].decision, Decision::Planned);
    engine::apply(host, &loaded(RAW)).unwrap();
    engine::up(host, &loaded(RAW), 9).unwrap();
    control::must_be_ours(host, 9).unwrap();
    control::compact(host, 9).unwrap();
    let survey = reload::survey(host, &Loaded::default(), Activation::Managed, &Scope::default()).unwrap();
    let change = survey.changes.iter().find(|change| change.target == Target::Device(9)).unwrap();
    assert_eq!(change.action, Action::Refuse, "{}", change.detail);
    let removal = engine::revert(host).unwrap().into_iter().find(|(target, _)| *target == Target::Device(9));
    for error in [engine::down(host, &Target::Device(9)).unwrap_err(), removal.unwrap().1.unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::Unmanaged, "{error}");
        assert!(error.message.contains("unknown type"), "{error}");
        assert!(error.message.contains("zramdctl adopt zram9"), "{error}");
    }
    assert_eq!(machine.look().devices[&9], before);
}

#[test]
fn a_takeover_that_shows_without_looking_at_the_contents_is_a_finding() {
    let machine = machine(SWAP);
    let other = &mut machine.process();
    free(other);
    size(other, "48M");
    let snapshot = sample::snapshot(&machine.process(), &View::default()).unwrap();
    let found: Vec<_> =
        snapshot.problems.iter().map(|finding| (finding.code, finding.object.as_str())).collect();
    assert!(found.contains(&(Code::DeviceTakenOver, "zram9")), "{found:?}");
    assert!(!found.iter().any(|(code, _)| *code == Code::DeviceLost), "{found:?}");
    assert!(!snapshot.device("zram9").unwrap().managed);
}

#[test]
fn what_zramd_set_up_itself_stays_its_own() {
    for text in [SWAP, FILES, RAW, FORMATTED] {
        let machine = machine(text);
        let host = &mut machine.process();
        let planned = engine::plan(host, &loaded(text), Activation::Direct).unwrap();
        assert!(planned.is_empty(), "{text}: {:?}", planned.groups);
        control::must_be_ours(host, 9).unwrap();
        // An uninitialised device carries nothing: it is set up again.
        free(host);
        let again = engine::apply(host, &loaded(text)).unwrap();
        assert!(again.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{text}");
        assert!(engine::revert(host).unwrap().iter().all(|(_, result)| result.is_ok()), "{text}");
        assert!(!machine.look().devices.contains_key(&9), "{text}");
    }
}

/// Killed at any call, and then taken over: what zramd had begun is not undone either.
#[test]
fn a_half_made_device_that_another_program_has_taken_over_is_not_touched() {
    for text in [SWAP, FORMATTED] {
        let reference = machine(text);
        let calls = reference.take_transcript().len();
        for call in 1..=calls {
            let machine = SimMachine::new(KernelConfig::full());
            machine.kill_after(call);
            survive(|| engine::apply(&mut machine.process(), &loaded(text)));
            machine.take_transcript();
            if !machine.look().devices.contains_key(&9) {
                continue;
            }
            let other = &mut machine.process();
            free(other);
            swap(other, 48, 7);
            let before = (machine.look().devices[&9].clone(), machine.look().swaps.clone());
            let host = &mut machine.process();
            engine::apply(host, &loaded(text)).unwrap();
            engine::down(host, &Target::Device(9)).ok();
            engine::revert(host).unwrap();
            assert_eq!(
                (machine.look().devices[&9].clone(), machine.look().swaps.clone()),
                before,
                "call {call}"
            );
        }
    }
}

/// The write-back file and its encrypted mapping were removed, and others have their names now.
#[test]
fn a_loop_device_and_a_mapping_of_another_program_stay() {
    let text = "[zram9]\nzram-size = 32\nwriteback-file = \"/var/lib/w\"\n";
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().add_directories("/var/lib");
    engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    assert!(machine.look().mappings.contains_key(&9) && machine.look().loops.contains_key(&9));
    free(&mut machine.process());
    for node in ["/dev/loop9", "/dev/dm-9"] {
        machine.change().count(node.to_owned());
    }
    let removals = engine::revert(&mut machine.process()).unwrap();
    assert!(removals.iter().all(|(_, result)| result.is_ok()), "{removals:?}");
    assert!(machine.look().mappings.contains_key(&9) && machine.look().loops.contains_key(&9));
}

#[test]
fn a_record_of_another_boot_counts_as_none() {
    let machine = machine(SWAP);
    machine.change().boot_id = "boot-2".to_owned();
    let before = machine.look().devices[&9].clone();
    let host = &mut machine.process();
    assert!(gather::records(host).unwrap().is_empty());
    assert_eq!(engine::down(host, &Target::Device(9)), Ok(false));
    assert!(engine::revert(host).unwrap().is_empty());
    assert_eq!(machine.look().devices[&9], before);
}

#[test]
fn a_tmpfs_of_another_program_at_our_mount_point_stays() {
    for ours_is_gone in [false, true] {
        let machine = machine(DISK);
        if ours_is_gone {
            machine.process().unmount(b"/srv", &logic::record::MountId::default()).unwrap();
        }
        mount_theirs(&machine, "/srv");
        let removals = engine::revert(&mut machine.process()).unwrap();
        let mounted = machine.process().text(host::MachineFile::Mountinfo).unwrap();
        assert!(mounted.contains("theirs"), "{ours_is_gone}: {removals:?}\n{mounted}");
    }
}

const DISK: &str = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = 16\n";
const KEPT: &str = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = 16\npersist = \"snapshot\"\n";

fn disk() -> Target {
    Target::Ramdisk("a".to_owned())
}

fn mount_theirs(machine: &SimMachine, path: &str) {
    let theirs = host::MountSpec {
        source: "theirs".to_owned(),
        mount_point: path.to_owned(),
        fs_type: "tmpfs".to_owned(),
        options: String::new(),
    };
    machine.process().mount(&theirs).unwrap();
}

#[test]
fn what_is_covered_by_another_mount_is_not_reported_as_removed() {
    for text in [DISK, KEPT, FILES] {
        let machine = machine(text);
        mount_theirs(&machine, "/srv");
        let before = machine.snapshot().mounts.len();
        let removals = engine::revert(&mut machine.process()).unwrap();
        let (_, result) = &removals[0];
        assert!(result.as_ref().unwrap_err().message.contains("covered"), "{text}: {result:?}");
        assert!(!gather::records(&machine.process()).unwrap().is_empty(), "{text}");
        assert!(machine.snapshot().mounts.len() >= before - 1, "{text}");
        // A plan does not take the other for ours either.
        if text == DISK {
            let planned = engine::plan(&machine.process(), &loaded(text), Activation::Direct).unwrap();
            assert!(planned.items[0].reason.contains("another program"), "{:?}", planned.items);
        }
        machine.process().unmount(b"/srv", &logic::record::MountId::default()).unwrap();
        assert!(engine::revert(&mut machine.process()).unwrap().iter().all(|(_, result)| result.is_ok()));
        assert_eq!(machine.snapshot().mounts.len(), 1, "{text}");
    }
}

#[test]
fn a_tmpfs_in_the_place_of_ours_is_neither_ours_nor_covered() {
    let machine = machine(DISK);
    machine.process().unmount(b"/srv", &logic::record::MountId::default()).unwrap();
    mount_theirs(&machine, "/srv");
    let larger = loaded(&DISK.replace("16", "32"));
    let applied = engine::apply(&mut machine.process(), &larger).unwrap();
    assert!(applied.plan.items[0].reason.contains("theirs"), "{:?}", applied.plan.items);
    let mounts = machine.snapshot().mounts;
    let theirs = mounts.iter().find(|(mount, _)| mount.source == "theirs").unwrap();
    assert_eq!((mounts.len(), theirs.0.options.as_str()), (2, ""), "it is not resized");
    let snapshot = sample::snapshot(&machine.process(), &View::default()).unwrap();
    assert!(!snapshot.ramdisk("a").unwrap().mounted);
    assert!(engine::revert(&mut machine.process()).unwrap().iter().all(|(_, result)| result.is_ok()));
    assert_eq!(machine.snapshot().mounts.len(), 2);
}

#[test]
fn a_disk_whose_private_place_was_unmounted_is_saved_from_its_mount_point() {
    let machine = machine(KEPT);
    machine.process().unmount(b"/run/zramd/ramdisk/a", &logic::record::MountId::default()).unwrap();
    assert_eq!(engine::down(&mut machine.process(), &disk()), Ok(true));
    assert!(machine.look().worked.iter().any(|words| words.starts_with("save a")));
    assert_eq!(machine.snapshot().mounts.len(), 1);
}

#[test]
fn nothing_is_mounted_over_a_disk_that_has_no_record() {
    let machine = machine(KEPT);
    machine.change().records.remove("ramdisk-a.json");
    machine.process().unmount(b"/srv", &logic::record::MountId::default()).unwrap();
    let applied = engine::apply(&mut machine.process(), &loaded(KEPT)).unwrap();
    assert!(applied.plan.items[0].reason.contains("zramdctl ramdisk save a"), "{:?}", applied.plan.items);
    assert_eq!(machine.snapshot().mounts.len(), 2);
}

#[test]
fn a_disk_that_was_moved_is_not_mounted_twice() {
    let machine = machine(KEPT);
    machine.change().move_mount("/srv", "/home/moved");
    let applied = engine::apply(&mut machine.process(), &loaded(KEPT)).unwrap();
    assert!(applied.plan.items[0].reason.contains("/home/moved"), "{:?}", applied.plan.items);
    assert!(engine::revert(&mut machine.process()).unwrap().iter().all(|(_, result)| result.is_ok()));
    assert_eq!(machine.snapshot().mounts.len(), 1);
}

#[test]
fn a_device_whose_contents_cannot_be_read_is_not_removed() {
    for (errno, is_removed) in [(Errno::NOENT, false), (Errno::ACCES, false), (Errno::IO, true)] {
        let machine = machine(SWAP);
        let other = &mut machine.process();
        free(other);
        mkfs(other, THEIRS, "theirs");
        machine.change().head_fails = Some(errno);
        // A failing backing device tells nothing of another program.
        assert_eq!(engine::down(&mut machine.process(), &Target::Device(9)).is_ok(), is_removed, "{errno}");
        assert_eq!(!machine.look().devices.contains_key(&9), is_removed, "{errno}");
    }
}

#[test]
fn an_adopted_device_is_undone_as_before() {
    let machine = machine(FILES);
    // The user has given it another label.
    let mut page = machine.look().devices[&9].pages[&0].clone();
    page[0x478..0x480].copy_from_slice(b"renamed\0");
    machine.change().devices.get_mut(&9).unwrap().pages.insert(0, page);
    let host = &mut machine.process();
    assert_eq!(engine::down(host, &Target::Device(9)).unwrap_err().kind, ErrorKind::Unmanaged);
    assert_eq!(engine::provision::adopt(host, &loaded(FILES), 9, Activation::Direct), Ok(true));
    assert_eq!(engine::down(host, &Target::Device(9)), Ok(true));
    assert!(!machine.look().devices.contains_key(&9), "zramd has created it");
}

#[test]
fn a_mount_is_removed_wherever_its_directory_was_moved() {
    for text in [DISK, KEPT, FILES] {
        let machine = machine(text);
        machine.change().move_mount("/srv", "/home/moved");
        let removals = engine::revert(&mut machine.process()).unwrap();
        assert!(removals.iter().all(|(_, result)| result.is_ok()), "{text}: {removals:?}");
        let mounted = machine.process().text(host::MachineFile::Mountinfo).unwrap();
        assert_eq!(mounted.lines().count(), 1, "{text}: {mounted}");
    }
}

/// Every write in `/run/zramd` fails: nothing is set up, and what is there can be removed.
#[test]
fn without_a_writable_run_nothing_is_begun_and_everything_can_be_removed() {
    let everything = "[zram9]\nzram-size = 32\n[zram3]\nzram-size = 32\nmount-point = \"/srv\"\n\
        [ramdisk.a]\nmount-point = \"/a\"\nsize = 16\n[ramdisk.b]\nmount-point = \"/b\"\nsize = 16\npersist = \"snapshot\"\n\
        [vm]\ntune = true\n";
    for errno in [Errno::NOSPC, Errno::ROFS, Errno::ACCES] {
        let new = SimMachine::new(KernelConfig::full());
        let before = new.snapshot();
        new.change().run_fails = Some(errno);
        engine::apply(&mut new.process(), &loaded(everything)).unwrap_err();
        engine::up(&mut new.process(), &loaded(SWAP), 9).unwrap_err();
        assert_eq!(new.take_transcript(), Vec::<String>::new(), "no step is begun");
        assert_eq!(new.snapshot(), before);

        for one_by_one in [false, true] {
            let machine = SimMachine::new(KernelConfig::full());
            let initial = machine.snapshot();
            let applied = engine::apply(&mut machine.process(), &loaded(everything)).unwrap();
            assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()));
            machine.change().run_fails = Some(errno);
            let host = &mut machine.process();
            if one_by_one {
                let disks = ["a", "b"].map(|name| Target::Ramdisk(name.to_owned()));
                for target in disks.into_iter().chain([Target::Vm, Target::Device(3), Target::Device(9)]) {
                    engine::down(host, &target).ok();
                }
            } else {
                engine::revert(host).unwrap();
            }
            let found = machine.snapshot();
            assert_eq!(found.devices, initial.devices, "{errno}");
            assert_eq!((found.swaps, found.tunables), (initial.swaps, initial.tunables), "{errno}");
            assert_eq!(found.mounts.len(), 1, "{errno}: {:?}", found.mounts);
            let saved = machine.look().worked.iter().filter(|words| words.starts_with("save b")).count();
            assert_eq!(saved, 1, "{errno}");
        }
    }
}

/// Each write in `/run/zramd` during a set-up fails: what was begun is undone. The last one is after the set-up: it notes that
/// lower devices are gone.
#[test]
fn a_set_up_that_can_no_longer_be_recorded_is_taken_back() {
    let reference = machine(FILES);
    let calls = reference.take_transcript();
    let is_record = |call: &String| call.starts_with("/run/zramd/");
    let last = calls.iter().rposition(is_record).unwrap();
    for (index, _) in calls.iter().enumerate().filter(|(_, call)| is_record(call)) {
        for errno in [Errno::NOSPC, Errno::ROFS, Errno::ACCES] {
            let machine = SimMachine::new(KernelConfig::full());
            machine.change().add_directories("/srv");
            let initial = machine.snapshot();
            machine.fail_at(index + 1, errno);
            let applied = engine::apply(&mut machine.process(), &loaded(FILES)).unwrap();
            let outcome = &applied.outcomes[0];
            assert_eq!(
                (outcome.errors.is_empty(), outcome.warnings.len()),
                (index == last, usize::from(index == last)),
                "call {index}"
            );
            if index == last {
                assert!(
                    engine::revert(&mut machine.process()).unwrap().iter().all(|(_, result)| result.is_ok())
                );
            }
            assert_eq!(machine.snapshot(), initial, "call {index}: {errno}");
        }
    }
}

#[test]
fn a_killed_run_leaves_no_device_that_the_next_one_does_not_use() {
    let text = "[zram9]\nzram-size = 32\n";
    let machine = SimMachine::new(KernelConfig::full());
    let initial: Vec<u32> = machine.look().devices.keys().copied().collect();
    for call in 1..60 {
        machine.kill_after(call);
        survive(|| engine::apply(&mut machine.process(), &loaded(text)));
        machine.take_transcript();
    }
    engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    let record: Record = serde_json::from_str(&machine.look().records["zram9.json"]).unwrap();
    assert_eq!((record.progress, record.adding), (Progress::Done, None));
    engine::revert(&mut machine.process()).unwrap();
    let left: Vec<u32> = machine.look().devices.keys().copied().collect();
    assert_eq!(left, initial);
}
