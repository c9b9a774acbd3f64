//! A PostgreSQL connection: the protocol, version 3.0, over the message codec of
//! `postgres-protocol`.
//!
//! The caller appends frontend messages to [`Wire::out`] and runs [`Wire::exchange`]: everything is
//! sent while the answers are read, each answer borrowed from the receive buffer. No task, no
//! channel and no allocation per message stands between the socket and the caller.

mod answer;
mod auth;
mod broken;
mod cancel;
mod connect;
mod cursor;
mod dial;
mod exchange;
mod frame;
mod inbox;
mod raw;
mod server_error;
mod session;
mod socket;
mod startup;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
use tokio::time;

pub use answer::{Answer, DataRow, Field};
pub use broken::Broken;
pub use cancel::CancelKey;
pub use exchange::{Dialogue, On};
pub use server_error::ServerError;
pub use server_error::Words;
pub use tls::server_end_point;

use exchange::AtOnce;
use inbox::Inbox;
use session::Session;
use socket::Socket;

/// What an empty send buffer may keep, so that one large batch does not hold its memory for the
/// connection's life.
const KEEP: usize = 256 << 10;

/// How long the server is given to take the good-bye.
const GOOD_BYE: Duration = Duration::from_secs(1);

/// The rows of a simple query, as text; `None` is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

/// One server connection. Dropping it closes it without a good-bye.
#[derive(Debug)]
pub struct Wire {
    socket: Socket,
    inbox: Inbox,
    out: BytesMut,
    session: Session,
    cancel: CancelKey,
    /// The server, as `host:port` or the path of its socket, for messages.
    peer: Box<str>,
    /// False once an exchange failed or its future was dropped half-way: answers can no longer be
    /// told apart.
    usable: bool,
}

impl Wire {
    /// Where frontend messages are appended (`postgres_protocol::message::frontend`) for the next
    /// exchange. A codec function that fails leaves a part of its message behind: truncate to
    /// the length before.
    pub fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Sends all of [`Wire::out`] while it reads, gives every answer to `on`, and ends after
    /// `syncs` ReadyForQuery. The out buffer is empty afterwards, whatever happens. There is no
    /// time limit: a lock may be waited for.
    ///
    /// COPY data may be sent along without waiting for [`Answer::CopyIn`]; a server that is not in
    /// COPY mode drops it.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves the connection unusable.
    ///
    /// # Errors
    /// [`Broken`] if the connection ends, or the server says what the protocol does not allow.
    pub async fn exchange(&mut self, syncs: usize, on: On<'_>) -> Result<(), Broken> {
        if !self.usable {
            self.clear_out();
            return Err(self.unusable());
        }
        self.usable = false;
        exchange::run(self, syncs, &mut AtOnce(on), false).await?;
        self.usable = true;
        Ok(())
    }

    /// As [`Wire::exchange`], but what is sent is made while it is sent, piece by piece: what does
    /// not fit into memory at once, such as the data of a COPY. [`Broken::sent`] counts all
    /// pieces.
    ///
    /// **Not cancel safe**, as [`Wire::exchange`].
    ///
    /// # Errors
    /// As [`Wire::exchange`].
    pub async fn converse<D: Dialogue>(
        &mut self,
        syncs: usize,
        dialogue: &mut D,
    ) -> Result<(), Broken> {
        if !self.usable {
            self.clear_out();
            return Err(self.unusable());
        }
        self.usable = false;
        exchange::run(self, syncs, dialogue, true).await?;
        self.usable = true;
        Ok(())
    }

    /// Runs a simple query and collects the rows of all its statements: for catalog reads and DDL.
    /// [`Wire::out`] must be empty. Bytes that are not UTF-8 (databases in SQL_ASCII) are
    /// replaced.
    ///
    /// **Not cancel safe**, as [`Wire::exchange`].
    ///
    /// # Errors
    /// Outside: [`Broken`]. Inside: the error of the first statement that failed.
    pub async fn simple(&mut self, sql: &str) -> Result<Result<TextRows, ServerError>, Broken> {
        if frontend::query(sql, &mut self.out).is_err() {
            self.clear_out();
            return Ok(Err(ServerError::own(
                "22021",
                "a statement cannot hold a zero byte or more than 1 GiB",
            )));
        }
        let mut rows = Vec::new();
        let mut failed = None;
        self.exchange(1, &mut |answer| match answer {
            Answer::DataRow(row) => rows.push(row.columns().map(text).collect()),
            Answer::Error(error) => failed = Some(error),
            _ => {}
        })
        .await?;
        Ok(failed.map_or(Ok(rows), Err))
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

    /// Looks, without waiting, whether a connection that nobody uses is still good: false where the
    /// server has ended it, or said what it was not asked.
    pub fn is_alive(&mut self) -> bool {
        self.usable = self.usable && exchange::is_quiet(self);
        self.usable
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

    fn clear_out(&mut self) {
        self.out.clear();
        if self.out.try_reclaim(KEEP + 1) {
            self.out = BytesMut::new();
        }
    }

    fn unusable(&self) -> Broken {
        Broken {
            sent: 0,
            syncs_seen: 0,
            error: None,
            cause: format!("the connection to {} had ended before", self.peer),
        }
    }
}

fn text(column: Option<&[u8]>) -> Option<String> {
    column.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
