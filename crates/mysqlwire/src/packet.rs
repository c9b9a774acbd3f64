//! Packets over a byte stream. Each has a head of four bytes: its length, and its number within the
//! exchange. A packet of 2^24-1 bytes continues in the next one.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// The longest content of one packet, in bytes. A packet of this length continues in the next one.
pub const MAX_PART: usize = 0xff_ffff;

/// Bytes of a packet's head.
const HEAD_BYTES: usize = 4;

/// The smallest and the largest piece that is read from the stream at once.
const MIN_READ_BYTES: usize = 2 * 1024;
const MAX_READ_BYTES: usize = 64 * 1024;

/// The most bytes that wait to be written.
const MAX_UNSENT_BYTES: usize = 64 * 1024;

/// A connected byte stream: TCP, a UNIX-domain socket, or TLS.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the packet's content.
    pub len: usize,
    /// The packet's number.
    pub number: u8,
}

/// The stream that broke while a packet was forwarded.
#[derive(Debug)]
pub enum ForwardError {
    /// The one that the packet comes from.
    From(io::Error),
    /// The one that the packet goes to.
    To(io::Error),
}

impl ForwardError {
    fn ended() -> Self {
        Self::From(io::ErrorKind::UnexpectedEof.into())
    }
}

/// One side of a connection: reads and writes packets.
pub struct Wire {
    stream: Box<dyn Stream>,
    inbox: BytesMut,
    outbox: BytesMut,
    read_bytes: usize,
    /// True while only a part of a packet has been forwarded to the outbox.
    is_within_packet: bool,
    /// The number of the next packet that is written.
    next: u8,
}

impl Wire {
    /// Returns the wire of a fresh connection.
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            inbox: BytesMut::new(),
            outbox: BytesMut::new(),
            read_bytes: MIN_READ_BYTES,
            is_within_packet: false,
            next: 0,
        }
    }

    /// Returns the stream, to put TLS over it. `None` if there are unread bytes: they came
    /// unencrypted, and would be read as encrypted ones.
    pub fn into_stream(self) -> Option<Box<dyn Stream>> {
        (self.inbox.is_empty() && self.outbox.is_empty()).then_some(self.stream)
    }

    /// Sets the number of the next packet that is written.
    pub fn set_next(&mut self, number: u8) {
        self.next = number;
    }

    /// Returns true if only a part of the last packet was forwarded to this wire. Bytes that are
    /// written now would be read as the rest of that packet.
    pub fn is_within_packet(&self) -> bool {
        self.is_within_packet
    }

    /// Returns the next packet's head if the first `wanted` bytes of its content have arrived, or
    /// all of it if it is shorter.
    pub fn here(&self, wanted: usize) -> Option<Head> {
        let [a, b, c, number] = *self.inbox.first_chunk::<HEAD_BYTES>()?;
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        let head = Head { len, number };
        (self.inbox.len() >= HEAD_BYTES + len.min(wanted)).then_some(head)
    }

    /// Waits for [`Wire::here`]. `None` if the stream ends before a packet begins. Cancel safe.
    ///
    /// # Errors
    /// The stream fails, or ends within a packet.
    pub async fn head(&mut self, wanted: usize) -> io::Result<Option<Head>> {
        loop {
            if let Some(head) = self.here(wanted) {
                return Ok(Some(head));
            }
            if self.fill(usize::MAX).await? == 0 {
                return match self.inbox.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Returns the part of the packet's content that has arrived.
    pub fn content(&self, head: Head) -> &[u8] {
        let content = self.inbox.get(HEAD_BYTES..).unwrap_or_default();
        content.get(..head.len).unwrap_or(content)
    }

    /// Reads a whole packet, with its parts joined, and continues its number for the answer.
    ///
    /// # Errors
    /// As [`Wire::head`]; the packet has more than `most` bytes.
    pub async fn packet(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        self.read_packet(most, false).await
    }

    /// Reads a whole packet as [`Wire::packet`], and no byte beyond: TLS may begin there.
    ///
    /// # Errors
    /// As [`Wire::packet`].
    pub async fn packet_alone(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        self.read_packet(most, true).await
    }

    async fn read_packet(&mut self, most: usize, is_alone: bool) -> io::Result<Option<Bytes>> {
        let mut whole = BytesMut::new();
        loop {
            while is_alone && self.inbox.len() < HEAD_BYTES {
                if self.fill(HEAD_BYTES - self.inbox.len()).await? == 0 {
                    return Ok(None);
                }
            }
            let Some(head) = self.head(0).await? else {
                return Ok(None);
            };
            if whole.len() + head.len > most {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a packet has more than {most} bytes"),
                ));
            }
            while self.here(head.len).is_none() {
                let left = (HEAD_BYTES + head.len).saturating_sub(self.inbox.len());
                let piece = if is_alone { left } else { usize::MAX };
                if self.fill(piece).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.inbox.advance(HEAD_BYTES);
            whole.unsplit(self.inbox.split_to(head.len));
            self.next = head.number.wrapping_add(1);
            if head.len < MAX_PART {
                return Ok(Some(whole.freeze()));
            }
        }
    }

    /// Forwards the packet whose head has arrived, and those that continue it, to another wire as
    /// they arrive: only one piece is in memory at any time.
    ///
    /// # Errors
    /// A stream fails or ends.
    pub async fn forward(&mut self, to: &mut Self) -> Result<(), ForwardError> {
        loop {
            let head = self.head(0).await.map_err(ForwardError::From)?;
            let Some(head) = head else {
                return Err(ForwardError::ended());
            };
            to.next = head.number.wrapping_add(1);
            to.is_within_packet = true;
            self.pass(to, HEAD_BYTES + head.len).await?;
            if head.len < MAX_PART {
                to.is_within_packet = false;
                return Ok(());
            }
        }
    }

    /// Moves a packet as [`Wire::forward`] does, with other bytes in the place of the first
    /// `left_out` of its content, which have come.
    ///
    /// # Errors
    /// A stream fails or ends.
    pub async fn forward_with(
        &mut self,
        to: &mut Self,
        left_out: usize,
        instead: &[u8],
    ) -> Result<(), ForwardError> {
        let mut carried = BytesMut::from(instead);
        let mut left_out = left_out;
        to.is_within_packet = true;
        loop {
            let head = self.head(0).await.map_err(ForwardError::From)?;
            let head = head.ok_or_else(ForwardError::ended)?;
            let is_last = head.len < MAX_PART;
            let mut left = head.len.saturating_sub(left_out);
            self.inbox.advance(HEAD_BYTES + head.len - left);
            left_out = 0;
            while carried.len() + left >= MAX_PART {
                let part = MAX_PART - carried.len();
                to.begin_part(MAX_PART, &mut carried);
                self.pass(to, part).await?;
                left -= part;
            }
            if is_last {
                to.begin_part(carried.len() + left, &mut carried);
                self.pass(to, left).await?;
                to.is_within_packet = false;
                return Ok(());
            }
            // The next packet of the peer continues here.
            self.here_whole(left).await?;
            let rest = self.inbox.split_to(left);
            carried.extend_from_slice(&rest);
        }
    }

    /// Writes the head of a packet, and the beginning of its content.
    fn begin_part(&mut self, len: usize, content: &mut BytesMut) {
        // At most 2^24-1.
        self.outbox.put_uint_le(len as u64, HEAD_BYTES - 1);
        self.outbox.put_u8(self.next);
        self.outbox.extend_from_slice(content);
        self.next = self.next.wrapping_add(1);
        content.clear();
    }

    /// Waits until so many bytes are in the inbox.
    async fn here_whole(&mut self, bytes: usize) -> Result<(), ForwardError> {
        while self.inbox.len() < bytes {
            if self.fill(usize::MAX).await.map_err(ForwardError::From)? == 0 {
                return Err(ForwardError::ended());
            }
        }
        Ok(())
    }

    /// Moves so many bytes to another wire, as they come.
    async fn pass(&mut self, to: &mut Self, bytes: usize) -> Result<(), ForwardError> {
        let mut left = bytes;
        loop {
            let part = left.min(self.inbox.len());
            let (bytes, _) = self.inbox.split_at(part);
            to.outbox.extend_from_slice(bytes);
            self.inbox.advance(part);
            left -= part;
            if to.outbox.len() >= MAX_UNSENT_BYTES {
                to.flush().await.map_err(ForwardError::To)?;
            }
            if left == 0 {
                return Ok(());
            }
            if self.fill(usize::MAX).await.map_err(ForwardError::From)? == 0 {
                return Err(ForwardError::ended());
            }
        }
    }

    /// Reads a whole packet and forgets it. Takes its number for the answer's.
    ///
    /// # Errors
    /// The stream fails, or ends within the packet.
    pub async fn discard(&mut self) -> io::Result<()> {
        loop {
            let head = self.head(0).await?;
            let head = head.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut left = HEAD_BYTES + head.len;
            loop {
                let part = left.min(self.inbox.len());
                self.inbox.advance(part);
                left -= part;
                if left == 0 {
                    break;
                }
                if self.fill(usize::MAX).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.next = head.number.wrapping_add(1);
            if head.len < MAX_PART {
                return Ok(());
            }
        }
    }

    /// Removes the packet whose head is given, which must have arrived completely, from the inbox.
    pub fn skip(&mut self, head: Head) {
        self.inbox
            .advance((HEAD_BYTES + head.len).min(self.inbox.len()));
    }

    /// Writes a packet into the outbox, in parts if it is long.
    pub fn put(&mut self, content: &[u8]) {
        let mut rest = content;
        loop {
            let (part, more) = rest.split_at(rest.len().min(MAX_PART));
            // The length is 2^24-1 at most.
            self.outbox.put_uint_le(part.len() as u64, HEAD_BYTES - 1);
            self.outbox.put_u8(self.next);
            self.outbox.extend_from_slice(part);
            self.next = self.next.wrapping_add(1);
            rest = more;
            if part.len() < MAX_PART {
                return;
            }
        }
    }

    /// Sends the outbox.
    ///
    /// # Errors
    /// The stream fails.
    pub async fn flush(&mut self) -> io::Result<()> {
        if !self.outbox.is_empty() {
            self.stream.write_all_buf(&mut self.outbox).await?;
        }
        self.stream.flush().await
    }

    /// Sends the outbox, and reads the answers that arrive meanwhile: a peer that waits for its
    /// answers to be read would read no more commands.
    ///
    /// # Errors
    /// The stream fails.
    pub async fn flush_while_reading(&mut self) -> io::Result<()> {
        let mut piece = vec![0; MIN_READ_BYTES];
        poll_fn(|context| {
            while !self.outbox.is_empty() {
                match Pin::new(&mut self.stream).poll_write(context, &self.outbox) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => self.outbox.advance(count),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        let mut read = ReadBuf::new(&mut piece);
                        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
                        if read.filled().is_empty() {
                            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                        }
                        self.inbox.extend_from_slice(read.filled());
                    }
                }
            }
            Pin::new(&mut self.stream).poll_flush(context)
        })
        .await
    }

    /// Returns true if there is nothing to be read from the peer, not even the stream's end.
    pub async fn is_quiet(&mut self) -> bool {
        let mut piece = [0; 64];
        poll_fn(|context| {
            let mut read = ReadBuf::new(&mut piece);
            let polled = Pin::new(&mut self.stream).poll_read(context, &mut read);
            self.inbox.extend_from_slice(read.filled());
            Poll::Ready(polled.is_pending() && self.inbox.is_empty())
        })
        .await
    }

    /// Sends the outbox and ends the stream. Ignores errors.
    pub async fn close(mut self) {
        if self.flush().await.is_ok() {
            drop(self.stream.shutdown().await);
        }
    }

    /// Reads a piece of the stream, of at most `most` bytes. Returns 0 if the stream has ended.
    /// Cancel safe.
    async fn fill(&mut self, most: usize) -> io::Result<usize> {
        self.inbox.reserve(self.read_bytes);
        let mut piece = (&mut self.inbox).limit(most);
        let count = self.stream.read_buf(&mut piece).await?;
        self.read_bytes = match count >= self.read_bytes {
            true => (self.read_bytes * 2).min(MAX_READ_BYTES),
            false => (self.read_bytes / 2).max(MIN_READ_BYTES),
        };
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Wire, Wire) {
        let (one, other) = tokio::io::duplex(100_000);
        (Wire::new(one), Wire::new(other))
    }

    #[tokio::test]
    async fn packets_come_as_they_were_put() {
        let (mut one, mut other) = pair();
        for content in [&b""[..], b"a", &[7; 5_000]] {
            one.put(content);
        }
        one.flush().await.unwrap();
        for (number, len) in [(0, 0), (1, 1), (2, 5_000)] {
            let head = other.head(9_999).await.unwrap().unwrap();
            assert_eq!((head.number, head.len), (number, len));
            assert_eq!(other.content(head).len(), len);
            assert_eq!(other.packet(5_000).await.unwrap().unwrap().len(), len);
        }
        one.close().await;
        assert!(other.head(1).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn long_packets_are_forwarded_in_pieces_and_joined_again() {
        let (mut client, mut near) = pair();
        let (mut far, mut server) = pair();
        let long: Vec<u8> = (0..MAX_PART + 10)
            .map(|at| u8::try_from(at % 251).unwrap())
            .collect();
        let sent = long.clone();
        let send = async move {
            client.put(&sent);
            client.put(&[1; MAX_PART]);
            client.flush().await.unwrap();
            client
        };
        let relay = async {
            near.forward(&mut far).await.unwrap();
            assert!(near.inbox.capacity() <= 4 * MAX_READ_BYTES);
            assert!(far.outbox.capacity() <= 4 * MAX_UNSENT_BYTES);
            near.forward(&mut far).await.unwrap();
            far.flush().await.unwrap();
        };
        let receive = async {
            let first = server.packet(usize::MAX).await.unwrap().unwrap();
            assert!(*first == *long);
            let second = server.packet(MAX_PART).await.unwrap().unwrap();
            assert_eq!(second.len(), MAX_PART);
            assert_eq!(server.next, 4);
        };
        tokio::join!(send, relay, receive);
    }

    #[tokio::test]
    async fn a_packet_is_forwarded_with_another_beginning() {
        for len in [5, MAX_PART - 3, MAX_PART - 2, MAX_PART, 2 * MAX_PART + 1] {
            let (mut client, mut near) = pair();
            let (mut far, mut server) = pair();
            let content: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let expected = [b"longer", &content[4..]].concat();
            let send = async {
                client.put(&content);
                client.put(b"behind");
                client.flush().await.unwrap();
            };
            let relay = async {
                near.head(4).await.unwrap();
                near.forward_with(&mut far, 4, b"longer").await.unwrap();
                assert!(!far.is_within_packet());
                assert!(near.inbox.capacity() <= 4 * MAX_READ_BYTES);
                assert!(far.outbox.capacity() <= 4 * MAX_UNSENT_BYTES);
                far.flush().await.unwrap();
                near.discard().await.unwrap();
                assert!(near.inbox.is_empty());
            };
            let receive = async { server.packet(usize::MAX).await.unwrap().unwrap() };
            let (_, (), received) = tokio::join!(send, relay, receive);
            assert!(*received == *expected, "{len}");
            let parts = u8::try_from(expected.len() / MAX_PART + 1).unwrap();
            assert_eq!(server.next, parts, "{len}");
        }
    }

    #[tokio::test]
    async fn a_packet_that_is_too_long_takes_no_memory() {
        let (mut one, mut other) = pair();
        one.outbox.extend_from_slice(&[0xff, 0xff, 0xff, 0, 1]);
        one.flush().await.unwrap();
        assert!(other.packet(1_000).await.is_err());
        assert!(other.inbox.capacity() < 10_000);
    }

    #[tokio::test]
    async fn bytes_behind_a_packet_that_is_read_alone_stay_in_the_stream() {
        let (mut one, mut other) = pair();
        one.put(b"a request for TLS");
        one.outbox.extend_from_slice(b"and TLS");
        one.close().await;
        assert!(other.packet_alone(100).await.unwrap().is_some());
        let mut stream = other.into_stream().unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"and TLS");
    }

    #[tokio::test]
    async fn answers_are_taken_in_while_commands_are_sent() {
        let (one, other) = tokio::io::duplex(1_000);
        let (mut client, mut server) = (Wire::new(one), Wire::new(other));
        let echo = async {
            for _ in 0..100 {
                let content = server.packet(1_000).await.unwrap().unwrap();
                server.put(&content);
                server.flush().await.unwrap();
            }
        };
        let ask = async {
            (0..100).for_each(|_| client.put(&[7; 500]));
            client.flush_while_reading().await.unwrap();
            for _ in 0..100 {
                assert_eq!(client.packet(1_000).await.unwrap().unwrap().len(), 500);
            }
        };
        tokio::join!(echo, ask);
        assert!(client.is_quiet().await);
        server.close().await;
        assert!(!client.is_quiet().await);
    }

    #[tokio::test]
    async fn an_end_within_a_packet_is_an_error() {
        let (mut one, mut other) = pair();
        one.outbox.extend_from_slice(&[3, 0, 0, 0, 1]);
        one.close().await;
        assert!(other.packet(1_000).await.is_err());
        let (mut to, _peer) = pair();
        assert!(other.forward(&mut to).await.is_err());
        assert!(to.is_within_packet());
    }
}
