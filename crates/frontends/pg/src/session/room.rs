//! Room for the answers of joined writes that may be long: taken before they are handed over, and
//! held until the answer has left for the client.
//!
//! A session has no more of them under way than its share of the room: whoever does not read holds
//! that share and what its socket took, and its own next writes wait for it. It waits for the room
//! that all share only with what fits its share, and not for ever.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::sleep;
use windrow_calls::{CallDone, SqlCall, Statement};
use windrow_core::budget::SHORT;
use windrow_core::{AnswerPermit, Budget, Fault, FaultClass, Unit, UnitOutcome};

use super::pending::Pending;
use super::state::{End, Session, shutdown};

/// How long a write waits for room for its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The part of the room that one session may have under way, and what that is at least: as much as
/// it may have to send anyway.
const SHARE: usize = 32;
const LEAST: usize = 64 << 10;

/// An answer that may be long.
#[derive(Debug, Default)]
pub(crate) struct ExpectedAnswer {
    permit: AnswerPermit,
    /// Whose rows it has; `None` where those are always short.
    calls: SmallVec<[Option<Arc<Statement>>; 1]>,
}

/// Room that a session holds for answers that it waits for, in bytes.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(usize);

impl UnderWay {
    pub(super) fn begins(&mut self, pending: &Pending) {
        let answer = pending.answer.as_deref();
        self.0 += answer.map_or(0, |answer| answer.permit.bytes());
    }

    pub(super) fn ended(&mut self, answer: &ExpectedAnswer) {
        self.0 = self.0.saturating_sub(answer.permit.bytes());
    }

    /// True where the session has its share of the room for answers.
    pub(super) fn is_full(&self, budget: &Budget) -> bool {
        self.0 > 0 && self.0 >= (budget.answers().total() / SHARE).max(LEAST)
    }
}

impl ExpectedAnswer {
    /// `None` where all of it is certain to be short.
    pub(super) fn of(unit: &Unit<SqlCall>) -> Option<Box<Self>> {
        let long = |call: &SqlCall| call.statement.usual_answer().is_some();
        if !unit.work().iter().any(long) {
            return None;
        }
        let calls = unit.work().iter();
        let calls = calls.map(|call| long(call).then(|| Arc::clone(&call.statement)));
        Some(Box::new(Self {
            permit: AnswerPermit::default(),
            calls: calls.collect(),
        }))
    }

    /// True where it is worth counting.
    pub(super) fn is_long(&self, budget: &Budget) -> bool {
        self.bytes(budget) > SHORT
    }

    /// The room that it is expected to take, in bytes.
    fn bytes(&self, budget: &Budget) -> usize {
        let calls = self.calls.iter().flatten();
        let usual = calls.filter_map(|statement| statement.usual_answer());
        let each = usual.map(|usual| usual.room(budget.answers()));
        each.fold(0, usize::saturating_add)
    }

    /// The answer is there: what it takes is remembered for the next. The room that is held for it.
    pub(super) fn known(self, outcome: Option<&UnitOutcome<CallDone>>) -> AnswerPermit {
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

impl Session {
    /// Takes room for an answer. What was answered before goes out meanwhile.
    ///
    /// # Errors
    /// Outside: the session ends. Inside: what the client is told, where there was no room for a
    /// long time.
    pub(super) async fn take_room(
        &mut self,
        answer: &mut ExpectedAnswer,
    ) -> Result<Result<(), Fault>, End> {
        let bytes = answer.bytes(&self.shared.budget);
        match self.wait_for_room(bytes).await? {
            Ok(permit) => answer.permit = permit,
            Err(fault) => return Ok(Err(fault)),
        }
        // Others may have learned meanwhile how long it is.
        let bytes = answer.bytes(&self.shared.budget).min(answer.permit.bytes());
        let room = self.shared.budget.answers();
        answer.permit.resize(room, bytes);
        Ok(Ok(()))
    }

    async fn wait_for_room(&mut self, bytes: usize) -> Result<Result<AnswerPermit, Fault>, End> {
        let shared = Arc::clone(&self.shared);
        let mut taking = pin!(shared.budget.answers().take(bytes));
        let mut time = pin!(sleep(PATIENCE));
        let stop = self.stop.clone();
        let mut stopped = pin!(stop.cancelled());
        let part = self.segment.bytes;
        poll_fn(|cx| {
            if let Poll::Ready(permit) = taking.as_mut().poll(cx) {
                return Poll::Ready(Ok(Ok(permit)));
            }
            self.poll_say(cx)?;
            let connection = &mut self.connection;
            if let Poll::Ready(end) = connection.poll_stalled(&shared.budget, part, cx) {
                return Poll::Ready(Err(end));
            }
            if time.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(Err(no_room())));
            }
            let stopped = stopped.as_mut().poll(cx);
            stopped.map(|()| Err(End::Fatal(shutdown())))
        })
        .await
    }
}

fn no_room() -> Fault {
    let message = format!(
        "the room for answers that wait for their clients (a quarter of limits.memory) has been full for {} seconds; nothing was executed, try again later",
        PATIENCE.as_secs()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}
