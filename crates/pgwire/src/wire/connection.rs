//! A connection: its socket, its buffers, and the parameters that the server reported.
//!
//! The relay of the PostgreSQL frontend passes bytes on by itself, in both directions: it is
//! responsible for the connection's state between [`Wire::take_over`] and [`Wire::settle`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time;

use super::broken::Broken;
use super::cancel::CancelKey;
use super::inbox::Inbox;
use super::session::Session;
use super::socket::Socket;

/// Bytes that an empty send buffer keeps. Memory of larger batches is returned.
const KEPT_BYTES: usize = 256 << 10;

/// Timeout for sending Terminate.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to a server. Dropping it closes the socket without Terminate.
#[derive(Debug)]
pub struct Wire {
    pub(super) socket: Socket,
    pub(super) inbox: Inbox,
    pub(super) out: BytesMut,
    pub(super) session: Session,
    pub(super) cancel: CancelKey,
    /// The server for messages: `host:port` or the path of its socket.
    pub(super) peer: Box<str>,
    /// False once an exchange failed or its future was dropped early: answers can no longer be
    /// matched with requests.
    pub(super) usable: bool,
}

impl Wire {
    /// Returns the send buffer, to which the caller appends frontend messages for the next exchange
    /// (`postgres_protocol::message::frontend`). If such a function fails, the caller must truncate
    /// the buffer to its length before.
    pub fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Returns a run-time parameter that the server reports: `server_version`, `TimeZone`,
    /// `standard_conforming_strings` ...
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.session.parameter(name)
    }

    /// Returns all run-time parameters that the server reports, in the order of its first report.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.session.parameters()
    }

    /// Returns the number of the server process.
    pub fn backend_pid(&self) -> i32 {
        self.cancel.pid
    }

    /// Returns the key that cancels this connection's statement.
    pub fn cancel_key(&self) -> CancelKey {
        self.cancel.clone()
    }

    /// Returns false once an exchange failed or was dropped early.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

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

    /// Sends Terminate and closes the connection, within a second. Cancel safe.
    pub async fn terminate(mut self) {
        self.take_leave().await;
    }

    /// As [`Wire::terminate`], by reference. The connection cannot be used afterwards.
    pub async fn take_leave(&mut self) {
        let mut bye = BytesMut::new();
        frontend::terminate(&mut bye);
        let terminate = async {
            self.socket.write_all(&bye).await?;
            self.socket.shutdown().await
        };
        // If this fails, the server ends the session when it sees the closed connection.
        drop(time::timeout(TERMINATE_TIMEOUT, terminate).await);
    }

    pub(super) fn clear_out(&mut self) {
        self.out.clear();
        if self.out.try_reclaim(KEPT_BYTES + 1) {
            self.out = BytesMut::new();
        }
    }

    pub(super) fn unusable(&self) -> Broken {
        Broken {
            sent: 0,
            syncs_seen: 0,
            error: None,
            cause: format!("the connection to {} had ended before", self.peer),
        }
    }
}
