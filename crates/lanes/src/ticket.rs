//! The answers that are owed: one ticket for each submission, closed once all of its units have
//! outcomes.

use std::time::Duration;

use windrow_core::intake::Reply;
use windrow_core::{Dones, Fault, Outcomes, Permit, RetryPolicy, Trace, UnitOutcome};

use crate::arena::Arena;

/// All submissions that are not answered.
#[derive(Debug)]
pub(crate) struct Tickets {
    open: Arena<Ticket>,
    /// The number of traced tickets.
    traced: usize,
}

#[derive(Debug)]
struct Ticket {
    reply: Reply,
    permit: Permit,
    /// The outcomes in order, with a placeholder for a unit that is overtaken by a later one. Empty
    /// for a single unit.
    outcomes: Vec<UnitOutcome>,
    units: usize,
    pending: usize,
    policy: RetryPolicy,
    /// Units that may have been executed already, by their index, each with the fault of that
    /// attempt.
    unknown: Vec<(usize, Fault)>,
    trace: Option<Trace>,
}

impl Tickets {
    pub(crate) fn new() -> Self {
        Self {
            open: Arena::new(),
            traced: 0,
        }
    }

    /// Opens a ticket for this number of units (at least one).
    pub(crate) fn open(
        &mut self,
        (reply, permit): (Reply, Permit),
        units: usize,
        policy: RetryPolicy,
        trace: Option<Trace>,
    ) -> usize {
        self.traced += usize::from(trace.is_some());
        self.open.insert(Ticket {
            reply,
            permit,
            outcomes: Vec::new(),
            units,
            pending: units,
            policy,
            unknown: Vec::new(),
            trace,
        })
    }

    /// True if the lane has requests that are traced.
    pub(crate) fn is_traced(&self) -> bool {
        self.traced > 0
    }

    /// Returns the trace of the request that has this ticket.
    pub(crate) fn trace(&self, key: usize) -> Option<&Trace> {
        self.open.get(key)?.trace.as_ref()
    }

    /// Returns the retry policy of the units of a ticket.
    pub(crate) fn policy(&self, key: usize) -> RetryPolicy {
        self.open.get(key).map(|t| t.policy).unwrap_or_default()
    }

    /// Returns how long the units of a ticket wait for a database that is away. `usual`: the time
    /// for a client's units.
    pub(crate) fn away_wait(&self, key: usize, usual: Duration) -> Duration {
        let Some(ticket) = self.open.get(key) else {
            return usual;
        };
        let wait = ticket.policy.away_wait(usual);
        match ticket.unknown.is_empty() {
            true => wait,
            false => wait.max(ticket.policy.unknown_wait().unwrap_or_default()),
        }
    }

    /// Notes that a unit may have been executed; its next attempt will show if it was.
    pub(crate) fn note_unknown(&mut self, key: usize, index: usize, fault: Fault) {
        if let Some(ticket) = self.open.get_mut(key)
            && !ticket.unknown.iter().any(|(at, _)| *at == index)
        {
            ticket.unknown.push((index, fault));
        }
    }

    pub(crate) fn is_abandoned(&self, key: usize) -> bool {
        self.open.get(key).is_none_or(|t| t.reply.is_abandoned())
    }

    /// Notes that units of a ticket were in a batch with units of another source.
    pub(crate) fn share(&mut self, key: usize) {
        if let Some(ticket) = self.open.get_mut(key) {
            ticket.reply.share();
        }
    }

    /// Notes the outcome of the unit at `index`, and answers the client if it is the last one.
    pub(crate) fn tell(&mut self, key: usize, index: usize, outcome: UnitOutcome) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
        };
        let unknown = ticket.take_unknown(index);
        let outcome = match (unknown, outcome) {
            // The rollback of this attempt says nothing about the one before.
            (Some(unknown), Err(failed)) if failed.fault.may_retry() => Err(unknown.into()),
            (_, outcome) => outcome,
        };
        if let (Some(trace), Err(failed)) = (&ticket.trace, &outcome) {
            trace.failed(&failed.fault.code);
        }
        if ticket.units == 1 {
            self.close(key, [outcome]);
            return;
        }
        ticket.set(index, outcome);
        self.count(key, 1);
    }

    /// Notes the same fault for `count` units from `first` on, none of which was executed since it
    /// was queued.
    pub(crate) fn fail(&mut self, key: usize, first: usize, count: usize, fault: &Fault) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
        };
        if let Some(trace) = &ticket.trace {
            (0..count).for_each(|_| trace.failed(&fault.code));
        }
        if ticket.units == 1 {
            let fault = ticket.take_unknown(first).unwrap_or_else(|| fault.clone());
            self.close(key, [Err(fault.into())]);
            return;
        }
        for index in first..first + count {
            let fault = ticket.take_unknown(index).unwrap_or_else(|| fault.clone());
            ticket.set(index, Err(fault.into()));
        }
        self.count(key, count);
    }

    /// Drops units whose client has left.
    pub(crate) fn forgo(&mut self, key: usize, count: usize) {
        self.count(key, count);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.len() == 0
    }

    fn count(&mut self, key: usize, answered: usize) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
        };
        ticket.pending = ticket.pending.saturating_sub(answered);
        if ticket.pending == 0 {
            let outcomes = std::mem::take(&mut ticket.outcomes);
            self.close(key, outcomes);
        }
    }

    fn close(&mut self, key: usize, outcomes: impl Into<Outcomes>) {
        if let Some(ticket) = self.open.remove(key) {
            self.traced -= usize::from(ticket.trace.is_some());
            // Frees the memory first: a client that has its answer must find the budget free.
            drop(ticket.permit);
            ticket.reply.send(outcomes);
        }
    }
}

impl Ticket {
    fn take_unknown(&mut self, index: usize) -> Option<Fault> {
        let place = self.unknown.iter().position(|(at, _)| *at == index)?;
        Some(self.unknown.swap_remove(place).1)
    }

    fn set(&mut self, index: usize, outcome: UnitOutcome) {
        if self.outcomes.capacity() == 0 {
            self.outcomes.reserve_exact(self.units);
        }
        while self.outcomes.len() < index {
            self.outcomes.push(Ok(Dones::new()));
        }
        match self.outcomes.get_mut(index) {
            Some(slot) => *slot = outcome,
            None => self.outcomes.push(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::{Budget, Intake, Unit, WriteDone};

    use super::*;

    #[tokio::test]
    async fn answers_once_in_order_and_frees_the_memory_first() {
        let budget = Budget::new(100);
        let (intake, mut arrivals) = Intake::channel(budget.clone(), 1);
        let permit = budget.try_take(60).unwrap();
        let units = vec![Unit::of([]), Unit::of([]), Unit::of([])];
        let receipt = intake.submit(intake.new_source(), units, permit).await;
        let submission = arrivals.recv().await.unwrap();
        let mut tickets = Tickets::new();
        let key = tickets.open(
            (submission.reply, submission.permit),
            3,
            submission.policy,
            None,
        );
        let done = |rows| Ok(std::iter::once(WriteDone::rows(rows)).collect::<Dones>());
        tickets.tell(key, 2, done(2));
        tickets.tell(key, 0, done(0));
        assert_eq!((budget.held(), tickets.is_empty()), (60, false));
        tickets.tell(key, 1, done(1));
        assert_eq!((budget.held(), tickets.is_empty()), (0, true));
        let outcomes = receipt.unwrap().await;
        assert_eq!(outcomes.as_slice(), [done(0), done(1), done(2)]);
    }
}
