//! Life cycle of the daemon: adopt, serve, exit.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use tokio::signal::unix::{SignalKind, signal};
use tracing::Instrument;
use zbus::fdo::RequestNameFlags;
use zbus::{Connection, MatchRule, MessageStream};

use super::bus::benchmark::{self, Benchmark};
use super::bus::log_control::{self, LogControl};
use super::bus::manager::Manager;
use super::bus::table::Table;
use super::core::{Core, Mode, Phase};
use super::handle::Handle;
use super::lock::lock;
use super::objects::Objects;
use super::ramdisk::space;
use super::reconcile::{Goal, Wish, interrupted, reconcile, told, view};
use super::setup::Source;
use super::socket::BusSocket;
use super::sync::{self, Published};
use super::{
    NAME, ROOT, incompressible, journal, maintain, maintain_reports, names, notify, pressure, stream, watch,
    work,
};
use host::linux::{files, log, memory_pressure, unit_files};
use logic::exit::ExitStatus;
use logic::log::Level;
use logic::maintain::incompressible::TRIGGER as INCOMPRESSIBLE;
use logic::maintain::pressure::TRIGGER as PRESSURE;
use logic::order::{BENCHMARK, MAINTENANCE};
use logic::work::Ending;

/// Options of the daemon.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--config`: read this file instead of the usual ones, and do not use systemd.
    pub config: Option<PathBuf>,
    /// `--log-level`.
    pub log_level: Option<Level>,
}

/// Created at the first start after a boot, when missing targets are set up. A target that is missing at a later start was
/// removed on purpose, and a restart of the daemon must not restore it.
const PROVISIONED: &str = "/run/zramd/provisioned";

/// Time that calls which still run have to end when the daemon does.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Works that a timer starts as well.
const WORKS: [&str; 2] = [MAINTENANCE, BENCHMARK];

/// Runs until SIGTERM or SIGINT.
pub fn run(options: Options) -> ExitStatus {
    let logs = log::Options { level: options.log_level, never_waits: true, ..log::Options::default() };
    log::open("zramd", Path::new("/"), logs);
    // Without a device, no set-up service has done it.
    log::hand_over();
    // Before the first thread: a capability is dropped by one only.
    let reports = [memory_pressure::reports(INCOMPRESSIBLE), memory_pressure::reports(PRESSURE)];
    if let Err(error) = memory_pressure::give_up_capability() {
        tracing::warn!("cannot give up CAP_SYS_RESOURCE: {error}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One for reads, one for changes, and one more for when the kernel blocks a read.
        .max_blocking_threads(3)
        .thread_keep_alive(std::time::Duration::from_secs(1))
        .build();
    let ended = runtime.map(|runtime| {
        let ended = runtime.block_on(serve(options, reports));
        // A read that the kernel blocks must not keep the daemon.
        runtime.shutdown_timeout(GRACE);
        ended
    });
    match ended {
        Ok(Ok(())) => ExitStatus::Success,
        Ok(Err(error)) => {
            tracing::error!("{error}");
            ExitStatus::Failure
        }
        Err(error) => {
            tracing::error!("cannot start: {error}");
            ExitStatus::Failure
        }
    }
}

/// Why the daemon exited.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot reach the system bus: {0}")]
    NoBus(zbus::Error),
    #[error("already running, pid {0}")]
    AlreadyRunning(u32),
    #[error("cannot be {NAME} on the bus: {0} (the bus allows it with org.zramd1.conf, to root)")]
    NoName(zbus::Error),
    #[error("the bus gave {NAME} to another program")]
    LostName,
    #[error("cannot publish on the bus: {0}")]
    Publish(#[from] zbus::Error),
    #[error("the bus is gone")]
    BusGone,
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] std::io::Error),
}

async fn serve(options: Options, [prompt, of_pressure]: [Result<OwnedFd, Errno>; 2]) -> Result<(), Failure> {
    let direct = options.config.is_some() || !unit_files::is_booted(Path::new("/"));
    let mode = if direct { Mode::Direct } else { Mode::Systemd };
    let source = Source { file: options.config };
    let core = Core::new(source, mode);
    *lock(&core.pressure.prompt) = Some(prompt);
    core.pressure.reports.set(of_pressure).ok();
    // Of a daemon that was killed, also if this one does not reach the bus.
    incompressible::end();
    let socket = BusSocket::connect().await.map_err(Failure::NoBus)?;
    let connection = zbus::connection::Builder::socket(socket)
        .serve_at(ROOT, Objects::new(Arc::clone(&core)))
        .serve_at(ROOT, Table(Manager::new(Arc::clone(&core))))
        .serve_at(benchmark::path(), Benchmark::new(Arc::clone(&core)))
        .serve_at(log_control::PATH, LogControl)
        .build()
        .await
        .map_err(Failure::NoBus)?;
    core.connect(connection.clone());
    // All objects exist before the name is acquired; only those that depend on the configuration are added later.
    let mut published = Published::default();
    sync::publish(&core, &connection, &mut published).await?;
    let mut lost = own_name(&connection).await?;
    // Of a daemon that was killed.
    work::forget(&WORKS);
    let mut signals = Signals::new()?;
    watch::begin(&core);
    tokio::spawn(sync::follow(Arc::clone(&core), connection.clone(), published));
    tokio::spawn(space::follow(Arc::clone(&core), connection.clone()));
    if mode == Mode::Systemd {
        tokio::spawn(sync::follow_timers(Arc::clone(&core), connection.clone()));
    }
    tokio::spawn(notify::keep_watchdog_fed(connection.clone()));
    match view(&core).await {
        Ok(view) => core.set_view(view),
        Err(error) => tracing::error!("cannot read the configuration: {error}"),
    }
    core.enter(Phase::Running);
    tokio::spawn(maintain_reports::follow(Arc::clone(&core)));
    tokio::spawn(benchmark::follow_verdict(Arc::clone(&core)));
    adopt(&core).await;
    maintain::follow_configuration(&core).await;
    journal::started(core.latest().devices.len());
    notify::ready("Serving");
    let ended = wait(&core, &connection, &mut lost, &mut signals).await;
    notify::stopping();
    core.enter(Phase::Stopping);
    // The level is reset, because it is no longer updated.
    pressure::follow(&core, None);
    incompressible::end();
    work::forget(&WORKS);
    // Devices are not changed. Operations in progress are completed by PID 1, or by the next start of the daemon. The name
    // is released first, so that new calls fail at once instead of timing out.
    connection.release_name(NAME).await.ok();
    ended
}

/// Acquires the bus name. Returns the stream that signals its loss.
async fn own_name(connection: &Connection) -> Result<MessageStream, Failure> {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(names::BUS)
        .interface(names::BUS)
        .member("NameLost")
        .arg(0, NAME)
        .build()?;
    let lost = MessageStream::for_match_rule(rule, connection, None).await?;
    // Default flags would replace the owner, and allow replacement.
    match connection.request_name_with_flags(NAME, RequestNameFlags::DO_NOT_QUEUE).await {
        Ok(_) => Ok(lost),
        Err(zbus::Error::NameTaken) => {
            let pid = names::ask(connection, "GetConnectionUnixProcessID", NAME).await?;
            Err(Failure::AlreadyRunning(pid))
        }
        Err(error) => Err(Failure::NoName(error)),
    }
}

/// Completes an interrupted change; at the first start after a boot, sets up what is missing.
async fn adopt(core: &Arc<Core>) {
    let wish = match (interrupted(), Path::new(PROVISIONED).exists()) {
        (Some(wish), _) => Some((wish, true)),
        (None, false) if core.mode == Mode::Systemd => {
            Some((Wish { goal: Goal::Add, ..Wish::default() }, false))
        }
        _ => None,
    };
    if let Some((wish, resumes)) = wish {
        let _guard = core.change_lock.lock().await;
        let kind = if resumes { "resume" } else { "provision" };
        let span = tracing::error_span!("operation", ZRAMD_JOB_TYPE = kind);
        match reconcile(core, &Handle::unwatched(), wish, None).instrument(span).await {
            Ok(done) if resumes => journal::resumed(&told(done)),
            Ok(None) => {}
            Ok(Some(done)) => journal::job_ended("provision", Ending::Done, &done),
            Err(error) => {
                journal::ended(kind, None, Ending::Failed, &error.message, error.kind.is_slip());
            }
        }
    }
    if core.mode == Mode::Systemd
        && let Err(error) = files::replace(Path::new("/"), PROVISIONED, Some(""))
    {
        tracing::warn!("{error}");
    }
}

struct Signals {
    end: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    reload: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            end: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            reload: signal(SignalKind::hangup())?,
        })
    }
}

async fn wait(
    core: &Arc<Core>,
    connection: &Connection,
    lost: &mut MessageStream,
    signals: &mut Signals,
) -> Result<(), Failure> {
    loop {
        tokio::select! {
            _ = signals.end.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.reload.recv() => {
                if let Err(error) = core.reload(&super::bus::options::Options::default()).await {
                    journal::ended("reload", None, Ending::Failed, &error.message, error.kind.is_slip());
                }
            }
            () = connection.closed() => return Err(Failure::BusGone),
            signal = stream::next(lost) => return Err(match signal {
                Some(Ok(_)) => Failure::LostName,
                _ => Failure::BusGone,
            }),
        }
    }
}
