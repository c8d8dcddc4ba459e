//! `[zswap]` on the simulated machine: what is set, in which order, and what is restored.

use crate::support::{golden, mistake, repository};
use logic::config::{self, Loaded};
use logic::finding::{Code, Finding};
use logic::plan::{Activation, Decision};
use logic::proc::SwapLine;
use logic::record::Target;
use logic::unit::unit_files;
use logic::verdict::Profile;
use logic::view::View;
use logic::vm::Tunable;
use logic::zram_or_zswap::{Conditions, Way};
use sim::SimMachine;
use sim::kernel::KernelConfig;

use crate::vm::verdict;

fn load(text: &str) -> Loaded {
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

/// A machine of 4 GiB with swap on a disk.
fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().disk_swaps.push(disk());
    machine
}

fn disk() -> SwapLine {
    SwapLine { path: "/dev/sda2".into(), size_kib: 1 << 20, used_kib: 0, priority: -2 }
}

/// Enabled, compressor, pool, threshold, shrinker.
fn values(machine: &SimMachine) -> String {
    let state = machine.look();
    Tunable::ALL[4..].iter().map(|tunable| state.tunables[tunable].clone()).collect::<Vec<_>>().join(" ")
}

const BEFORE: &str = "N lzo 20 90 N";

/// Errors and warnings of an apply, then what was found.
fn apply(machine: &SimMachine, text: &str) -> (Vec<String>, Vec<Code>) {
    let applied = engine::apply(&mut machine.process(), &load(text)).unwrap();
    let said = applied.outcomes.iter().flat_map(|outcome| {
        outcome.warnings.iter().cloned().chain(outcome.errors.iter().map(ToString::to_string))
    });
    (said.collect(), applied.plan.findings().map(|found| found.code).collect())
}

fn revert(machine: &SimMachine) {
    for (target, result) in engine::revert(&mut machine.process()).unwrap() {
        assert_eq!(result, Ok(()), "{target}");
    }
    assert!(machine.look().records.is_empty());
}

const ALL: &str = "[zswap]\nenabled = true\ncompressor = [\"zstd\"]\nmax-pool = \"40%\"\naccept-threshold = 80\nshrinker = true\n";

#[test]
fn each_key_sets_its_parameter_and_is_restored() {
    for (keys, expected) in [
        ("", "Y lzo 20 90 N"),
        ("compressor = \"zstd\"", "Y zstd 20 90 N"),
        ("compressor = [\"deflate\", \"lz4\"]", "Y lz4 20 90 N"),
        ("max-pool = \"40%\"", "Y lzo 40 90 N"),
        // Of 4 GiB.
        ("max-pool = \"1300MiB\"", "Y lzo 32 90 N"),
        ("max-pool = \"ram\"", "Y lzo 100 90 N"),
        ("accept-threshold = 1", "Y lzo 20 1 N"),
        ("shrinker = true", "Y lzo 20 90 Y"),
        ("shrinker = false", "Y lzo 20 90 N"),
    ] {
        let machine = machine();
        let text = format!("[zswap]\nenabled = true\n{keys}\n");
        let (_, found) = apply(&machine, &text);
        assert_eq!((values(&machine).as_str(), found), (expected, vec![]), "{keys}");
        let again = engine::apply(&mut machine.process(), &load(&text)).unwrap();
        assert!(again.plan.is_empty(), "{keys}: {:#?}", again.plan.groups);
        revert(&machine);
        assert_eq!(values(&machine), BEFORE, "{keys}");
    }
}

#[test]
fn it_is_enabled_last_and_disabled_first() {
    let machine = machine();
    assert_eq!(apply(&machine, ALL), (vec![], vec![]));
    let writes = |machine: &SimMachine| -> Vec<String> {
        let calls = machine.take_transcript();
        calls.into_iter().filter(|call| call.starts_with("zswap.")).collect()
    };
    let (set, enabled) = (writes(&machine), "zswap.enabled");
    assert!(set.last().unwrap().starts_with(enabled) && set.len() == 5, "{set:?}");
    revert(&machine);
    let restored = writes(&machine);
    assert!(restored[0].starts_with(enabled) && restored.len() == 5, "{restored:?}");
}

#[test]
fn a_compressor_that_the_kernel_lacks_leaves_nothing_half_set() {
    // Until zswap is enabled for the first time, the kernel accepts any name, and then takes its default.
    for is_new in [false, true] {
        let machine = machine();
        machine.change().zswap_is_new = is_new;
        machine.change().tunables.insert(Tunable::ZswapCompressor, "lz4".to_owned());
        let (said, _) =
            apply(&machine, "[zswap]\nenabled = true\nmax-pool = \"40%\"\ncompressor = \"deflate\"\n");
        assert_eq!(said, ["this kernel has no compressor deflate for zswap"], "{is_new}");
        assert_eq!(values(&machine), "N lz4 20 90 N", "{is_new}");
        assert!(machine.look().records.is_empty());
        let (said, _) = apply(&machine, "[zswap]\nenabled = true\ncompressor = [\"deflate\", \"zstd\"]\n");
        assert_eq!(said, ["this kernel has no compressor deflate for zswap; the next algorithm is tried"]);
        assert_eq!(values(&machine), "Y zstd 20 90 N");
        revert(&machine);
        assert_eq!(values(&machine), "N lz4 20 90 N", "{is_new}");
    }
}

/// Killed or failed before and after each call: the next run converges, and `revert` restores everything.
#[test]
fn a_fault_at_any_call_is_repaired_by_the_next_run() {
    let calls = {
        let machine = machine();
        apply(&machine, ALL);
        machine.take_transcript().len()
    };
    assert!(calls > 10, "{calls}");
    for number in 1..=calls {
        for way in 0..3 {
            let machine = machine();
            match way {
                0 => machine.fail_at(number, host::Errno::IO),
                1 => machine.kill_before(number),
                _ => machine.kill_after(number),
            }
            drop(sim::survive(|| engine::apply(&mut machine.process(), &load(ALL))));
            machine.take_transcript();
            apply(&machine, ALL);
            assert_eq!(values(&machine), "Y zstd 40 80 Y", "{number} {way}");
            revert(&machine);
            assert_eq!(values(&machine), BEFORE, "{number} {way}");
        }
    }
}

#[test]
fn auto_takes_the_verdict_without_its_level() {
    let machine = machine();
    machine.change().verdict = verdict("6.12.2-simulated", Profile::Balanced, None);
    let text = "[zswap]\nenabled = true\ncompressor = \"auto\"\n";
    let plan = engine::plan(&machine.process(), &load(text), Activation::Direct).unwrap();
    let item = plan.item(&Target::Zswap).unwrap();
    assert_eq!(item.candidates[0].reason, "auto: the verdict of the benchmark for zram, inferred for zswap");
    apply(&machine, text);
    assert_eq!(values(&machine), "Y lz4 20 90 N");
    // Without a verdict.
    let machine = self::machine();
    apply(&machine, text);
    assert_eq!(values(&machine), "Y zstd 20 90 N");
}

#[test]
fn what_another_program_has_changed_is_left_alone() {
    let machine = machine();
    apply(&machine, ALL);
    machine.change().tunables.insert(Tunable::ZswapMaxPool, "33".to_owned());
    assert!(engine::apply(&mut machine.process(), &load(ALL)).unwrap().plan.is_empty());
    let snapshot = engine::sample::snapshot(&machine.process(), &View::default()).unwrap();
    let found: Vec<_> = snapshot.problems.iter().map(|found| (found.code, found.object.as_str())).collect();
    assert_eq!(found, [(Code::SettingChanged, "zswap.max_pool_percent")]);
    revert(&machine);
    assert_eq!(values(&machine), "N lzo 33 90 N");
}

#[test]
fn it_stays_while_compressed_swap_comes_and_goes() {
    let machine = machine();
    let both = format!("[zram0]\nzram-size = 64\n{ALL}");
    assert_eq!(apply(&machine, &both), (vec![], vec![Code::ZswapActive]));
    assert_eq!(engine::down(&mut machine.process(), &Target::Device(0)), Ok(true));
    assert_eq!(values(&machine), "Y zstd 40 80 Y");
    // Swap on disks, too.
    machine.change().disk_swaps.clear();
    let codes = |machine: &SimMachine| -> Vec<Code> {
        let snapshot = engine::sample::snapshot(&machine.process(), &View::default()).unwrap();
        snapshot.problems.into_iter().map(|found| found.code).collect()
    };
    assert_eq!(codes(&machine), [Code::ZswapWithoutSwap]);
    machine.change().disk_swaps.push(disk());
    assert_eq!(codes(&machine), []);
    // Without the section.
    apply(&machine, "");
    assert_eq!(values(&machine), "Y zstd 40 80 Y", "`apply` removes nothing");
    revert(&machine);
    assert_eq!(values(&machine), BEFORE);
}

#[test]
fn the_machine_is_checked() {
    let plan = |change: &dyn Fn(&SimMachine), text: &str, activation| {
        let machine = machine();
        change(&machine);
        let plan = engine::plan(&machine.process(), &load(text), activation).unwrap();
        let decision = plan.item(&Target::Zswap).map(|item| item.decision);
        let found: Vec<String> =
            plan.findings().map(|found| format!("{}\n{}", found.message, found.remedy)).collect();
        (decision, found.join("\n"))
    };
    let no_swap = |machine: &SimMachine| machine.change().disk_swaps.clear();
    let (decision, found) = plan(&no_swap, ALL, Activation::Direct);
    assert_eq!(decision, Some(Decision::Planned));
    assert!(found.contains("no swap on a disk is in use"), "{found}");
    assert_eq!(plan(&no_swap, ALL, Activation::Systemd).1, "", "at boot, swap comes later");
    let lacks = |machine: &SimMachine| {
        machine.change().tunables.retain(|tunable, _| !tunable.name().starts_with("zswap"));
    };
    let (decision, found) = plan(&lacks, ALL, Activation::Direct);
    assert_eq!(
        (decision, found.contains("this kernel has no zswap")),
        (Some(Decision::Refused), true),
        "{found}"
    );
    assert_eq!(plan(&lacks, "[zram0]\n[zswap]\nenabled = false\n", Activation::Direct).1, "");
    let old = |machine: &SimMachine| drop(machine.change().tunables.remove(&Tunable::ZswapShrinker));
    let (decision, found) = plan(&old, ALL, Activation::Direct);
    assert_eq!(decision, Some(Decision::Planned));
    assert!(found.starts_with("this kernel has no zswap.shrinker_enabled\n"), "{found}");
    let options = |machine: &SimMachine| {
        machine.change().cmdline =
            "zswap.enabled=1 zswap.compressor=lz4 zswap.max-pool-percent=40\n".to_owned();
    };
    let (_, found) = plan(&options, ALL, Activation::Direct);
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(found.contains("has zswap.compressor=lz4, and this section sets it to zstd"), "{found}");
}

#[test]
fn mistakes_are_found() {
    let mut told = String::new();
    for section in [
        "enabled = \"on\"",
        "enabled = 1",
        "compressor = \"zstd\"",
        "enabled = false\nmax-pool = \"20%\"",
        "enabled = true\ncompressor = \"zstd(level=3)\"",
        "enabled = true\ncompressor = \"lz44\"",
        "enabled = true\nmax-pool = 20",
        "enabled = true\nmax-pool = \"20\"",
        "enabled = true\nmax-pool = \"20 percent\"",
        "enabled = true\nmax-pool = \"0%\"",
        "enabled = true\nmax-pool = \"1MiB\"",
        "enabled = true\nmax-pool = \"101%\"",
        "enabled = true\naccept-threshold = 0",
        "enabled = true\naccept-threshold = 101",
        "enabled = true\nshrinker = \"yes\"",
        "enabled = true\nmax_pool_percent = 20",
        "enabled = true\nzpool = \"zsmalloc\"",
    ] {
        let loaded = load(&format!("[zswap]\n{section}\n"));
        let plan = engine::plan(&machine().process(), &loaded, Activation::Direct).unwrap();
        assert!(plan.problems.iter().all(|found: &Finding| found.line() > 0), "{section}");
        assert_eq!(plan.problems.len(), 1, "{section}: {:#?}", plan.problems);
        told += &mistake(section, &plan.problems);
    }
    golden("tests/golden/diagnostics/zswap.txt", &told);
}

#[test]
fn units_enable_it_before_any_swap() {
    let loaded = load(ALL);
    let plan = engine::plan_elsewhere(&machine().process(), &loaded);
    let files: Vec<String> = unit_files(&plan).into_iter().map(|file| file.path).collect();
    assert_eq!(files, ["swap.d/zramd.conf", "swap.target.wants/zramd-zswap.service"]);
    let auto = load("[zswap]\nenabled = true\ncompressor = \"auto\"\n");
    let measures = unit_files(&engine::plan_elsewhere(&machine().process(), &auto));
    assert!(measures.iter().any(|file| file.path == "timers.target.wants/zramd-benchmark.timer"));
    let off = load("[zswap]\nenabled = false\n");
    assert_eq!(unit_files(&engine::plan_elsewhere(&machine().process(), &off)), []);
    // As the unit does, before any swap is active.
    let machine = machine();
    machine.change().disk_swaps.clear();
    let up = engine::up_vm(&mut machine.process(), &loaded, &Target::Zswap).unwrap();
    assert_eq!(up.outcomes[0].errors, []);
    assert_eq!(values(&machine), "Y zstd 40 80 Y");
    assert_eq!(engine::down(&mut machine.process(), &Target::Zswap), Ok(true));
    assert_eq!(values(&machine), BEFORE);
}

/// A distribution that enables zswap, with swap on a disk, has chosen it. At boot, that swap is only in fstab.
#[test]
fn a_shipped_configuration_yields_to_zswap() {
    let decision = |zswap: &str, active: bool, fstab: &str| {
        let machine = machine();
        let mut state = machine.change();
        state.tunables.insert(Tunable::Zswap, zswap.to_owned());
        if !active {
            state.disk_swaps.clear();
        }
        state.further.insert(host::MachineFile::Fstab, fstab.as_bytes().to_vec());
        drop(state);
        let loaded = load("[zram0]\nyield = true\n[vm]\ntune = true\n");
        let here = engine::plan(&machine.process(), &loaded, Activation::Systemd).unwrap();
        let at_boot = engine::plan_elsewhere(&machine.process(), &loaded);
        let decisions = [here, at_boot].map(|plan| plan.item(&Target::Device(0)).unwrap().decision);
        assert_eq!(decisions[0], decisions[1], "{zswap} {active} {fstab}");
        decisions[0]
    };
    for (zswap, active, fstab, expected) in [
        ("Y", true, "", Decision::Skipped),
        ("Y", false, "UUID=1 none swap sw 0 0\n", Decision::Skipped),
        ("Y", false, "# UUID=1 none swap sw 0 0\n/dev/zram0 none swap sw 0 0\n", Decision::Planned),
        ("Y", false, "", Decision::Planned),
        ("N", true, "", Decision::Planned),
    ] {
        assert_eq!(decision(zswap, active, fstab), expected, "{zswap} {active} {fstab}");
    }
}

#[test]
fn its_figures_are_those_of_the_kernel() {
    let machine = machine();
    let snapshot =
        |machine: &SimMachine| engine::sample::snapshot(&machine.process(), &View::default()).unwrap().zswap;
    assert_eq!(snapshot(&machine), None);
    apply(&machine, ALL);
    let mut state = machine.change();
    state.further.insert(host::MachineFile::Meminfo, b"Zswap: 100 kB\nZswapped: 300 kB\n".to_vec());
    state.further.insert(host::MachineFile::Vmstat, b"zswpin 1\nzswpout 80\nzswpwb 5\n".to_vec());
    drop(state);
    let found = snapshot(&machine).unwrap();
    assert_eq!((found.enabled, found.managed, found.algorithm.as_str()), (true, true, "zstd"));
    assert_eq!((found.original_data_bytes, found.memory_used_bytes), (300 << 10, 100 << 10));
    assert_eq!((found.compression_ratio, found.saved_bytes), (3.0, 200 << 10));
    assert_eq!(
        (found.written_bytes, found.read_bytes, found.backing_written_bytes),
        (80 << 12, 1 << 12, 5 << 12)
    );
    // 40 % of 4 GiB.
    assert_eq!((found.memory_limit_bytes, found.swap_size_bytes), ((4 << 30) / 100 * 40, 1 << 30));
    assert_eq!((found.shrinker, found.rejected), (Some(true), None));
    // Disabled, it still holds what it has stored.
    revert(&machine);
    let found = snapshot(&machine).unwrap();
    assert_eq!((found.enabled, found.managed, found.original_data_bytes), (false, false, 300 << 10));
}

/// The advice follows the recorded results: on each disk, the way with the most accesses to frequent pages.
#[test]
fn the_advice_is_that_of_the_recorded_results() {
    let text = std::fs::read_to_string(repository("tests/long/results/tiers.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|found| *found == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    // Medians of the newest commit with five runs.
    let median = |arm: &str, disk: &str| {
        let of = |commit: &str| -> Vec<f64> {
            let is = |row: &&Vec<&str>| {
                [
                    ("commit", commit),
                    ("kernel", "stock"),
                    ("minutes", "5"),
                    ("arm", arm),
                    ("disk", disk),
                    ("mix", "desktop"),
                ]
                .iter()
                .all(|(name, value)| row[column(name)] == *value)
            };
            let mut found: Vec<f64> =
                rows.iter().filter(is).map(|row| row[column("hot_per_s")].parse().unwrap()).collect();
            found.sort_by(f64::total_cmp);
            found
        };
        let newest = rows.iter().rev().map(|row| of(row[column("commit")])).find(|found| found.len() == 5);
        newest.unwrap_or_else(|| panic!("{arm} on {disk} was not measured five times"))[2]
    };
    let machine = Conditions {
        memory_bytes: 1 << 30,
        disk_swap_bytes: 1 << 30,
        has_zswap: true,
        has_shrinker: true,
        ..Conditions::default()
    };
    for (disk, rotates) in [("solid-state", false), ("flash card", false), ("hard disk", true)] {
        let [zswap, write_back, beside] =
            ["zswap, disk", "zramd, write-back", "zram, disk swap"].map(|arm| median(arm, disk));
        assert!(zswap > write_back && write_back > beside, "{disk}: {zswap} {write_back} {beside}");
        let row = Conditions { rotates: Some(rotates), ..machine }.row();
        assert_eq!(row.way, Way::Zswap, "{disk}");
        // Write-back that is configured stays where it is nearly as good.
        let kept = Conditions { rotates: Some(rotates), writes_back: true, ..machine }.row();
        assert_eq!(kept.way == Way::WriteBack, write_back * 2.0 > zswap, "{disk}: {zswap} {write_back}");
        // The figure in the text.
        let before = row.why.split(" times the accesses of zram with write-back").next().unwrap();
        let figure: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((zswap / write_back / figure - 1.0).abs() < 0.05, "{disk}: {} {figure}", zswap / write_back);
    }
}
