//! Batches under way, and who waits until their rows are on a replica.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

/// The batches of this process whose keys are in a replica's log.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    open: Mutex<HashMap<u64, Ticket>>,
    /// Told when a batch has ended.
    pub(crate) news: Notify,
}

#[derive(Debug, Default)]
struct Ticket {
    /// Entries in the log that are not applied.
    left: usize,
    /// How it has ended, once it has.
    ended: Option<Ended>,
    waiting: Option<oneshot::Sender<()>>,
}

/// How a batch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The keys of all rows that it may have changed are in the log.
    Told,
    /// Rows of the tables that its notes name may have changed, and nothing says which.
    Untold,
}

impl Tickets {
    /// A batch begins, before any of its entries is appended.
    pub(crate) fn begin(&self, ticket: u64) {
        self.open().insert(ticket, Ticket::default());
    }

    /// So many entries of it are in the log.
    pub(crate) fn appended(&self, ticket: u64, entries: usize) {
        if let Some(ticket) = self.open().get_mut(&ticket) {
            ticket.left += entries;
        }
    }

    /// It has ended. What is given ends once all of its entries are applied.
    pub(crate) fn end(&self, ticket: u64, how: Ended) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if let Some(open) = self.open().get_mut(&ticket) {
            open.ended = Some(how);
            open.waiting = Some(sender);
        }
        self.settle(ticket, 0);
        self.news.notify_one();
        receiver
    }

    /// How it has ended; `Ok(None)` for a batch that nobody knows any more.
    ///
    /// # Errors
    /// It is under way.
    pub(crate) fn ended(&self, ticket: u64) -> Result<Option<Ended>, UnderWay> {
        match self.open().get(&ticket) {
            None => Ok(None),
            Some(open) => open.ended.map(Some).ok_or(UnderWay),
        }
    }

    /// One of its entries is applied.
    pub(crate) fn applied(&self, ticket: u64) {
        self.settle(ticket, 1);
    }

    fn settle(&self, number: u64, applied: usize) {
        let mut all = self.open();
        let Some(ticket) = all.get_mut(&number) else {
            return;
        };
        ticket.left = ticket.left.saturating_sub(applied);
        if ticket.left == 0 && ticket.ended.is_some() {
            let waiting = ticket.waiting.take();
            all.remove(&number);
            // An error says that nobody waits.
            waiting.map(|waiting| waiting.send(()).ok());
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Ticket>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_behind_the_last_entry() {
        let tickets = Tickets::default();
        tickets.begin(1);
        tickets.appended(1, 2);
        assert_eq!(tickets.ended(1), Err(UnderWay));
        let mut waits = tickets.end(1, Ended::Told);
        assert_eq!(tickets.ended(1), Ok(Some(Ended::Told)));
        tickets.applied(1);
        assert!(waits.try_recv().is_err());
        tickets.applied(1);
        assert!(waits.try_recv().is_ok());
        assert_eq!(tickets.ended(1), Ok(None));
    }
}
