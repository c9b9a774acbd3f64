//! The units of a transaction, one step after another, with savepoints where they are needed.

use windrow_core::Rung;
use windrow_database::plan;

use super::transaction::{Break, Mode, Transaction, defect};

impl Transaction<'_, '_> {
    /// Executes the units and commits; each has its verdict then.
    pub(super) async fn run(mut self, units: &[u32], mode: Mode) -> Result<(), Break> {
        self.once = mode == Mode::Once;
        let worked = self.work(units, mode).await;
        let ended = match worked.and_then(|()| self.none_overtaken()) {
            Ok(()) => self.commit(units).await,
            Err(Break::Apart) if mode == Mode::Once => self.undo_once(units).await,
            Err(Break::Lost(why)) => return Err(Break::Lost(why)),
            // Where the server has rolled back already this does nothing.
            Err(other) => self
                .line
                .say("ROLLBACK")
                .await
                .map_err(Break::from)
                .and(Err(other)),
        };
        if self.line.is_usable() {
            self.line.hurry(false).await?;
        }
        ended
    }

    async fn work(&mut self, units: &[u32], mode: Mode) -> Result<(), Break> {
        self.open(units).await?;
        if let (Mode::Once, Some(unit)) = (mode, units.first()) {
            return self.in_order(*unit).await;
        }
        if mode != Mode::Apart {
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
        for step in self.batch.steps(units) {
            let may_set = sets && plan::shape_of(step.group).is_some();
            self.step(step.items, may_set).await?;
        }
        Ok(())
    }

    /// A unit of several writes with a savepoint of its own: first as quickly as can be, then write
    /// by write.
    async fn unit(&mut self, unit: u32) -> Result<(), Break> {
        self.line.say("SAVEPOINT windrow").await?;
        for quick in [true, false] {
            let counts = self.counts;
            let tried = if quick {
                self.steps(&[unit], true).await
            } else {
                self.in_order(unit).await
            };
            match tried {
                Ok(()) => return Ok(()),
                Err(Break::Apart) => {
                    self.counts = counts;
                    let verdict = self.blame.take();
                    self.line.say("ROLLBACK TO SAVEPOINT windrow").await?;
                    if !quick {
                        let verdict = verdict.unwrap_or_else(defect);
                        self.count(Rung::Isolated, self.batch.writes_of(unit).len());
                        self.failed.push((unit, verdict));
                        return Ok(());
                    }
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
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
