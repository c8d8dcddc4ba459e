//! `org.zramd1.Benchmark`: which algorithm is best on this machine.

use std::path::Path;
use std::sync::Arc;

use zbus::message::Header;
use zbus::{Connection, OwnedObjectPath, Variant, interface};

use super::auth::{self, Action};
use super::error::{BusError, Name, Result};
use super::options::Options;
use crate::engine::benchmark::keep;
use crate::host::linux::{files, store::VERDICT};
use crate::host::{Host, MachineFile, linux::LinuxHost};
use crate::logic::benchmark::cache::{self, Brief, Stored, Unusable};
use crate::logic::benchmark::score::Profile;
use crate::service::core::Core;
use crate::service::{lane, work::Order};

/// The benchmark.
#[derive(Debug)]
pub struct Benchmark {
    core: Arc<Core>,
}

/// Where it is.
pub(in crate::service) fn path() -> String {
    format!("{}/benchmark", crate::service::ROOT)
}

/// The verdict, if it holds now for this profile.
fn stored(profile: Profile) -> std::result::Result<Stored<Brief>, Unusable> {
    let host = LinuxHost::new("/");
    let text = host.text(MachineFile::Verdict).unwrap_or_default();
    cache::read(Some(&text), &keep::key_now(&host), profile).map(|(stored, _)| stored)
}

/// Words for `zramd-worker benchmark` that callers may have it given.
fn words(options: &Options) -> Result<Vec<String>> {
    let wrong = |message: &str| BusError::new(Name::InvalidArgument, message);
    let mut words = vec!["--now".to_owned()];
    for (name, value) in options.iter() {
        match (name.as_str(), &**value) {
            ("words", Variant::Array(list)) => {
                for word in list.iter() {
                    let Variant::Str(word) = word else { return Err(wrong("`words` is a list of strings")) };
                    words.push(word.as_str().to_owned());
                }
            }
            ("profile", Variant::Str(profile)) => words.extend(["--profile".to_owned(), profile.to_string()]),
            _ => return Err(wrong("the options are `profile` (s) and `words` (as)")),
        }
    }
    Ok(words)
}

impl Benchmark {
    pub(in crate::service) fn new(core: Arc<Core>) -> Benchmark {
        Benchmark { core }
    }

    async fn found(&self) -> Result<Stored<Brief>> {
        let profile = self.core.view().profile;
        lane::run(move || stored(profile).map_err(|why| none(&why))).await
    }
}

/// Measures which compression algorithm is best for the memory of this machine. Devices whose algorithm is "auto" get the verdict
/// when they are set up.
// The interface decides the form of a method.
#[allow(clippy::unused_self)]
#[interface(name = "org.zramd1.Benchmark", proxy(default_service = "org.zramd1"))]
impl Benchmark {
    /// The verdict, for example `zstd(level=1)`; empty when there is none that holds.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn chosen(&self) -> String {
        self.found().await.map_or_else(|_| String::new(), |stored| stored.algorithm)
    }

    /// Why it was chosen, or why there is no verdict, in one sentence.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn reason(&self) -> String {
        self.found().await.map_or_else(|error| error.message, |stored| stored.report.verdict.reason)
    }

    /// The `vm.page-cluster` that goes with it; 0 when there is no verdict.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn page_cluster(&self) -> u32 {
        self.found().await.map_or(0, |stored| stored.report.verdict.page_cluster)
    }

    /// The `vm.swappiness` that goes with it; 0 when there is no verdict, or no disk to compare with.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn swappiness(&self) -> u32 {
        self.found().await.map_or(0, |stored| stored.report.verdict.swappiness.unwrap_or(0))
    }

    /// When it was measured, in microseconds since 1970; 0 when there is no verdict.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn timestamp(&self) -> u64 {
        self.found().await.map_or(0, |stored| stored.measured_unix.saturating_mul(1_000_000))
    }

    /// What it was chosen for: `latency`, `balanced` or `capacity`; empty when there is no verdict.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn profile(&self) -> String {
        self.found().await.map_or_else(|_| String::new(), |stored| stored.profile.word().to_owned())
    }

    /// Whether there is a verdict for this kernel, CPU, set of algorithms and the configured profile.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn fresh(&self) -> bool {
        self.found().await.is_ok()
    }

    /// The last verdict with all its figures as JSON, as it is kept; `schema_version` says in which form.
    #[zbus(out_args("json"))]
    async fn describe(&self) -> Result<String> {
        let read = || files::read_optional(Path::new("/"), VERDICT);
        let text = lane::run(move || read().map_err(crate::engine::Error::failed)).await?;
        if text.is_empty() {
            return Err(BusError::new(Name::NotFound, "nothing was measured yet"));
        }
        Ok(text)
    }

    /// Measures, which takes about two seconds. Options: `profile` (s) instead of that of the configuration, and `words` (as), further
    /// words for `zramd-worker benchmark`.
    #[zbus(out_args("job"))]
    async fn run(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Benchmark).await?;
        let order = Order {
            name: "benchmark".to_owned(),
            unit: "zramd-benchmark.service".to_owned(),
            verb: vec!["benchmark".to_owned()],
            words: words(&options)?,
        };
        self.core.owned(&call, self.core.start_work("benchmark", String::new(), order).await?).await
    }

    /// Makes swap anew in which next to nothing is stored, where the verdict is another algorithm than the one in use. There are no
    /// options yet.
    #[zbus(out_args("job"))]
    async fn adopt(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Benchmark).await?;
        self.core.owned(&call, self.core.adopt(&options).await?).await
    }

    /// Forgets the verdict.
    async fn forget(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        auth::check(&self.core.turns, connection, &call, Action::Benchmark).await?;
        lane::run(|| keep::forget(Path::new("/"))).await?;
        Ok(())
    }
}

fn none(why: &Unusable) -> BusError {
    BusError::new(Name::NotFound, why.to_string())
}
