//! An exchange: one future that sends all messages while it reads the answers.
//!
//! Sending first and reading afterwards could block forever: once the socket buffers of both sides
//! are full, the server stops reading until its answers are read.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

use super::answer::Answer;
use super::broken::Broken;
use super::connection::Wire;
use super::server_error::ServerError;

/// The time to wait for the server's last messages after a failed send.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(1);

/// The rows of a simple query, as text; `None` is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

/// A function that takes each answer.
pub type On<'a> = &'a mut (dyn FnMut(Answer<'_>) + Send);

/// The source of messages and the receiver of answers, for an exchange whose messages do not fit
/// into memory at once.
pub trait Dialogue: Send {
    /// Appends the next piece; called when all pieces before it have been sent. Returns false if it
    /// was the last. Answers received so far may decide what comes next.
    fn more(&mut self, out: &mut BytesMut) -> bool;

    /// Returns true if the next piece has to wait for an answer. The caller must have sent a Flush
    /// for it.
    fn waits(&self) -> bool {
        false
    }

    /// Takes an answer.
    fn receive(&mut self, answer: Answer<'_>);
}

/// A dialogue whose messages are all in the send buffer when it begins.
struct AtOnce<'o>(On<'o>);

impl Dialogue for AtOnce<'_> {
    fn more(&mut self, _: &mut BytesMut) -> bool {
        false
    }

    #[inline]
    fn receive(&mut self, answer: Answer<'_>) {
        (self.0)(answer);
    }
}

impl Wire {
    /// Sends all of [`Wire::out`], passes every answer to `on`, and ends after `syncs`
    /// ReadyForQuery. The send buffer is empty afterwards, also after an error. There is no
    /// timeout, because a statement may wait for a lock.
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
        run(self, syncs, &mut AtOnce(on), false).await?;
        self.usable = true;
        Ok(())
    }

    /// As [`Wire::exchange`], but the dialogue produces the messages piece by piece, for example
    /// the data of a COPY. [`Broken::sent`] counts all pieces.
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
        run(self, syncs, dialogue, true).await?;
        self.usable = true;
        Ok(())
    }

    /// Runs a simple query and returns the rows of all its statements, for catalog reads and DDL.
    /// [`Wire::out`] must be empty. Bytes that are not UTF-8 (databases in SQL_ASCII) are
    /// replaced.
    ///
    /// **Not cancel safe**, as [`Wire::exchange`].
    ///
    /// # Errors
    /// The outer error is [`Broken`], the inner one that of the first failed statement.
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

    /// Runs simple queries in one round trip, and returns the rows or the error of each. The
    /// conditions of [`Wire::simple`] apply. A text with a zero byte is not sent and returns no
    /// rows.
    ///
    /// # Errors
    /// [`Broken`].
    pub async fn simple_each(
        &mut self,
        all: impl Iterator<Item = &str>,
    ) -> Result<Vec<Result<TextRows, ServerError>>, Broken> {
        let mut count = 0;
        for sql in all {
            if frontend::query(sql, &mut self.out).is_err() {
                frontend::sync(&mut self.out);
            }
            count += 1;
        }
        let mut answers = Vec::with_capacity(count);
        let (mut rows, mut failed) = (TextRows::new(), None);
        self.exchange(count, &mut |answer| match answer {
            Answer::DataRow(row) => rows.push(row.columns().map(text).collect()),
            Answer::Error(error) => failed = Some(error),
            Answer::Ready(_) => {
                let rows = std::mem::take(&mut rows);
                answers.push(failed.take().map_or(Ok(rows), Err));
            }
            _ => {}
        })
        .await?;
        Ok(answers)
    }

    /// Checks, without waiting, that an idle connection is usable. Returns false if the server has
    /// closed it or sent an unexpected message.
    pub fn is_alive(&mut self) -> bool {
        self.usable = self.usable && is_quiet(self);
        self.usable
    }
}

fn text(column: Option<&[u8]>) -> Option<String> {
    column.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The state of an exchange.
struct Exchange<'w, 'o, D> {
    wire: &'w mut Wire,
    dialogue: &'o mut D,
    syncs: usize,
    syncs_seen: usize,
    /// Bytes of the pieces before the one in the send buffer.
    before: usize,
    /// Bytes of the send buffer that were sent.
    sent: usize,
    flushed: bool,
    /// True if the dialogue may have further pieces.
    open: bool,
    looked: bool,
    write_error: Option<(io::Error, Pin<Box<Sleep>>)>,
}

/// Why an exchange ended early.
struct Ended {
    cause: String,
    error: Option<ServerError>,
}

impl From<String> for Ended {
    fn from(cause: String) -> Self {
        Self { cause, error: None }
    }
}

/// Sends the contents of the send buffer and then, if `open`, the pieces of the dialogue. Reads
/// until `syncs` ReadyForQuery have arrived. The buffer is empty afterwards.
async fn run<D: Dialogue>(
    wire: &mut Wire,
    syncs: usize,
    dialogue: &mut D,
    open: bool,
) -> Result<(), Broken> {
    let mut exchange = Exchange {
        wire,
        dialogue,
        syncs,
        syncs_seen: 0,
        before: 0,
        sent: 0,
        flushed: false,
        open,
        looked: false,
        write_error: None,
    };
    let ended = poll_fn(|cx| exchange.poll(cx)).await;
    let (sent, syncs_seen) = (exchange.sent(), exchange.syncs_seen);
    wire.clear_out();
    ended.map_err(|ended| Broken {
        sent,
        syncs_seen,
        cause: format!("the connection to {} is lost: {}", wire.peer, ended.cause),
        error: ended.error,
    })
}

/// Returns true if an idle connection has received nothing but messages that may arrive at any
/// time.
fn is_quiet(wire: &mut Wire) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        loop {
            match wire.inbox.next() {
                Ok(Some((tag @ (b'S' | b'N' | b'A'), body))) => {
                    if wire.session.receive(tag, body).is_err() {
                        return false;
                    }
                }
                Ok(None) => break,
                _ => return false,
            }
        }
        match wire.inbox.poll_fill(&mut wire.socket, &mut cx) {
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(_) => return false,
            Poll::Pending => return true,
        }
    }
}

impl<D: Dialogue> Exchange<'_, '_, D> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        // Read first: if the connection ended while it was idle, nothing is sent, and so no outcome
        // is unknown.
        if !self.looked {
            self.looked = true;
            match self.poll_receive(cx) {
                Poll::Ready(Err(ended)) => return Poll::Ready(Err(ended)),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        loop {
            if self.write_error.is_none()
                && let Poll::Ready(Err(error)) = self.poll_send(cx)
            {
                self.write_error = Some((error, Box::pin(sleep(LAST_MESSAGES_TIMEOUT))));
            }
            match self.poll_receive(cx) {
                Poll::Pending if self.open && self.flushed && !self.dialogue.waits() => {
                    self.say_more();
                }
                Poll::Pending => return self.poll_last_words(cx),
                ready => return ready,
            }
        }
    }

    /// Asks for the next piece, after everything has been sent.
    fn say_more(&mut self) {
        self.before += std::mem::take(&mut self.sent);
        self.wire.clear_out();
        self.flushed = false;
        self.open = self.dialogue.more(&mut self.wire.out);
    }

    /// Returns the number of bytes sent in all pieces.
    fn sent(&self) -> usize {
        self.before + self.sent
    }

    /// Reads until the socket has no more bytes, or all answers have arrived.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        loop {
            self.take_answers()?;
            if self.is_done() {
                return Poll::Ready(Ok(()));
            }
            let wire = &mut *self.wire;
            match wire.inbox.poll_fill(&mut wire.socket, cx) {
                Poll::Ready(Ok(0)) => {
                    let cause = "the server closed it without a word".to_owned();
                    return Poll::Ready(Err(self.lost(cause)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(self.lost(format!("receiving failed: {error}"))));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends as many bytes as the socket takes.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.wire;
        let mut socket = Pin::new(&mut wire.socket);
        while let Some(rest) = wire.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match socket.as_mut().poll_write(cx, rest)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(taken) => self.sent += taken,
                Poll::Pending => return Poll::Pending,
            }
        }
        if !self.flushed {
            std::task::ready!(socket.poll_flush(cx))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    fn is_done(&self) -> bool {
        self.syncs_seen >= self.syncs && self.flushed && !self.open
    }

    /// Passes on all complete messages.
    fn take_answers(&mut self) -> Result<(), Ended> {
        while !self.is_done() {
            let Some((tag, body)) = self.wire.inbox.next().map_err(|bad| bad.to_string())? else {
                break;
            };
            if matches!(tag, b'S' | b'N' | b'A') {
                self.wire.session.receive(tag, body)?;
                if tag == b'N' && self.before + self.sent > 0 {
                    self.dialogue.receive(Answer::Notice(body));
                }
                continue;
            }
            // Before the first request the server may only send an error that ends the connection.
            if self.before + self.sent == 0 && tag != b'E' {
                return Err("the server answered what it was not asked"
                    .to_owned()
                    .into());
            }
            match Answer::parse(tag, body) {
                Ok(Answer::Error(error)) if error.is_fatal() || self.before + self.sent == 0 => {
                    return Err(Ended {
                        cause: "the server ended it".to_owned(),
                        error: Some(error),
                    });
                }
                Ok(answer) => {
                    self.syncs_seen += usize::from(matches!(answer, Answer::Ready(_)));
                    self.dialogue.receive(answer);
                }
                Err(malformed) => return Err(malformed.of(tag).into()),
            }
        }
        Ok(())
    }

    /// Handles an empty socket. After a failed send, waits for the server's last messages until the
    /// timeout.
    fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let Some((_, timeout)) = &mut self.write_error else {
            return Poll::Pending;
        };
        std::task::ready!(pin!(timeout).poll(cx));
        let ended = self.lost(String::new());
        Poll::Ready(Err(ended))
    }

    /// Returns the error of a lost connection. The error of a failed send says more than the end of
    /// the stream after it.
    fn lost(&mut self, cause: String) -> Ended {
        match self.write_error.take() {
            Some((error, _)) => format!("sending failed: {error}").into(),
            None => cause.into(),
        }
    }
}
