//! The connection of a client, with its two buffers.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windrow_core::{AnswerPermit, Budget, Fault, Permit};
use windrow_pgwire::wire::Socket;

use super::last_read::LastRead;
use crate::charge::{self, Charge, LongMessages, Stalled, StillBuffers, UnreadAnswers};
use crate::codec::message::{self, Front, Violation};
use crate::statements::{CachedStatement, SimpleQuery};

/// The bytes of one read. They are read into the stack, so that a silent client holds no buffer.
const READ_BYTES: usize = 8 * 1024;

/// The capacity that a buffer of a silent client may keep, in bytes.
const KEPT_BYTES: usize = 1024;

/// The bytes of unsent answers beyond which no more are produced for the client.
pub(crate) const HIGH: usize = 64 * 1024;

/// Frees the memory of an empty buffer if it is more than a silent client may keep.
fn unload(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.try_reclaim(KEPT_BYTES + 1) {
        *buffer = BytesMut::new();
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    stream: Socket,
    /// Received bytes that were not taken yet.
    pub(crate) inbox: BytesMut,
    /// Bytes to be sent.
    pub(crate) out: BytesMut,
    /// True while TLS may hold back bytes that were taken from `out`.
    unflushed: bool,
    /// True once the client has closed its side of the connection.
    pub(crate) ended: bool,
    /// The longest message other than COPY data, in bytes.
    longest: usize,
    /// The number of bytes to arrive that will be discarded.
    unwanted: usize,
    /// The memory taken for a long message in the inbox.
    charge: Option<Box<Charge>>,
    /// The memory of a long message that has left the inbox, until [`ClientConnection::settle`].
    spent: Option<Box<Charge>>,
    /// Set while bytes in the buffers make no progress.
    still: Option<Box<StillBuffers>>,
    /// The number of all bytes received and sent.
    moved: u64,
    /// Set while the client does not read its answers.
    unread: Option<Box<UnreadAnswers>>,
    /// The number of all bytes sent.
    sent: u64,
    /// The memory for the answers to be sent.
    room: AnswerPermit,
    /// The long query in the inbox that was read last.
    query: LastRead<SimpleQuery>,
    /// The same of a text that is to be prepared.
    prepared: LastRead<Arc<CachedStatement>>,
}

impl ClientConnection {
    pub(crate) fn new(stream: Socket, inbox: BytesMut, longest: usize) -> Self {
        Self {
            stream,
            inbox,
            out: BytesMut::new(),
            unflushed: false,
            ended: false,
            longest,
            unwanted: 0,
            charge: None,
            spent: None,
            still: None,
            moved: 0,
            unread: None,
            sent: 0,
            room: AnswerPermit::default(),
            query: LastRead::default(),
            prepared: LastRead::default(),
        }
    }

    /// Examines the message that begins at `at`.
    #[inline]
    pub(crate) fn front(&self, at: usize) -> Result<Front, Violation> {
        message::front(self.inbox.get(at..).unwrap_or_default(), self.longest)
    }

    /// Returns the body of a complete message of `total` bytes that begins at `at`.
    #[inline]
    pub(crate) fn body(&self, at: usize, total: usize) -> &[u8] {
        self.inbox
            .get(at + message::HEADER..at + total)
            .unwrap_or_default()
    }

    /// Returns the meaning of the text of a query. `settings`: those by which it is read.
    pub(super) fn query(
        &self,
        text: &[u8],
        settings: [bool; 3],
        reads: impl FnOnce() -> SimpleQuery,
    ) -> SimpleQuery {
        self.query.get(&self.inbox, text, settings, reads)
    }

    /// Returns the meaning of a text that is to be prepared, as [`ClientConnection::query`] does.
    pub(super) fn prepared(
        &self,
        text: &[u8],
        settings: [bool; 3],
        reads: impl FnOnce() -> Arc<CachedStatement>,
    ) -> Arc<CachedStatement> {
        self.prepared.get(&self.inbox, text, settings, reads)
    }

    fn forget_texts(&mut self) {
        self.query.forget();
        self.prepared.forget();
    }

    /// Takes bytes from the front of the inbox.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.forget_texts();
        self.inbox.advance(bytes.min(self.inbox.len()));
        self.clear_room(bytes);
        self.uncharge(bytes);
    }

    /// Frees the memory of bytes that have left the inbox, because the objects made from them are
    /// counted.
    fn clear_room(&mut self, left: usize) {
        if self.inbox.is_empty() && left > KEPT_BYTES {
            // Replaced, because even an empty rest of a split buffer would keep all of it.
            self.inbox = BytesMut::new();
        } else if left > charge::FREE_BYTES && self.inbox.len() < left {
            self.inbox = BytesMut::from(&self.inbox[..]);
        }
    }

    /// Removes and returns a complete message.
    pub(crate) fn split(&mut self, total: usize) -> BytesMut {
        self.forget_texts();
        let bytes = self.inbox.split_to(total.min(self.inbox.len()));
        self.clear_room(total);
        self.uncharge(total);
        bytes
    }

    fn uncharge(&mut self, bytes: usize) {
        if self
            .charge
            .as_mut()
            .is_some_and(|charge| charge.take(bytes))
        {
            self.spent = self.charge.take();
        }
    }

    /// Frees the memory charged for a long message that has left the inbox, because it is counted
    /// elsewhere or was dropped.
    pub(crate) fn settle(&mut self) {
        self.spent = None;
    }

    /// Gives back the memory of a long message that was sent to the server, but for `kept` bytes of
    /// it.
    pub(crate) fn was_sent(&mut self, messages: &LongMessages, kept: usize) {
        if let Some(spent) = &mut self.spent {
            messages.shrink(spent, kept);
        }
    }

    /// Takes a message of `total` bytes from the front of the inbox, of which the rest is still to
    /// come.
    pub(crate) fn discard(&mut self, total: usize) {
        self.unwanted = total.saturating_sub(self.inbox.len());
        self.take(total);
    }

    fn drop_unwanted(&mut self) {
        let dropped = self.unwanted.min(self.inbox.len());
        self.unwanted -= dropped;
        self.take(dropped);
    }

    /// Returns true if a message that ends at `until` in the inbox needs a
    /// [`ClientConnection::charge`]. An announced length is only trusted once a part of the message
    /// has arrived.
    pub(crate) fn needs_charge(&self, until: usize) -> bool {
        let held = self.charge.as_ref().map_or(0, |charge| charge.until());
        until > held && until > charge::FREE_BYTES && self.inbox.len() >= charge::FREE_BYTES
    }

    /// Charges the inbox up to `until`, where a long message ends. Waits for memory. Cancel safe.
    ///
    /// # Errors
    /// Those of [`LongMessages::take`].
    pub(crate) async fn charge(
        &mut self,
        (messages, budget): (&LongMessages, &Budget),
        until: usize,
    ) -> Result<(), Fault> {
        // First returned, then taken, because no task may hold memory while it waits for more.
        (self.charge, self.spent) = (None, None);
        let here = self.inbox.len();
        let charge = Box::pin(messages.take(budget, until, here)).await?;
        self.charge = Some(Box::new(charge));
        // Allocated at once, so that the message is not copied as it grows.
        self.inbox.reserve(until.saturating_sub(here));
        Ok(())
    }

    /// Returns true if memory is held for the inbox.
    pub(crate) fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Returns memory for the statements made from a long message in the inbox, out of what was
    /// taken for it; `None` if there is too little.
    pub(crate) fn pay(&mut self, budget: &Budget, bytes: usize) -> Option<Permit> {
        self.charge.as_mut()?.pay(budget, bytes)
    }

    /// Takes more memory without waiting, for the inbox up to `until`. Returns false if there is
    /// none; what is held stays.
    pub(crate) fn grow(&mut self, memory: (&LongMessages, &Budget), until: usize) -> bool {
        let here = self.inbox.len();
        match &mut self.charge {
            Some(charge) => memory.0.grow(charge, memory.1, until, here),
            None => false,
        }
    }

    /// Keeps the memory of an answer that is sent now, until it has been sent.
    pub(super) fn keep_room(&mut self, room: AnswerPermit) {
        self.room.merge(room);
    }

    /// Counts the bytes to be sent, and `behind`, the bytes that wait for them. Short answers are
    /// not counted, because clients usually read them at once.
    pub(crate) fn count_answers(&mut self, budget: &Budget, behind: usize) {
        let due = match self.out.len() {
            0 => 0,
            waits => waits + behind,
        };
        let held = self.room.bytes();
        let is_short = held == 0 && due <= charge::FREE_BYTES;
        if !is_short && (due > held || due == 0 || due + HIGH < held) {
            self.room.resize(budget.answers(), due);
        }
    }

    /// Returns ready if the session must end: a message whose front is at `at` in the inbox does
    /// not arrive, or the client does not read its answers, while others wait for memory.
    pub(crate) fn poll_stalled(
        &mut self,
        budget: &Budget,
        at: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Stalled> {
        if self.poll_unread(budget, cx).is_ready() {
            return Poll::Ready(Stalled::Unread);
        }
        self.poll_still(budget, at, cx).map(|()| Stalled::Still)
    }

    fn poll_unread(&mut self, budget: &Budget, cx: &mut Context<'_>) -> Poll<()> {
        if self.out.is_empty() {
            self.unread = None;
            return Poll::Pending;
        }
        let unread = self.unread.get_or_insert_with(Box::default);
        unread.poll(budget.answers(), self.sent, cx)
    }

    fn poll_still(&mut self, budget: &Budget, at: usize, cx: &mut Context<'_>) -> Poll<()> {
        let here = self.inbox.len();
        if let Some(charge) = &mut self.charge {
            return charge.poll_stalled(budget, here, cx);
        }
        let begun = here > at && matches!(self.front(at), Ok(Front::Part { .. }));
        if !begun && self.out.is_empty() {
            self.still = None;
            return Poll::Pending;
        }
        let still = self.still.get_or_insert_with(Box::default);
        still.poll(budget, self.moved, cx)
    }

    /// Reads once. Returns 0 if the client has closed its side. Cancel safe.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = self.inbox.capacity() - self.inbox.len();
        let read = if room >= READ_BYTES {
            let inbox = &mut self.inbox;
            ready!(tokio_util::io::poll_read_buf(
                Pin::new(&mut self.stream),
                cx,
                inbox
            ))?
        } else {
            let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
            let mut buffer = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            let filled = buffer.filled();
            if filled.len() == READ_BYTES {
                // More seems to come: the buffer grows by the bytes that have arrived, so it at
                // most doubles.
                self.inbox
                    .reserve(self.inbox.len().clamp(2 * READ_BYTES, 1 << 20));
            }
            self.inbox.extend_from_slice(filled);
            filled.len()
        };
        self.ended |= read == 0;
        self.moved += read as u64;
        if self.unwanted > 0 {
            self.drop_unwanted();
        }
        Poll::Ready(Ok(read))
    }

    /// Sends the buffered bytes, as far as the client reads them. Returns ready once all have been
    /// sent.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(cx, &self.out))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => {
                    self.out.advance(taken);
                    self.moved += taken as u64;
                    self.sent += taken as u64;
                }
            }
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Frees what a silent client does not need.
    pub(crate) fn rest(&mut self) {
        unload(&mut self.inbox);
        unload(&mut self.out);
    }

    /// Sends the last messages and closes the connection, without them if the client does not read
    /// them in time.
    pub(crate) async fn close(mut self, timeout: std::time::Duration) {
        let farewell = async {
            std::future::poll_fn(|cx| self.poll_flush(cx)).await?;
            std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await
        };
        // A client that has left or does not read cannot get its error.
        drop(tokio::time::timeout(timeout, farewell).await);
    }
}
