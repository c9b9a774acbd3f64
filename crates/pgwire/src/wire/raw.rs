//! Raw access: whole control over a connection's bytes in both directions, for who relays them.
//!
//! Whoever polls a connection by these methods answers for its state: [`Wire::take_over`] marks it
//! as one whose answers cannot be told apart, [`Wire::settle`] says that all of them were taken.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use tokio::io::AsyncWrite;

use super::connection::Wire;

impl Wire {
    /// Marks the connection as one with answers outstanding: no exchange is possible until
    /// [`Wire::settle`].
    pub fn take_over(&mut self) {
        self.usable = false;
    }

    /// Says that everything which was asked for is answered and taken. True if no bytes are left
    /// over in either direction: only then is the connection usable again.
    pub fn settle(&mut self) -> bool {
        self.usable = self.out.is_empty() && self.inbox.rest().is_empty();
        if self.usable {
            self.clear_out();
        }
        self.usable
    }

    /// Sends what [`Wire::out`] holds, as far as the socket takes it; what is sent is taken out of
    /// the buffer. Ready once all is sent and flushed.
    ///
    /// # Errors
    /// The socket's. The connection is of no use afterwards, but the server's last words may still
    /// be received.
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

    /// Reads once, at most some 32 KiB beyond what is there. 0 is the end of the stream.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.inbox.poll_fill(&mut self.socket, cx)
    }

    /// What was received and is not taken yet, borrowed from the receive buffer.
    pub fn received(&self) -> &[u8] {
        self.inbox.rest()
    }

    /// Takes bytes from the front of [`Wire::received`].
    pub fn consume(&mut self, bytes: usize) {
        self.inbox.consume(bytes);
    }

    /// Takes note of a ParameterStatus body, so that [`Wire::parameter`] stays true. A malformed
    /// one is passed over: the bytes reach a client that judges for itself.
    pub fn note_parameter(&mut self, body: &[u8]) {
        if let Err(malformed) = self.session.receive(b'S', body) {
            tracing::debug!(malformed, "a parameter was passed over");
        }
    }

    /// The server, as `host:port` or the path of its socket, for messages.
    pub fn peer(&self) -> &str {
        &self.peer
    }
}
