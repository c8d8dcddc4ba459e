//! Connects logic and host: gathers facts, has them planned, and carries the plan out. Synchronous, generic over the
//! host.
//!
//! Invariants: a record is on disk before the step that it can undo; a failed step rolls back the whole target and
//! reports every error; a second run after any failure or kill converges.

pub mod apply;
mod create;
pub mod device;
pub mod error;
pub mod gather;
pub mod incompressible;
pub mod maintain;
pub mod off;
pub mod perform;
pub mod provision;
pub mod ramdisk;
pub mod reload;
mod retry;
pub mod sample;
pub mod scratch;
mod self_test;
mod span;
pub mod status;
mod undo;
pub mod verdict;
pub mod work;

pub use error::{Error, ErrorKind};
pub use provision::{apply, check_elsewhere, down, plan, plan_elsewhere, revert, up, up_vm};
pub use reload::check;
