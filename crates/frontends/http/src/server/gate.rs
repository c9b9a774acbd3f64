//! The socket as hyper sees it: counts what comes in, keeps the [`ConnectionState`], and knows a
//! half-closed connection from a dead one.
//!
//! A client that has sent its request may close its sending side and still wait for the answer (`nc
//! -N` does). A client that has gone looks the same. So the end of what it sends is kept from hyper
//! for [`GRACE`] while a request is under way: time enough for an answer; after it the request is
//! dropped, and what is still queued of it is taken out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::connection_state::ConnectionState;

/// How long a request may go on after its client has closed its sending side.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A stream with a [`ConnectionState`].
#[derive(Debug)]
pub(crate) struct Gate<S> {
    io: S,
    state: Arc<ConnectionState>,
    received: Counter,
    has_ended: bool,
    grace: Option<Pin<Box<Sleep>>>,
}

impl<S> Gate<S> {
    pub(crate) fn new(io: S, state: Arc<ConnectionState>, received: Counter) -> Self {
        Self {
            io,
            state,
            received,
            has_ended: false,
            grace: None,
        }
    }

    fn wrote(&self, poll: &Poll<io::Result<usize>>) {
        self.state.set_stalled(poll.is_pending());
        if let Poll::Ready(written) = poll {
            self.state.progress();
            let written = *written.as_ref().unwrap_or(&0);
            self.state.moved(written);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.has_ended {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
            let count = buf.filled().len() - before;
            if count > 0 {
                this.received.inc_by(count as u64);
                this.state.received();
                return Poll::Ready(Ok(()));
            }
            this.has_ended = true;
        }
        if this.state.is_answering() {
            // The answer is not cut off; whether the client still takes it is seen when it is
            // written.
            return Poll::Pending;
        }
        if !this.state.in_request() {
            return Poll::Ready(Ok(()));
        }
        let grace = this.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
        grace.as_mut().poll(cx).map(Ok)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.io).poll_write(cx, data);
        this.wrote(&poll);
        poll
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.io).poll_write_vectored(cx, data);
        this.wrote(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
