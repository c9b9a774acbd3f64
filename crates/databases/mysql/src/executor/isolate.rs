//! Isolates failures: savepoints around units of several writes, and smaller statements for writes
//! of one statement. InnoDB undoes the statement that fails and nothing else, so a failure of a
//! statement is isolated within its transaction.

use std::sync::Arc;

use windrow_core::{Rung, Verdict};

use super::batch::BoundWrite;
use super::plan::Action;
use super::send;
use super::send::matching;
use super::settle::{Break, Transaction, bound, check_scope, defect};
use crate::fault::{DUPLICATE, Refusal, Scope, Trouble};
use crate::session::Session;

/// Attempts to find the first write of a unit that fails by statements for many writes. Each finds
/// an earlier one. After that the writes run one by one.
const MAX_QUICK_TRIES: usize = 5;

/// Statements of a step that fail before the rest of its writes run one by one.
const MAX_FAILURES: usize = 24;

/// The form in which a unit of several writes is tried.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// All writes in their best form.
    Whole,
    /// The writes before this number in their best form, then this one by itself.
    UpTo(usize),
    /// Write by write.
    InOrder,
}

/// Writes of one shape that run next, by one statement if possible.
#[derive(Debug)]
struct SetPart {
    items: Vec<u32>,
    /// True if a query has shown which of their rows exist.
    is_searched: bool,
    /// True for inserts whose rows exist, so that only their values are judged.
    exist: bool,
}

impl SetPart {
    fn searched(items: Vec<u32>) -> Self {
        Self {
            items,
            is_searched: true,
            exist: false,
        }
    }

    /// Returns both halves, the first one last, as a stack of parts needs them.
    fn halves(mut self) -> [Self; 2] {
        let items = self.items.split_off(self.items.len() / 2);
        [Self { items, ..self }, self]
    }
}

impl Transaction<'_, '_> {
    /// Executes units, each unit of several writes within a savepoint.
    pub(super) async fn units(&mut self, units: &[u32]) -> Result<(), Break> {
        let mut singles = Vec::new();
        for unit in units {
            if self.batch.is_single(*unit) {
                singles.push(*unit);
                continue;
            }
            let before = std::mem::take(&mut singles);
            self.steps(&before).await?;
            self.unit(*unit).await?;
        }
        self.steps(&singles).await
    }

    /// Executes a unit of several writes within a savepoint, first in its best form. If that fails,
    /// the answer is the fault of its first write that fails. So the writes before the one that
    /// failed run again, and then that one by itself.
    async fn unit(&mut self, unit: u32) -> Result<(), Break> {
        self.session.say("SAVEPOINT windrow").await?;
        let mut attempt = Attempt::Whole;
        for tries in 1.. {
            let counts = self.counts;
            self.is_in_unit = true;
            let tried = match attempt {
                Attempt::Whole => self.steps(&[unit]).await,
                Attempt::UpTo(write) => self.up_to(unit, write).await,
                Attempt::InOrder => self.in_order(unit).await,
            };
            self.is_in_unit = false;
            let blame = match tried {
                Ok(()) if !matches!(attempt, Attempt::UpTo(_)) => return Ok(()),
                // The write does not fail any more.
                Ok(()) => None,
                Err(Break::Isolate) => self.blame.take(),
                Err(other) => return Err(other),
            };
            self.counts = counts;
            self.session.say("ROLLBACK TO SAVEPOINT windrow").await?;
            attempt = match (attempt, blame) {
                (Attempt::InOrder, blame) => {
                    let (_, verdict) = blame.unwrap_or_else(|| (0, defect()));
                    return self.unit_failed(unit, verdict);
                }
                (Attempt::UpTo(write), Some((at, verdict))) if write == at => {
                    return self.unit_failed(unit, verdict);
                }
                (_, Some((at, _))) if tries < MAX_QUICK_TRIES => Attempt::UpTo(at),
                _ => Attempt::InOrder,
            };
        }
        Ok(())
    }

    fn unit_failed(&mut self, unit: u32, verdict: Verdict) -> Result<(), Break> {
        self.count(Rung::Isolated, self.batch.writes_of(unit).len());
        self.failed.push((unit, verdict));
        Ok(())
    }

    /// Executes the writes of a unit before this one in their best form, and this one by itself.
    async fn up_to(&mut self, unit: u32, write: usize) -> Result<(), Break> {
        let all = self.batch.writes_of(unit);
        let last = all.start + write;
        let before: Vec<usize> = (all.start..last).collect();
        let steps = self.batch.steps_at(&before);
        self.execute(steps).await?;
        let last = u32::try_from(last).unwrap_or(u32::MAX);
        self.one(last, Rung::Isolated).await
    }

    /// Executes each write of a unit by its own statement, in their order.
    pub(super) async fn in_order(&mut self, unit: u32) -> Result<(), Break> {
        for item in self.batch.writes_of(unit) {
            self.one(u32::try_from(item).unwrap_or(u32::MAX), Rung::Isolated)
                .await?;
        }
        Ok(())
    }

    /// Executes writes of one shape by statements for many. A statement that fails is cut.
    pub(super) async fn set(&mut self, items: Vec<u32>) -> Result<(), Break> {
        let items = self.possible(items);
        let mut todo = self.by_existence(items).await?;
        let mut failures = 0;
        while let Some(mut part) = todo.pop() {
            let size = match part.exist {
                true => self.next_size(&part.items).min(send::MAX_JUDGED_ROWS),
                false => self.next_size(&part.items),
            };
            if size < part.items.len() {
                let items = part.items.split_off(size);
                todo.push(SetPart { items, ..part });
            }
            if part.items.len() < 2 || failures > MAX_FAILURES {
                let rung = if failures > 0 {
                    Rung::Isolated
                } else {
                    Rung::Grouped
                };
                for item in part.items {
                    self.one(item, rung).await?;
                }
            } else if part.exist {
                if !self.judged(&part.items).await? {
                    failures += 1;
                    todo.extend(part.halves());
                }
            } else if let Some(refusal) = self.many(&part.items).await? {
                failures += 1;
                self.cut(part, &refusal, &mut todo).await?;
            }
        }
        Ok(())
    }

    /// Cuts the writes of a statement that failed: into those that seem to be the reason and the
    /// others, or into halves.
    async fn cut(
        &mut self,
        part: SetPart,
        refusal: &Refusal,
        todo: &mut Vec<SetPart>,
    ) -> Result<(), Break> {
        let mut items = part.items;
        if refusal.number == DUPLICATE && !part.is_searched && self.inserts(&items) {
            let (existing, new) = self.duplicates(&items).await?;
            if !existing.is_empty() {
                let existing = existing
                    .into_iter()
                    .map(|item| SetPart::searched(vec![item]));
                todo.extend(existing.rev());
                todo.push(SetPart::searched(new));
                return Ok(());
            }
            items = new;
        }
        match refusal.row.filter(|row| *row < items.len()) {
            Some(row) => {
                let after = items.split_off(row + 1);
                let blamed = items.split_off(row);
                todo.extend([after, blamed, items].map(SetPart::searched));
            }
            None => todo.extend(SetPart::searched(items).halves()),
        }
        Ok(())
    }

    /// Separates the rows of an insert that seem to exist already from the others.
    async fn duplicates(&mut self, items: &[u32]) -> Result<(Vec<u32>, Vec<u32>), Break> {
        let rows = bound(self.batch, items);
        let Some(first) = rows.first() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let compiled = first.compiled.clone();
        let mut existing = Vec::new();
        for key in compiled.given_keys() {
            let by_key = Arc::new(compiled.by_given_key(key));
            let keyed: Vec<BoundWrite> = rows.iter().filter_map(|p| p.by_key(&by_key)).collect();
            let keyed: Vec<&BoundWrite> = keyed.iter().collect();
            if keyed.is_empty() {
                continue;
            }
            let found = send::existing(self.session, &by_key, &keyed, "").await;
            let found = guessed(self.session, found).await?.unwrap_or_default();
            let has = |bound: &&BoundWrite| bound.canon.as_ref().is_some_and(|c| found.contains(c));
            let blamed = keyed.iter().filter(|p| has(p));
            existing.extend(blamed.map(|p| (p.unit, p.write)));
        }
        let blamed = |item: &&u32| {
            let bound = self.batch.bound.get(**item as usize);
            bound.is_some_and(|p| existing.contains(&(p.unit, p.write)))
        };
        Ok(items.iter().partition(blamed))
    }

    /// Separates inserts that ignore an existing row by whether it exists. If it does, the server
    /// has only to judge their values. The row is locked and stays until the commit, as it would
    /// for an insert that meets it.
    async fn by_existence(&mut self, items: Vec<u32>) -> Result<Vec<SetPart>, Break> {
        let part = |items: Vec<u32>, exist: bool| SetPart {
            items,
            is_searched: false,
            exist,
        };
        let rows = bound(self.batch, &items);
        let compiled = match rows.first() {
            Some(first) if first.compiled.action == Action::Ignore => first.compiled.clone(),
            _ => return Ok(vec![part(items, false)]),
        };
        let keyed: Vec<&BoundWrite> = rows.into_iter().filter(|p| p.canon.is_some()).collect();
        if compiled.finds.is_none() || keyed.is_empty() {
            return Ok(vec![part(items, false)]);
        }
        let found = send::existing(self.session, &compiled, &keyed, " LOCK IN SHARE MODE").await;
        let found = guessed(self.session, found).await?.unwrap_or_default();
        let exists = |item: &u32| {
            let bound = self.batch.bound.get(*item as usize);
            let canon = bound.and_then(|bound| bound.canon.as_ref());
            canon.is_some_and(|canon| found.contains(canon))
        };
        let (old, new): (Vec<u32>, Vec<u32>) = items.into_iter().partition(exists);
        Ok(vec![part(new, false), part(old, true)])
    }

    /// Has the server judge the values of inserts whose rows exist. Returns false if one of them
    /// seems to be wrong.
    async fn judged(&mut self, items: &[u32]) -> Result<bool, Break> {
        let rows = bound(self.batch, items);
        let empty = rows.first().map(|p| matching::empty(&p.compiled));
        let judged = send::judge(self.session, &rows).await;
        let fine = guessed(self.session, judged.map(Some))
            .await?
            .unwrap_or_default();
        if let (true, Some(empty)) = (fine, empty) {
            for item in items {
                self.done(*item, empty.clone(), Rung::Fused);
            }
        }
        Ok(fine)
    }

    /// Returns the writes that can find a row. The others get the outcome of no rows.
    fn possible(&mut self, items: Vec<u32>) -> Vec<u32> {
        let bound = &self.batch.bound;
        let nothing = |item: &u32| bound.get(*item as usize).is_some_and(|p| p.nothing);
        let (nothing, possible): (Vec<u32>, Vec<u32>) = items.into_iter().partition(nothing);
        for item in nothing {
            let bound = self.batch.bound.get(item as usize);
            if let Some(done) = bound.map(|p| matching::empty(&p.compiled)) {
                self.done(item, done, Rung::Fused);
            }
        }
        possible
    }

    /// Returns true for inserts that fail if a key exists.
    fn inserts(&self, items: &[u32]) -> bool {
        let first = items
            .first()
            .and_then(|item| self.batch.bound.get(*item as usize));
        first.is_some_and(|p| matches!(p.compiled.action, Action::Insert | Action::Ignore))
    }

    fn next_size(&self, items: &[u32]) -> usize {
        let next = items.get(..send::MAX_ROWS).unwrap_or(items);
        send::next_size(&bound(self.batch, next), &self.session.server)
    }
}

/// Returns the result of a query that only makes others faster; `None` if the server refused it.
async fn guessed<T>(
    session: &mut Session,
    result: Result<Option<T>, Trouble>,
) -> Result<Option<T>, Break> {
    match result {
        Ok(found) => Ok(found),
        Err(Trouble::Lost(why)) => Err(Break::Lost(why)),
        Err(Trouble::Refused(refusal)) => {
            check_scope(session, &refusal)?;
            if refusal.scope == Scope::Lock {
                session.hurry(true).await?;
            }
            Ok(None)
        }
    }
}
