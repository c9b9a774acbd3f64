//! A body that continues until its client leaves or the server stops.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::connection_state::Answering;

/// A body that continues. If its client leaves, it is dropped.
pub struct Live {
    chunks: BoxStream<'static, Bytes>,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    kept: Option<Answering>,
}

impl Live {
    /// Returns a body of these chunks, none of which is empty.
    pub fn new(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            chunks: chunks.boxed(),
            stop: None,
            kept: None,
        }
    }

    /// Ends the body when the server stops, and informs the connection when it has ended.
    pub(crate) fn keep(&mut self, stop: CancellationToken, answering: Answering) {
        self.stop = Some(Box::pin(stop.cancelled_owned()));
        self.kept = Some(answering);
    }

    /// Returns the next chunk; `None` at the end.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let stop = self.stop.as_mut();
        if stop.is_some_and(|stop| stop.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        self.chunks.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}
