//! Blocking work outside of the thread that serves callers.

use tokio::task::JoinError;

use super::error::{Error, ErrorKind};

/// Runs `work` on a blocking thread. Its messages have the fields of the caller's spans.
pub async fn run<T, E>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> std::result::Result<T, Error>
where
    T: Send + 'static,
    E: Into<Error> + Send + 'static,
{
    let span = tracing::Span::current();
    // One type for all work, because each type has its own copy of what tokio does with it.
    let work: Box<dyn FnOnce() -> std::result::Result<T, Error> + Send> =
        Box::new(move || span.in_scope(work).map_err(Into::into));
    joined(tokio::task::spawn_blocking(work).await)
}

/// The result of a joined task.
pub fn joined<T, E: Into<Error>>(done: Result<Result<T, E>, JoinError>) -> Result<T, Error> {
    match done {
        Ok(result) => result.map_err(Into::into),
        Err(error) => Err(Error::new(ErrorKind::Failed, format!("the work ended early: {error}"))),
    }
}
