//! A session at the console: executes its commands.

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::wire::Socket;

use super::command::Command;
use super::prepared::Prepared;
use super::table::Column;
use super::{act, show, table};
use crate::codec::{answer, failure};
use crate::shared::Shared;

/// The longest message, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// A session at the console.
pub(super) struct ConsoleSession<'a> {
    shared: &'a Shared,
    stream: Socket,
    pub(super) input: BytesMut,
    pub(super) out: BytesMut,
    pub(super) prepared: Prepared,
    /// The status that drivers believe in: `I`, `T` or `E`.
    pub(super) status: u8,
    /// True after an error, up to the next Sync.
    pub(super) skipping: bool,
}

/// The reason why the session ends.
pub(super) enum ConsoleEnd {
    Left,
    Fatal(Fault),
}

impl<'a> ConsoleSession<'a> {
    pub(super) fn new(stream: Socket, shared: &'a Shared) -> Self {
        Self {
            shared,
            stream,
            input: BytesMut::new(),
            out: BytesMut::new(),
            prepared: Prepared::default(),
            status: b'I',
            skipping: false,
        }
    }
}

impl ConsoleSession<'_> {
    /// Waits for more bytes of the client.
    pub(super) async fn receive(&mut self) -> Result<(), ConsoleEnd> {
        tokio::select! {
            read = self.stream.read_buf(&mut self.input) => match read {
                Ok(1..) => Ok(()),
                _ => Err(ConsoleEnd::Left),
            },
            () = self.shared.stop.cancelled() => Err(ConsoleEnd::Fatal(Fault::new(
                FaultClass::Unavailable,
                "57P01",
                "terminating connection due to administrator command",
            ))),
        }
    }

    /// Sends the buffered answers.
    pub(super) async fn flush(&mut self) -> Result<(), ConsoleEnd> {
        let flushed = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        flushed.await.map_err(|_| ConsoleEnd::Left)?;
        self.out.clear();
        Ok(())
    }

    /// Sends an error to the client.
    pub(super) fn fail(&mut self, fault: &Fault) {
        failure::fault(&mut self.out, fault);
        if self.status == b'T' {
            self.status = b'E';
        }
    }

    /// Executes a command, and writes its rows and CommandComplete.
    pub(super) async fn execute(
        &mut self,
        command: &Command,
    ) -> Result<Result<(), Fault>, ConsoleEnd> {
        let tag = match command {
            Command::Empty => {
                self.out.put_slice(answer::EMPTY_QUERY);
                return Ok(Ok(()));
            }
            Command::Show(show) => self.give(&show::rows(*show, self.shared)),
            Command::Help(show) => self.give(&show::meanings(*show)),
            Command::One => {
                answer::one_value(&mut self.out, b"1");
                "SELECT 1"
            }
            Command::Courtesy(tag, status) => {
                self.status = status.unwrap_or(self.status);
                tag
            }
            Command::Pause(database) => match self.pause(database.as_deref()).await? {
                Ok(()) => "PAUSE",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Resume(database) => match act::resume(self.shared, database.as_deref()) {
                Ok(()) => "RESUME",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Reload => match act::reload(self.shared).await {
                Ok(()) => "RELOAD",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Shutdown => {
                act::shutdown(self.shared);
                "SHUTDOWN"
            }
        };
        answer::complete(&mut self.out, tag);
        Ok(Ok(()))
    }

    fn give(&mut self, rows: &[Vec<String>]) -> &'static str {
        table::rows(&mut self.out, rows);
        "SHOW"
    }

    /// Pauses and waits for the work under way. If the client leaves meanwhile, work goes on.
    async fn pause(&mut self, database: Option<&str>) -> Result<Result<(), Fault>, ConsoleEnd> {
        self.flush().await?;
        let shared = self.shared;
        let pausing = act::pause(shared, database);
        tokio::pin!(pausing);
        loop {
            tokio::select! {
                biased;
                paused = &mut pausing => return Ok(paused),
                received = self.receive() => received?,
            }
            if self.input.remaining() > MAX_MESSAGE_BYTES {
                return Err(ConsoleEnd::Left);
            }
        }
    }
}

/// Returns the columns of a command's result.
pub(super) fn columns(command: &Command) -> Option<&'static [Column]> {
    match command {
        Command::Show(show) => Some(show::columns(*show)),
        Command::Help(_) => Some(show::meaning_columns()),
        Command::One => Some(&[("?column?", "the number one")]),
        _ => None,
    }
}
