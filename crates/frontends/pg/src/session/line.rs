//! The connection of a client with its two buffers.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windrow_core::{Budget, Fault, Permit};

use super::charge::{self, Charge, LongMessages};

use crate::client_stream::ClientStream;
use crate::codec::frame::{self, Front, Violation};

/// Bytes of one read. They lie on the stack until they are there, so that a silent client holds no buffer.
const READ: usize = 8 * 1024;

/// What a buffer of a silent client may keep, in bytes.
const KEEP: usize = 1024;

/// Answers that wait for their client, in bytes: past it nothing more is produced for it.
pub(crate) const HIGH: usize = 64 * 1024;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: ClientStream,
    /// What was received and is not taken yet.
    pub(crate) inbox: BytesMut,
    /// What is to be sent.
    pub(crate) out: BytesMut,
    /// True while TLS may hold back bytes that were taken out of `out`.
    unflushed: bool,
    /// True once the client has closed its side.
    pub(crate) ended: bool,
    /// The longest message that is not COPY data, in bytes.
    longest: usize,
    /// Bytes to come that nobody wants.
    unwanted: usize,
    /// Memory taken for a long message.
    charge: Option<Charge>,
}

impl Line {
    pub(crate) fn new(stream: ClientStream, inbox: BytesMut, longest: usize) -> Self {
        Self {
            stream,
            inbox,
            out: BytesMut::new(),
            unflushed: false,
            ended: false,
            longest,
            unwanted: 0,
            charge: None,
        }
    }

    /// The message that begins at `at`, as far as it is there.
    #[inline]
    pub(crate) fn front(&self, at: usize) -> Result<Front, Violation> {
        frame::front(self.inbox.get(at..).unwrap_or_default(), self.longest)
    }

    /// The body of a whole message of `total` bytes that begins at `at`.
    #[inline]
    pub(crate) fn body(&self, at: usize, total: usize) -> &[u8] {
        self.inbox
            .get(at + frame::HEADER..at + total)
            .unwrap_or_default()
    }

    /// Takes bytes from the front of the inbox.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.inbox.advance(bytes.min(self.inbox.len()));
        self.uncharge(bytes);
    }

    /// Takes a whole message out.
    pub(crate) fn split(&mut self, total: usize) -> BytesMut {
        self.uncharge(total);
        self.inbox.split_to(total.min(self.inbox.len()))
    }

    fn uncharge(&mut self, bytes: usize) {
        if self
            .charge
            .as_mut()
            .is_some_and(|charge| charge.take(bytes))
        {
            self.charge = None;
        }
    }

    /// Takes a message of `total` bytes from the front of the inbox, of which the rest is still to come.
    pub(crate) fn discard(&mut self, total: usize) {
        self.unwanted = total.saturating_sub(self.inbox.len());
        self.take(total);
    }

    fn drop_unwanted(&mut self) {
        let dropped = self.unwanted.min(self.inbox.len());
        self.unwanted -= dropped;
        self.take(dropped);
    }

    /// True where a message that ends at `until` in the inbox needs [`Line::charge`]: what was announced is believed once
    /// some of it is there.
    pub(crate) fn needs_charge(&self, until: usize) -> bool {
        let held = self.charge.as_ref().map_or(0, Charge::until);
        until > held && until > charge::FREE && self.inbox.len() >= charge::FREE
    }

    /// Charges all of the inbox up to `until`, where a long message ends. Waits for memory. Cancel safe.
    ///
    /// # Errors
    /// Those of [`LongMessages::take`].
    pub(crate) async fn charge(
        &mut self,
        (messages, budget): (&LongMessages, &Budget),
        until: usize,
    ) -> Result<(), Fault> {
        // First given back, then taken: nobody holds some memory and waits for more.
        self.charge = None;
        let here = self.inbox.len();
        self.charge = Some(Box::pin(messages.take(budget, until, here)).await?);
        Ok(())
    }

    /// Memory for what a long message in the inbox has become, out of what was taken for it. `None`: less was taken, or nothing.
    pub(crate) fn pay(&mut self, bytes: usize) -> Option<Permit> {
        self.charge.as_mut()?.pay(bytes)
    }

    /// Gives back what was taken for a message that is there.
    pub(crate) fn forgo(&mut self) {
        self.charge = None;
    }

    /// Ready where memory is held for a message that does not come, while others wait for memory.
    pub(crate) fn poll_stalled(&mut self, budget: &Budget, cx: &mut Context<'_>) -> Poll<()> {
        let here = self.inbox.len();
        match &mut self.charge {
            Some(charge) => charge.poll_stalled(budget, here, cx),
            None => Poll::Pending,
        }
    }

    /// Reads once. 0: the client has closed its side. Cancel safe.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = self.inbox.capacity() - self.inbox.len();
        let read = if room >= READ {
            let inbox = &mut self.inbox;
            ready!(tokio_util::io::poll_read_buf(
                Pin::new(&mut self.stream),
                cx,
                inbox
            ))?
        } else {
            let mut space = [MaybeUninit::<u8>::uninit(); READ];
            let mut buffer = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            let filled = buffer.filled();
            if filled.len() == READ {
                // More is to come, it seems: the buffer grows with what is there, at most to its double.
                self.inbox
                    .reserve(self.inbox.len().clamp(2 * READ, 1 << 20));
            }
            self.inbox.extend_from_slice(filled);
            filled.len()
        };
        self.ended |= read == 0;
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
                taken => self.out.advance(taken),
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
        for buffer in [&mut self.inbox, &mut self.out] {
            if buffer.is_empty() && buffer.capacity() > KEEP {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Sends the last words and closes. Whoever does not take them in time goes without.
    pub(crate) async fn close(mut self, patience: std::time::Duration) {
        let farewell = async {
            std::future::poll_fn(|cx| self.poll_flush(cx)).await?;
            std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await
        };
        // The client is gone, or does not listen: there is nobody left to tell.
        drop(tokio::time::timeout(patience, farewell).await);
    }
}
