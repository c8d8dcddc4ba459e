//! The stored verdict, `/var/lib/zramd/benchmark.json`, and the conditions under which it is valid.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::device::algorithm::{Algorithm, apart};
use crate::human::human;
use crate::word::{of_word, word};

/// Path of the file.
pub const FILE: &str = "/var/lib/zramd/benchmark.json";

/// Version of the file's format. Incremented when older files can no longer be read.
pub const SCHEMA_VERSION: u32 = 2;
/// Version of score, candidates and method. Incremented when they would lead to another verdict.
pub const POLICY_VERSION: u32 = 5;

/// What to optimise for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkProfile"))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Least time per page.
    Latency,
    /// Most memory, unless that takes much processor time.
    #[default]
    Balanced,
    /// Most memory.
    Capacity,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 3] = [Profile::Latency, Profile::Balanced, Profile::Capacity];

    /// Its word in the configuration.
    pub fn word(self) -> &'static str {
        word(self)
    }

    /// Parses the word; `None` if it is unknown.
    pub fn parse(word: &str) -> Option<Profile> {
        of_word(word)
    }
}

/// What a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkKey"))]
pub struct Key {
    /// `/proc/sys/kernel/osrelease`. It also determines the version of zstd.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs online, as the kernel lists them.
    pub cpus: String,
    /// Memory, in KiB; 0 in files of older versions.
    #[serde(default)]
    pub memory_kib: u64,
    /// Algorithms that the kernel offers, sorted by name; `None` if there is no device to read them from.
    pub algorithms: Option<Vec<String>>,
    /// [`POLICY_VERSION`].
    pub policy: u32,
}

impl Key {
    /// The key of a machine, from the texts of `osrelease`, `cpuinfo` and `/sys/devices/system/cpu/online`, and its memory.
    pub fn new(
        osrelease: &str,
        cpuinfo: &str,
        online: &str,
        memory_kib: u64,
        algorithms: Option<&[String]>,
    ) -> Key {
        let algorithms = algorithms.map(|names| {
            let mut names = names.to_vec();
            names.sort();
            names
        });
        Key {
            kernel: osrelease.trim().to_owned(),
            cpu: cpu_model(cpuinfo),
            cpus: online.trim().to_owned(),
            memory_kib,
            algorithms,
            policy: POLICY_VERSION,
        }
    }

    /// What differs on this machine now; `None` if a verdict with this key was measured on such a one.
    pub fn outdated(&self, now: &Key) -> Option<String> {
        let differs = |what: &str, was: &str, is: &str| {
            (was != is).then(|| format!("the {what} is {is} now, and was {was}"))
        };
        let list = |names: &[String]| names.join(", ");
        differs("kernel", &self.kernel, &now.kernel)
            .or_else(|| differs("CPU", &self.cpu, &now.cpu))
            .or_else(|| differs("set of CPUs online", &self.cpus, &now.cpus))
            .or_else(|| {
                // What the kernel takes for itself differs a little from boot to boot.
                let (was, is) = (self.memory_kib, now.memory_kib);
                let is_alike = was == 0 || is == 0 || was.abs_diff(is) <= was / 8;
                let size = |kib: u64| human(kib.saturating_mul(1024));
                if is_alike { None } else { differs("memory", &size(was), &size(is)) }
            })
            .or_else(|| {
                let (was, is) = (self.algorithms.as_ref()?, now.algorithms.as_ref()?);
                differs("list of algorithms", &list(was), &list(is))
            })
            .or_else(|| (self.policy != now.policy).then(|| "zramd uses another method now".to_owned()))
    }
}

/// The CPU model in `/proc/cpuinfo`; its name depends on the architecture.
fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    // x86, RISC-V, POWER, MIPS; then the fields that ARM has instead.
    ["model name", "uarch", "cpu", "cpu model"].into_iter().find_map(field).unwrap_or_else(|| {
        let parts = ["CPU implementer", "CPU part", "CPU variant", "CPU revision"].into_iter();
        let parts: Vec<String> = parts.filter_map(field).collect();
        if parts.is_empty() { "unknown".to_owned() } else { parts.join(" ") }
    })
}

/// Contents of the file. `R` is the whole report; readers that need only the verdict use [`serde::de::IgnoredAny`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "benchmark"))]
pub struct Stored<R> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When it was measured, in seconds since 1970.
    pub measured_unix: u64,
    /// What it depends on.
    pub key: Key,
    /// The configured profile.
    pub profile: Profile,
    /// The verdict, as written in a configuration.
    pub algorithm: Algorithm,
    /// Consecutive runs in which another algorithm was clearly better.
    pub better_runs: u32,
    /// Usual time of a page-in, in nanoseconds.
    pub page_in_ns: u64,
    /// Why it is measured again as soon as that is possible; empty if it need not be.
    #[serde(default)]
    pub provisional: String,
    /// What is different on this machine than when it was measured; empty if nothing is. It is used all the same until it is measured
    /// again.
    #[serde(skip)]
    pub outdated: String,
    /// All figures.
    #[serde(bound(deserialize = "R: Deserialize<'de>"))]
    pub report: R,
}

/// The field that all versions of the file have.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

impl<R> Stored<R> {
    /// Why it will be measured again, as far as the verdict itself knows; empty if it need not.
    pub fn provisional(&self) -> &str {
        if self.outdated.is_empty() { &self.provisional } else { &self.outdated }
    }
}

/// The parts of a report that other programs than the client need.
#[derive(Debug, Deserialize)]
pub struct Brief {
    /// The choice.
    pub verdict: BriefVerdict,
    /// Share of the time that the measuring thread had to wait for its CPU; see `Report` in `bench/report.rs`.
    #[serde(default)]
    pub waited_share: f64,
    /// One entry per algorithm, the chosen one first, then by score.
    #[serde(default)]
    pub results: Vec<BriefRow>,
}

/// Reason and suggestions of a verdict; see `Verdict` in `bench/report.rs`.
#[derive(Debug, Deserialize)]
pub struct BriefVerdict {
    /// Why, in one sentence.
    pub reason: String,
    /// Suggestion for `vm.page-cluster`.
    pub page_cluster: u32,
    /// Suggestion for `vm.swappiness`, if the read time of the disk is known.
    pub swappiness: Option<u32>,
}

/// Results of one algorithm; see `Row` in `bench/report.rs`.
#[derive(Debug, Deserialize)]
pub struct BriefRow {
    /// Its name and parameters.
    #[serde(flatten, with = "apart")]
    pub algorithm: Algorithm,
    /// Bytes stored per byte of memory that holds them.
    pub ratio_total: f64,
    /// Swapping in.
    pub read: BriefTiming,
    /// Swapping out.
    pub write: BriefTiming,
    /// Why it is not eligible.
    pub excluded: Option<String>,
}

/// Measurements in one direction; see `Timing` in `bench/report.rs`.
#[derive(Debug, Deserialize)]
pub struct BriefTiming {
    /// Median time of a request, in nanoseconds.
    pub p50_ns: f64,
    /// Throughput of all CPUs together.
    pub bytes_per_second: BriefRate,
}

/// A median of measurements; see `Estimate` in `bench/statistics.rs`.
#[derive(Debug, Deserialize)]
pub struct BriefRate {
    /// Bytes per second; 0 if it is not known.
    pub value: f64,
}

/// Why there is no valid verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// There is none yet.
    Absent,
    /// The file is damaged.
    Damaged(String),
    /// It cannot be used on this machine.
    Outdated(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Absent => f.write_str("no measurement yet"),
            Unusable::Damaged(why) => {
                write!(f, "the verdict of the benchmark cannot be used: {FILE} is damaged ({why})")
            }
            Unusable::Outdated(why) => write!(f, "the verdict of the benchmark is out of date: {why}"),
        }
    }
}

/// Parses the file, and notes what is different on this machine now. `text` is `None` if there is no file.
///
/// # Errors
///
/// No file, a damaged one, or an algorithm that this kernel does not offer.
pub fn read<'de, R: Deserialize<'de>>(
    text: Option<&'de str>,
    now: &Key,
    profile: Profile,
) -> Result<Stored<R>, Unusable> {
    let text = text.filter(|text| !text.is_empty()).ok_or(Unusable::Absent)?;
    let damaged = |why: &dyn fmt::Display| Unusable::Damaged(why.to_string());
    // Other versions may lack fields.
    let Version { schema_version } = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    if schema_version != SCHEMA_VERSION {
        let why = format!("{FILE} has the format {schema_version}, and this zramd reads {SCHEMA_VERSION}");
        return Err(Unusable::Outdated(why));
    }
    let mut stored: Stored<R> = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    let algorithm = &stored.algorithm;
    if algorithm.parameters.iter().any(|(key, _)| key != "level") {
        return Err(damaged(&format!("a verdict cannot be {algorithm}")));
    }
    if now.algorithms.as_ref().is_some_and(|names| !names.contains(&algorithm.name)) {
        return Err(Unusable::Outdated(format!("this kernel does not offer {}", algorithm.name)));
    }
    let profiles = || {
        let (was, is) = (stored.profile.word(), profile.word());
        (was != is).then(|| format!("the configured profile is {is} now, and was {was}"))
    };
    stored.outdated = stored.key.outdated(now).or_else(profiles).unwrap_or_default();
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    fn key() -> Key {
        let names = ["zstd".to_owned(), "lz4".to_owned()];
        Key::new("6.12.1\n", "processor : 0\nmodel name\t: Some CPU\n", "0-3\n", 4 << 20, Some(&names))
    }

    fn text() -> String {
        let stored = Stored {
            schema_version: SCHEMA_VERSION,
            measured_unix: 1,
            key: key(),
            profile: Profile::Balanced,
            algorithm: Algorithm::parse("zstd(level=1)").unwrap(),
            better_runs: 0,
            page_in_ns: 3000,
            provisional: String::new(),
            outdated: String::new(),
            report: [1, 2],
        };
        serde_json::to_string(&stored).unwrap()
    }

    /// The verdict, and what is different now.
    fn verdict(text: Option<&str>, now: &Key) -> Result<(String, String), Unusable> {
        read::<IgnoredAny>(text, now, Profile::Balanced)
            .map(|stored| (stored.algorithm.to_string(), stored.provisional().to_owned()))
    }

    #[test]
    fn it_holds_on_the_machine_that_it_was_measured_on() {
        let valid = Ok(("zstd(level=1)".to_owned(), String::new()));
        assert_eq!(verdict(Some(&text()), &key()), valid);
        let unknown = Key { algorithms: None, ..key() };
        assert_eq!(verdict(Some(&text()), &unknown), valid, "no device to ask yet");
        assert_eq!(
            verdict(Some(&text()), &Key { memory_kib: 4_000_000, ..key() }),
            valid,
            "the kernel takes more"
        );
        assert_eq!(read::<[u32; 2]>(Some(&text()), &key(), Profile::Balanced).unwrap().report, [1, 2]);
        let older = text().replace(r#""provisional":"","#, "").replace(r#""memory_kib":4194304,"#, "");
        assert!(older.len() < text().len() - 30 && verdict(Some(&older), &key()) == valid, "{older}");
    }

    /// It is used until it is measured again.
    #[test]
    fn each_change_makes_it_provisional_and_is_named() {
        let changed = [
            (Key { kernel: "6.13.0".to_owned(), ..key() }, "6.13.0"),
            (Key { cpu: "Other".to_owned(), ..key() }, "Other"),
            (Key { cpus: "0-1".to_owned(), ..key() }, "0-1"),
            (Key { memory_kib: 8 << 20, ..key() }, "the memory is 8.0 GiB now, and was 4.0 GiB"),
            (Key { algorithms: Some(vec!["zstd".to_owned()]), ..key() }, "zstd"),
            (Key { policy: POLICY_VERSION + 1, ..key() }, "another method"),
        ];
        for (now, expected) in changed {
            let (algorithm, why) = verdict(Some(&text()), &now).unwrap();
            assert!(algorithm == "zstd(level=1)" && why.contains(expected), "{why}");
        }
        let other = read::<IgnoredAny>(Some(&text()), &key(), Profile::Latency).unwrap().outdated;
        assert!(other.contains("latency") && other.contains("balanced"), "{other}");
        let gone = verdict(Some(&text()), &Key { algorithms: Some(vec!["lz4".to_owned()]), ..key() });
        assert!(
            matches!(&gone, Err(Unusable::Outdated(why)) if why.contains("does not offer zstd")),
            "{gone:?}"
        );
    }

    #[test]
    fn what_is_no_verdict_is_not_used() {
        assert_eq!(verdict(None, &key()), Err(Unusable::Absent));
        assert_eq!(verdict(Some(""), &key()), Err(Unusable::Absent));
        let good = text();
        for bad in [
            "nonsense".to_owned(),
            good[..good.len() / 2].to_owned(),
            good.replace("zstd(level=1)", "zstd(level=99)"),
            good.replace("zstd(level=1)", "zstd(dict=/etc/shadow)"),
            good.replace("zstd(level=1)", "rm -rf"),
        ] {
            assert_ne!(bad, good);
            assert!(matches!(verdict(Some(&bad), &key()), Err(Unusable::Damaged(_))), "{bad}");
        }
        for other in [r#"{"schema_version":1}"#, r#"{"schema_version":3,"key":[]}"#] {
            assert!(matches!(verdict(Some(other), &key()), Err(Unusable::Outdated(_))), "{other}");
        }
    }

    #[test]
    fn each_profile_is_known_by_its_word() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.word()), Some(profile));
        }
        assert_eq!(Profile::parse("Latency"), None);
    }

    #[test]
    fn every_architecture_has_a_cpu() {
        assert_eq!(key().cpu, "Some CPU");
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd08\n"), "0x41 0xd08");
        assert_eq!(cpu_model("uarch : sifive,u74\n"), "sifive,u74");
        assert_eq!(cpu_model(""), "unknown");
    }
}
