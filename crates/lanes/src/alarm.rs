//! One timer for everything that is due at some time. It is set again only if it would ring too
//! late: ringing too early costs a turn of the loop, setting it in each turn would cost time for
//! each batch.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// When it rings; `None`: not at all.
    at: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            sleep: Box::pin(sleep(Duration::ZERO)),
            at: None,
        }
    }

    /// Rings at this time or before.
    pub(crate) fn set(&mut self, at: Option<Instant>) {
        let Some(at) = at else {
            self.at = None;
            return;
        };
        if self.at.is_none_or(|set| at < set) {
            self.sleep.as_mut().reset(at);
            self.at = Some(at);
        }
    }

    /// Ends when it rings, once for each time it was set. Cancel safe.
    pub(crate) async fn rings(&mut self) {
        poll_fn(|cx| match self.at {
            Some(_) => self.sleep.as_mut().poll(cx),
            None => Poll::Pending,
        })
        .await;
        self.at = None;
    }
}
