//! Memory for answers of joined writes that may be long: taken before the writes are submitted, and
//! held until the answer has been sent.
//!
//! A session's answers under way hold no more than its share. A client that does not read its
//! answers holds that share and what its socket buffers, and its own next writes wait. The session
//! only waits for shared memory with what fits its share, and not forever.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::budget::SHORT;
use windrow_core::{AnswerPermit, Budget, Statement, Unit, UnitOutcome, UsualAnswer, Write};

/// An answer that may be long.
#[derive(Debug, Default)]
pub(crate) struct ExpectedAnswer {
    pub(super) permit: AnswerPermit,
    /// The statements of its rows; `None` for rows that are always short.
    calls: SmallVec<[Option<Arc<Statement>>; 1]>,
}

impl ExpectedAnswer {
    /// Returns the expected answer of a unit, and marks the unit if it is long. `None` if all of
    /// the answer is certainly short.
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

    /// Returns true if the answer is long enough to be counted.
    pub(super) fn is_long(&self, budget: &Budget) -> bool {
        self.bytes(budget) > SHORT
    }

    /// Returns the bytes that the answer is expected to need.
    pub(super) fn bytes(&self, budget: &Budget) -> usize {
        let calls = self.calls.iter().flatten();
        let usual = calls.filter_map(|statement| statement.usual_answer());
        let each = usual.map(|usual| usual.room(budget.answers()));
        each.fold(0, usize::saturating_add)
    }

    /// Notes the actual length of the answer, for later ones, and returns the memory that is held
    /// for it.
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
