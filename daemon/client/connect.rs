//! Calls to the daemon over the system bus, with errors as messages and exit statuses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::wire::DynamicDeserialize;
use zbus::{Connection, DynamicType, OwnedVariant, Proxy};

use host::linux::unit_files;
use logic::error::{Error, ErrorKind};
use logic::exit::ExitStatus;
use logic::sample::RamdiskView;
use logic::unit::ramdisk::saving_timer;
use service::reply::{THE_BUS, ZRAMD};
use service::{NAME, ROOT, next_saves};

/// Time limit for optional answers of the daemon.
const PATIENCE: Duration = Duration::from_secs(2);

/// How to start the daemon with the init system of this machine.
pub fn how_to_start() -> &'static str {
    if unit_files::is_booted(Path::new("/")) {
        "`systemctl enable --now zramd.service`"
    } else {
        "this init system (see /usr/share/doc/zramd/other-inits.md)"
    }
}

/// An error from the bus as an [`Error`], with a remedy that the daemon does not know.
pub fn answered(kind: ErrorKind, text: &str) -> Error {
    match kind {
        ErrorKind::NotRunning => {
            Error::new(kind, format!("the daemon is not running; start it with {}", how_to_start()))
        }
        ErrorKind::Config => Error::new(kind, format!("{text} (`zramdctl check` shows the place)")),
        ErrorKind::LosesContents => Error::new(kind, format!("{text} (--force allows it)")),
        _ => Error::new(kind, text),
    }
}

/// The error of a failed call.
pub fn of_call(error: zbus::Error) -> Error {
    match error {
        zbus::Error::MethodError(name, ..) if name.as_str() == NO_REPLY => {
            Error::failed("zramd.service stopped before it answered; see `journalctl -u zramd`")
        }
        zbus::Error::InputOutput(io) if io.kind() == std::io::ErrorKind::BrokenPipe => {
            Error::failed("the system bus is gone")
        }
        other => {
            let error = service::error::Error::from(other);
            answered(error.kind, &error.message)
        }
    }
}

/// Name of the error for a call that was unanswered when the daemon left the bus.
const NO_REPLY: &str = "org.freedesktop.DBus.Error.NoReply";

/// When a timer of systemd saves a RAM disk next, in microseconds since 1970; 0 if never, or without systemd.
pub fn next_save(disk: &RamdiskView) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Some(runtime) = runtime.ok().filter(|_| disk.is_kept()) else { return 0 };
    runtime.block_on(async {
        let ask = async {
            let connection = Connection::system().await.ok()?;
            Some(next_saves::of_timer(&connection, &saving_timer(&disk.name)).await)
        };
        tokio::time::timeout(PATIENCE, ask).await.ok().flatten().unwrap_or(0)
    })
}

/// Runs a command that needs the bus, and prints its error.
pub fn run(work: impl Future<Output = Result<ExitStatus, Error>>) -> ExitStatus {
    wait(work).unwrap_or_else(|failure| {
        super::out::error(&failure.message);
        failure.exit_status()
    })
}

/// Waits for an answer of the bus.
pub fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Error::failed(format!("cannot begin: {error}"))),
    }
}

/// A connection to the system bus.
#[derive(Debug, Clone)]
pub struct Bus {
    connection: Connection,
    flags: MethodFlags,
}

impl Bus {
    /// Connects. `ask_password` allows polkit to ask the user for authentication.
    pub async fn open(ask_password: bool) -> Result<Bus, Error> {
        let connection = THE_BUS.within(Connection::system()).await.map_err(|silent| silent.0)?;
        let connection = connection.map_err(|error| no_bus(&error))?;
        let flags = if ask_password { MethodFlags::ALLOW_INTERACTIVE_AUTH } else { MethodFlags::empty() };
        Ok(Bus { connection, flags })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Calls a method of the root object.
    pub async fn manager<B, R>(&self, method: &str, body: &B) -> Result<R, Error>
    where
        B: Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        self.call(ROOT, "org.zramd1.Manager", method, body).await
    }

    pub async fn call<B, R>(&self, path: &str, interface: &str, method: &str, body: &B) -> Result<R, Error>
    where
        B: Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let call = async {
            let proxy: Proxy<'_> = zbus::proxy::Builder::new(&self.connection)
                .destination(NAME)
                .path(path)
                .interface(interface)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            proxy.call_with_flags(method, self.flags, body).await
        };
        // The daemon may wait for a password, or for a change.
        let reply = ZRAMD.while_alive(&self.connection, call).await.map_err(|silent| silent.0)?;
        reply.map_err(of_call)?.ok_or_else(|| Error::failed("zramd.service did not answer"))
    }
}

/// The first configuration file of the daemon; `None` if it is not running or does not answer.
pub fn file_of_daemon() -> Option<PathBuf> {
    let ask = async {
        let bus = Bus::open(false).await.ok()?;
        let what = ("org.zramd1.Manager", "ConfigFiles");
        let files = bus.call(ROOT, "org.freedesktop.DBus.Properties", "Get", &what).await;
        Vec::<String>::try_from(files.ok().map(|files: OwnedVariant| files)?).ok()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let files = runtime.block_on(async { tokio::time::timeout(PATIENCE, ask).await }).ok()??;
    files.into_iter().next().map(PathBuf::from)
}

fn no_bus(error: &zbus::Error) -> Error {
    let why = error.to_string();
    // Removes the number that Rust appends.
    let why = why.split(" (os error").next().unwrap_or(&why);
    Error::new(
        ErrorKind::NotRunning,
        format!("cannot reach the system bus: {why}; list, status, top, check and plan work without it"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_daemon_is_reported_with_a_remedy() {
        let errors = [
            zbus::fdo::Error::ServiceUnknown("The name is not activatable".into()),
            zbus::fdo::Error::NameHasNoOwner("no owner".into()),
        ];
        for error in errors {
            let error = of_call(zbus::Error::FDO(Box::new(error)));
            assert_eq!(error.kind, ErrorKind::NotRunning);
            assert!(error.message.contains(how_to_start()), "{}", error.message);
        }
        assert_eq!(answered(ErrorKind::Failed, "x"), Error::failed("x"));
    }
}
