//! The generator: its units, nothing besides them, and that systemd accepts them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::apart::command_for;
use crate::support::{SETUP, eventually, golden, repository, setup, texts};
use logic::record::Target;

/// Files below a directory with their texts; links with an arrow.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    fn walk(directory: &Path, prefix: &str, out: &mut BTreeMap<String, String>) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let path = entry.path();
            if path.is_symlink() {
                out.insert(name, format!("-> {}\n", fs::read_link(&path).unwrap().display()));
            } else if path.is_dir() {
                walk(&path, &format!("{name}/"), out);
            } else {
                out.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(directory, "", &mut out);
    out
}

fn as_text(tree: &BTreeMap<String, String>) -> String {
    tree.iter().map(|(path, text)| format!("==> {path}\n{text}\n")).collect()
}

/// A root directory with this configuration on a machine with 8 GiB.
fn root(config: &str, enabled: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB\n");
    write("proc/cmdline", "quiet\n");
    write("etc/passwd", "build:x:1000:1000::/:/bin/sh\n");
    write("etc/group", "build:x:1000:\n");
    write("etc/zramd/zramd.toml", config);
    if enabled {
        let wants = root.path().join("etc/systemd/system/multi-user.target.wants");
        fs::create_dir_all(&wants).unwrap();
        std::os::unix::fs::symlink("/usr/lib/systemd/system/zramd.service", wants.join("zramd.service"))
            .unwrap();
    }
    root
}

fn generate(root: &Path) -> (BTreeMap<String, String>, String) {
    let out = root.join("generated");
    fs::remove_dir_all(&out).ok();
    fs::create_dir_all(&out).unwrap();
    let mut before = tree(root);
    before.retain(|path, _| !path.starts_with("generated/"));
    let output = setup(&["--root", root.to_str().unwrap(), "generate", out.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let mut after = tree(root);
    after.retain(|path, _| !path.starts_with("generated/"));
    assert_eq!(after, before, "nothing outside the directory is touched");
    (tree(&out), texts(&output).1)
}

const CONFIGURATION: &str = include_str!("../systemd/configurations/all-units.toml");

#[test]
fn the_units_are_as_in_the_golden_file() {
    let root = root(CONFIGURATION, true);
    let (units, messages) = generate(root.path());
    golden("tests/golden/units/everything.txt", &as_text(&units));
    assert!(messages.contains("zramd.toml:25:14: zram5.zram-size"), "{messages}");
    assert_eq!(generate(root.path()).0, units, "a second run writes the same");
}

#[test]
fn nothing_is_written_unless_zramd_is_enabled() {
    let disabled = root("[zram0]\n", false);
    let (units, messages) = generate(disabled.path());
    assert!(units.is_empty());
    assert!(messages.contains("zramd.service"), "{messages}");
    fs::write(disabled.path().join("proc/cmdline"), "systemd.zram=1").unwrap();
    assert!(!generate(disabled.path()).0.is_empty());
    let enabled = root("[zram0]\n", true);
    fs::write(enabled.path().join("proc/cmdline"), "systemd.zram=0").unwrap();
    assert!(generate(enabled.path()).0.is_empty());
    fs::write(enabled.path().join("proc/cmdline"), "").unwrap();
    std::os::unix::fs::symlink("/dev/null", enabled.path().join("etc/systemd/system/zramd.service")).unwrap();
    assert!(generate(enabled.path()).0.is_empty(), "a masked service is not enabled");
}

/// PID 1 has units generated anew whenever it reloads, and what is in use has still to be saved.
#[test]
fn a_ramdisk_keeps_its_units_while_it_is_mounted() {
    let section = "[ramdisk.logs]\nmount-point = \"/logs\"\nsize = \"1MiB\"\npersist = \"snapshot\"\n";
    let root = root(section, false);
    let path = |path: &str| root.path().join(path);
    let units = || {
        let units = generate(root.path()).0;
        let binding = units.get("zramd-ramdisk@logs.service.d/ramdisk.conf").cloned();
        (binding, units.contains_key("zramd-ramdisk-save@logs.timer"))
    };
    for directory in ["proc/self", "run/zramd/ramdisks"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    let mounts = |place: &str| {
        let line = format!("30 25 0:30 / /run/zramd/{place} rw - tmpfs tmpfs rw\n");
        fs::write(path("proc/self/mountinfo"), line).unwrap();
    };
    let in_force = r#"{"name":"logs","place":"/run/zramd/ramdisk/logs","mount_point":"/logs","keep":{"mode":"snapshot","store":"/srv/logs",
        "generations":3,"save_interval":60,"on_failure":null,"seed":false,"pre_save":[],"post_restore":[],"hook_time_limit":60,
        "time_limit":600},"store_limit":null,"daily_budget":null,"notes":null,"spared":null,"trial":false}"#;
    mounts("ramdisk/logs");
    assert_eq!(units(), (None, false), "another program's");
    fs::write(path("run/zramd/ramdisks/logs.request"), in_force).unwrap();
    mounts("ramdisks");
    assert_eq!(units(), (None, false));
    mounts("ramdisk/logs");
    let (binding, has_timer) = units();
    assert!(binding.unwrap().contains("RequiresMountsFor=/var/lib/zramd/disks/logs\n") && has_timer);
    // Without a section that can be used, what is in force counts.
    fs::write(path("etc/zramd/zramd.toml"), "[ramdisk.logs]\nmount-point = 1\n").unwrap();
    let (binding, has_timer) = units();
    assert!(binding.unwrap().contains("RequiresMountsFor=/srv/logs\n") && has_timer);
}

#[test]
fn nothing_is_written_while_a_crash_dump_is_saved() {
    let root = root("[zram0]\n", true);
    fs::write(root.path().join("proc/vmcore"), "").unwrap();
    assert!(generate(root.path()).0.is_empty());
}

/// As when Debian's zram-generator is installed, removed with its configuration left, and installed without one.
#[test]
fn a_section_that_yields_has_no_units_beside_another_program() {
    let root = root("[zram0]\nyield = true\n[zram1]\n", true);
    let path = |path: &str| root.path().join(path);
    let swaps = || {
        let units = generate(root.path()).0;
        ["dev-zram0.swap", "dev-zram1.swap"].map(|unit| units.contains_key(unit))
    };
    assert_eq!(swaps(), [true, true]);
    let generators = path("usr/lib/systemd/system-generators");
    fs::create_dir_all(&generators).unwrap();
    fs::write(generators.join("zram-generator"), "program").unwrap();
    assert_eq!(swaps(), [true, true], "it has no configuration");
    fs::write(path("etc/systemd/zram-generator.conf"), "[zram0]\n").unwrap();
    assert_eq!(swaps(), [false, true]);
    fs::remove_file(generators.join("zram-generator")).unwrap();
    assert_eq!(swaps(), [true, true], "only its configuration is left");
}

#[test]
fn no_configuration_is_no_mistake() {
    assert!(generate(root("# nothing\n", true).path()).0.is_empty());
}

#[test]
fn a_named_file_shows_its_units_whether_enabled_or_not() {
    let out = tempfile::tempdir().unwrap();
    let file = repository("config/example.toml");
    let output = setup(&["--config", file.to_str().unwrap(), "generate", out.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(tree(out.path()).contains_key("dev-zram0.swap"));
}

/// Without this capability the kernel refuses to read the memory of processes of other users.
#[test]
fn the_benchmark_can_read_memory_of_processes_only_where_the_configuration_says_so() {
    let capabilities = |lines: Vec<(String, String)>| {
        let sets = lines.into_iter().filter(|(key, _)| key == "CapabilityBoundingSet");
        sets.flat_map(|(_, value)| value.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let of_unit = capabilities(packaged("zramd-benchmark.service"));
    assert!(!of_unit.is_empty() && !of_unit.iter().any(|name| name == "CAP_SYS_PTRACE"), "{of_unit:?}");
    let drop_in =
        |config: &str| generate(root(config, true).path()).0.remove("zramd-benchmark.service.d/zramd.conf");
    assert_eq!(drop_in("[benchmark]\nsample = \"public\"\n[zram0]\n"), None);
    assert_eq!(drop_in("[benchmark]\nsample = \"swap\"\n[zram0]\n"), None);
    let text = drop_in("[benchmark]\nsample = \"processes\"\n[zram0]\n").unwrap();
    assert!(text.ends_with("[Service]\nCapabilityBoundingSet=CAP_SYS_PTRACE\n"), "{text}");
}

#[test]
fn the_benchmark_runs_when_the_configuration_says_so() {
    let wants = |config: &str| -> Vec<String> {
        let (units, _) = generate(root(config, true).path());
        units.into_keys().filter(|path| path.contains("zramd-benchmark")).collect()
    };
    let auto = "compression-algorithm = \"auto\"\n";
    let devices = format!("[zram0]\n{auto}[zram1]\nmount-point = \"/a\"\n{auto}[zram2]\n");
    assert_eq!(wants(&devices), ["timers.target.wants/zramd-benchmark.timer"]);
    assert_eq!(
        wants(&format!("[benchmark]\nwhen = \"boot\"\n{devices}")),
        [0, 1].map(|number| format!("zramd-setup@zram{number}.service.wants/zramd-benchmark-boot.service"))
    );
    let none: [&str; 0] = [];
    assert_eq!(wants(&format!("[benchmark]\nwhen = \"never\"\n{devices}")), none);
    assert_eq!(wants("[zram2]\ncompression-algorithm = \"lz4\"\n"), none);
}

#[test]
fn maintenance_has_a_timer_with_its_interval() {
    let timer = |config: &str| generate(root(config, true).path()).0.remove("zramd-maintenance.timer");
    assert_eq!(timer("[zram0]\n"), None);
    let text = timer("[zram0]\nrecompression-algorithm = \"zstd\"\n[maintenance]\nrecompress.enabled = true\ninterval = \"90min\"\n").unwrap();
    assert!(text.contains("OnActiveSec=1h 30min\nOnUnitActiveSec=1h 30min\n"), "{text}");
}

/// A slice keeps at most what the slices that contain it keep.
#[test]
fn sessions_keep_memory_where_compressed_swap_is_configured() {
    let kept = |config: &str| -> Vec<String> {
        let (units, _) = generate(root(config, true).path());
        let kept = units.into_iter().filter(|(path, _)| path.ends_with("/zramd.conf"));
        kept.map(|(path, text)| format!("{path} {}", text.lines().last().unwrap())).collect()
    };
    let vm = "[vm]\nprotect-sessions = \"min(ram / 8, 256MiB)\"\n";
    let expected = [
        "init.scope.d/zramd.conf MemoryMin=134217728",
        "system.slice.d/zramd.conf MemoryMin=134217728",
        "user-.slice.d/zramd.conf MemoryMin=268435456",
        "user.slice.d/zramd.conf MemoryMin=268435456",
        "user@.service.d/zramd.conf MemoryMin=268435456",
    ];
    assert_eq!(kept(&format!("[zram0]\n{vm}")), expected);
    let none: [&str; 0] = [];
    assert_eq!(kept("[zram0]\n[vm]\nprotect-sessions = \"none\"\n"), none);
    assert_eq!(kept(&format!("[zram0]\nmount-point = \"/a\"\n{vm}")), none);
    assert_eq!(kept(&format!("[zram0]\nzram-size = 0\n{vm}")), none);
    let (units, messages) = generate(root("[zram0]\n[vm]\nprotect-sessions = \"ram * 0.26\"\n", true).path());
    assert!(messages.contains("zramd.toml:3:20: "), "{messages}");
    assert!(!units.contains_key("user.slice.d/zramd.conf") && units.contains_key("dev-zram0.swap"));
}

/// Every assignment in a packaged unit.
fn packaged(name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(repository(&format!("units/{name}"))).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_daemon_is_restarted_however_often_it_fails() {
    let lines = packaged("zramd.service");
    let value = |key: &str| -> Vec<&str> {
        lines.iter().filter(|(found, _)| found == key).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(value("StartLimitIntervalSec"), ["0"]);
    assert_eq!(value("Restart"), ["on-failure"]);
    assert_eq!(value("RestartSec"), ["5s"]);
}

#[test]
fn every_unit_that_runs_the_worker_has_a_memory_limit() {
    let mut units = 0;
    for entry in fs::read_dir(repository("units")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let lines = packaged(&name);
        let is_worker =
            |(key, value): &(String, String)| key == "ExecStart" && value.contains("/zramd-worker ");
        if !lines.iter().any(is_worker) {
            continue;
        }
        units += 1;
        assert!(lines.iter().any(|(key, _)| key == "MemoryMax"), "{name}");
        // Its memory depends on the contents of the disk.
        let is_spared = lines.iter().any(|(key, value)| key == "OOMScoreAdjust" && value.starts_with('-'));
        assert!(!(name.starts_with("zramd-ramdisk") && is_spared), "{name}");
    }
    assert_eq!(units, 9);
}

/// Links to swap of other programs are kept.
#[test]
fn udev_removes_links_only_where_zramd_has_a_record() {
    let rules = fs::read_to_string(repository("units/99-zramd.rules")).unwrap();
    let record = format!("/run/zramd/{}", Target::Device(0).file_name()).replace("zram0", "$kernel");
    let rules: Vec<&str> = rules.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!rules.is_empty());
    for rule in rules {
        assert!(rule.split(", ").any(|word| word == format!("TEST==\"{record}\"")), "{rule}");
    }
}

/// Observed while it writes its last file, which is a full pipe and so blocks it.
#[test]
fn the_generator_starts_no_child() {
    use rustix::fs::{CWD, FileType, Mode, OFlags};
    let root = root(CONFIGURATION, true);
    let out = root.path().join("generated");
    let last = out.join("zramd-setup@zram3.service.d");
    fs::create_dir_all(&last).unwrap();
    let path = last.join("bindings.conf");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let pipe =
        rustix::fs::open(&path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).unwrap();
    while rustix::io::write(&pipe, &[b'x'; 4096]).is_ok() {}
    let mut child = command_for(SETUP)
        .args(["--root", root.path().to_str().unwrap(), "generate", out.to_str().unwrap()])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let stat = || -> Vec<String> {
        proc("stat").rsplit(") ").next().unwrap().split(' ').map(str::to_owned).collect()
    };
    let is_waiting = || stat()[0] == "S" && proc("comm").starts_with("zramd-setup");
    eventually("it waits at the last file", is_waiting);
    let faults_of_children = stat()[8].clone();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(faults_of_children, "0", "no child was waited for");
}
