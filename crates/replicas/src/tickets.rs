//! Batches under way, and the clients that wait until the rows are on a replica.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// The ticket that stands for all batches of a gateway that others considered lost.
pub(crate) const ALL: u64 = u64::MAX;

/// The batches of this process whose keys are in a replica's log.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    open: Mutex<HashMap<u64, Ticket>>,
    /// Notified when a batch has ended.
    pub(crate) news: Notify,
}

#[derive(Debug, Default)]
struct Ticket {
    /// The number of entries in the log that are not applied.
    left: usize,
    /// The end of the batch, if it has ended.
    ended: Option<BatchEnd>,
    waiting: Option<oneshot::Sender<()>>,
}

/// The knowledge about a batch's keys at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    /// The keys of all rows that it may have changed are in the log.
    KeysKnown,
    /// Rows in the tables of its notes may have changed, and their keys are unknown.
    KeysUnknown,
}

impl Tickets {
    /// Notes that a batch begins, before any of its entries is appended.
    pub(crate) fn begin(&self, ticket: u64) {
        self.open.lock().insert(ticket, Ticket::default());
    }

    /// Counts entries of the batch that are in the log.
    pub(crate) fn appended(&self, ticket: u64, entries: usize) {
        if let Some(ticket) = self.open.lock().get_mut(&ticket) {
            ticket.left += entries;
        }
    }

    /// Notes that the batch has ended. The receiver ends once all entries of the batch are applied.
    pub(crate) fn end(&self, ticket: u64, how: BatchEnd) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if let Some(open) = self.open.lock().get_mut(&ticket) {
            open.ended = Some(how);
            open.waiting = Some(sender);
        }
        self.settle(ticket, 0);
        self.news.notify_one();
        receiver
    }

    /// Returns the end of a batch; `Ok(None)` for a batch that is no longer known.
    ///
    /// # Errors
    /// It is under way.
    pub(crate) fn ended(&self, ticket: u64) -> Result<Option<BatchEnd>, UnderWay> {
        match self.open.lock().get(&ticket) {
            None => Ok(None),
            Some(open) => open.ended.map(Some).ok_or(UnderWay),
        }
    }

    /// Notes that one of its entries is applied.
    pub(crate) fn applied(&self, ticket: u64) {
        self.settle(ticket, 1);
    }

    /// Returns the batches that are not applied.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let open = self.open.lock();
        open.keys()
            .copied()
            .filter(|number| *number != ALL)
            .collect()
    }

    /// True if those of these batches that are known have ended.
    pub(crate) fn have_ended(&self, numbers: &[u64]) -> bool {
        let open = self.open.lock();
        let mut known = numbers.iter().filter_map(|number| open.get(number));
        known.all(|ticket| ticket.ended.is_some())
    }

    /// Counts batches as applied, whatever is left of them.
    pub(crate) fn release(&self, numbers: &[u64]) {
        for number in numbers {
            self.settle(*number, usize::MAX);
        }
    }

    fn settle(&self, number: u64, applied: usize) {
        let mut all = self.open.lock();
        let Some(ticket) = all.get_mut(&number) else {
            return;
        };
        ticket.left = ticket.left.saturating_sub(applied);
        if ticket.left == 0 && ticket.ended.is_some() {
            let waiting = ticket.waiting.take();
            all.remove(&number);
            // An error means that no client waits.
            waiting.map(|waiting| waiting.send(()).ok());
        }
    }
}

/// Reports that a batch has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_compared_for_count_as_applied() {
        let tickets = Tickets::default();
        for number in [1, 2, ALL] {
            tickets.begin(number);
            tickets.appended(number, 1);
        }
        let mut numbers = tickets.numbers();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
        let mut first = tickets.end(1, BatchEnd::KeysKnown);
        assert!(!tickets.have_ended(&numbers));
        let mut second = tickets.end(2, BatchEnd::KeysUnknown);
        assert!(tickets.have_ended(&numbers) && first.try_recv().is_err());
        tickets.release(&numbers);
        assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    }

    #[test]
    fn who_waits_is_told_behind_the_last_entry() {
        let tickets = Tickets::default();
        tickets.begin(1);
        tickets.appended(1, 2);
        assert_eq!(tickets.ended(1), Err(UnderWay));
        let mut waits = tickets.end(1, BatchEnd::KeysKnown);
        assert_eq!(tickets.ended(1), Ok(Some(BatchEnd::KeysKnown)));
        tickets.applied(1);
        assert!(waits.try_recv().is_err());
        tickets.applied(1);
        assert!(waits.try_recv().is_ok());
        assert_eq!(tickets.ended(1), Ok(None));
    }
}
