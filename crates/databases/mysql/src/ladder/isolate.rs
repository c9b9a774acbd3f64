//! The units of a transaction, one step after another, and a savepoint around each unit of several
//! writes once one of them has failed.

use windrow_core::{RowDone, Rung, Verdict};
use windrow_database::plan;
use windrow_database::plan::Step;

use super::settle::{Break, Mode, Transaction, defect};

/// Attempts to find the first write of a unit that fails by statements for many writes. Each finds
/// an earlier one. After that the writes run one by one.
const MAX_QUICK_TRIES: usize = 5;

/// How a unit of several writes is tried.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// All of it by statements for many.
    Whole,
    /// What stands before the write of this number in the same way, then this one by itself.
    UpTo(usize),
    /// Write by write.
    InOrder,
}

impl Transaction<'_, '_> {
    /// Executes the units and commits; each has its verdict then.
    pub(super) async fn run(mut self, units: &[u32], mode: Mode) -> Result<(), Break> {
        self.once = mode == Mode::Once;
        let worked = self.work(units, mode).await;
        let ended = match worked.and_then(|()| self.none_overtaken()) {
            Ok(()) => self.commit(units).await,
            Err(Break::Isolate) if mode == Mode::Once => self.undo_once(units).await,
            Err(Break::Lost(why)) => return Err(Break::Lost(why)),
            // Where the server has rolled back already this does nothing.
            Err(other) => self
                .session
                .say("ROLLBACK")
                .await
                .map_err(Break::from)
                .and(Err(other)),
        };
        if self.session.is_usable() {
            self.session.hurry(false).await?;
        }
        ended
    }

    async fn work(&mut self, units: &[u32], mode: Mode) -> Result<(), Break> {
        self.open(units).await?;
        if let (Mode::Once, Some(unit)) = (mode, units.first()) {
            return self.in_order(*unit).await;
        }
        if mode != Mode::Isolated {
            return self.steps(units, mode == Mode::Sets).await;
        }
        let mut singles = Vec::new();
        for unit in units {
            if self.batch.is_single(*unit) {
                singles.push(*unit);
                continue;
            }
            let before = std::mem::take(&mut singles);
            self.steps(&before, true).await?;
            self.unit(*unit).await?;
        }
        self.steps(&singles, true).await
    }

    async fn steps(&mut self, units: &[u32], sets: bool) -> Result<(), Break> {
        let steps = self.batch.steps(units);
        self.execute(steps, sets).await
    }

    async fn execute(&mut self, steps: Vec<Step>, sets: bool) -> Result<(), Break> {
        for step in steps {
            let may_set = sets && plan::shape_of(step.group).is_some();
            self.step(step.items, may_set).await?;
        }
        Ok(())
    }

    /// A unit of several writes with a savepoint of its own: first as quickly as can be. Where that
    /// fails, it is told the first of its writes that fails. So those before the one that was to
    /// blame are tried again, and then that one by itself.
    async fn unit(&mut self, unit: u32) -> Result<(), Break> {
        self.session.say("SAVEPOINT windrow").await?;
        let mut way = Way::Whole;
        for tries in 1.. {
            let counts = self.counts;
            let tried = match way {
                Way::Whole => self.steps(&[unit], true).await,
                Way::UpTo(write) => self.up_to(unit, write).await,
                Way::InOrder => self.in_order(unit).await,
            };
            let blame = match tried {
                Ok(()) if !matches!(way, Way::UpTo(_)) => return Ok(()),
                // It does not fail any more.
                Ok(()) => None,
                Err(Break::Isolate) => self.blame.take(),
                Err(other) => return Err(other),
            };
            self.counts = counts;
            self.session.say("ROLLBACK TO SAVEPOINT windrow").await?;
            way = match (way, blame) {
                (Way::InOrder, blame) => {
                    let (_, verdict) = blame.unwrap_or_else(|| (0, defect()));
                    return self.failed_alone(unit, verdict);
                }
                (Way::UpTo(write), Some((at, verdict))) if write == at => {
                    return self.failed_alone(unit, verdict);
                }
                (_, Some((at, _))) if tries < MAX_QUICK_TRIES => Way::UpTo(at),
                _ => Way::InOrder,
            };
        }
        Ok(())
    }

    fn failed_alone(&mut self, unit: u32, verdict: Verdict<RowDone>) -> Result<(), Break> {
        self.count(Rung::Isolated, self.batch.writes_of(unit).len());
        self.failed.push((unit, verdict));
        Ok(())
    }

    /// The writes of a unit before this one as quickly as can be, and this one by itself.
    async fn up_to(&mut self, unit: u32, write: usize) -> Result<(), Break> {
        let all = self.batch.writes_of(unit);
        let last = all.start + write;
        let before: Vec<usize> = (all.start..last).collect();
        let steps = self.batch.steps_at(&before);
        self.execute(steps, true).await?;
        let last = u32::try_from(last).unwrap_or(u32::MAX);
        self.one(last, Rung::Isolated).await
    }

    /// Each write of a unit by its own statement, in their order.
    async fn in_order(&mut self, unit: u32) -> Result<(), Break> {
        for item in self.batch.writes_of(unit) {
            self.one(u32::try_from(item).unwrap_or(u32::MAX), Rung::Isolated)
                .await?;
        }
        Ok(())
    }
}
