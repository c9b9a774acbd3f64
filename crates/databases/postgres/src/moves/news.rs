//! Listens for the server's notifications (NOTIFY) of new rows.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use windrow_core::Fault;
use windrow_core::moves::News;
use windrow_pgwire::wire::Wire;

/// The channel that is listened to.
pub(super) const CHANNEL: &str = "windrow_move";

/// The tag of NotificationResponse; a message begins with its tag and its length, which does not
/// count the tag.
const NOTIFICATION: u8 = b'A';
const HEADER: usize = 5;

/// A connection that does nothing but listen.
pub(super) struct PgNews {
    wire: Wire,
}

impl PgNews {
    pub(super) async fn open(mut wire: Wire) -> Result<Self, Fault> {
        match wire.simple(&format!("LISTEN {CHANNEL}")).await {
            Ok(answer) => answer.map_err(Fault::from)?,
            Err(broken) => return Err(broken.unavailable()),
        };
        wire.take_over();
        Ok(Self { wire })
    }

    /// Returns ready once there was a notification.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        loop {
            let mut is_notified = false;
            while let Some((tag, length)) = front(self.wire.received()) {
                is_notified |= tag == NOTIFICATION;
                self.wire.consume(length);
            }
            if is_notified {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.wire.poll_receive(cx)) {
                Ok(1..) => {}
                Ok(0) => return Poll::Ready(Err(self.lost("the server closed it"))),
                Err(error) => return Poll::Ready(Err(self.lost(&error.to_string()))),
            }
        }
    }

    fn lost(&self, why: &str) -> Fault {
        let peer = self.wire.peer();
        Fault::unavailable(format!("the connection to {peer} is lost: {why}"))
    }
}

/// Returns the tag and the size in bytes of the first message, if it is complete.
fn front(bytes: &[u8]) -> Option<(u8, usize)> {
    let (header, _) = bytes.split_first_chunk::<HEADER>()?;
    let [tag, length @ ..] = *header;
    let whole = usize::try_from(u32::from_be_bytes(length))
        .ok()?
        .checked_add(1)?;
    (whole >= HEADER && bytes.len() >= whole).then_some((tag, whole))
}

#[async_trait]
impl News for PgNews {
    async fn wait(&mut self) -> Result<(), Fault> {
        poll_fn(|cx| self.poll(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_when_they_are_whole() {
        assert_eq!(front(b"A\0\0\0"), None);
        assert_eq!(front(b"A\0\0\0\x06a"), None);
        assert_eq!(front(b"A\0\0\0\x06abS"), Some((b'A', 7)));
    }
}
