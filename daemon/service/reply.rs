//! Waiting for replies of other programs on the bus: for a limited time, and where a reply may take long, as long as the program
//! answers pings.

use std::future::Future;
use std::time::Duration;

use zbus::Connection;

use super::NAME;
use super::error::{Error, ErrorKind, Result};
use super::names::BUS;

/// Time limit of sd-bus and libdbus for a reply.
const LIMIT: Duration = Duration::from_secs(25);
/// Time that PID 1 takes for a reload at most, in which it answers nothing. Any program may make it reload.
const RELOAD: Duration = Duration::from_secs(180);
/// `WatchdogSec=` of zramd.service.
const WATCHDOG: Duration = Duration::from_secs(300);
/// Time between pings.
const PAUSE: Duration = Duration::from_secs(5);

/// A program that is called.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name on the bus.
    pub name: &'static str,
    /// What it is called otherwise.
    title: &'static str,
    /// What to do if it does not answer.
    remedy: &'static str,
    /// Time limit for its replies.
    limit: Duration,
}

/// The bus itself.
pub const THE_BUS: Program = Program {
    name: BUS,
    title: "the system bus",
    remedy: "see the journal of dbus.service or dbus-broker.service",
    limit: LIMIT,
};

pub const POLKIT: Program = Program {
    name: "org.freedesktop.PolicyKit1",
    title: "polkit",
    remedy: "run `systemctl restart polkit.service`",
    limit: LIMIT,
};

/// PID 1.
pub const PID_1: Program = Program {
    name: "org.freedesktop.systemd1",
    title: "PID 1",
    remedy: "see `journalctl -b _PID=1`",
    limit: RELOAD,
};

/// The daemon. It also serves users who send as much as they can, and PID 1 starts it again after as long a silence.
pub const ZRAMD: Program = Program {
    name: NAME,
    title: "zramd.service",
    remedy: "see `journalctl -b -u zramd.service`, and run `systemctl restart zramd.service`",
    limit: WATCHDOG,
};

impl Program {
    fn silent(&self) -> Error {
        let Program { name, title, remedy, limit } = self;
        let message = format!("{name} ({title}) does not answer for {} s; {remedy}", limit.as_secs());
        Error::new(ErrorKind::Failed, message)
    }

    /// The result of a call of this program.
    ///
    /// # Errors
    ///
    /// After the time limit, with the name of the program.
    pub async fn within<T>(&self, call: impl Future<Output = T>) -> Result<T> {
        tokio::time::timeout(self.limit, call).await.map_err(|_| self.silent())
    }

    async fn ping(&self, connection: &Connection) -> Result<()> {
        // The policy of the bus allows no Ping to itself, and dbus-daemon notes each in the journal.
        let (path, interface, method) = match self.name {
            BUS => ("/org/freedesktop/DBus", BUS, "GetId"),
            _ => ("/", "org.freedesktop.DBus.Peer", "Ping"),
        };
        let reply = self.within(connection.call_method(Some(self.name), path, Some(interface), method, &()));
        // An error is an answer, too.
        reply.await.map(drop)
    }

    /// The result of a call that may take long, because a person is asked or because there is much to do.
    ///
    /// # Errors
    ///
    /// If the program, or the bus, does not answer pings for the time limit.
    pub async fn while_alive<T>(&self, connection: &Connection, call: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            done = call => Ok(done),
            error = self.silence(connection) => Err(error),
        }
    }

    /// Returns when the program, or the bus, has not answered pings for the time limit.
    pub async fn silence(&self, connection: &Connection) -> Error {
        loop {
            tokio::time::sleep(PAUSE).await;
            for program in [&THE_BUS, self] {
                if let Err(error) = program.ping(connection).await {
                    return error;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let soon = Program { limit: Duration::ZERO, ..POLKIT };
            let error = soon.within(std::future::pending::<()>()).await.unwrap_err();
            let text = "org.freedesktop.PolicyKit1 (polkit) does not answer for 0 s; run `systemctl restart polkit.service`";
            assert_eq!(error.message, text);
            assert_eq!(POLKIT.within(async { 7 }).await.unwrap(), 7);
        });
    }
}
