//! A connection: its socket, its buffers, and the parameters that the server reported.

use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
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
