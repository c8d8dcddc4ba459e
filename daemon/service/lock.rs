//! Locking shared state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another holder: values are replaced in one step, so they are never half-written.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
