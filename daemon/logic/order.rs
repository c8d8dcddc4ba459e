//! Orders for `zramd-worker`: units, the daemon and `zramdctl` write them, the worker reads them.
//!
//! On the command line an order is `VERB [NAME] [JSON]`, for example `save data '{"reason":"stop"}'`. In
//! `/run/zramd/work/WORK.order`, which `zramd-worker order WORK` carries out, it is one object:
//! `{"verb":"save","name":"data","reason":"stop"}`. Options that an order does not have are errors.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::device::algorithm::Algorithm;
use crate::maintain::Cause;
use crate::maintain::pass::Pages;
use crate::ramdisk::SaveReason;
use crate::verdict::Profile;

/// Name of the work of [`Order::Benchmark`].
pub const BENCHMARK: &str = "benchmark";
/// Name of the work of [`Order::Maintain`].
pub const MAINTENANCE: &str = "maintenance";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Measures algorithms, and stores the verdict.
    Benchmark(Benchmark),
    /// Compares tmpfs, compressed memory and disks.
    BenchRamdisk(BenchRamdisk),
    /// Times page faults on private swap.
    BenchSwap(BenchSwap),
    /// Recompresses and writes back idle pages.
    Maintain(Maintain),
    /// Switches compressed swap off before hibernation.
    Drain {},
    /// Switches the swap that `drain` switched off on again.
    Refill {},
    /// Creates the directory below which RAM disks are filled.
    Places {},
    /// Runs a command of a RAM disk.
    Hook(Hook),
    /// Fills a RAM disk.
    Load(RamdiskOrder),
    Save(RamdiskOrder),
    Verify(RamdiskOrder),
    Export(RamdiskOrder),
    Pin(RamdiskOrder),
    Unpin(RamdiskOrder),
    Delete(RamdiskOrder),
    /// Saves a RAM disk, and makes its next load take a chosen snapshot.
    PrepareRestore(RamdiskOrder),
    CancelRestore(RamdiskOrder),
    /// Publishes the list of snapshots again.
    Refresh(RamdiskOrder),
}

/// A run of the benchmark. Without options it measures as configured, at once.
#[allow(clippy::struct_excessive_bools)] // Options of a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Benchmark {
    /// Of the timer: only while the machine is idle, and only if there is no valid verdict.
    #[serde(skip_serializing_if = "is_default")]
    pub idle: bool,
    /// Before devices are set up: briefly, with generated pages, and only if there is no valid verdict.
    #[serde(skip_serializing_if = "is_default")]
    pub boot: bool,
    /// Instead of the configured one.
    #[serde(skip_serializing_if = "is_default")]
    pub profile: Option<Profile>,
    /// Only these; empty for all that are worth measuring.
    #[serde(skip_serializing_if = "is_default")]
    pub algorithms: Vec<Algorithm>,
    /// The pages of this file, instead of those that the configuration says.
    #[serde(skip_serializing_if = "is_default")]
    pub data: Option<PathBuf>,
    /// All of that file.
    #[serde(skip_serializing_if = "is_default")]
    pub whole: bool,
    /// Generated pages only.
    #[serde(skip_serializing_if = "is_default")]
    pub generator: bool,
    /// The memory of these processes.
    #[serde(skip_serializing_if = "is_default")]
    pub processes: Vec<u32>,
    /// Reads of 2^n pages with every algorithm, for these n.
    #[serde(skip_serializing_if = "is_default")]
    pub page_clusters: Vec<PageCluster>,
    /// Threads for the throughput; `None` for one per CPU.
    #[serde(skip_serializing_if = "is_default")]
    pub threads: Option<u32>,
    /// Time limit.
    #[serde(skip_serializing_if = "is_default")]
    pub seconds: Option<f64>,
    /// Instead of the main file of the configuration.
    #[serde(skip_serializing_if = "is_default")]
    pub config: Option<PathBuf>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Benchmark {
    /// Accepted time limits, in seconds.
    pub const SECONDS: RangeInclusive<f64> = 0.5..=600.0;

    /// Checks the values that depend on more than their type. The error names the option.
    pub fn check(&self, cpus: u32) -> Result<(), String> {
        let most = cpus.saturating_mul(4);
        if self.threads.is_some_and(|threads| !(1..=most).contains(&threads)) {
            return Err(format!("`threads` is 1 to {most} here, four for each CPU"));
        }
        if self.seconds.is_some_and(|seconds| !Self::SECONDS.contains(&seconds)) {
            let (least, most) = (Self::SECONDS.start(), Self::SECONDS.end());
            return Err(format!("`seconds` is {least} to {most}"));
        }
        Ok(())
    }
}

/// A value of `vm.page-cluster`: 0 to 5. A text on the bus and in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageCluster(pub u8);

impl TryFrom<String> for PageCluster {
    type Error = String;

    fn try_from(text: String) -> Result<PageCluster, String> {
        match text.parse() {
            Ok(number @ 0..=5_u8) => Ok(PageCluster(number)),
            _ => Err(format!("page-cluster {text:?} is out of range: 0 to 5")),
        }
    }
}

impl From<PageCluster> for String {
    fn from(PageCluster(number): PageCluster) -> String {
        number.to_string()
    }
}

/// A run of maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Maintain {
    /// What triggered it.
    pub cause: Cause,
    /// Numbers of the devices; empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub devices: Vec<u32>,
    /// Only this operation, even if the configuration disables it.
    #[serde(skip_serializing_if = "is_default")]
    pub only: Option<Only>,
    /// Report what would be done, and change nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
    /// Instead of the main file of the configuration.
    #[serde(skip_serializing_if = "is_default")]
    pub config: Option<PathBuf>,
}

impl Maintain {
    /// Everything that is configured.
    pub fn all(cause: Cause) -> Maintain {
        Maintain { cause, devices: Vec::new(), only: None, dry_run: false, config: None }
    }
}

/// The run of the timer.
impl Default for Maintain {
    fn default() -> Maintain {
        Maintain::all(Cause::Timer)
    }
}

/// A single operation of maintenance, on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// Mark pages that have been idle for this many seconds; `None` marks all.
    MarkIdle(Option<u64>),
    /// Recompress: these of the marked pages, or what the policy selects.
    Recompress(Option<Pages>),
    /// Write back: likewise, within the budget.
    WriteBack(Option<Pages>),
    /// Report the budget left, and count time from now on.
    Budget,
}

/// A command of a RAM disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hook {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    pub hook: HookKey,
    /// `ZRAMD_REASON` of the command.
    pub reason: String,
}

impl Hook {
    /// Name of the work.
    pub fn work(name: &str) -> String {
        format!("hook-{name}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookKey {
    PreSave,
    PostRestore,
}

impl HookKey {
    /// Its key in the configuration.
    pub const fn key(self) -> &'static str {
        match self {
            HookKey::PreSave => "pre-save",
            HookKey::PostRestore => "post-restore",
        }
    }
}

/// An operation on a RAM disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RamdiskOrder {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    /// Why it is saved.
    #[serde(default = "asked", deserialize_with = "reason", skip_serializing_if = "is_asked")]
    pub reason: SaveReason,
    /// Number of a snapshot; `None` for the newest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub snapshot: Option<u64>,
    /// Why it is pinned.
    #[serde(default, skip_serializing_if = "is_default")]
    pub why: Option<String>,
    /// Directory of an export.
    #[serde(default, skip_serializing_if = "is_default")]
    pub to: Option<PathBuf>,
    /// Instead of the main file of the configuration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: Option<PathBuf>,
}

/// An unknown word is an error here; in a manifest it may be that of a newer version.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SaveReason, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

const fn asked() -> SaveReason {
    SaveReason::Asked
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_asked(reason: &SaveReason) -> bool {
    *reason == SaveReason::Asked
}

/// Name of the work of [`BenchRamdisk`], and of its files.
pub const BENCH_RAMDISK: &str = "bench-ramdisk";

/// What to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchRamdisk {
    /// Directories on disks.
    pub paths: Vec<PathBuf>,
    /// Bytes to write and read in each pass; `None` for the default.
    pub size: Option<u64>,
    /// File with real data; `None` for a sample of the machine's own files.
    pub data: Option<PathBuf>,
    /// Algorithms for zram; empty for the kernel's default.
    pub algorithms: Vec<Algorithm>,
}

/// Name of the work of [`BenchSwap`], and of its files.
pub const BENCH_SWAP: &str = "bench-swap";

/// What to measure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchSwap {
    /// Bytes of memory; `None` for the default.
    pub memory: Option<u64>,
    /// File with its contents; `None` for a sample of the machine's own files.
    pub data: Option<PathBuf>,
    /// Algorithms; empty for those worth measuring that the kernel offers.
    pub algorithms: Vec<Algorithm>,
    /// Values of `vm.page-cluster`; empty for all up to 3.
    pub page_clusters: Vec<u8>,
    /// Directory on a disk for a swap file to compare with.
    pub disk: Option<PathBuf>,
}

impl RamdiskOrder {
    /// On its newest snapshot, as root asks for it.
    pub fn named(name: impl Into<String>) -> RamdiskOrder {
        RamdiskOrder {
            name: name.into(),
            reason: SaveReason::Asked,
            snapshot: None,
            why: None,
            to: None,
            config: None,
        }
    }

    /// Name of the work.
    pub fn work(name: &str) -> String {
        format!("ramdisk-{name}")
    }
}

impl Order {
    /// Name of the work and of its files; that of the verb for those without such files.
    pub fn work(&self) -> String {
        match self {
            Order::Benchmark(_) => BENCHMARK.to_owned(),
            Order::BenchRamdisk(_) => BENCH_RAMDISK.to_owned(),
            Order::BenchSwap(_) => BENCH_SWAP.to_owned(),
            Order::Maintain(_) => MAINTENANCE.to_owned(),
            Order::Hook(hook) => Hook::work(&hook.name),
            order => order.ramdisk().map_or_else(String::new, |disk| RamdiskOrder::work(&disk.name)),
        }
    }

    /// The operation on a RAM disk, if it is one.
    pub fn ramdisk(&self) -> Option<&RamdiskOrder> {
        match self {
            Order::Load(disk)
            | Order::Save(disk)
            | Order::Verify(disk)
            | Order::Export(disk)
            | Order::Pin(disk)
            | Order::Unpin(disk)
            | Order::Delete(disk)
            | Order::PrepareRestore(disk)
            | Order::CancelRestore(disk)
            | Order::Refresh(disk) => Some(disk),
            _ => None,
        }
    }

    /// Its verb on the command line.
    pub fn verb(&self) -> String {
        let value = serde_json::to_value(self).ok();
        value.and_then(|value| Some(value.get("verb")?.as_str()?.to_owned())).unwrap_or_default()
    }

    /// The order of the timer, for the unit of this work; `None` if it has no timer.
    pub fn of_timer(work: &str) -> Option<Order> {
        match work {
            BENCHMARK => Some(Order::Benchmark(Benchmark { idle: true, ..Benchmark::default() })),
            MAINTENANCE => Some(Order::Maintain(Maintain::default())),
            _ => None,
        }
    }

    /// The words of the command line. The error names a path that is not UTF-8.
    pub fn words(&self) -> Result<Vec<String>, String> {
        let Value::Object(mut object) = serde_json::to_value(self).map_err(|error| error.to_string())? else {
            return Err("an order is an object".to_owned());
        };
        let mut words = Vec::new();
        for key in ["verb", "name"] {
            if let Some(Value::String(word)) = object.remove(key) {
                words.push(word);
            }
        }
        if !object.is_empty() {
            words.push(Value::Object(object).to_string());
        }
        Ok(words)
    }

    /// Parses the words of the command line.
    pub fn parse(words: &[String]) -> Result<Order, String> {
        let Some((verb, rest)) = words.split_first() else { return Err("which verb?".to_owned()) };
        let is_old = verb == "kept" || rest.iter().any(|word| word.starts_with("--"));
        if is_old {
            return of_older_unit(words).ok_or_else(|| {
                let words = words.join(" ");
                format!(
                    "`{words}` is of another version of zramd; after an upgrade, run `systemctl daemon-reload`"
                )
            });
        }
        let (name, json) = match rest {
            [] => (None, None),
            [json] if json.starts_with('{') => (None, Some(json)),
            [name] => (Some(name), None),
            [name, json] => (Some(name), Some(json)),
            [_, _, word, ..] => return Err(format!("`{word}` is too much")),
        };
        let wrong = |error: serde_json::Error| format!("{verb}: {error}");
        let mut object: Map<String, Value> = match json {
            Some(json) => serde_json::from_str(json).map_err(wrong)?,
            None => Map::new(),
        };
        object.insert("verb".to_owned(), Value::from(verb.as_str()));
        if let Some(name) = name {
            object.insert("name".to_owned(), Value::from(name.as_str()));
        }
        serde_json::from_value(Value::Object(object)).map_err(wrong)
    }
}

/// An order in the words before JSON, `kept VERB NAME [--reason REASON] [--config FILE]`: until `systemctl daemon-reload`, PID 1 runs the
/// units of the version that was there before an upgrade, and the last save must not depend on that.
fn of_older_unit(words: &[String]) -> Option<Order> {
    let [kept, verb, name, options @ ..] = words else { return None };
    if kept != "kept" {
        return None;
    }
    let options = options.chunks(2).map(|option| match option {
        [option, value] if matches!(option.as_str(), "--reason" | "--config") => Some((&option[2..], value)),
        _ => None,
    });
    let options = options.collect::<Option<Vec<_>>>()?.into_iter();
    let own = [("verb", verb), ("name", name)].into_iter();
    let object =
        own.chain(options).map(|(key, value)| (key.to_owned(), Value::from(value.as_str()))).collect();
    serde_json::from_value(Value::Object(object)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::pressure::Level;

    fn parsed(words: &[&str]) -> Result<Order, String> {
        Order::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_order_is_the_same_as_words_and_as_json() {
        let stop = RamdiskOrder { reason: SaveReason::Stop, ..RamdiskOrder::named("data") };
        let export =
            RamdiskOrder { snapshot: Some(3), to: Some("/to".into()), ..RamdiskOrder::named("data") };
        let benchmark = Benchmark {
            profile: Some(Profile::Capacity),
            page_clusters: vec![PageCluster(0), PageCluster(3)],
            seconds: Some(2.5),
            ..Benchmark::default()
        };
        let only = Maintain {
            devices: vec![3],
            only: Some(Only::Recompress(Some(Pages::HugeIdle))),
            ..Maintain::all(Cause::Request)
        };
        let severe = Maintain::all(Cause::Pressure(Level::Severe));
        let marked = Maintain { only: Some(Only::MarkIdle(Some(60))), ..Maintain::all(Cause::Request) };
        let hook = Hook { name: "data".to_owned(), hook: HookKey::PreSave, reason: "stop".to_owned() };
        for (order, words) in [
            (Order::Save(RamdiskOrder::named("data")), &["save", "data"][..]),
            (Order::Save(RamdiskOrder::named("kept")), &["save", "kept"]),
            (Order::Save(stop), &["save", "data", r#"{"reason":"stop"}"#]),
            (Order::Export(export), &["export", "data", r#"{"snapshot":3,"to":"/to"}"#]),
            (Order::Drain {}, &["drain"]),
            (Order::Hook(hook), &["hook", "data", r#"{"hook":"pre-save","reason":"stop"}"#]),
            (
                Order::Benchmark(benchmark),
                &["benchmark", r#"{"page-clusters":["0","3"],"profile":"capacity","seconds":2.5}"#],
            ),
            (Order::Benchmark(Benchmark::default()), &["benchmark"]),
            (
                Order::Maintain(only),
                &["maintain", r#"{"cause":"request","devices":[3],"only":{"recompress":"huge-idle"}}"#],
            ),
            (Order::Maintain(severe), &["maintain", r#"{"cause":{"pressure":"severe"}}"#]),
            (Order::Maintain(marked), &["maintain", r#"{"cause":"request","only":{"mark-idle":60}}"#]),
        ] {
            assert_eq!(order.words().unwrap(), words);
            assert_eq!(parsed(words).as_ref(), Ok(&order));
            let json = serde_json::to_string(&order).unwrap();
            assert_eq!(serde_json::from_str::<Order>(&json).unwrap(), order, "{json}");
        }
        assert_eq!(parsed(&["maintain"]), Ok(Order::of_timer(MAINTENANCE).unwrap()));
    }

    #[test]
    fn wrong_orders_are_explained() {
        for (words, expected) in [
            (&[][..], "which verb"),
            (&["frob"], "frob"),
            (&["kept", "save", "data", "--boredom"], "daemon-reload"),
            (&["kept", "save", "data", "--to", "/x"], "daemon-reload"),
            (&["maintain", "--asked", "maintenance"], "daemon-reload"),
            (&["drain", "zram0"], "name"),
            (&["drain", r#"{"force":true}"#], "force"),
            (&["save"], "name"),
            (&["save", "data", r#"{"reson":"stop"}"#], "reson"),
            (&["save", "data", "stop"], "save: expected"),
            (&["save", "data", "{}", "more"], "`more` is too much"),
            (&["maintain", r#"{"only":"eat"}"#], "mark-idle"),
            (&["maintain", r#"{"cause":"boredom"}"#], "timer"),
            (&["benchmark", r#"{"page-clusters":["9"]}"#], "0 to 5"),
            (&["benchmark", r#"{"profile":"best"}"#], "latency"),
        ] {
            let message = parsed(words).expect_err(&words.join(" "));
            assert!(message.contains(expected), "{words:?}: {message}");
        }
    }

    #[test]
    fn units_of_the_version_before_an_upgrade_load_and_save() {
        assert_eq!(parsed(&["kept", "load", "data"]), Ok(Order::Load(RamdiskOrder::named("data"))));
        let stop = RamdiskOrder {
            reason: SaveReason::Stop,
            config: Some("/c".into()),
            ..RamdiskOrder::named("data")
        };
        let words = ["kept", "save", "data", "--reason", "stop", "--config", "/c"];
        assert_eq!(parsed(&words), Ok(Order::Save(stop)));
    }

    #[test]
    fn a_save_with_an_unknown_reason_is_refused() {
        assert!(parsed(&["save", "data", r#"{"reason":"boredom"}"#]).is_err());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let check = |benchmark: Benchmark| benchmark.check(2).is_ok();
        let threads = |threads| Benchmark { threads: Some(threads), ..Benchmark::default() };
        let seconds = |seconds| Benchmark { seconds: Some(seconds), ..Benchmark::default() };
        assert!(check(Benchmark::default()) && check(threads(8)) && check(seconds(0.5)));
        assert!(!check(threads(0)) && !check(threads(9)));
        assert!(!check(seconds(0.4)) && !check(seconds(601.0)) && !check(seconds(f64::NAN)));
    }

    #[test]
    fn work_is_named_after_what_it_is_about() {
        for (words, name) in [
            (&["benchmark"][..], "benchmark"),
            (&["maintain"], "maintenance"),
            (&["hook", "data", r#"{"hook":"pre-save","reason":"stop"}"#], "hook-data"),
            (&["save", "data"], "ramdisk-data"),
            (&["refresh", "data"], "ramdisk-data"),
            (&["drain"], ""),
        ] {
            let order = parsed(words).unwrap();
            assert_eq!(order.work(), name, "{words:?}");
            let disk = order.ramdisk().map(|disk| disk.name.as_str());
            assert_eq!(disk, name.strip_prefix("ramdisk-"), "{words:?}");
        }
    }

    #[test]
    fn the_timer_of_the_benchmark_measures_only_while_the_machine_is_idle() {
        let idle = Benchmark { idle: true, ..Benchmark::default() };
        assert_eq!(Order::of_timer(BENCHMARK), Some(Order::Benchmark(idle)));
        assert_eq!(Order::of_timer("ramdisk-data"), None);
    }
}
