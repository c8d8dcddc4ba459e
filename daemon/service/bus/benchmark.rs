//! `org.zramd1.Benchmark`: choosing the compression algorithm.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;
use zbus::message::Header;
use zbus::{Connection, OwnedObjectPath, Variant, interface};

use super::options::{Options, invalid, texts};
use crate::auth::{self, Action};
use crate::blocking;
use crate::core::{Core, Mode};
use crate::error::{Error, ErrorKind, Result};
use crate::watch::follow_directory;
use crate::work::Call;
use host::Host;
use host::linux::LinuxHost;
use host::linux::files;
use host::linux::store::VERDICT;
use logic::device::algorithm::Algorithm;
use logic::following::Follower;
use logic::order::{self, BENCHMARK, Order};
use logic::verdict::{Brief, BriefRow, Stored, Unusable};
use logic::word::word;

/// The benchmark object.
#[derive(Debug)]
pub struct Benchmark {
    core: Arc<Core>,
}

/// Algorithm, ratio, nanoseconds of a read and of a write, bytes per second of both, why it cannot be chosen.
type Listed = (String, f64, f64, f64, f64, f64, String);

/// Its object path.
pub(crate) fn path() -> String {
    format!("{}/benchmark", crate::ROOT)
}

/// Announces each change of the verdict, by `zramd-worker`, by Forget or by root, and follows another one at once where a device allows
/// that ([`Core::adopt`]); other devices get it at the next boot.
pub(crate) async fn follow_verdict(core: Arc<Core>) {
    let directory = Path::new(VERDICT).parent().and_then(Path::to_str).unwrap_or_default();
    let written = Notify::new();
    let changed = || {
        core.verdict_changed.store(true, Ordering::SeqCst);
        core.changed.notify_one();
        written.notify_one();
    };
    tokio::select! {
        Err(error) = follow_directory(directory, changed) => {
            tracing::warn!("cannot follow the verdict of the benchmark in {directory}: {error}");
        }
        () = adopt_others(&core, &written) => {}
    }
}

/// At each change of the directory with the verdict: adopts a verdict for another algorithm than that of the last one.
async fn adopt_others(core: &Arc<Core>, written: &Notify) {
    // The directory is looked at once before anything has changed in it.
    written.notified().await;
    let mut last = None;
    loop {
        written.notified().await;
        let now = chosen(core).await;
        if now.is_some() && now != last && core.can_adopt().await
            // What comes of it is in the journal, as of every job.
            && let Err(error) = core.adopt(&Options::default()).await
        {
            tracing::warn!("the verdict of the benchmark is not used before the next boot: {error}");
        }
        last = now;
    }
}

/// The algorithm of the verdict, if there is one for this machine.
async fn chosen(core: &Arc<Core>) -> Option<Algorithm> {
    found(core).await.ok().map(|stored| stored.algorithm.clone())
}

/// The verdict for this machine.
async fn found(core: &Arc<Core>) -> Result<Arc<Stored<Brief>>> {
    let core = Arc::clone(core);
    blocking::run(move || core.verdicts.found(core.view().profile).map_err(|why| none(&why))).await
}

/// The options of Run and their types. It runs as root, so options that name files or processes are not offered.
const OPTIONS: [(&str, &str); 6] = [
    ("profile", "s"),
    ("algorithms", "as"),
    ("page-clusters", "as"),
    ("threads", "u"),
    ("seconds", "d"),
    ("generator", "b"),
];

/// The algorithm parameter that names a file.
const DICTIONARY: &str = "dict";

/// The order for `zramd-worker` with these options.
fn order(options: &Options) -> Result<order::Benchmark> {
    let mut object = serde_json::Map::new();
    for (name, value) in options.iter() {
        let signature = value.value_signature().to_string();
        if !OPTIONS.contains(&(name, &signature)) {
            let known = OPTIONS.map(|(name, signature)| format!("{name} ({signature})")).join(", ");
            return Err(invalid(format!("there is no option `{name}` of this type; there are {known}")));
        }
        let value = match &**value {
            Variant::Str(text) => text.as_str().into(),
            Variant::Array(list) => texts(name, list)?.into(),
            Variant::U32(number) => (*number).into(),
            Variant::F64(number) => serde_json::Number::from_f64(*number)
                .ok_or_else(|| invalid(format!("`{name}` is {number}")))?
                .into(),
            Variant::Bool(is_set) => (*is_set).into(),
            _ => serde_json::Value::Null,
        };
        object.insert(name.clone(), value);
    }
    let order: order::Benchmark =
        serde_json::from_value(object.into()).map_err(|error| invalid(error.to_string()))?;
    order.check(LinuxHost::new("/").cpus()).map_err(invalid)?;
    let dictionary = |algorithm: &&Algorithm| algorithm.parameters.iter().any(|(key, _)| key == DICTIONARY);
    if let Some(algorithm) = order.algorithms.iter().find(dictionary) {
        return Err(invalid(format!("{algorithm}: only root may have a dictionary read")));
    }
    Ok(order)
}

impl Benchmark {
    pub(crate) fn new(core: Arc<Core>) -> Benchmark {
        Benchmark { core }
    }

    async fn found(&self) -> Result<Arc<Stored<Brief>>> {
        found(&self.core).await
    }
}

/// Measures which compression algorithm is best for the memory of this machine. Devices whose algorithm is "auto" get the verdict
/// when they are set up.
// The interface decides the form of a method.
#[allow(clippy::unused_self)]
#[interface(name = "org.zramd1.Benchmark")]
impl Benchmark {
    /// The verdict, for example `zstd(level=1)`; empty when there is none.
    #[zbus(property)]
    async fn chosen(&self) -> String {
        self.found().await.map_or_else(|_| String::new(), |stored| stored.algorithm.to_string())
    }

    /// Why it was chosen, or why there is no verdict, in one sentence.
    #[zbus(property)]
    async fn reason(&self) -> String {
        self.found().await.map_or_else(|error| error.0.message, |stored| stored.report.verdict.reason.clone())
    }

    /// The `vm.page-cluster` that goes with it; 0 when there is no verdict.
    #[zbus(property)]
    async fn page_cluster(&self) -> u32 {
        self.found().await.map_or(0, |stored| stored.report.verdict.page_cluster)
    }

    /// The `vm.swappiness` that goes with it; 0 when there is no verdict, or no disk to compare with.
    #[zbus(property)]
    async fn swappiness(&self) -> u32 {
        self.found().await.map_or(0, |stored| stored.report.verdict.swappiness.unwrap_or(0))
    }

    /// When it was measured, in microseconds since 1970; 0 when there is no verdict.
    #[zbus(property)]
    async fn timestamp(&self) -> u64 {
        self.found().await.map_or(0, |stored| stored.measured_unix.saturating_mul(1_000_000))
    }

    /// What it was chosen for: `latency`, `balanced` or `capacity`; empty when there is no verdict.
    #[zbus(property)]
    async fn profile(&self) -> String {
        self.found().await.map_or_else(|_| String::new(), |stored| stored.profile.word().to_owned())
    }

    /// Whether there is a verdict for this kernel, CPU, memory, set of algorithms and the configured profile.
    #[zbus(property)]
    async fn fresh(&self) -> bool {
        self.found().await.is_ok_and(|stored| stored.outdated.is_empty())
    }

    /// Why the verdict, which is used until then, will be measured again; empty when it need not be, or there is none.
    #[zbus(property)]
    async fn provisional(&self) -> String {
        self.found().await.map_or_else(|_| String::new(), |stored| stored.provisional().to_owned())
    }

    /// Share of the time, 0 to 1, in which the measurement had to wait for its CPU. From 0.1 on it was disturbed: algorithm, ratios and
    /// medians hold, and the bytes per second of `Results` are 0.
    #[zbus(property)]
    async fn waited_share(&self) -> f64 {
        self.found().await.map_or(0.0, |stored| stored.report.waited_share)
    }

    /// What was measured, the chosen algorithm first, then by score: algorithm, bytes stored per byte of memory that holds them, median
    /// nanoseconds of a read and of a write of a page, bytes per second of all CPUs together for both, and why it cannot be chosen, or
    /// empty.
    #[zbus(property)]
    async fn results(&self) -> Vec<Listed> {
        let row = |row: &BriefRow| {
            let BriefRow { algorithm, ratio_total, read, write, excluded } = row;
            let speeds = (read.bytes_per_second.value, write.bytes_per_second.value);
            let excluded = excluded.clone().unwrap_or_default();
            (algorithm.to_string(), *ratio_total, read.p50_ns, write.p50_ns, speeds.0, speeds.1, excluded)
        };
        let found = self.found().await;
        found.map_or_else(|_| Vec::new(), |stored| stored.report.results.iter().map(row).collect())
    }

    /// The last verdict with all its figures as JSON, as it is kept: the definition `benchmark` of
    /// `/usr/share/zramd/zramdctl.schema.json`. `schema_version` says in which form.
    #[zbus(out_args("json"))]
    async fn describe(&self) -> Result<String> {
        let read = || files::read_optional(Path::new("/"), VERDICT);
        let text = blocking::run(move || read().map_err(engine::Error::failed)).await?;
        if text.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "no measurement yet"));
        }
        Ok(text)
    }

    /// Measures, which takes about five seconds on a quiet machine. Options, which mean what those of `zramdctl bench run` do: `profile`
    /// (s), `algorithms` (as), `page-clusters` (as), `threads` (u), `seconds` (d), `generator` (b).
    #[zbus(out_args("job"))]
    async fn run(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Benchmark).await?;
        let run = async {
            let mut order = order(&options)?;
            if self.core.mode == Mode::Direct {
                order.config.clone_from(&self.core.source.file);
            }
            let order = Order::Benchmark(order);
            let work = Call { order, unit: "zramd-benchmark.service".to_owned(), without_order: None };
            self.core.start_work(BENCHMARK, String::new(), work).await
        };
        request.run(run).await
    }

    /// Recreates nearly empty swap whose algorithm is not that of the verdict. There are no options yet.
    #[zbus(out_args("job"))]
    async fn adopt(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Benchmark).await?;
        request.run(self.core.adopt(&options)).await
    }

    /// What each configured device has to do with the verdict: its name; `follows`, `later` (when it is set up the next time) or `not` (the
    /// configuration names an algorithm first, or none); the same in a sentence; what to do about it, or empty.
    #[zbus(out_args("followers"))]
    async fn followers(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<Vec<(String, String, String, String)>> {
        let _counted = self.core.call_limits.take(connection, &call).await?;
        let _alone = self.core.planning.lock().await;
        let row = |follower: Follower| {
            (follower.object, word(follower.state).to_owned(), follower.sentence, follower.remedy)
        };
        Ok(self.core.followers().await?.into_iter().map(row).collect())
    }

    /// Forgets the verdict.
    async fn forget(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Benchmark).await?;
        request.run(blocking::run(|| engine::verdict::forget(Path::new("/")).map(drop))).await
    }
}

fn none(why: &Unusable) -> Error {
    Error::new(ErrorKind::NotFound, why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(name: &str, value: Variant<'static>) -> Result<order::Benchmark> {
        let mut options = Options::default();
        options.insert(name.to_owned(), value.try_into().unwrap());
        order(&options)
    }

    #[test]
    fn only_known_options_become_an_order() {
        for (name, value, expected) in [
            ("profile", "latency".into(), &["benchmark", r#"{"profile":"latency"}"#][..]),
            (
                "algorithms",
                vec!["lz4", "zstd(level=1)"].into(),
                &["benchmark", r#"{"algorithms":["lz4","zstd(level=1)"]}"#],
            ),
            ("page-clusters", vec!["0", "3"].into(), &["benchmark", r#"{"page-clusters":["0","3"]}"#]),
            ("threads", 1_u32.into(), &["benchmark", r#"{"threads":1}"#]),
            ("seconds", 0.5.into(), &["benchmark", r#"{"seconds":0.5}"#]),
            ("generator", true.into(), &["benchmark", r#"{"generator":true}"#]),
            ("generator", false.into(), &["benchmark"]),
        ] {
            let order = Order::Benchmark(order_of(name, value).unwrap());
            assert_eq!(order.words().unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        for (name, value) in [
            ("words", vec!["data", "/dev/watchdog"].into()),
            ("idle", true.into()),
            ("boot", true.into()),
            ("data", "/dev/watchdog".into()),
            ("processes", vec![1_u32].into()),
            ("profile", r#"latency","data":"/dev/watchdog"#.into()),
            ("profile", "/dev/watchdog".into()),
            ("algorithms", vec!["lz4(dict=/dev/watchdog)"].into()),
            ("page-clusters", vec!["6"].into()),
            ("page-clusters", vec!["--data"].into()),
            ("threads", 0_u32.into()),
            ("threads", u32::MAX.into()),
            ("seconds", f64::NAN.into()),
            ("seconds", 1e9.into()),
            ("generator", "yes".into()),
        ] {
            let refused = order_of(name, value).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::InvalidArgument, "{name}");
        }
    }
}
