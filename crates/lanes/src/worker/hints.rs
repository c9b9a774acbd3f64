//! Units that are given up: of clients that cancel, and of clients that have left.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::intake::Hint;
use windrow_core::{Fault, SourceId, Work};

use super::state::Worker;
use crate::queue::Found;

/// Hints read in one turn at most.
const READ: usize = 1024;

impl<W: Work> Worker<W> {
    /// Reads the hints that are there. What they are about may still be among the arrivals.
    pub(super) fn read_hints(&mut self) {
        while self.hints.len() < READ
            && let Ok(hint) = self.arrivals.hints.try_recv()
        {
            self.hints.push(hint);
        }
    }

    /// Follows the hints that were read, once all that was submitted before them is in the queue.
    pub(super) fn follow_hints(&mut self) {
        let mut hints = std::mem::take(&mut self.hints);
        for hint in hints.drain(..) {
            match hint {
                Hint::Cancel(source, at) => self.cancel(source, at),
                Hint::Closed(source) => self.closed(source),
                Hint::Left(source) => self.left(source),
                Hint::Probed(fault) => self.probed(fault),
                Hint::Rest => {
                    self.connections.close_idle(Instant::now(), Duration::ZERO);
                }
            }
        }
        self.hints = hints;
    }

    fn cancel(&mut self, source: SourceId, asked: Instant) {
        let fault = Fault::called_back();
        match self.queue.cancel(source, asked, &fault, &mut self.tickets) {
            Found::Nothing => {}
            Found::Queued => self.count.fault(fault.class, 1),
            Found::Away(key) => {
                self.connections.call_back(key, asked);
                self.cancel_lock_wait(key, asked);
            }
        }
    }

    /// Units under way take place, as on a server that does not watch its clients while it works.
    /// Only units that wait for a lock are given up.
    fn left(&mut self, source: SourceId) {
        if let Some(key) = self.queue.forgo(source, &mut self.tickets) {
            self.drop_abandoned_lock_waits(key);
        }
    }

    fn closed(&mut self, source: SourceId) {
        if let Some(key) = self.queue.close(source) {
            self.close_lock_waits(key);
        }
    }
}
