//! `report`: one file about this machine that can be sent to others.
//!
//! Nothing private is in it because nothing private can be: its types hold numbers and words of this program only, and no
//! text of the machine. What is not listed here is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Serialize, Serializer};

use super::args::{Cli, Json};
use super::{doctor, out, problems, read};
use bench::keep;
use bench::report as benchmark;
use engine::{Error, gather};
use host::linux::files;
use host::{Host, MachineFile};
use logic::device::algorithm::known_name;
use logic::device::attribute::Attribute;
use logic::exit::ExitStatus;
use logic::finding::{Code, Finding, Level};
use logic::health;
use logic::human::human;
use logic::proc::{SwapLine, device_number};
use logic::ramdisk::Persist;
use logic::ramdisk::status::{LoadState, SaveResult};
use logic::sample::{
    DeviceView, MemoryView, RamdiskView, RoleView, SCHEMA_VERSION, Snapshot, StateView, Stats,
};
use logic::verdict::Stored;
use logic::vm::Tunable;

/// The usual name of the file.
pub const FILE: &str = "zramd-report.json";
/// Stands for each word that is not in the list.
const OTHER: &str = "other";
/// As in os-release(5).
const DISTRIBUTIONS: [&str; 16] = [
    "almalinux",
    "alpine",
    "arch",
    "armbian",
    "centos",
    "debian",
    "fedora",
    "gentoo",
    "linuxmint",
    "manjaro",
    "nixos",
    "opensuse-leap",
    "opensuse-tumbleweed",
    "raspbian",
    "ubuntu",
    "void",
];
const ARCHITECTURES: [&str; 10] =
    ["aarch64", "arm", "loongarch64", "mips64", "powerpc", "powerpc64", "riscv64", "s390x", "x86", "x86_64"];
const VENDORS: [&str; 4] = ["AuthenticAMD", "CentaurHauls", "GenuineIntel", "HygonGenuine"];
/// Lines of `/proc/cpuinfo` that name a processor by numbers; the others are not read, as there is `Serial` among them.
const IDENTIFIERS: [&str; 8] = [
    "cpu family",
    "model",
    "stepping",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];
const FILE_SYSTEMS: [&str; 6] = ["btrfs", "ext2", "ext4", "f2fs", "tmpfs", "xfs"];
const SOURCES: [&str; 5] = ["calibrated", "file", "generator", "processes", "swap"];
/// Options of the kernel, without `CONFIG_`.
const OPTIONS: [&str; 24] = [
    "HIBERNATION",
    "LRU_GEN",
    "LRU_GEN_ENABLED",
    "MEMCG",
    "PSI",
    "PSI_DEFAULT_DISABLED",
    "SUSPEND",
    "SWAP",
    "TMPFS_XATTR",
    "ZRAM",
    "ZRAM_BACKEND_842",
    "ZRAM_BACKEND_DEFLATE",
    "ZRAM_BACKEND_LZ4",
    "ZRAM_BACKEND_LZ4HC",
    "ZRAM_BACKEND_LZO",
    "ZRAM_BACKEND_ZSTD",
    "ZRAM_MEMORY_TRACKING",
    "ZRAM_MULTI_COMP",
    "ZRAM_TRACK_ENTRY_ACTIME",
    "ZRAM_WRITEBACK",
    "ZSMALLOC",
    "ZSMALLOC_STAT",
    "ZSWAP",
    "ZSWAP_DEFAULT_ON",
];
/// `/sys/power/state` and `/sys/power/mem_sleep`.
const SLEEP: [&str; 7] = ["deep", "disk", "freeze", "mem", "s2idle", "shallow", "standby"];

/// The same word from the list, or [`OTHER`].
fn known(word: &str, list: &[&'static str]) -> &'static str {
    list.iter().find(|known| **known == word).copied().unwrap_or(OTHER)
}

fn algorithm(name: &str) -> &'static str {
    known_name(name).unwrap_or(OTHER)
}

/// The words of a text that are in the list.
fn words(text: &str, list: &[&'static str]) -> BTreeSet<&'static str> {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
    text.split_whitespace().map(|word| known(&bare(word), list)).filter(|word| *word != OTHER).collect()
}

/// The first three numbers of a version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "String"))]
struct Version(Vec<u16>);

impl Version {
    /// Of a text that begins with it. A number that is too large ends it: it is a date or an address.
    fn of(text: &str) -> Version {
        let words = text.trim().split(|letter: char| !letter.is_ascii_digit());
        Version(words.map_while(|word| word.parse().ok()).take(3).collect())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&words.join("."))
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A machine and its compressed memory, in numbers and words of zramd: no name, path, address or text of the machine.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "report"))]
pub(super) struct Document {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// Versions of the software.
    versions: Versions,
    /// The hardware.
    machine: Hardware,
    /// What the kernel offers.
    kernel: Kernel,
    /// Microseconds since boot, excluding suspend.
    timestamp_monotonic_usec: u64,
    /// Memory of the machine.
    memory: MemoryView,
    /// All zram devices.
    devices: Vec<Device>,
    /// RAM disks of zramd, in the order of their names.
    ramdisks: Vec<Ramdisk>,
    /// Active swap on disks.
    other_swap: Vec<OtherSwap>,
    /// The verdict of the benchmark; null if there is none.
    benchmark: Option<Benchmark>,
    /// The findings of doctor, worst first.
    checks: Vec<Check>,
}

/// Versions of the software.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportVersions"))]
struct Versions {
    /// zramd.
    zramd: &'static str,
    /// The kernel: three numbers of its release.
    kernel: Version,
    /// systemd; empty where it does not run.
    systemd: Version,
    /// `ID` of os-release(5), or `other`.
    distribution: &'static str,
    /// `VERSION_ID`; empty where there is none.
    distribution_version: Version,
}

/// The hardware.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportMachine"))]
struct Hardware {
    /// Architecture of the programs.
    architecture: &'static str,
    /// CPUs online.
    cpus: u32,
    /// The kinds of processors.
    processors: BTreeSet<Processor>,
    /// Whether x86 processors say that this is a virtual machine.
    hypervisor: bool,
    /// Bytes per page.
    page_size_bytes: u64,
}

/// A kind of processor.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportProcessor"))]
struct Processor {
    /// `vendor_id` on x86, or `other`.
    vendor: &'static str,
    /// Numbers in `/proc/cpuinfo` that identify it.
    identifiers: BTreeMap<&'static str, u32>,
}

/// What the kernel offers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportKernel"))]
struct Kernel {
    /// Options with which it was built: `y` or `m`. Empty if its configuration cannot be read.
    options: BTreeMap<&'static str, &'static str>,
    /// Attributes of a zram device; empty if there is none.
    attributes: BTreeSet<&'static str>,
    /// Algorithms of a zram device; empty if there is none.
    algorithms: BTreeSet<&'static str>,
    /// Settings for memory management.
    settings: BTreeMap<&'static str, i64>,
    /// Whether zswap is on; null if the kernel lacks it.
    zswap: Option<bool>,
    /// Whether the multi-generational LRU is on; null if the kernel lacks it.
    lru_gen: Option<bool>,
    /// Whether memory pressure is reported.
    pressure: bool,
    /// Ways to sleep.
    sleep: BTreeSet<&'static str>,
    /// Whether the kernel has a device to resume from.
    resume: bool,
    /// Whether the command line has an option for zram or zswap.
    command_line: bool,
}

/// A zram device.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportDevice"))]
struct Device {
    /// N of `zramN`.
    number: u32,
    /// Whether zramd set it up.
    managed: bool,
    /// Use.
    role: RoleView,
    /// State.
    state: StateView,
    /// `disksize`.
    disk_size_bytes: u64,
    /// `mem_limit`; 0 for none.
    memory_limit_bytes: u64,
    /// Primary algorithm.
    algorithm: &'static str,
    /// Its level, if one is configured.
    level: Option<i64>,
    /// Secondary algorithms and their priorities.
    recompression_algorithms: Vec<(u32, &'static str)>,
    /// Whether it has a backing device.
    has_backing: bool,
    /// Swap priority, if it is active swap.
    priority: Option<i32>,
    /// Bytes of swap slots in use, if it is active swap.
    swap_used_bytes: Option<u64>,
    /// File system, if it is mounted.
    file_system: Option<&'static str>,
    /// Counters.
    stats: Stats,
}

/// A RAM disk.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportRamDisk"))]
struct Ramdisk {
    /// File system.
    file_system: &'static str,
    /// Whether it is on a zram device.
    on_zram: bool,
    /// Whether it is mounted.
    mounted: bool,
    /// Size in bytes.
    size_bytes: u64,
    /// Bytes in use.
    used_bytes: u64,
    /// Which contents are kept over reboots.
    persistence: Persist,
    /// Load state.
    load_state: LoadState,
    /// Duration of the load in microseconds.
    load_took_usec: u64,
    /// Result of the last save.
    last_save_result: SaveResult,
    /// Number of snapshots.
    snapshots: usize,
    /// Their size in bytes.
    store_bytes: u64,
}

/// Swap on a disk.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportSwap"))]
struct OtherSwap {
    /// Priority.
    priority: i32,
    /// Size in bytes.
    size_bytes: u64,
    /// Bytes in use.
    used_bytes: u64,
}

/// The verdict of the benchmark.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportBenchmark"))]
struct Benchmark {
    /// The configured profile.
    profile: &'static str,
    /// Kind of the sample: `swap`, `processes`, `calibrated`, `generator` or `file`.
    source: &'static str,
    /// Number of CPUs used to measure throughput.
    threads: u32,
    /// Results by algorithm, the chosen one first.
    results: Vec<Measured>,
}

/// Results of an algorithm.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportResult"))]
struct Measured {
    /// The algorithm.
    algorithm: &'static str,
    /// Its level, if it is not the default.
    level: Option<i64>,
    /// Bytes stored per byte of memory that holds them.
    ratio: f64,
    /// Median of swapping in one page, in nanoseconds.
    read_p50_ns: f64,
    /// 99th percentile of that.
    read_p99_ns: f64,
    /// Throughput of all CPUs together.
    read_bytes_per_second: f64,
    /// Median of swapping out one page, in nanoseconds.
    write_p50_ns: f64,
    /// 99th percentile of that.
    write_p99_ns: f64,
    /// Throughput of all CPUs together.
    write_bytes_per_second: f64,
}

/// A finding of doctor, without its message.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReportCheck"))]
struct Check {
    /// Severity.
    level: Level,
    /// Code.
    code: Code,
    /// N of the `zramN` concerned; null for anything else.
    device: Option<u32>,
}

/// What the document is made of, as read. Everything here may be private.
#[derive(Debug, Default)]
struct Raw {
    snapshot: Snapshot,
    attributes: Vec<Attribute>,
    settings: Vec<(Tunable, String)>,
    swaps: Vec<SwapLine>,
    benchmark: Option<Stored<benchmark::Report>>,
    architecture: String,
    cpus: u32,
    has_pressure: bool,
    release: String,
    cpuinfo: String,
    cmdline: String,
    resume: String,
    config: String,
    os_release: String,
    systemd: String,
    lru_gen: String,
    sleep: String,
}

pub fn run(cli: &Cli, file: Option<&Path>) -> Result<ExitStatus, Error> {
    let document = document(&collect(cli)?);
    let text = out::json(&document, Json::Pretty)?;
    let path = file.unwrap_or(Path::new(FILE));
    if path == Path::new("-") {
        out::data(&text);
    } else {
        write(path, &text)?;
        out::text(&overview(&document, path, text.len()));
    }
    Ok(ExitStatus::Success)
}

/// Writes a new file, and never follows a link.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let path = path.display();
        match error.kind() {
            ErrorKind::AlreadyExists => Error::failed(format!(
                "{path} exists already, and is not overwritten; name another file, as in `zramdctl report new.json`"
            )),
            _ => Error::failed(format!("{path}: {error}")),
        }
    })
}

fn collect(cli: &Cli) -> Result<Raw, Error> {
    let examined = doctor::examine(cli, false)?;
    let host = read::host();
    let text = |path: &str| files::read_optional(Path::new("/"), path).unwrap_or_default();
    let machine = |file| host.text(file).unwrap_or_default();
    let release = machine(MachineFile::KernelRelease);
    let configs =
        [format!("/boot/config-{}", release.trim()), format!("/lib/modules/{}/config", release.trim())];
    let specimen = examined.snapshot.devices.first().map(|device| device.number);
    let has = |attribute: &Attribute| specimen.is_some_and(|number| host.has_attribute(number, *attribute));
    Ok(Raw {
        attributes: Attribute::ALL.into_iter().filter(has).collect(),
        settings: Tunable::ALL
            .into_iter()
            .filter_map(|one| Some((one, host.read_tunable(one).ok()?)))
            .collect(),
        swaps: gather::swaps(&host).unwrap_or_default(),
        benchmark: keep::stored(&host, examined.loaded.settings.benchmark.profile).ok(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpus: host.cpus(),
        has_pressure: host.text(MachineFile::MemoryPressure).is_ok(),
        cpuinfo: machine(MachineFile::Cpuinfo),
        cmdline: machine(MachineFile::Cmdline),
        resume: machine(MachineFile::Resume),
        config: configs.iter().map(|path| text(path)).find(|text| !text.is_empty()).unwrap_or_default(),
        os_release: Some(text("/etc/os-release"))
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| text("/usr/lib/os-release")),
        systemd: doctor::systemctl(&["--version"]).unwrap_or_default(),
        lru_gen: text("/sys/kernel/mm/lru_gen/enabled"),
        sleep: format!("{} {}", text("/sys/power/state"), text("/sys/power/mem_sleep")),
        release,
        snapshot: examined.snapshot,
    })
}

fn document(raw: &Raw) -> Document {
    let snapshot = &raw.snapshot;
    let os_release = |key: &str| {
        let mut lines = raw.os_release.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches(['"', '\''])
    };
    Document {
        schema_version: SCHEMA_VERSION,
        versions: Versions {
            zramd: env!("CARGO_PKG_VERSION"),
            kernel: Version::of(&raw.release),
            // `systemd 257 (257.8-1)`
            systemd: Version::of(
                raw.systemd
                    .strip_prefix("systemd ")
                    .unwrap_or_default()
                    .split(' ')
                    .next()
                    .unwrap_or_default(),
            ),
            distribution: known(os_release("ID"), &DISTRIBUTIONS),
            distribution_version: Version::of(os_release("VERSION_ID")),
        },
        machine: hardware(raw),
        kernel: kernel(raw),
        timestamp_monotonic_usec: snapshot.timestamp_monotonic_usec,
        memory: snapshot.memory,
        devices: snapshot.devices.iter().map(device).collect(),
        ramdisks: snapshot.ramdisks.iter().map(ramdisk).collect(),
        other_swap: raw.swaps.iter().filter(|swap| swap.zram_number().is_none()).map(other_swap).collect(),
        benchmark: raw.benchmark.as_ref().map(verdict),
        checks: raw.snapshot.problems.iter().map(check).collect(),
    }
}

fn hardware(raw: &Raw) -> Hardware {
    // One block per CPU.
    let processor = |block: &str| {
        let field = |name: &str| {
            let mut fields = block.lines().filter_map(|line| line.split_once(':'));
            fields.find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
        };
        let number = |name: &&'static str| {
            let text = field(name)?;
            let number = match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => text.parse(),
            };
            Some((*name, number.ok()?))
        };
        let identifiers: BTreeMap<_, _> = IDENTIFIERS.iter().filter_map(number).collect();
        let vendor = field("vendor_id").map_or(OTHER, |word| known(&word, &VENDORS));
        (!identifiers.is_empty()).then_some(Processor { vendor, identifiers })
    };
    let flags =
        |line: &str| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor");
    Hardware {
        architecture: known(&raw.architecture, &ARCHITECTURES),
        cpus: raw.cpus,
        processors: raw.cpuinfo.split("\n\n").filter_map(processor).collect(),
        hypervisor: raw.cpuinfo.lines().any(flags),
        page_size_bytes: raw.snapshot.page_size_bytes,
    }
}

fn kernel(raw: &Raw) -> Kernel {
    let option = |name: &&'static str| {
        let mut lines = raw.config.lines();
        let value =
            lines.find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(name)?.strip_prefix('='))?;
        Some((*name, known(value, &["y", "m"]))).filter(|(_, value)| *value != OTHER)
    };
    let is_on = |text: &str| match text.trim() {
        "Y" => Some(true),
        "N" => Some(false),
        text => Some(i64::from_str_radix(text.strip_prefix("0x")?, 16).ok()? != 0),
    };
    let words = |word: &&str| {
        word.starts_with("zswap.") || word.starts_with("zram.") || word.starts_with("systemd.zram")
    };
    let zswap = raw.settings.iter().find(|(tunable, _)| *tunable == Tunable::Zswap);
    let devices = raw.snapshot.devices.iter();
    Kernel {
        options: OPTIONS.iter().filter_map(option).collect(),
        attributes: raw.attributes.iter().map(|attribute| attribute.file_name()).collect(),
        algorithms: devices
            .flat_map(|device| &device.available_algorithms)
            .map(|name| algorithm(name))
            .collect(),
        settings: raw
            .settings
            .iter()
            .filter_map(|(one, value)| Some((one.name(), value.trim().parse().ok()?)))
            .collect(),
        zswap: zswap.and_then(|(_, value)| is_on(value)),
        lru_gen: is_on(&raw.lru_gen),
        pressure: raw.has_pressure,
        sleep: self::words(&raw.sleep, &SLEEP),
        resume: health::hibernates(&raw.cmdline, &raw.resume),
        command_line: raw.cmdline.split_whitespace().any(|word| words(&word)),
    }
}

fn device(view: &DeviceView) -> Device {
    Device {
        number: view.number,
        managed: view.managed,
        role: view.role,
        state: view.state,
        disk_size_bytes: view.disk_size_bytes,
        memory_limit_bytes: view.memory_limit_bytes,
        algorithm: algorithm(&view.algorithm),
        level: view.algorithm_parameters.get("level").and_then(|level| level.parse().ok()),
        recompression_algorithms: view
            .recompression_algorithms
            .iter()
            .map(|(priority, name)| (*priority, algorithm(name)))
            .collect(),
        has_backing: !view.backing_device.is_empty(),
        priority: view.swap.map(|swap| swap.priority),
        swap_used_bytes: view.swap.map(|swap| swap.used_bytes),
        file_system: view.mount.as_ref().map(|mount| known(&mount.fs_type, &FILE_SYSTEMS)),
        stats: view.stats,
    }
}

fn ramdisk(view: &RamdiskView) -> Ramdisk {
    Ramdisk {
        file_system: known(&view.fs_type, &FILE_SYSTEMS),
        on_zram: !view.device.is_empty(),
        mounted: view.mounted,
        size_bytes: view.size_bytes,
        used_bytes: view.used_bytes,
        persistence: view.persistence,
        load_state: view.status.load_state,
        load_took_usec: view.status.load_took_usec,
        last_save_result: view.status.last_save_result,
        snapshots: view.status.snapshots.len(),
        store_bytes: view.status.store_bytes,
    }
}

fn other_swap(line: &SwapLine) -> OtherSwap {
    OtherSwap { priority: line.priority, size_bytes: line.size_kib << 10, used_bytes: line.used_kib << 10 }
}

fn verdict(stored: &Stored<benchmark::Report>) -> Benchmark {
    let result = |row: &benchmark::Row| {
        let level = row.algorithm.parameters.iter().find(|(key, _)| key == "level");
        Measured {
            algorithm: algorithm(&row.algorithm.name),
            level: level.and_then(|(_, level)| level.parse().ok()),
            ratio: row.ratio_total,
            read_p50_ns: row.read.p50_ns,
            read_p99_ns: row.read.p99_ns,
            read_bytes_per_second: row.read.bytes_per_second.value,
            write_p50_ns: row.write.p50_ns,
            write_p99_ns: row.write.p99_ns,
            write_bytes_per_second: row.write.bytes_per_second.value,
        }
    };
    Benchmark {
        profile: stored.profile.word(),
        source: known(&stored.report.data.source, &SOURCES),
        threads: stored.report.threads,
        results: stored.report.results.iter().map(result).collect(),
    }
}

fn check(finding: &Finding) -> Check {
    Check { level: finding.level, code: finding.code, device: device_number(&finding.object) }
}

/// What was written, and where.
fn overview(document: &Document, path: &Path, bytes: usize) -> String {
    let Document { versions, machine, memory, devices, ramdisks, checks, .. } = document;
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let or_none =
        |version: &Version| if version.0.is_empty() { "none".to_owned() } else { version.to_string() };
    let checked = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Note, "note")]
        .map(|(level, name)| problems::plural(count(level), name))
        .join(", ");
    let lines = [
        (
            "versions",
            format!(
                "zramd {}, Linux {}, systemd {}",
                versions.zramd,
                versions.kernel,
                or_none(&versions.systemd)
            ),
        ),
        (
            "distribution",
            format!("{} {}", versions.distribution, versions.distribution_version).trim().to_owned(),
        ),
        (
            "machine",
            format!(
                "{}, {}, {} of memory, pages of {}",
                machine.architecture,
                problems::plural(machine.cpus as usize, "CPU"),
                human(memory.total_bytes),
                human(machine.page_size_bytes)
            ),
        ),
        (
            "figures",
            format!(
                "{}, {}",
                problems::plural(devices.len(), "zram device"),
                problems::plural(ramdisks.len(), "RAM disk")
            ),
        ),
        (
            "benchmark",
            if document.benchmark.is_some() { "yes" } else { "none; `zramdctl bench run` makes one" }
                .to_owned(),
        ),
        ("checks", checked),
    ];
    let mut text = format!("{}: {} of JSON\n", path.display(), human(bytes as u64));
    for (name, value) in lines {
        text.push_str(&format!("  {name:<13}{value}\n"));
    }
    text.push_str("No names, paths, addresses or serial numbers are in it. It was sent nowhere.\n");
    text
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture;
    use logic::verdict::Key;

    /// Replaces all texts of a value, and the keys of its maps, that can be any text: those of fixed words cannot.
    fn plant<T: Serialize + DeserializeOwned>(value: &T, secret: &str) -> T {
        fn strings(value: &Value, path: &str, found: &mut Vec<String>) {
            match value {
                Value::String(_) => found.push(path.to_owned()),
                Value::Array(all) => {
                    all.iter().enumerate().for_each(|(at, one)| strings(one, &format!("{path}/{at}"), found));
                }
                Value::Object(all) => {
                    all.iter().for_each(|(key, one)| strings(one, &format!("{path}/{key}"), found));
                }
                _ => {}
            }
        }
        let mut planted = serde_json::to_value(value).unwrap();
        let mut paths = Vec::new();
        strings(&planted, "", &mut paths);
        for path in paths {
            let before = planted.pointer_mut(&path).unwrap().take();
            *planted.pointer_mut(&path).unwrap() = secret.into();
            if T::deserialize(&planted).is_err() {
                *planted.pointer_mut(&path).unwrap() = before;
            }
        }
        T::deserialize(&planted).unwrap()
    }

    fn benchmark() -> Stored<benchmark::Report> {
        let estimate = json!({"value": 1.0, "low": 0.5, "high": 1.5});
        let timing = json!({
            "mean_ns": 2100.5, "p50_ns": 2000.5, "p99_ns": 4000.5, "p999_ns": 9000.5, "codec_ns": estimate,
            "bytes_per_second": {"value": 3.5e9, "low": 3.4e9, "high": 3.6e9}, "requests": 1000
        });
        let row = json!({
            "algorithm": "zstd", "parameters": {"level": "3"}, "ratio_total": 3.5, "ratio_payload": 3.75,
            "incompressible_share": 0.01, "read": timing, "write": timing, "score": 1.5, "score_interval": [1.0, 2.0],
            "excluded": "private"
        });
        let report = json!({
            "schema_version": 3, "data": {
                "source": "swap", "description": "private", "pages": 1000, "page_size": 4096, "same_filled_share": 0.1,
                "incompressible_share": 0.01
            },
            "verdict": {"algorithm": "zstd", "parameters": {"level": "3"}, "page_cluster": 0, "swappiness": 150, "reason": "private"},
            "profile": "balanced", "baseline": {"read_ns": 1.0, "write_ns": 1.0}, "results": [row], "page_clusters": [],
            "threads": 2, "seconds": 5.0, "rounds": 3, "waited_share": 0.01
        });
        let key = Key::new("private", "model name: private", "private", 0, Some(&["private".to_owned()]));
        let stored = json!({
            "schema_version": 2, "measured_unix": 1_790_000_000, "key": key,
            "profile": "balanced", "algorithm": "zstd(level=3)", "better_runs": 0, "page_in_ns": 2000, "report": report
        });
        serde_json::from_value(stored).unwrap()
    }

    /// A machine on which everything that can be any text is `secret`.
    fn machine(secret: &str, snapshot: Snapshot, benchmark: Stored<benchmark::Report>) -> Raw {
        Raw {
            snapshot,
            attributes: vec![Attribute::CompAlgorithm, Attribute::Writeback],
            settings: vec![
                (Tunable::Swappiness, "150".to_owned()),
                (Tunable::PageCluster, secret.to_owned()),
                (Tunable::Zswap, "Y".to_owned()),
            ],
            swaps: vec![
                SwapLine { path: "/dev/zram0".into(), size_kib: 4_194_300, used_kib: 12, priority: 100 },
                SwapLine {
                    path: format!("/{secret}/swap").as_str().into(),
                    size_kib: 1 << 20,
                    used_kib: 0,
                    priority: -2,
                },
            ],
            benchmark: Some(benchmark),
            architecture: "x86_64".to_owned(),
            cpus: 2,
            has_pressure: true,
            release: format!("6.12.48+{secret}-amd64\n"),
            cpuinfo: format!(
                "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 142\nmodel name\t: {secret}\nflags\t\t: fpu hypervisor {secret}\n\n\
                 processor\t: 1\nvendor_id\t: {secret}\nCPU part\t: 0xd08\nCPU revision\t: {secret}\n\n\
                 Hardware\t: {secret}\nSerial\t\t: {secret}\n"
            ),
            cmdline: format!(
                "root=/dev/{secret} ip={secret} resume=UUID={secret} zswap.enabled=1 {secret}\n"
            ),
            resume: "0:0\n".to_owned(),
            config: format!(
                "CONFIG_LOCALVERSION=\"{secret}\"\nCONFIG_ZRAM=m\nCONFIG_SWAP=y\nCONFIG_PSI={secret}\nCONFIG_{secret}=y\n"
            ),
            os_release: format!("NAME={secret}\nID=debian\nVERSION_ID=\"13\"\nHOME_URL={secret}\n"),
            systemd: format!("systemd 257 ({secret})\n+PAM {secret}\n"),
            lru_gen: "0x0007\n".to_owned(),
            sleep: format!("freeze mem disk {secret}\n s2idle [deep]\n"),
        }
    }

    fn written(raw: &Raw) -> (String, String) {
        let document = document(raw);
        let json = out::json(&document, Json::Pretty).unwrap();
        let overview = overview(&document, Path::new("report.json"), 12345);
        (json, overview)
    }

    #[test]
    fn the_report_is_as_in_the_golden_files() {
        let (json, overview) = written(&machine("private", fixture::machine(), benchmark()));
        fixture::golden_file("tests/golden/client/report.json", &json);
        fixture::golden("report", &overview);
        assert!(!json.contains("private"), "{json}");
    }

    #[test]
    fn a_machine_that_shows_nothing_has_a_report_too() {
        let (json, overview) = written(&Raw::default());
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["versions"]["kernel"], "");
        assert!(overview.contains("0 zram devices, 0 RAM disks"), "{overview}");
    }

    #[test]
    fn a_version_is_three_numbers_at_most() {
        for (text, version) in [
            ("6.12.48+deb13-amd64", "6.12.48"),
            ("6.1.0-31-amd64", "6.1.0"),
            ("5.10-john5", "5.10"),
            ("20261125", ""),
            ("rolling", ""),
            ("", ""),
        ] {
            assert_eq!(Version::of(text).to_string(), version, "{text}");
        }
    }

    #[test]
    fn a_file_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        write(&path, "first").unwrap();
        let error = write(&path, "second").unwrap_err();
        assert!(error.message.contains("report.json exists already"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        // Nor is one created where a link leads.
        let (link, there) = (directory.path().join("link"), directory.path().join("there"));
        std::os::unix::fs::symlink(&there, &link).unwrap();
        write(&link, "third").unwrap_err();
        assert!(!there.exists());
    }

    fn secrets_in(value: &impl Debug, secret: &str) -> usize {
        format!("{value:?}").matches(secret).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever texts a machine has, in every field that can have any.
        #[test]
        fn nothing_of_the_machines_own_texts_is_in_it(secret in "Q[A-Za-z/ .\"\n]{1,12}Q") {
            let snapshot = plant(&fixture::machine(), &secret);
            let benchmark = plant(&benchmark(), &secret);
            let escaped = format!("{secret:?}");
            let escaped = escaped.trim_matches('"');
            prop_assert!(secrets_in(&snapshot, escaped) > 60 && secrets_in(&benchmark, escaped) > 5);
            let (json, overview) = written(&machine(&secret, snapshot, benchmark));
            prop_assert!(!json.contains('Q') && !overview.contains('Q'), "{}", json);
        }
    }
}
