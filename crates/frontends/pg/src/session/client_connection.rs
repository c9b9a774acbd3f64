//! The connection of a client with its two buffers.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windrow_core::{AnswerPermit, Budget, Fault, Permit};
use windrow_pgwire::wire::Socket;

use crate::charge::{self, Charge, LongMessages, Stalled, StillBuffers, UnreadAnswers};

use crate::codec::message::{self, Front, Violation};

/// Bytes of one read. They lie on the stack until they are there, so that a silent client holds no
/// buffer.
const READ_BYTES: usize = 8 * 1024;

/// Bytes that a buffer of a silent client may keep.
const KEPT_BYTES: usize = 1024;

/// Answers that wait for their client, in bytes: past it nothing more is produced for it.
pub(crate) const HIGH: usize = 64 * 1024;

/// Gives the room of an empty buffer back, where it is more than a silent client may keep.
fn unload(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.try_reclaim(KEPT_BYTES + 1) {
        *buffer = BytesMut::new();
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    stream: Socket,
    /// Bytes that were received and are not taken yet.
    pub(crate) inbox: BytesMut,
    /// Bytes that are to be sent.
    pub(crate) out: BytesMut,
    /// True while TLS may hold back bytes that were taken out of `out`.
    unflushed: bool,
    /// True once the client has closed its side.
    pub(crate) ended: bool,
    /// The longest message that is not COPY data, in bytes.
    longest: usize,
    /// Bytes of the client that are still to come and are thrown away.
    unwanted: usize,
    /// Memory taken for a long message.
    charge: Option<Box<Charge>>,
    /// The same for one that has left the inbox, until [`ClientConnection::settle`].
    spent: Option<Box<Charge>>,
    /// Something is in the buffers that does not move.
    still: Option<Box<StillBuffers>>,
    /// Bytes that came and left, in all.
    moved: u64,
    /// Answers are there that the client does not take.
    unread: Option<Box<UnreadAnswers>>,
    /// Bytes that left, in all.
    sent: u64,
    /// Room for the answers that are to be sent.
    room: AnswerPermit,
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
        }
    }

    /// The message that begins at `at`, as far as it is there.
    #[inline]
    pub(crate) fn front(&self, at: usize) -> Result<Front, Violation> {
        message::front(self.inbox.get(at..).unwrap_or_default(), self.longest)
    }

    /// The body of a whole message of `total` bytes that begins at `at`.
    #[inline]
    pub(crate) fn body(&self, at: usize, total: usize) -> &[u8] {
        self.inbox
            .get(at + message::HEADER..at + total)
            .unwrap_or_default()
    }

    /// Takes bytes from the front of the inbox.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.inbox.advance(bytes.min(self.inbox.len()));
        self.clear_room(bytes);
        self.uncharge(bytes);
    }

    /// Gives back the memory of bytes that have left the inbox: the messages that they have become
    /// are counted.
    fn clear_room(&mut self, left: usize) {
        if self.inbox.is_empty() && left > KEPT_BYTES {
            // Not an empty end of what was split off either: that would keep all of it.
            self.inbox = BytesMut::new();
        } else if left > charge::FREE_BYTES && self.inbox.len() < left {
            self.inbox = BytesMut::from(&self.inbox[..]);
        }
    }

    /// Takes a whole message out.
    pub(crate) fn split(&mut self, total: usize) -> BytesMut {
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

    /// Gives back the memory of a long message that has left the inbox: it is counted elsewhere, or
    /// is gone.
    pub(crate) fn settle(&mut self) {
        self.spent = None;
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
    /// [`ClientConnection::charge`]: what was announced is believed once some of it is there.
    pub(crate) fn needs_charge(&self, until: usize) -> bool {
        let held = self.charge.as_ref().map_or(0, |charge| charge.until());
        until > held && until > charge::FREE_BYTES && self.inbox.len() >= charge::FREE_BYTES
    }

    /// Charges all of the inbox up to `until`, where a long message ends. Waits for memory. Cancel
    /// safe.
    ///
    /// # Errors
    /// Those of [`LongMessages::take`].
    pub(crate) async fn charge(
        &mut self,
        (messages, budget): (&LongMessages, &Budget),
        until: usize,
    ) -> Result<(), Fault> {
        // First given back, then taken: nobody holds some memory and waits for more.
        (self.charge, self.spent) = (None, None);
        let here = self.inbox.len();
        let charge = Box::pin(messages.take(budget, until, here)).await?;
        self.charge = Some(Box::new(charge));
        // In one piece, so that it is not copied as it grows.
        self.inbox.reserve(until.saturating_sub(here));
        Ok(())
    }

    /// Returns true if memory is held for what is in the inbox.
    pub(crate) fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Memory for what a long message in the inbox has become, out of what was taken for it.
    /// `None`: there is too little.
    pub(crate) fn pay(&mut self, budget: &Budget, bytes: usize) -> Option<Permit> {
        self.charge.as_mut()?.pay(budget, bytes)
    }

    /// Takes more memory at once, for all of the inbox up to `until`. False: there is none, and
    /// what is held stays.
    pub(crate) fn grow(&mut self, memory: (&LongMessages, &Budget), until: usize) -> bool {
        let here = self.inbox.len();
        match &mut self.charge {
            Some(charge) => memory.0.grow(charge, memory.1, until, here),
            None => false,
        }
    }

    /// Room for an answer that is to be sent now: it is held until that has left.
    pub(super) fn keep_room(&mut self, room: AnswerPermit) {
        self.room.merge(room);
    }

    /// Counts what is to be sent, and `behind`, what waits for that to leave. Short answers, which
    /// clients take at once as a rule, are no visit to the room for answers.
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

    /// Ready where a message, the front of which is at `at` in the inbox, does not come, or answers
    /// are not taken, while others wait for memory: the session ends.
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

    /// Reads once. 0: the client has closed its side. Cancel safe.
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
                // More is to come, it seems: the buffer grows with what is there, at most to its
                // double.
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

    /// Sends what is to be sent, as far as the client takes it. Ready once all of it has left.
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

    /// Gives back what a silent client does not need.
    pub(crate) fn rest(&mut self) {
        unload(&mut self.inbox);
        unload(&mut self.out);
    }

    /// Sends the last messages and closes. A client that does not take them in time goes without.
    pub(crate) async fn close(mut self, timeout: std::time::Duration) {
        let farewell = async {
            std::future::poll_fn(|cx| self.poll_flush(cx)).await?;
            std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await
        };
        // The client is gone, or does not read: its error has no receiver.
        drop(tokio::time::timeout(timeout, farewell).await);
    }
}
