//! One connection that moves rows.

use async_trait::async_trait;
use windrow_core::bookkeeping::OwnAnswer;
use windrow_core::moves::{
    Destination, Mover, Part, PickMost, Picked, Refused, Rejected, Swept, TableFacts,
};
use windrow_core::{Fault, MovePlan, TableName};
use windrow_pgwire::wire::Wire;

use super::facts::Facts;
use super::open;
use super::text::Texts;
use super::unreadable::is_unreadable;
use crate::own_tables::cells;
use crate::talk::{Ask, Failed, number, talk, text};

/// Begins a transaction whose statements each see what other sessions have committed: the
/// transaction relies on its locks, not on a snapshot.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A connection that moves rows, with transactions as [`Mover`] describes them.
pub(super) struct PgMover {
    pub(super) wire: Wire,
    pub(super) plan: MovePlan,
    pub(super) texts: Texts,
    /// The source's number.
    source: String,
    /// Texts that identify each picked row.
    pub(super) handles: Vec<Box<[String]>>,
    within: bool,
    /// True if there is a savepoint that is not released yet.
    saved: bool,
    /// True if a statement failed and was not undone, so that nothing can be committed.
    pub(super) spoiled: bool,
}

impl PgMover {
    pub(super) fn new(wire: Wire, plan: &MovePlan, facts: &Facts, texts: Texts) -> Self {
        Self {
            wire,
            plan: plan.clone(),
            texts,
            source: facts.oid.clone(),
            handles: Vec::new(),
            within: false,
            saved: false,
            spoiled: false,
        }
    }

    pub(super) async fn ask(&mut self, ask: Ask) -> Result<u64, Failed> {
        let mut first = 0;
        talk(&mut self.wire, &[ask], false, &mut |_, row| {
            first = number(&row, 0);
        })
        .await?;
        Ok(first)
    }

    /// Returns the fault of a row that was not deleted from the source.
    pub(super) fn stays(&self) -> Fault {
        let source = &self.plan.source;
        Fault::new(
            windrow_core::FaultClass::Other,
            "09000",
            format!(
                "rows cannot be moved out of {source}: a trigger, a rule or a policy of it keeps them from being deleted"
            ),
        )
    }

    /// Appends a savepoint, so that later statements can be undone without the whole transaction.
    pub(super) fn save(&mut self, asks: &mut Vec<Ask>) {
        if std::mem::replace(&mut self.saved, true) {
            asks.push(Ask::of("RELEASE SAVEPOINT windrow"));
        }
        asks.push(Ask::of("SAVEPOINT windrow"));
    }

    /// Undoes everything since the savepoint. If that fails, the transaction can no longer be
    /// committed.
    pub(super) async fn undo(&mut self) {
        let undone = self.ask(Ask::of("ROLLBACK TO SAVEPOINT windrow")).await;
        self.spoiled |= undone.is_err();
    }

    /// Adds the arrays that identify rows.
    pub(super) fn named(&self, mut ask: Ask, rows: &(impl Iterator<Item = usize> + Clone)) -> Ask {
        for place in 0..self.texts.handles() {
            let handle = |row: usize| Some(self.handles.get(row)?.get(place)?.as_str());
            ask = ask.texts(rows.clone().map(handle));
        }
        ask
    }

    /// Asks again why a row is refused, if the server could not send its error because the message
    /// has no form in UTF-8. This time the message comes in the database's own encoding, and bytes
    /// that are not UTF-8 are replaced in it.
    pub(super) async fn in_own_words(&mut self, parts: &[Part<'_>], refused: Refused) -> Refused {
        let ([part], true) = (parts, is_unreadable(&refused.fault)) else {
            return refused;
        };
        let text = self.texts.transfer(part.to);
        let encoding = self.wire.parameter("server_encoding").unwrap_or_default();
        // SQL_ASCII passes all bytes on. In another encoding, characters of the statement beyond
        // ASCII would be misread.
        let is_readable = encoding == "SQL_ASCII" || text.is_ascii();
        if part.rows.len() != 1 || encoding.is_empty() || !is_readable {
            return refused;
        }
        let own = Ask::of(format!("SET LOCAL client_encoding = '{encoding}'"));
        let mut asks = Vec::new();
        self.save(&mut asks);
        asks.push(own);
        asks.push(self.named(Ask::of(text), &part.rows.iter().copied()));
        asks.push(Ask::of("SET CONSTRAINTS ALL IMMEDIATE"));
        let answered = talk(&mut self.wire, &asks, false, &mut |_, _| {}).await;
        self.undo().await;
        match answered {
            Ok(()) => refused,
            Err(failed) => Refused {
                at: 0,
                fault: failed.fault,
            },
        }
    }
}

#[async_trait]
impl Mover for PgMover {
    async fn sweep(&mut self, rows: usize, to: &Destination) -> Result<Swept, Fault> {
        let asks = [Ask::of(self.texts.sweep(rows, to))];
        let mut swept = Swept::default();
        talk(&mut self.wire, &asks, true, &mut |_, row| {
            swept.rows = number(&row, 0);
            swept.more = number(&row, 1) > swept.rows;
        })
        .await?;
        Ok(swept)
    }

    async fn pick(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault> {
        self.handles.clear();
        (self.saved, self.spoiled) = (false, false);
        let mut picked = match self.plan.across {
            true => self.pick_values(most).await,
            false => self.pick_names(most.rows).await,
        };
        self.within = true;
        if picked.as_ref().is_err_and(is_unreadable) {
            self.rollback().await?;
            (self.saved, self.within) = (false, true);
            picked = self.pick_each(most).await;
        }
        match picked {
            Ok(picked) if !picked.is_empty() => Ok(picked),
            nothing => {
                self.rollback().await?;
                nothing
            }
        }
    }

    async fn open(&mut self, table: &TableName, create: bool) -> Result<Destination, Fault> {
        let mut asks = Vec::new();
        match (self.within, create) {
            (true, _) => self.save(&mut asks),
            (false, true) => asks.push(Ask::of(BEGIN)),
            // The destination is only looked up.
            (false, false) => {}
        }
        if !asks.is_empty() {
            talk(&mut self.wire, &asks, false, &mut |_, _| {}).await?;
        }
        let source = (&self.plan.source, &*self.source, &*self.plan.columns);
        let opened = open::open(&mut self.wire, &self.texts, source, table, create).await;
        if self.within && opened.is_err() {
            self.undo().await;
        }
        if !self.within && create {
            let end = if opened.is_ok() { "COMMIT" } else { "ROLLBACK" };
            talk(&mut self.wire, &[Ask::of(end)], true, &mut |_, _| {}).await?;
        }
        opened
    }

    async fn transfer(&mut self, parts: &[Part<'_>]) -> Result<(), Refused> {
        let mut asks = Vec::with_capacity(parts.len() + 3);
        self.save(&mut asks);
        let before = asks.len();
        for part in parts {
            let ask = Ask::of(self.texts.transfer(part.to));
            asks.push(self.named(ask, &part.rows.iter().copied()));
        }
        asks.push(Ask::of("SET CONSTRAINTS ALL IMMEDIATE"));
        let mut counts = vec![(0, 0); parts.len()];
        let answered = talk(&mut self.wire, &asks, false, &mut |at, row| {
            let place = at.checked_sub(before);
            if let Some(slot) = place.and_then(|place| counts.get_mut(place)) {
                *slot = (number(&row, 0), number(&row, 1));
            }
        })
        .await;
        let refused = match answered {
            Ok(()) => short(self, parts, &counts),
            Err(failed) => Some(Refused {
                // Constraints that are deferred to the commit are checked after the last part.
                at: failed
                    .at
                    .saturating_sub(before)
                    .min(parts.len().saturating_sub(1)),
                fault: failed.fault,
            }),
        };
        match refused {
            None => Ok(()),
            Some(refused) => {
                self.undo().await;
                Err(self.in_own_words(parts, refused).await)
            }
        }
    }

    async fn delete(&mut self, rows: &[usize]) -> Result<(), Fault> {
        let ask = self.named(Ask::of(self.texts.delete()), &rows.iter().copied());
        let deleted = self.ask(ask).await;
        let all = rows.len() as u64;
        // Otherwise nothing can be committed.
        self.spoiled |= !deleted.as_ref().is_ok_and(|deleted| *deleted == all);
        match deleted? == all {
            true => Ok(()),
            false => Err(self.stays()),
        }
    }

    async fn reject(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault> {
        self.put_aside(rows).await
    }

    async fn run(&mut self, sql: &str) -> Result<OwnAnswer, Fault> {
        let mut answer = OwnAnswer::default();
        let ran = talk(&mut self.wire, &[Ask::of(sql)], false, &mut |_, row| {
            answer.rows.push(cells(&row));
        })
        .await;
        self.spoiled |= ran.is_err();
        ran?;
        Ok(answer)
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        if self.spoiled {
            self.rollback().await?;
            return Err(Fault::internal(
                "a batch was to be committed that had failed",
            ));
        }
        self.within = false;
        let asks = [Ask::of("COMMIT")];
        Ok(talk(&mut self.wire, &asks, true, &mut |_, _| {}).await?)
    }

    async fn rollback(&mut self) -> Result<(), Fault> {
        if std::mem::take(&mut self.within) {
            self.ask(Ask::of("ROLLBACK")).await?;
        }
        Ok(())
    }

    async fn left(&mut self) -> Result<bool, Fault> {
        let mut left = false;
        let asks = [Ask::of(self.texts.left())];
        talk(&mut self.wire, &asks, false, &mut |_, row| {
            left = text(&row, 0).as_deref() == Some("t");
        })
        .await?;
        Ok(left)
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}

/// Returns the first part of which fewer rows were deleted or inserted than the part has.
fn short(mover: &PgMover, parts: &[Part<'_>], counts: &[(u64, u64)]) -> Option<Refused> {
    let mut answered = parts.iter().zip(counts).enumerate();
    answered.find_map(|(at, (part, (deleted, inserted)))| {
        let rows = part.rows.len() as u64;
        let fault = match (*deleted == rows, *inserted == rows) {
            (true, true) => return None,
            (true, false) => TableFacts::left_out(&part.to.table),
            (false, _) => mover.stays(),
        };
        Some(Refused { at, fault })
    })
}
