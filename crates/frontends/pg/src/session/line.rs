//! The connection of a client with its two buffers.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windrow_core::{Budget, Fault, Permit};

use crate::client_stream::ClientStream;
use crate::codec::frame::{self, Front, Violation};

/// Bytes of one read. They lie on the stack until they are there, so that a silent client holds no buffer.
const READ: usize = 8 * 1024;

/// What a buffer of a silent client may keep, in bytes.
const KEEP: usize = 1024;

/// A message that is longer than this is charged to the memory budget before it is read, in bytes.
const CHARGED: usize = 64 * 1024;

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
    /// Memory taken for a long message, and where in the inbox that ends.
    charge: Option<(Permit, usize)>,
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
        if let Some((_, until)) = &mut self.charge {
            *until = until.saturating_sub(bytes);
            if *until == 0 {
                self.charge = None;
            }
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

    /// True where a message that ends at `until` in the inbox needs [`Line::charge`].
    pub(crate) fn needs_charge(&self, until: usize) -> bool {
        until > CHARGED && self.charge.as_ref().is_none_or(|(_, held)| until > *held)
    }

    /// Charges all of the inbox up to `until`, where a long message ends. Waits for memory. Cancel safe.
    ///
    /// # Errors
    /// That the budget can never hold it.
    pub(crate) async fn charge(&mut self, budget: &Budget, until: usize) -> Result<(), Fault> {
        // First given back, then taken: nobody holds some memory and waits for more.
        self.charge = None;
        let permit = Box::pin(budget.take(until)).await?;
        self.charge = Some((permit, until));
        Ok(())
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
