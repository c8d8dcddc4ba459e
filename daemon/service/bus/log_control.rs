//! `org.freedesktop.LogControl1`: level and target of log messages, for `systemctl service-log-level` and `service-log-target`.

use host::linux::log;
use zbus::fdo::{Error, Result};
use zbus::interface;

/// Path of the object, the same in all programs (org.freedesktop.LogControl1(5)).
pub(crate) const PATH: &str = "/org/freedesktop/LogControl1";

/// The policy of the bus lets only root set a property.
#[derive(Debug)]
pub(crate) struct LogControl;

// The interface decides the form of a method.
#[allow(clippy::unused_self, clippy::needless_pass_by_value)]
#[interface(name = "org.freedesktop.LogControl1")]
impl LogControl {
    /// Least important level that is logged.
    #[zbus(property(emits_changed_signal = "false"))]
    fn log_level(&self) -> String {
        log::level().word().to_owned()
    }

    #[zbus(property)]
    fn set_log_level(&mut self, level: String) -> Result<()> {
        let level = level.parse().map_err(Error::InvalidArgs)?;
        log::set_level(level);
        tracing::info!("the log level is now {level}");
        Ok(())
    }

    /// Where messages go.
    #[zbus(property(emits_changed_signal = "false"))]
    fn log_target(&self) -> String {
        log::target().word().to_owned()
    }

    #[zbus(property)]
    fn set_log_target(&mut self, target: String) -> Result<()> {
        let target = target.parse().map_err(Error::InvalidArgs)?;
        log::set_target(target).map_err(Error::InvalidArgs)?;
        tracing::info!("the log target is now {}", target.word());
        Ok(())
    }

    /// `SYSLOG_IDENTIFIER` of the messages.
    #[zbus(property(emits_changed_signal = "const"))]
    fn syslog_identifier(&self) -> String {
        log::identifier().to_owned()
    }
}
