//! The daemon: publishes statistics and control on the bus, without any policy of its own.
//!
//! One thread, and no timers while there are no callers; blocking threads exist only while they work, and one that sleeps until
//! memory is short (`incompressible`). Booting does not depend on the daemon, and stopping, upgrading or a crash of it does not change any device.

pub mod action;
mod auth;
mod blocking;
pub mod bus;
mod call_limits;
mod caller;
mod claims;
mod configure;
mod core;
pub mod error;
mod handle;
mod incompressible;
mod job;
mod jobs;
pub mod journal;
mod lock;
pub(crate) mod maintain;
mod maintain_reports;
pub mod names;
pub mod next_saves;
mod notify;
mod objects;
mod operations;
mod overlay;
mod planned;
mod pressure;
pub(crate) mod ramdisk;
mod reconcile;
pub mod reply;
mod request;
pub mod run;
mod samples;
mod setup;
mod socket;
pub mod stream;
mod subscribe;
mod sync;
mod systemd;
mod verdict;
mod vm;
mod watch;
mod work;

/// Bus name and prefix of interface and error names. Stable once released.
pub const NAME: &str = "org.zramd1";
/// Path of the root object.
pub const ROOT: &str = "/org/zramd1";
