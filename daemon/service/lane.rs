//! The one lane on which the machine is changed: kernel work blocks, so it runs beside the thread that answers callers.

use super::bus::error::{BusError, Name, Result};
use crate::engine;

/// Runs `work` on a blocking thread.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, engine::Error> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(BusError::new(Name::Failed, format!("the work ended early: {error}"))),
    }
}
