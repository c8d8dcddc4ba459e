//! Work that blocks, beside the thread that answers callers.

use super::bus::error::{Error, ErrorKind};

/// Runs `work` on a blocking thread.
pub async fn run<T, E>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> std::result::Result<T, Error>
where
    T: Send + 'static,
    E: Into<Error> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Into::into),
        Err(error) => Err(Error::new(ErrorKind::Failed, format!("the work ended early: {error}"))),
    }
}
