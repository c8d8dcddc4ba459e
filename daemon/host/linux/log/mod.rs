//! Log messages of all programs, through `tracing`.
//!
//! Each message has a level, and the fields of the spans around it: the job, the caller, the device. [`context`] passes both to
//! programs that this one starts. `tracing-journald` would block while the journal is full, and has no priority `notice`, no fields
//! from another program and no file for the generator; that is why the layer is ours.

mod entry;
mod lines;
mod sink;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;

use super::files;
use crate::out;
use lines::{Fields, Lines};
use logic::log::{Context, Level, Target, level_on_cmdline, service_in_cgroup};
use logic::record;
use sink::Sink;

/// Environment variable with the [`Context`] of the program that started this one.
const CONTEXT: &str = "ZRAMD_LOG_CONTEXT";

/// The change that the daemon makes, until it is done. Without `.json`, which is for records of targets.
pub const OPERATION: &str = "/run/zramd/operation";

/// The part of the change in progress that concerns messages.
#[derive(Default, Deserialize)]
struct Operation {
    /// `None` is all.
    only: Option<Vec<record::Target>>,
    #[serde(default)]
    log: Context,
}

/// Of the change in progress if it concerns this target, for a program that PID 1 starts.
pub fn context_of_change(target: &record::Target) -> Option<Context> {
    let text = files::read_optional(Path::new("/"), OPERATION).ok()?;
    let operation: Operation = serde_json::from_str(&text).ok()?;
    operation.only.is_none_or(|only| only.contains(target)).then(|| operation.log.checked())
}

/// How a program logs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--log-level`.
    pub level: Option<Level>,
    /// Of the program on whose behalf this one runs, if the environment has none, because PID 1 has started it.
    pub context: Option<Context>,
    /// Whether systemd runs the program as a generator, before the journal: warnings go to the kernel log, the rest to a file, which
    /// [`hand_over`] reads.
    pub generator: bool,
    /// Whether messages that are not read from standard error are lost, also those of programs that this one starts.
    pub never_waits: bool,
}

struct Log {
    identifier: &'static str,
    /// A [`Level`].
    level: AtomicU8,
    filter: reload::Handle<LevelFilter, Registry>,
    /// Fields of the program that started this one.
    inherited: BTreeMap<String, String>,
    /// The service that this program runs in, if its messages go to the journal, which does not know it if the program ends too soon.
    service: Option<String>,
    output: Mutex<Output>,
}

struct Output {
    target: Target,
    sink: Sink,
}

static LOG: OnceLock<Log> = OnceLock::new();

impl Log {
    fn level(&self) -> Level {
        Level::of_number(self.level.load(Ordering::Relaxed))
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Level of `tracing` at which all messages of a level are made. `notice` is a message at `INFO` with a priority.
fn filter_of(level: Level) -> LevelFilter {
    match level {
        Level::Emerg | Level::Alert | Level::Crit | Level::Err => LevelFilter::ERROR,
        Level::Warning => LevelFilter::WARN,
        Level::Notice | Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

/// Whether a file is the stream to the journal that systemd gave to this program (`$JOURNAL_STREAM`, systemd.exec(5)).
fn is_journal(file: impl AsFd) -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(file).is_ok_and(|found| *stream == *format!("{}:{}", found.st_dev, found.st_ino))
}

fn word<T: std::str::FromStr<Err = String>>(name: &str, wrong: &mut Vec<String>) -> Option<T> {
    let word = std::env::var_os(name).filter(|word| !word.is_empty())?;
    match word.to_string_lossy().parse() {
        Ok(value) => Some(value),
        Err(why) => {
            wrong.push(format!("{name}: {why}"));
            None
        }
    }
}

fn service() -> Option<String> {
    let text = files::read_optional(Path::new("/"), "/proc/self/cgroup").ok()?;
    service_in_cgroup(&text).map(str::to_owned)
}

/// Begins to log. The level is, in this order, that of the options, of the program that started this one, of `SYSTEMD_LOG_LEVEL`, and for
/// services and generators that of the kernel command line.
pub fn open(identifier: &'static str, root: &Path, options: Options) {
    let mut wrong = Vec::new();
    let [results, notices] = [is_journal(rustix::stdio::stdout()), is_journal(rustix::stdio::stderr())];
    let passed = std::env::var_os(CONTEXT).map(|json| Context::parse(&json.to_string_lossy()));
    let context = passed.or(options.context).unwrap_or_default();
    if options.never_waits || context.never_waits {
        out::never_wait();
    }
    let from_environment = word("SYSTEMD_LOG_LEVEL", &mut wrong);
    let level = options.level.or(context.level).or(from_environment).or_else(|| {
        let cmdline = (notices || options.generator).then(|| files::cmdline(root))?;
        level_on_cmdline(&cmdline)?.map_err(|why| wrong.push(why)).ok()
    });
    let level = level.unwrap_or_default();
    let target = word("SYSTEMD_LOG_TARGET", &mut wrong).unwrap_or_default();
    let sink = if options.generator {
        Sink::kept(root)
    } else {
        Sink::open(target, notices).unwrap_or_else(|why| {
            wrong.push(why);
            Sink::Console
        })
    };
    let is_journal = matches!(sink, Sink::Journal(_));
    let (layer, filter) = reload::Layer::new(filter_of(level));
    let log = Log {
        identifier,
        level: AtomicU8::new(level as u8),
        filter,
        inherited: context.fields,
        service: is_journal.then(service).flatten(),
        output: Mutex::new(Output { target, sink }),
    };
    if LOG.set(log).is_err() {
        return;
    }
    // Fails only if there is one already.
    tracing::subscriber::set_global_default(Registry::default().with(layer).with(Lines)).ok();
    out::hand_to_log(is_journal && results, is_journal && notices);
    for why in wrong {
        tracing::warn!("{why}");
    }
}

/// The level in force.
pub fn level() -> Level {
    LOG.get().map_or_else(Level::default, Log::level)
}

/// Changes the level.
pub fn set_level(level: Level) {
    let Some(log) = LOG.get() else { return };
    log.level.store(level as u8, Ordering::Relaxed);
    // Fails only after the subscriber is gone.
    log.filter.reload(filter_of(level)).ok();
}

/// The target in force.
pub fn target() -> Target {
    LOG.get().map_or_else(Target::default, |log| log.output().target)
}

/// Changes the target.
///
/// # Errors
///
/// If it cannot be opened; then the old one stays.
pub fn set_target(target: Target) -> Result<(), String> {
    let Some(log) = LOG.get() else { return Ok(()) };
    let sink = Sink::open(target, is_journal(rustix::stdio::stderr()))?;
    *log.output() = Output { target, sink };
    Ok(())
}

/// Name of this program in log messages.
pub fn identifier() -> &'static str {
    LOG.get().map_or("", |log| log.identifier)
}

/// The level, and the fields of the spans around the caller, for programs that are started from here.
pub fn context() -> Context {
    let mut fields = LOG.get().map(|log| log.inherited.clone()).unwrap_or_default();
    tracing::Span::current().with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>().and_then(|registry| registry.span(id));
        for span in span.iter().flat_map(|span| span.scope().from_root()) {
            if let Some(own) = span.extensions().get::<Fields>() {
                fields.extend(own.iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
        }
    });
    let level = Some(level()).filter(|level| *level != Level::default());
    Context { level, fields, never_waits: out::never_waits() }
}

/// Passes the context to a program of ours.
pub(super) fn pass_on(command: &mut Command) {
    if LOG.get().is_some() {
        command.env(CONTEXT, context().json());
    }
}

/// Ends the messages of a generator: writes the file.
pub fn close() {
    if let Some(log) = LOG.get()
        && let Sink::Kept(kept) = &mut log.output().sink
    {
        kept.write();
    }
}

/// Sends the messages of the generator to the journal, once.
pub fn hand_over() {
    if let Some(log) = LOG.get()
        && let Sink::Journal(journal) = &mut log.output().sink
    {
        sink::hand_over(Path::new("/"), journal);
    }
}
