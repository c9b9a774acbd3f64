//! One exchange: everything is sent while answers are read, in one future.
//!
//! Sending first and reading afterwards would stand still for ever once both sides' socket buffers
//! are full: the server stops reading while nobody takes its answers.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

use super::answer::Answer;
use super::broken::Broken;
use super::connection::Wire;
use super::server_error::ServerError;

/// After a failed send, how long the server's last words are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Takes each answer.
pub type On<'a> = &'a mut (dyn FnMut(Answer<'_>) + Send);

/// Both sides of an exchange that is too long to be written down before it begins.
pub trait Dialogue: Send {
    /// Appends the next piece of what is to be said; called whenever all before it has been sent.
    /// False: that was the last. What was heard meanwhile may change what is said.
    fn more(&mut self, out: &mut BytesMut) -> bool;

    /// True while an answer is to be heard before more is said. The server must have been asked to
    /// give it (Flush).
    fn waits(&self) -> bool {
        false
    }

    /// Takes an answer.
    fn receive(&mut self, answer: Answer<'_>);
}

/// An exchange of which all is said at once.
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
        run(self, syncs, &mut AtOnce(on), false).await?;
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
        run(self, syncs, dialogue, true).await?;
        self.usable = true;
        Ok(())
    }

    /// Looks, without waiting, whether a connection that nobody uses is still good: false where the
    /// server has ended it, or said what it was not asked.
    pub fn is_alive(&mut self) -> bool {
        self.usable = self.usable && is_quiet(self);
        self.usable
    }
}

/// The state of an exchange that is under way.
struct Exchange<'w, 'o, D> {
    wire: &'w mut Wire,
    dialogue: &'o mut D,
    syncs: usize,
    syncs_seen: usize,
    /// Bytes of the pieces that were sent before the one in the out buffer.
    before: usize,
    /// Bytes of the out buffer that were sent.
    sent: usize,
    flushed: bool,
    /// There may be a further piece.
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

/// Sends what is in the wire's out buffer, and then (if it is `open`) what the dialogue appends,
/// and reads until `syncs` ReadyForQuery are seen. The buffer is empty afterwards.
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

/// True if an idle connection has nothing to read but what may come at any time.
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
        // Reading comes first: a connection that ended while it was idle is found before anything
        // is sent into it, so that nobody has to wonder whether it was executed.
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
                self.write_error = Some((error, Box::pin(sleep(LAST_WORDS))));
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

    /// All is sent: asks for the next piece.
    fn say_more(&mut self) {
        self.before += std::mem::take(&mut self.sent);
        self.wire.clear_out();
        self.flushed = false;
        self.open = self.dialogue.more(&mut self.wire.out);
    }

    /// Bytes sent in all.
    fn sent(&self) -> usize {
        self.before + self.sent
    }

    /// Reads until there is nothing more to read, or nothing more to wait for.
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

    /// Sends as much as the socket takes.
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

    /// Gives out the messages that are whole.
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
            // What ends a connection may come at any time; nothing else comes unasked.
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

    /// Nothing to read at this moment: only after a failed send that is the end.
    fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let Some((_, patience)) = &mut self.write_error else {
            return Poll::Pending;
        };
        std::task::ready!(pin!(patience).poll(cx));
        let ended = self.lost(String::new());
        Poll::Ready(Err(ended))
    }

    /// The failed send, where there was one, says more than the end of the stream that followed.
    fn lost(&mut self, cause: String) -> Ended {
        match self.write_error.take() {
            Some((error, _)) => format!("sending failed: {error}").into(),
            None => cause.into(),
        }
    }
}
