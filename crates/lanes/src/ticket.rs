//! Answers that are owed: one ticket for each submission, closed once all of its units have
//! outcomes.

use windrow_core::intake::Reply;
use windrow_core::{Dones, Fault, Outcomes, Permit, Trace, UnitOutcome};

use crate::arena::Arena;

/// All submissions that are not answered yet.
#[derive(Debug)]
pub(crate) struct Tickets<D> {
    open: Arena<Ticket<D>>,
    /// How many of them are traced.
    traced: usize,
}

#[derive(Debug)]
struct Ticket<D> {
    reply: Reply<D>,
    permit: Permit,
    /// In order; a placeholder stands where a later unit was told first. Of a single unit the
    /// outcome is never kept.
    outcomes: Vec<UnitOutcome<D>>,
    units: usize,
    pending: usize,
    trace: Option<Trace>,
}

impl<D> Tickets<D> {
    pub(crate) fn new() -> Self {
        Self {
            open: Arena::new(),
            traced: 0,
        }
    }

    /// Opens a ticket for so many units (at least one).
    pub(crate) fn open(
        &mut self,
        reply: Reply<D>,
        permit: Permit,
        units: usize,
        trace: Option<Trace>,
    ) -> usize {
        self.traced += usize::from(trace.is_some());
        self.open.insert(Ticket {
            reply,
            permit,
            outcomes: Vec::new(),
            units,
            pending: units,
            trace,
        })
    }

    /// True where somebody wants to know what becomes of some of them.
    pub(crate) fn is_traced(&self) -> bool {
        self.traced > 0
    }

    /// Who wants to know what becomes of the units of this one.
    pub(crate) fn trace(&self, key: usize) -> Option<&Trace> {
        self.open.get(key)?.trace.as_ref()
    }

    pub(crate) fn is_abandoned(&self, key: usize) -> bool {
        self.open.get(key).is_none_or(|t| t.reply.is_abandoned())
    }

    /// Notes the outcome of the unit at `index`; with the last one the client is answered.
    pub(crate) fn tell(&mut self, key: usize, index: usize, outcome: UnitOutcome<D>) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
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

    /// Notes the same fault for `count` units from `first` on.
    pub(crate) fn fail(&mut self, key: usize, first: usize, count: usize, fault: &Fault) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
        };
        if let Some(trace) = &ticket.trace {
            (0..count).for_each(|_| trace.failed(&fault.code));
        }
        if ticket.units == 1 {
            self.close(key, [Err(fault.clone().into())]);
            return;
        }
        for index in first..first + count {
            ticket.set(index, Err(fault.clone().into()));
        }
        self.count(key, count);
    }

    /// Lets go of units whose client has left.
    pub(crate) fn forgo(&mut self, key: usize, count: usize) {
        self.count(key, count);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.len() == 0
    }

    fn count(&mut self, key: usize, told: usize) {
        let Some(ticket) = self.open.get_mut(key) else {
            return;
        };
        ticket.pending = ticket.pending.saturating_sub(told);
        if ticket.pending == 0 {
            let outcomes = std::mem::take(&mut ticket.outcomes);
            self.close(key, outcomes);
        }
    }

    fn close(&mut self, key: usize, outcomes: impl Into<Outcomes<D>>) {
        if let Some(ticket) = self.open.remove(key) {
            self.traced -= usize::from(ticket.trace.is_some());
            // The memory first: a client that has its answer finds the budget free.
            drop(ticket.permit);
            ticket.reply.send(outcomes);
        }
    }
}

impl<D> Ticket<D> {
    fn set(&mut self, index: usize, outcome: UnitOutcome<D>) {
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
    use windrow_core::{Budget, Intake, RowDone, Unit};

    use super::*;

    #[tokio::test]
    async fn answers_once_in_order_and_frees_the_memory_first() {
        let budget = Budget::new(100);
        let (intake, mut arrivals) = Intake::<windrow_core::RowWrite>::channel(budget.clone(), 1);
        let permit = budget.try_take(60).unwrap();
        let units = vec![Unit::of([]), Unit::of([]), Unit::of([])];
        let receipt = intake.submit(intake.new_source(), units, permit).await;
        let submission = arrivals.recv().await.unwrap();
        let mut tickets = Tickets::new();
        let key = tickets.open(submission.reply, submission.permit, 3, None);
        let done = |rows| Ok(std::iter::once(RowDone::rows(rows)).collect::<Dones<RowDone>>());
        tickets.tell(key, 2, done(2));
        tickets.tell(key, 0, done(0));
        assert_eq!((budget.held(), tickets.is_empty()), (60, false));
        tickets.tell(key, 1, done(1));
        assert_eq!((budget.held(), tickets.is_empty()), (0, true));
        let outcomes = receipt.unwrap().await;
        assert_eq!(outcomes.as_slice(), [done(0), done(1), done(2)]);
    }
}
