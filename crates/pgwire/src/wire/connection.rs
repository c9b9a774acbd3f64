//! What a connection holds: its socket, its buffers and what the server reported.

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

/// What an empty send buffer may keep, so that one large batch does not hold its memory for the
/// connection's life.
const KEEP: usize = 256 << 10;

/// How long the server is given to take the good-bye.
const GOOD_BYE: Duration = Duration::from_secs(1);

/// One server connection. Dropping it closes it without a good-bye.
#[derive(Debug)]
pub struct Wire {
    pub(super) socket: Socket,
    pub(super) inbox: Inbox,
    pub(super) out: BytesMut,
    pub(super) session: Session,
    pub(super) cancel: CancelKey,
    /// The server, as `host:port` or the path of its socket, for messages.
    pub(super) peer: Box<str>,
    /// False once an exchange failed or its future was dropped half-way: answers can no longer be
    /// told apart.
    pub(super) usable: bool,
}

impl Wire {
    /// Where frontend messages are appended (`postgres_protocol::message::frontend`) for the next
    /// exchange. A codec function that fails leaves a part of its message behind: truncate to
    /// the length before.
    pub fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// A run-time parameter that the server reports: `server_version`, `TimeZone`,
    /// `standard_conforming_strings` ...
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.session.parameter(name)
    }

    /// All run-time parameters that the server reports, in the order of its first report.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.session.parameters()
    }

    /// The process that serves this connection.
    pub fn backend_pid(&self) -> i32 {
        self.cancel.pid
    }

    /// What is needed to interrupt this connection's statement from outside.
    pub fn cancel_key(&self) -> CancelKey {
        self.cancel.clone()
    }

    /// False once an exchange failed or was dropped half-way.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

    /// Says good-bye and closes; gives up after a second. Cancel safe.
    pub async fn terminate(mut self) {
        self.take_leave().await;
    }

    /// The same of a connection that is still held: it cannot be used any more.
    pub async fn take_leave(&mut self) {
        let mut bye = BytesMut::new();
        frontend::terminate(&mut bye);
        let goodbye = async {
            self.socket.write_all(&bye).await?;
            self.socket.shutdown().await
        };
        // The server ends the session at the closed connection too; there is nothing else to do.
        drop(time::timeout(GOOD_BYE, goodbye).await);
    }

    pub(super) fn clear_out(&mut self) {
        self.out.clear();
        if self.out.try_reclaim(KEEP + 1) {
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
