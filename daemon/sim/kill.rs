//! The end of a simulated process.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Once;

/// The payload of the panic that simulates `SIGKILL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Killed;

/// Simulates `SIGKILL`.
pub(super) fn die() -> ! {
    panic_any(Killed)
}

/// Runs `work` as a process that the script may kill; `None` if it was killed. Other panics are propagated.
pub fn survive<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Killed>() {
                usual(info);
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
