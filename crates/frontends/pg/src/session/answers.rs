//! Saying answers in the order of their messages, as soon as they are there.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use windrow_core::budget::SHORT;

use super::client_connection::HIGH;
use super::state::{End, Session};

impl Session {
    /// Says what can be said, in order, and sends it. True if all of that has left.
    pub(super) fn poll_say(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            self.poll_answers(cx);
            let held_back = self.connection.out.len() >= HIGH;
            let flushed = self.connection.poll_flush(cx)?.is_ready();
            let behind = match held_back {
                true => self.pending.len() * SHORT,
                false => 0,
            };
            self.connection.count_answers(&self.shared.budget, behind);
            // What was held back for the sake of memory is looked at again, or nobody would wake
            // this up for it.
            if !held_back || self.connection.out.len() >= HIGH {
                return Ok(flushed);
            }
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>) {
        while let Some(front) = self.pending.front_mut()
            && self.connection.out.len() < HIGH
        {
            let outcome = match &mut front.awaited {
                None => None,
                Some(awaited) => match awaited.poll(cx) {
                    Poll::Pending => return,
                    Poll::Ready(outcome) => Some(outcome),
                },
            };
            if front.is_of_spool() {
                self.has_spooled();
            }
            if let Some(mut pending) = self.pending.pop_front() {
                let stopping = self.stop.is_cancelled();
                if let Some(answer) = pending.answer.take() {
                    self.under_way.ended(&answer);
                    self.connection.keep_room(answer.known(outcome.as_ref()));
                }
                if let Some(outcome) = &outcome {
                    pending.take_back(outcome, &mut self.statements);
                }
                pending.say(
                    outcome,
                    &mut self.connection.out,
                    &mut self.values,
                    stopping,
                );
            }
        }
    }

    /// Waits until nothing is under way any more, so that what comes next sees all of it.
    pub(super) async fn drain(&mut self) -> Result<(), End> {
        poll_fn(|cx| {
            self.poll_say(cx)?;
            if self.pending.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let (budget, part) = (&self.shared.budget, self.segment.bytes);
            let stalled = self.connection.poll_stalled(budget, part, cx);
            stalled.map(|stalled| Err(End::from(stalled)))
        })
        .await
    }
}
