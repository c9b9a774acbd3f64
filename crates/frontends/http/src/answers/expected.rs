//! Memory for answers: taken before writes are submitted whose answers may be long, and held until
//! the answer has been sent.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use smallvec::SmallVec;
use tokio::time::timeout;
use windrow_core::budget::SHORT;
use windrow_core::{
    AnswerPermit, AnswerRoom, Fault, FaultClass, Outcomes, Returning, Shape, Unit, UsualAnswer,
};

use crate::answers::ledger::returned_bytes;

/// The number of kinds of requests whose answers' lengths are kept. Beyond it, all are dropped.
const MAX_KINDS: usize = 4096;

/// The longest time that writes wait for memory for their answers.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// The usual length of answers, by table and returned columns.
#[derive(Debug, Default)]
pub(crate) struct UsualAnswers {
    hasher: foldhash::fast::RandomState,
    kept: RwLock<HashMap<u64, Arc<UsualAnswer>, foldhash::fast::RandomState>>,
}

/// Answers that may be long.
#[derive(Debug)]
pub(crate) struct ExpectedAnswers {
    permit: AnswerPermit,
    /// The kinds of the writes in their order, each with the number of writes; `None` if nothing is
    /// returned.
    runs: SmallVec<[(Option<Arc<UsualAnswer>>, usize); 1]>,
}

impl UsualAnswers {
    /// Returns the expected answers to units, and marks the units whose answers are long. `None` if
    /// all are short because nothing is returned.
    pub(crate) fn of(&self, units: &mut [Unit]) -> Option<ExpectedAnswers> {
        let mut writes = units.iter().flat_map(Unit::writes);
        if writes.all(|write| write.shape.returning == Returning::Nothing) {
            return None;
        }
        let mut runs: SmallVec<[(Option<Arc<UsualAnswer>>, usize); 1]> = SmallVec::new();
        let mut before: Option<Arc<Shape>> = None;
        for unit in units {
            let mut is_long = false;
            for write in unit.writes() {
                let shape = &write.shape;
                match runs.last_mut() {
                    Some((_, times)) if before.as_ref().is_some_and(|b| Arc::ptr_eq(b, shape)) => {
                        *times += 1;
                    }
                    _ => {
                        runs.push((self.usual(shape), 1));
                        before = Some(Arc::clone(shape));
                    }
                }
                let usual = runs.last().and_then(|(usual, _)| usual.as_ref());
                is_long |= usual.is_some_and(|usual| usual.is_long());
            }
            if is_long {
                unit.expect_long_answer();
            }
        }
        Some(ExpectedAnswers {
            permit: AnswerPermit::default(),
            runs,
        })
    }

    fn usual(&self, shape: &Shape) -> Option<Arc<UsualAnswer>> {
        if shape.returning == Returning::Nothing {
            return None;
        }
        let kind = self.hasher.hash_one((&shape.table, &shape.returning));
        let kept = self.kept.read();
        if let Some(usual) = kept.get(&kind) {
            return Some(Arc::clone(usual));
        }
        drop(kept);
        let mut kept = self.kept.write();
        if kept.len() >= MAX_KINDS {
            kept.clear();
        }
        Some(Arc::clone(kept.entry(kind).or_default()))
    }
}

impl ExpectedAnswers {
    /// Returns the bytes that the answers are expected to need; 0 if that is too little to count.
    fn bytes(&self, room: &AnswerRoom) -> usize {
        let each = self.runs.iter().map(|(usual, times)| {
            let expected = usual.as_ref().map_or(0, |usual| usual.room(room));
            expected.saturating_mul(*times)
        });
        let all = each.fold(0, usize::saturating_add);
        if all > SHORT { all } else { 0 }
    }

    /// Takes memory for the answers, and waits for it.
    ///
    /// # Errors
    /// [`FaultClass::Overloaded`] if there is none for 10 seconds.
    pub(crate) async fn take(&mut self, room: &AnswerRoom) -> Result<(), Fault> {
        let bytes = self.bytes(room);
        if bytes > 0 {
            let taken = timeout(ROOM_TIMEOUT, room.take(bytes)).await;
            self.hold(room, taken.map_err(|_| no_room())?);
        }
        Ok(())
    }

    /// Takes memory for the answers without waiting. Returns false if there is none.
    pub(crate) fn try_take(&mut self, room: &AnswerRoom) -> bool {
        let bytes = self.bytes(room);
        if bytes > 0 {
            let Some(taken) = room.try_take(bytes) else {
                return false;
            };
            self.hold(room, taken);
        }
        true
    }

    /// Keeps the memory for the answers, and adjusts it if their expected length has changed
    /// meanwhile.
    fn hold(&mut self, room: &AnswerRoom, mut permit: AnswerPermit) {
        let bytes = self.bytes(room).min(permit.bytes());
        permit.resize(room, bytes);
        self.permit = permit;
    }

    /// Notes the actual length of the answers, for later requests, and counts it.
    pub(crate) fn known(mut self, room: &AnswerRoom, outcomes: &Outcomes) -> AnswerPermit {
        let kinds = self.runs.iter();
        let mut kinds = kinds.flat_map(|(usual, times)| std::iter::repeat_n(usual, *times));
        let mut all = 0;
        for outcome in outcomes {
            let Ok(dones) = outcome else {
                kinds.next();
                continue;
            };
            for done in dones {
                let usual = kinds.next().and_then(Option::as_ref);
                let bytes = match done.returned {
                    Some(_) => returned_bytes(done),
                    None => 0,
                };
                all += bytes;
                if let Some(usual) = usual {
                    usual.note(bytes);
                }
            }
        }
        let counted = if all > SHORT { all } else { 0 };
        if counted != self.permit.bytes() {
            self.permit.resize(room, counted);
        }
        self.permit
    }
}

fn no_room() -> Fault {
    let message = format!(
        "the room for answers that wait for their clients (a quarter of limits.memory) has been full for {} seconds; nothing was handed over, try again later",
        ROOM_TIMEOUT.as_secs()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}

#[cfg(test)]
mod tests {
    use windrow_core::{Budget, Returned, UnitOutcome, Value, Write, WriteDone};

    use super::*;
    use crate::query;

    fn get() -> Unit {
        let options = query::options(windrow_core::Op::Get, "").unwrap();
        let table = query::table("t").unwrap();
        let parts = query::parts(windrow_core::Op::Get, table, &options);
        Unit::one(Write::new(Arc::new(Shape::new(parts)), Vec::new()))
    }

    fn found(bytes: usize) -> UnitOutcome {
        let row = [Value::text("x".repeat(bytes))];
        let returned = Returned {
            columns: [windrow_core::Name::from("a")].into(),
            rows: vec![row.into_iter().collect()],
        };
        let done = WriteDone::returning(1, returned);
        Ok(std::iter::once(done).collect())
    }

    #[test]
    fn what_is_known_of_one_answer_is_expected_of_the_next() {
        let budget = Budget::new(64 << 20);
        let (room, usual) = (budget.answers(), UsualAnswers::default());
        let mut units = [get(), get()];
        let first = usual.of(&mut units).unwrap();
        assert_eq!(first.bytes(room), 2 * room.unknown());
        let permit = first.known(room, &[found(10), found(100_000)].into_iter().collect());
        assert!(permit.bytes() > 100_000 && room.held() == permit.bytes());
        drop(permit);
        let mut next = usual.of(&mut units[..1]).unwrap();
        assert!(units[0].has_long_answer());
        let expected = next.bytes(room);
        assert!((200_000..220_000).contains(&expected), "{expected}");
        next.hold(room, room.try_take(1 << 20).unwrap());
        assert_eq!(room.held(), expected);
        drop(next.known(room, &[found(1)].into_iter().collect()));
        assert_eq!(room.held(), 0);
        for _ in 0..1000 {
            usual.kept.read().values().for_each(|usual| usual.note(1));
        }
        let mut short = [get()];
        assert!(usual.of(&mut short).is_some() && !short[0].has_long_answer());
    }
}
