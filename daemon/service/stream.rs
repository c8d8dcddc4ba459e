//! The next item of a stream.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;

/// Waits for the next item; nothing when the stream has ended.
pub async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
