//! The daemon: publishes statistics and control on the bus. Nothing here decides anything.
//!
//! One thread, and no timer while nobody asks: what is read or changed runs on a blocking thread that goes away again.
//! Boot does not depend on any of this; stopping, crashing or upgrading it never touches a device.

pub mod bus;
mod claims;
mod core;
mod handle;
mod jobs;
pub mod journal;
mod lane;
mod lock;
pub(crate) mod maintain;
mod notify;
mod operations;
mod overlay;
mod pressure;
pub(crate) mod ramdisk;
mod ranks;
mod reconcile;
mod reports;
pub mod run;
mod setup;
mod socket;
pub mod stream;
mod subscribe;
mod sync;
mod systemd;
pub mod timer;
mod watch;
mod work;

/// Bus name, root of the interface names and of the error names. Never changed once released.
pub const NAME: &str = "org.zramd1";
/// The object that everything hangs below.
pub const ROOT: &str = "/org/zramd1";
