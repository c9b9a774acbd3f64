//! One timer for all of a lane's deadlines. It is reset only if it would ring too late: ringing too
//! early costs one turn of the loop, but resetting it in each turn would cost time for every batch.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// The time at which the alarm rings; `None` if it is off.
    at: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            sleep: Box::pin(sleep(Duration::ZERO)),
            at: None,
        }
    }

    /// Sets the alarm to ring at this time or earlier; `None` turns it off.
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

    /// Waits until the alarm rings, once for each time it was set. Cancel safe.
    pub(crate) async fn rings(&mut self) {
        poll_fn(|cx| match self.at {
            Some(_) => self.sleep.as_mut().poll(cx),
            None => Poll::Pending,
        })
        .await;
        self.at = None;
    }
}
