//! Bodies: complete ones to send, and bounded ones to receive.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// A complete body.
#[derive(Debug)]
pub(super) struct Whole(Option<Bytes>);

impl Whole {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The reason why a body was not read to its end.
#[derive(Debug)]
pub(super) enum Unread {
    /// The body has more bytes than the limit.
    TooLarge,
    /// The connection broke.
    Broken(hyper::Error),
}

/// Reads a body of at most this many bytes.
pub(super) async fn read(mut body: Incoming, most: usize) -> Result<Bytes, Unread> {
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(Unread::TooLarge);
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(announced).unwrap_or_default());
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(Unread::Broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > most {
            return Err(Unread::TooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
