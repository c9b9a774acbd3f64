//! Memory for the answers of joined writes that may be long: taken before they are handed over, and
//! held until the answer has left for the client.
//!
//! A session has no more of them under way than its share: a client that does not read holds that
//! share and what its socket took, and its own next writes wait for it. The session waits for the
//! memory that all share only with what fits its share, and not for ever.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::budget::SHORT;
use windrow_core::{AnswerPermit, Budget, Statement, Unit, UnitOutcome, UsualAnswer, Write};

/// An answer that may be long.
#[derive(Debug, Default)]
pub(crate) struct ExpectedAnswer {
    pub(super) permit: AnswerPermit,
    /// Whose rows it has; `None` where those are always short.
    calls: SmallVec<[Option<Arc<Statement>>; 1]>,
}

impl ExpectedAnswer {
    /// Returns the answer that a unit is expected to have, and notes in the unit if that is long.
    /// `None` where all of it is certain to be short.
    pub(super) fn of(unit: &mut Unit) -> Option<Box<Self>> {
        let varying = |write: &Write| {
            let statement = &write.call()?.statement;
            statement.usual_answer().map(|_| Arc::clone(statement))
        };
        let calls = unit.writes().iter();
        if !calls.clone().any(|write| varying(write).is_some()) {
            return None;
        }
        let calls = calls.map(varying);
        let calls: SmallVec<[_; 1]> = calls.collect();
        let mut usual = calls.iter().flatten().filter_map(|s| s.usual_answer());
        if usual.any(UsualAnswer::is_long) {
            unit.expect_long_answer();
        }
        Some(Box::new(Self {
            permit: AnswerPermit::default(),
            calls,
        }))
    }

    /// Returns true if it is worth counting.
    pub(super) fn is_long(&self, budget: &Budget) -> bool {
        self.bytes(budget) > SHORT
    }

    /// The room that it is expected to take, in bytes.
    pub(super) fn bytes(&self, budget: &Budget) -> usize {
        let calls = self.calls.iter().flatten();
        let usual = calls.filter_map(|statement| statement.usual_answer());
        let each = usual.map(|usual| usual.room(budget.answers()));
        each.fold(0, usize::saturating_add)
    }

    /// The answer is there: what it takes is remembered for the next. The room that is held for it.
    pub(super) fn known(self, outcome: Option<&UnitOutcome>) -> AnswerPermit {
        if let Some(Ok(dones)) = outcome {
            for (statement, done) in self.calls.iter().zip(dones) {
                let extra = done.extra.as_ref();
                let bytes = extra.map_or(0, |extra| extra.messages.len());
                if let Some(usual) = statement.as_ref().and_then(|s| s.usual_answer()) {
                    usual.note(bytes);
                }
            }
        }
        self.permit
    }
}
