//! The way to the daemon: calls over the system bus, with their errors as sentences and exit statuses.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::wire::DynamicDeserialize;
use zbus::{Connection, DBusError, DynamicType, OwnedVariant, Proxy};

use crate::logic::exit::ExitStatus;
use crate::logic::snapshot::DiskView;
use crate::logic::unit_disk::saving_timer;
use crate::service::{NAME, ROOT, timer};

/// How long somebody waits for the daemon who can do without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a command could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit status for it.
    pub status: ExitStatus,
    /// One sentence for people.
    pub message: String,
}

/// What happens when a name on the bus is missing, in the words of somebody who wants to change that.
const NOT_RUNNING: &str =
    "zramd.service is not running; start it with `systemctl enable --now zramd.service`";

/// Every error name that callers meet, with its exit status. What is missing here is a plain failure.
const STATUSES: [(&str, ExitStatus); 25] = [
    ("org.zramd1.Error.NotFound", ExitStatus::NotFound),
    ("org.zramd1.Error.Failed", ExitStatus::Failure),
    ("org.zramd1.Error.InvalidArgument", ExitStatus::Usage),
    ("org.zramd1.Error.Unmanaged", ExitStatus::Refused),
    ("org.zramd1.Error.NotSupported", ExitStatus::Unsupported),
    ("org.zramd1.Error.Unsafe", ExitStatus::Refused),
    ("org.zramd1.Error.InsufficientMemory", ExitStatus::Refused),
    ("org.zramd1.Error.ConfigInvalid", ExitStatus::Failure),
    ("org.zramd1.Error.Busy", ExitStatus::Failure),
    ("org.zramd1.Error.InUse", ExitStatus::Failure),
    ("org.zramd1.Error.DiskFull", ExitStatus::Refused),
    ("org.zramd1.Error.StoreFull", ExitStatus::Refused),
    ("org.zramd1.Error.SnapshotCorrupt", ExitStatus::Failure),
    ("org.zramd1.Error.NotLoaded", ExitStatus::Refused),
    ("org.zramd1.Error.LimitExceeded", ExitStatus::Failure),
    ("org.zramd1.Error.Cancelled", ExitStatus::Failure),
    ("org.zramd1.Error.Postponed", ExitStatus::Failure),
    ("org.freedesktop.DBus.Error.AccessDenied", ExitStatus::NotPermitted),
    ("org.freedesktop.DBus.Error.AuthFailed", ExitStatus::NotPermitted),
    ("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", ExitStatus::NotPermitted),
    ("org.freedesktop.DBus.Error.NotSupported", ExitStatus::Unsupported),
    ("org.freedesktop.DBus.Error.InvalidArgs", ExitStatus::Usage),
    ("org.freedesktop.DBus.Error.UnknownObject", ExitStatus::NotFound),
    ("org.freedesktop.DBus.Error.UnknownInterface", ExitStatus::NotFound),
    ("org.freedesktop.DBus.Error.UnknownMethod", ExitStatus::Unsupported),
];

/// Error names that mean that nobody is there to answer.
const ABSENT: [&str; 3] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.NoServer",
];

impl Failure {
    /// A failure with this status.
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    /// A plain failure.
    pub fn plain(message: impl Into<String>) -> Failure {
        Failure::new(ExitStatus::Failure, message)
    }

    /// What an error of this name with this text means.
    pub fn named(name: &str, text: &str) -> Failure {
        if ABSENT.contains(&name) {
            return Failure::plain(NOT_RUNNING);
        }
        let status = STATUSES.iter().find(|(known, _)| *known == name).map(|(_, status)| *status);
        let status = status.unwrap_or(ExitStatus::Failure);
        let text = if text.is_empty() { name } else { text };
        match name {
            "org.zramd1.Error.ConfigInvalid" => {
                Failure::new(status, format!("{text} (`zramdctl check` shows the place)"))
            }
            "org.freedesktop.DBus.Error.NoReply" => {
                Failure::plain("zramd.service ended before it had answered; see `journalctl -u zramd`")
            }
            _ => Failure::new(status, text),
        }
    }

    /// The message of a job that failed: the name of the error, a colon, and the text.
    pub fn of_job(message: &str) -> Failure {
        match message.split_once(": ") {
            Some((name, text)) if STATUSES.iter().any(|(known, _)| *known == name) => {
                Failure::named(name, text)
            }
            _ => Failure::plain(message),
        }
    }

    /// Whether it only is that no daemon is there.
    pub fn is_absence(&self) -> bool {
        self.message == NOT_RUNNING || self.message.starts_with(NO_BUS)
    }
}

/// How the sentence begins when there is no bus at all.
const NO_BUS: &str = "cannot reach the system bus";

impl From<zbus::Error> for Failure {
    fn from(error: zbus::Error) -> Failure {
        match &error {
            zbus::Error::MethodError(name, text, _) => {
                Failure::named(name.as_str(), text.as_deref().unwrap_or_default())
            }
            zbus::Error::FDO(known) => {
                Failure::named(known.name().as_str(), known.description().unwrap_or_default())
            }
            zbus::Error::InputOutput(io) if io.kind() == std::io::ErrorKind::BrokenPipe => {
                Failure::plain("the system bus is gone")
            }
            _ => Failure::plain(format!("talking to zramd.service failed: {error}")),
        }
    }
}

/// When a timer of systemd saves a disk next, in microseconds since 1970; 0 is never, or that there is no systemd to ask.
pub fn next_save(disk: &DiskView) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Some(runtime) = runtime.ok().filter(|_| disk.is_kept()) else { return 0 };
    runtime.block_on(async {
        match Connection::system().await {
            Ok(connection) => timer::next(&connection, &saving_timer(&disk.name)).await,
            Err(_) => 0,
        }
    })
}

/// Does work that needs the bus, and tells why it failed.
pub fn run(work: impl Future<Output = Result<ExitStatus, Failure>>) -> ExitStatus {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Failure::plain(format!("cannot begin: {error}"))),
    };
    result.unwrap_or_else(|failure| {
        super::out::error(&failure.message);
        failure.status
    })
}

/// A connection to the bus that the daemon is on.
#[derive(Debug, Clone)]
pub struct Bus {
    connection: Connection,
    flags: MethodFlags,
}

impl Bus {
    /// Connects. `ask_password` lets polkit ask the person at the terminal or screen.
    pub async fn open(ask_password: bool) -> Result<Bus, Failure> {
        let connection = Connection::system().await.map_err(|error| Failure::plain(no_bus(&error)))?;
        let flags = if ask_password { MethodFlags::ALLOW_INTERACTIVE_AUTH } else { MethodFlags::empty() };
        Ok(Bus { connection, flags })
    }

    /// The connection itself, for reading and for signals.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Calls a method of the root object.
    pub async fn manager<B, R>(&self, method: &str, body: &B) -> Result<R, Failure>
    where
        B: Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        self.call(ROOT, "org.zramd1.Manager", method, body).await
    }

    /// Calls a method.
    pub async fn call<B, R>(&self, path: &str, interface: &str, method: &str, body: &B) -> Result<R, Failure>
    where
        B: Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let proxy: Proxy<'_> = zbus::proxy::Builder::new(&self.connection)
            .destination(NAME)
            .path(path)
            .interface(interface)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let reply = proxy.call_with_flags(method, self.flags, body).await?;
        reply.ok_or_else(|| Failure::plain("zramd.service did not answer"))
    }
}

/// The first file of the daemon's configuration; nothing when there is no daemon, or it does not answer.
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

fn no_bus(error: &zbus::Error) -> String {
    let why = error.to_string();
    // Without the number that Rust adds.
    let why = why.split(" (os error").next().unwrap_or(&why);
    format!("{NO_BUS}: {why}; what only reads works without it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::bus::error::NAMES;

    #[test]
    fn every_error_of_the_daemon_has_its_status() {
        for (_, name) in NAMES {
            assert!(STATUSES.iter().any(|(known, _)| *known == name), "{name}");
        }
        for (name, code) in [
            ("org.zramd1.Error.NotFound", 4),
            ("org.zramd1.Error.NotSupported", 5),
            ("org.zramd1.Error.Unsafe", 7),
            ("org.zramd1.Error.InsufficientMemory", 7),
            ("org.zramd1.Error.Unmanaged", 7),
            ("org.zramd1.Error.InvalidArgument", 2),
            ("org.zramd1.Error.ConfigInvalid", 1),
            ("org.zramd1.Error.LimitExceeded", 1),
            ("org.freedesktop.DBus.Error.AccessDenied", 77),
            ("org.example.Unheard", 1),
        ] {
            assert_eq!(Failure::named(name, "text").status.code(), code, "{name}");
        }
    }

    #[test]
    fn an_absent_daemon_is_told_by_what_to_do() {
        let errors = [
            zbus::fdo::Error::ServiceUnknown("The name is not activatable".into()),
            zbus::fdo::Error::NameHasNoOwner("no owner".into()),
        ];
        for error in errors {
            let failure = Failure::from(zbus::Error::FDO(Box::new(error)));
            assert!(failure.is_absence() && failure.message.contains("systemctl enable"), "{failure:?}");
        }
        assert!(!Failure::named("org.zramd1.Error.Failed", "x").is_absence());
    }

    #[test]
    fn the_message_of_a_job_brings_its_kind() {
        let failure = Failure::of_job("org.zramd1.Error.Unsafe: zram1: its contents would be lost");
        assert_eq!(failure, Failure::new(ExitStatus::Refused, "zram1: its contents would be lost"));
        assert_eq!(Failure::of_job("zram1: odd"), Failure::plain("zram1: odd"));
    }
}
