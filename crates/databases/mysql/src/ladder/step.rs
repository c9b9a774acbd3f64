//! A step of a transaction: writes of one shape, by one statement or more. What fails is set apart
//! on the spot: InnoDB has undone the statement that failed, and nothing else.

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Rung, UnitFault, Verdict};

use super::batch::BoundWrite;
use super::failed::Failed;
use super::named;
use super::plan::Action;
use super::send_many;
use super::send_one;
use super::settle::{Break, Transaction};
use crate::fault::{DUPLICATE, Refusal, Scope, Trouble};
use crate::session::Session;

/// From so many writes on one statement is cheaper than as many.
const SET_FROM: usize = 2;

/// Statements for many that fail in a step before the rest of it goes one by one.
const PATIENCE: usize = 24;

/// Writes that go next, by one statement if they can.
#[derive(Debug)]
struct Piece {
    items: Vec<u32>,
    /// They have been looked for already.
    told: bool,
    /// Their keys are there: only their values are to be judged.
    there: bool,
}

impl Transaction<'_, '_> {
    /// Executes the writes at these places, which are of one shape. `sets`: by statements for many.
    pub(crate) async fn step(&mut self, items: Vec<u32>, sets: bool) -> Result<(), Break> {
        let sets = sets && items.len() >= SET_FROM && self.suits(&items);
        if !sets {
            for item in items {
                self.one(item, Rung::Grouped).await?;
            }
            return Ok(());
        }
        let items = self.possible(items);
        let mut todo = self.by_place(items).await?;
        let mut failures = 0;
        while let Some(mut piece) = todo.pop() {
            let size = match piece.there {
                true => self.next_size(&piece.items).min(send_many::MOST_JUDGED),
                false => self.next_size(&piece.items),
            };
            if size < piece.items.len() {
                let behind = piece.items.split_off(size);
                todo.push(Piece {
                    items: behind,
                    ..piece
                });
            }
            if piece.items.len() < SET_FROM || failures > PATIENCE {
                let rung = if failures > 0 {
                    Rung::Isolated
                } else {
                    Rung::Grouped
                };
                for item in piece.items {
                    self.one(item, rung).await?;
                }
            } else if piece.there {
                if !self.judged(&piece.items).await? {
                    failures += 1;
                    todo.extend(halves(piece));
                }
            } else if let Some(refusal) = self.many(&piece.items).await? {
                failures += 1;
                self.cut(piece, &refusal, &mut todo).await?;
            }
        }
        Ok(())
    }

    /// Executes a write by its own statement. A failure is told to its unit, if that is all there
    /// is of it.
    pub(crate) async fn one(&mut self, item: u32, rung: Rung) -> Result<(), Break> {
        let Some(bound) = self.batch.bound.get(item as usize) else {
            return Ok(());
        };
        let (unit, write) = (bound.unit, bound.write as usize);
        let answered = match send_one::execute(self.session, bound).await {
            Err(Failed::Trouble(Trouble::Refused(refusal)))
                if send_one::met_another(&bound.compiled, &refusal) =>
            {
                send_one::look_up(self.session, bound).await
            }
            other => other,
        };
        let refusal = match answered {
            Ok(done) => {
                self.done(item, done, rung);
                return Ok(());
            }
            Err(Failed::Unsure) => return Err(not_read_back(bound)),
            Err(Failed::Trouble(Trouble::Lost(why))) => return Err(Break::Lost(why)),
            Err(Failed::Trouble(Trouble::Refused(refusal))) => refusal,
        };
        check_scope(self.session, &refusal)?;
        let verdict = match refusal.scope {
            Scope::Lock if self.purpose == Purpose::Batches => {
                self.session.hurry(true).await?;
                Verdict::WaitsForLock(refusal.fault)
            }
            _ => Verdict::Final(Err(UnitFault {
                at: write,
                fault: refusal.fault,
                before: Vec::new(),
            })),
        };
        self.count(Rung::Isolated, 1);
        self.fail(unit, write, verdict)
    }

    /// Executes writes by one statement; a refusal that befell the statement alone is given back.
    async fn many(&mut self, items: &[u32]) -> Result<Option<Refusal>, Break> {
        let bound = bound(self.batch, items);
        match send_many::execute(self.session, &bound).await {
            Ok(dones) => {
                for (item, done) in items.iter().zip(dones) {
                    self.done(*item, done, Rung::Fused);
                }
                Ok(None)
            }
            Err(Failed::Unsure) => Err(Break::Unsure),
            Err(Failed::Trouble(Trouble::Lost(why))) => Err(Break::Lost(why)),
            Err(Failed::Trouble(Trouble::Refused(refusal))) => {
                check_scope(self.session, &refusal)?;
                if refusal.scope == Scope::Lock {
                    self.session.hurry(true).await?;
                }
                Ok(Some(*refusal))
            }
        }
    }

    /// A statement that failed is cut: into the rows that seem to be to blame and the others, or
    /// into halves.
    async fn cut(
        &mut self,
        piece: Piece,
        refusal: &Refusal,
        todo: &mut Vec<Piece>,
    ) -> Result<(), Break> {
        let Piece {
            mut items, told, ..
        } = piece;
        let again = |items: Vec<u32>, told: bool| Piece {
            items,
            told,
            there: false,
        };
        if refusal.number == DUPLICATE && !told && self.inserts(&items) {
            let (there, new) = self.duplicates(&items).await?;
            if !there.is_empty() {
                let blamed = there.into_iter().map(|item| again(vec![item], true));
                todo.extend(blamed.rev());
                todo.push(again(new, true));
                return Ok(());
            }
            items = new;
        }
        let row = refusal.row.filter(|row| *row < items.len());
        match row {
            Some(row) => {
                let behind = items.split_off(row + 1);
                let blamed = items.split_off(row);
                todo.push(again(behind, true));
                todo.push(again(blamed, true));
                todo.push(again(items, true));
            }
            None => todo.extend(halves(again(items, true))),
        }
        Ok(())
    }

    /// Tells the rows of an insert apart that seem to be there already.
    async fn duplicates(&mut self, items: &[u32]) -> Result<(Vec<u32>, Vec<u32>), Break> {
        let rows = bound(self.batch, items);
        let Some(first) = rows.first() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let compiled = first.compiled.clone();
        let mut there = Vec::new();
        for key in compiled.given_keys() {
            let by_key = std::sync::Arc::new(compiled.by_given_key(key));
            let keyed: Vec<BoundWrite> = rows.iter().filter_map(|p| p.by_key(&by_key)).collect();
            let keyed: Vec<&BoundWrite> = keyed.iter().collect();
            if keyed.is_empty() {
                continue;
            }
            let found = send_many::existing(self.session, &by_key, &keyed, "").await;
            let found = guessed(self.session, found).await?.unwrap_or_default();
            let has = |bound: &&BoundWrite| bound.canon.as_ref().is_some_and(|c| found.contains(c));
            let blamed = keyed.iter().filter(|p| has(p));
            there.extend(blamed.map(|p| (p.unit, p.write)));
        }
        let blamed = |item: &&u32| {
            let bound = self.batch.bound.get(**item as usize);
            bound.is_some_and(|p| there.contains(&(p.unit, p.write)))
        };
        Ok(items.iter().partition(blamed))
    }

    /// Inserts that leave what is there as it is are told apart: those that find their row have
    /// only to be judged. The row is locked, so that it stays there until the commit, as it
    /// would for an insert that meets it.
    async fn by_place(&mut self, items: Vec<u32>) -> Result<Vec<Piece>, Break> {
        let piece = |items: Vec<u32>, there: bool| Piece {
            items,
            told: false,
            there,
        };
        let rows = bound(self.batch, &items);
        let compiled = match rows.first() {
            Some(first) if first.compiled.action == Action::Ignore => first.compiled.clone(),
            _ => return Ok(vec![piece(items, false)]),
        };
        let keyed: Vec<&BoundWrite> = rows.into_iter().filter(|p| p.canon.is_some()).collect();
        if compiled.finds.is_none() || keyed.is_empty() {
            return Ok(vec![piece(items, false)]);
        }
        let there =
            send_many::existing(self.session, &compiled, &keyed, " LOCK IN SHARE MODE").await;
        let there = guessed(self.session, there).await?.unwrap_or_default();
        let is_there = |item: &u32| {
            let bound = self.batch.bound.get(*item as usize);
            let canon = bound.and_then(|bound| bound.canon.as_ref());
            canon.is_some_and(|canon| there.contains(canon))
        };
        let (old, new): (Vec<u32>, Vec<u32>) = items.into_iter().partition(is_there);
        Ok(vec![piece(new, false), piece(old, true)])
    }

    /// Has the values judged of inserts whose keys are there; false where one of them seems to be
    /// wrong.
    async fn judged(&mut self, items: &[u32]) -> Result<bool, Break> {
        let rows = bound(self.batch, items);
        let empty = rows.first().map(|p| super::matching::empty(&p.compiled));
        let judged = send_many::judge(self.session, &rows).await;
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

    /// Those that may be about a row; the others are told that they found none.
    fn possible(&mut self, items: Vec<u32>) -> Vec<u32> {
        let bound = &self.batch.bound;
        let nothing = |item: &u32| bound.get(*item as usize).is_some_and(|p| p.nothing);
        let (nothing, possible): (Vec<u32>, Vec<u32>) = items.into_iter().partition(nothing);
        for item in nothing {
            let bound = self.batch.bound.get(item as usize);
            if let Some(done) = bound.map(|p| super::matching::empty(&p.compiled)) {
                self.done(item, done, Rung::Fused);
            }
        }
        possible
    }

    fn suits(&self, items: &[u32]) -> bool {
        let rows = bound(self.batch, items);
        rows.first().is_some_and(|first| {
            send_many::is_possible(&first.compiled, &self.session.server)
                && (first.compiled.action != Action::Update || send_many::is_uniform(&rows))
        })
    }

    /// Whether these are inserts that fail where a key is there.
    fn inserts(&self, items: &[u32]) -> bool {
        let first = items
            .first()
            .and_then(|item| self.batch.bound.get(*item as usize));
        first.is_some_and(|p| matches!(p.compiled.action, Action::Insert | Action::Ignore))
    }

    fn next_size(&self, items: &[u32]) -> usize {
        let next = items.get(..send_many::MOST_ROWS).unwrap_or(items);
        send_many::next_size(&bound(self.batch, next), &self.session.server)
    }
}

/// Ends the transaction, and with it a write whose row was not found again.
fn not_read_back(bound: &BoundWrite) -> Break {
    let refused = UnitFault {
        at: bound.write as usize,
        fault: named::not_found_again(&bound.compiled),
        before: Vec::new(),
    };
    Break::Overtaken(vec![(bound.unit, Verdict::Final(Err(refused)))])
}

/// What was found out for speed alone; `None` where the server refused to say it.
async fn guessed<T>(
    session: &mut Session,
    said: Result<Option<T>, Trouble>,
) -> Result<Option<T>, Break> {
    match said {
        Ok(said) => Ok(said),
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

/// What ends more than the statement.
fn check_scope(session: &Session, refusal: &Refusal) -> Result<(), Break> {
    let fault = || refusal.fault.clone();
    match refusal.scope {
        Scope::Transaction => Err(Break::Gone(fault())),
        Scope::Connection => Err(Break::Ended(fault())),
        Scope::Lock if session.server.timeout_ends_all => Err(Break::Gone(fault())),
        // The statement was killed: nobody's fault, and it would succeed.
        Scope::Statement if refusal.fault.class == FaultClass::Conflict => {
            Err(Break::Gone(fault()))
        }
        Scope::Statement | Scope::Lock => Ok(()),
    }
}

fn halves(mut piece: Piece) -> [Piece; 2] {
    let second = piece.items.split_off(piece.items.len() / 2);
    let second = Piece {
        items: second,
        ..piece
    };
    [second, piece]
}

/// The writes at these places.
fn bound<'b>(batch: &'b super::batch::Batch<'_>, items: &[u32]) -> Vec<&'b BoundWrite> {
    let bound = items
        .iter()
        .filter_map(|item| batch.bound.get(*item as usize));
    bound.collect()
}
