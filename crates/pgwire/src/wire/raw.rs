//! Raw access to a connection's bytes in both directions, for the relay of the PostgreSQL frontend.
//!
//! The caller is responsible for the connection's state: [`Wire::take_over`] marks it as having
//! outstanding answers, [`Wire::settle`] declares that all of them were taken.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use tokio::io::AsyncWrite;

use super::connection::Wire;

impl Wire {
    /// Marks the connection as having outstanding answers. No exchange is possible until
    /// [`Wire::settle`].
    pub fn take_over(&mut self) {
        self.usable = false;
    }

    /// Declares that all requests are answered and all answers taken. Returns true, and makes the
    /// connection usable again, if no bytes are left in either direction.
    pub fn settle(&mut self) -> bool {
        self.usable = self.out.is_empty() && self.inbox.rest().is_empty();
        if self.usable {
            self.clear_out();
        }
        self.usable
    }

    /// Sends as much of [`Wire::out`] as the socket takes, and removes it from the buffer. Ready
    /// once everything is sent and flushed.
    ///
    /// # Errors
    /// The error of the socket. The connection cannot be used afterwards, except to receive the
    /// server's last messages.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut socket = Pin::new(&mut self.socket);
        while !self.out.is_empty() {
            match socket.as_mut().poll_write(cx, &self.out)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(taken) => self.out.advance(taken),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.clear_out();
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Reads once, at most some 32 KiB. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.inbox.poll_fill(&mut self.socket, cx)
    }

    /// Returns the received bytes that have not been taken.
    pub fn received(&self) -> &[u8] {
        self.inbox.rest()
    }

    /// Removes bytes from the front of [`Wire::received`].
    pub fn consume(&mut self, bytes: usize) {
        self.inbox.consume(bytes);
    }

    /// Stores the parameter of a ParameterStatus body for [`Wire::parameter`]. A malformed one is
    /// ignored, because the client receives the bytes too.
    pub fn note_parameter(&mut self, body: &[u8]) {
        if let Err(malformed) = self.session.receive(b'S', body) {
            tracing::debug!(malformed, "a parameter was passed over");
        }
    }

    /// Returns the server for messages: `host:port` or the path of its socket.
    pub fn peer(&self) -> &str {
        &self.peer
    }
}
