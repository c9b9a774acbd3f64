//! Reads a body, chunk by chunk.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use crate::answers::Refusal;
use crate::bodies::inflate::{self, Inflate, Piece};
use crate::connection_state::{ConnectionState, Phase};

/// The most bytes of a refused body that are read and discarded before it is answered. Otherwise a
/// client that is still sending may see a reset connection instead of the answer.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of one body, as sent and as unpacked, that are processed in a row. Then other tasks
/// run, and the sockets of other clients are polled.
const TURN_BYTES: usize = 64 << 10;

/// The same limit for bytes that unpack to nothing, such as empty gzip members.
const SILENT_TURN_BYTES: usize = 4 * TURN_BYTES;

/// The origin of a body.
#[derive(Debug)]
enum Source {
    /// The connection.
    Connection(Incoming),
    /// An envelope, which is in memory and charged as a whole.
    Memory(Bytes),
}

/// The body of one request.
#[derive(Debug)]
pub struct Feed<'a> {
    body: Source,
    /// The unpacking of a packed body, until all of it is unpacked.
    packed: Option<Box<Inflate>>,
    connection: &'a ConnectionState,
    /// True if the client waits for a go-ahead before it sends the body.
    asks_first: bool,
    started: bool,
    ended: bool,
    /// The bytes processed since other tasks had their turn.
    worked: usize,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        body: Incoming,
        headers: &HeaderMap,
        connection: &'a ConnectionState,
    ) -> Self {
        let ended = body.is_end_stream();
        connection.set_holds(false);
        Self {
            body: Source::Connection(body),
            packed: Self::unpacker(headers, ended),
            connection,
            asks_first: headers.contains_key(EXPECT),
            started: false,
            ended,
            worked: 0,
        }
    }

    fn unpacker(headers: &HeaderMap, is_empty: bool) -> Option<Box<Inflate>> {
        let packed = !is_empty && inflate::is_packed(headers);
        packed.then(|| Box::new(Inflate::new()))
    }

    /// Returns the body of a part of an envelope.
    pub(crate) fn held(body: Bytes, headers: &HeaderMap, connection: &'a ConnectionState) -> Self {
        Self {
            ended: body.is_empty(),
            packed: Self::unpacker(headers, body.is_empty()),
            body: Source::Memory(body),
            connection,
            asks_first: false,
            started: false,
            worked: 0,
        }
    }

    /// True if the whole body is in memory.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.body, Source::Memory(_))
    }

    /// Returns the state of the connection.
    pub(crate) fn connection(&self) -> &'a ConnectionState {
        self.connection
    }

    /// Returns the length of the body, if its head says it. That of a packed body is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.body {
            _ if self.packed.is_some() => None,
            Source::Connection(body) => body.size_hint().exact(),
            Source::Memory(body) => Some(body.len() as u64),
        }
    }

    /// True once the whole body was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended && self.packed.is_none()
    }

    /// Notes whether memory is held until the body is complete: then it must arrive at a certain
    /// pace while other clients need memory.
    pub(crate) fn holds(&self, holds: bool) {
        if !self.is_held() {
            self.connection.set_holds(holds);
        }
    }

    /// Notes that the next wait is not for the client.
    pub(crate) fn pause(&self) {
        self.connection.enter(Phase::Busy);
    }

    /// Lets other tasks run, and the sockets of other clients be polled, once enough of this body
    /// was processed in a row. Call this before each [`Feed::poll_chunk`]. Cancel safe.
    pub(crate) async fn take_turns(&mut self) {
        if self.worked >= TURN_BYTES {
            self.worked = 0;
            // A task that wakes itself would run again before any socket is polled.
            tokio::task::yield_now().await;
        }
    }

    /// Returns the next unpacked bytes, never an empty chunk; `None` at the end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Refusal>> {
        loop {
            if self.worked >= SILENT_TURN_BYTES {
                self.worked = 0;
                if pin!(tokio::task::yield_now()).poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            let Some(packed) = &mut self.packed else {
                return self.poll_sent(cx);
            };
            match packed.piece()? {
                Piece::Bytes(piece) => {
                    self.worked += piece.len();
                    return Poll::Ready(Ok(Some(piece)));
                }
                Piece::End => self.packed = None,
                Piece::Wants => {
                    let chunk = ready!(self.poll_sent(cx))?;
                    if let Some(packed) = &mut self.packed {
                        packed.give(chunk);
                    }
                }
            }
        }
    }

    /// Returns the next bytes as they are sent.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Refusal>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        self.started = true;
        let body = match &mut self.body {
            Source::Connection(body) => body,
            Source::Memory(body) => {
                self.ended = true;
                return Poll::Ready(Ok(Some(std::mem::take(body))));
            }
        };
        if self.connection.is_given_up() {
            return Poll::Ready(Err(given_up()));
        }
        loop {
            let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
                self.connection.enter(Phase::Body);
                if self.connection.is_late() {
                    return Poll::Ready(Err(too_slow()));
                }
                return Poll::Pending;
            };
            self.connection.enter(Phase::Busy);
            match frame {
                None => {
                    self.ended = true;
                    return Poll::Ready(Ok(None));
                }
                // Trailers are ignored.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.ended = body.is_end_stream();
                        self.connection.moved(data.len());
                        self.worked += data.len();
                        return Poll::Ready(Ok(Some(data)));
                    }
                    _ => {}
                },
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Err(broken(&error)));
                }
            }
        }
    }

    /// Returns the next bytes, as [`Feed::poll_chunk`] does. Cancel safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        self.take_turns().await;
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Reads and discards the rest of a refused body, within limits. Returns false if the
    /// connection cannot be used any more.
    pub(crate) async fn drain(&mut self) -> bool {
        // The content does not matter.
        self.packed = None;
        if self.ended {
            return true;
        }
        if self.asks_first && !self.started {
            return false;
        }
        let rest = async {
            let mut left = DRAIN_BYTES;
            while let Ok(Some(chunk)) = self.chunk().await {
                left = left.saturating_sub(chunk.len());
                if left == 0 {
                    return;
                }
            }
        };
        // Too slow is treated like too long.
        drop(tokio::time::timeout(DRAIN_TIMEOUT, rest).await);
        self.connection.enter(Phase::Busy);
        self.ended
    }
}

fn too_slow() -> Refusal {
    Refusal::protocol(
        StatusCode::REQUEST_TIMEOUT,
        "the body made no progress for longer than http.body_timeout",
    )
}

fn given_up() -> Refusal {
    Refusal::protocol(
        StatusCode::REQUEST_TIMEOUT,
        "less than 64 KiB of the body came in 10 seconds, while others waited for the memory that it holds",
    )
}

fn broken(error: &hyper::Error) -> Refusal {
    use std::io::{Error, ErrorKind::InvalidData, ErrorKind::InvalidInput};

    let source = std::error::Error::source(error);
    let text = match source.and_then(|source| source.downcast_ref::<Error>()) {
        Some(why) if matches!(why.kind(), InvalidInput | InvalidData) => {
            format!("the chunks of the body are not well-formed: {why}")
        }
        _ => "the body ended before it was complete".to_owned(),
    };
    Refusal::protocol(StatusCode::BAD_REQUEST, text)
}
