//! A connection, and the knowledge that it has gathered.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Tally, Verdict};
use windrow_pgwire::wire::{Broken, ServerError, Wire};

use super::answers::{AnswerReader, Answers};
use super::batch::Batch;
use super::behind::{Renewal, RenewalEnd};
use super::codes::{Findings, verdict_of_table};
use super::failure_rates::FailureRates;
use super::interrupt::Interrupt;
use super::place::Placing;
use super::prepare::Preparation;
use super::prepared::StatementKey;
use super::segment::Segment;
use super::sent::SentTransaction;
use super::settle::Settler;
use super::statements::Statements;
use super::timeouts::{KnownTimeout, Timeouts};
use super::trust::Trust;
use super::wariness::Wariness;
use crate::compiled::CompiledForm;
use crate::dialect::Dialect;
use crate::fault::with_error;
use crate::lane_catalog::LaneCatalog;
use crate::server::Server;

/// A connection and the knowledge it has gathered.
pub(crate) struct Connection {
    pub(super) wire: Wire,
    pub(super) dialect: &'static Dialect,
    pub(super) shared: Arc<Shared>,
    pub(super) purpose: Purpose,
    pub(super) statements: Statements,
    pub(super) failure_rates: FailureRates,
    pub(super) scratch: Vec<u8>,
    pub(super) usable: bool,
    /// True if a transaction has run in the session since it was new or reset.
    pub(super) used: bool,
    pub(super) timeouts: Timeouts,
    pub(super) wariness: Wariness,
    pub(super) interrupt: Arc<Interrupt>,
    /// The time at which the unit that runs alone arrived.
    pub(super) arrived: Option<Instant>,
    pub(super) renewal: Renewal,
}

/// Knowledge that the connections of a sink share.
pub(crate) struct Shared {
    /// Tables and statements.
    pub(crate) catalog: LaneCatalog,
    /// The statement timeout of the lane's clients.
    pub(crate) allowed: KnownTimeout,
}

impl Shared {
    pub(crate) fn new(catalog: LaneCatalog) -> Self {
        Self {
            catalog,
            allowed: KnownTimeout::default(),
        }
    }
}

impl Connection {
    /// `lock_wait`: the longest time for which batches wait for locks.
    pub(crate) fn new(
        (wire, dialect): (Wire, &'static Dialect),
        shared: Arc<Shared>,
        (purpose, timeouts): (Purpose, Timeouts),
        lock_wait: Duration,
    ) -> Self {
        Self {
            interrupt: Interrupt::of(&wire),
            wariness: Wariness::new(purpose, timeouts.of_batches(lock_wait)),
            timeouts,
            arrived: None,
            wire,
            dialect,
            shared,
            purpose,
            statements: Statements::default(),
            failure_rates: FailureRates::default(),
            scratch: Vec::new(),
            usable: true,
            used: false,
            renewal: Renewal::default(),
        }
    }

    /// Sets the SQL that a new session runs first.
    pub(crate) fn restoring(mut self, sql: impl Into<Box<str>>) -> Self {
        self.renewal.restore = sql.into();
        self
    }

    /// Sets the server that gives another connection.
    pub(crate) fn of_server(mut self, server: Arc<Server>) -> Self {
        self.renewal.server = Some(server);
        self
    }

    /// Prepares the statements that the segments need and the connection does not have yet. If the
    /// answers can be awaited together with those of the segments, the preparation is only
    /// appended. `may_defer`: nothing else will be sent before the segments.
    pub(super) async fn prepare(
        &mut self,
        batch: &Batch<'_>,
        todo: &[Segment],
        may_defer: bool,
        tally: &mut Tally,
    ) -> Result<(Trust, Option<Preparation>), Broken> {
        let (wire, prepared) = (&mut self.wire, &mut self.statements.prepared);
        let Some(mut preparation) = Preparation::begin(wire, prepared, batch, todo) else {
            return Ok((Trust::Good, None));
        };
        if may_defer && preparation.can_be_awaited_later() {
            preparation.assume(prepared);
            return Ok((Trust::Good, Some(preparation)));
        }
        preparation.answers(wire).await?;
        tally.round_trips += 1;
        Ok((preparation.end(prepared).trust, None))
    }

    /// Runs one round trip. Returns the answers that arrived, and whether the connection broke.
    /// `preparation`: what was appended before the transactions.
    pub(super) async fn answers_to(
        &mut self,
        (transactions, mut preparation): (&[SentTransaction], Option<&mut Preparation>),
        tally: &mut Tally,
    ) -> (Vec<Answers>, Result<(), Broken>) {
        let mut reader = AnswerReader::new(transactions);
        let before = preparation.as_ref().map_or(0, |sent| sent.syncs());
        let start = Instant::now();
        let mut ended = self
            .wire
            .exchange(before + transactions.len(), &mut |answer| match preparation
                .as_mut()
                .filter(|sent| sent.is_open())
            {
                Some(preparation) => preparation.take(answer),
                None => reader.take(answer),
            })
            .await;
        if let Err(broken) = &mut ended {
            broken.syncs_seen = broken.syncs_seen.saturating_sub(before);
        }
        tally.in_database += start.elapsed();
        tally.round_trips += 1;
        (reader.end(), ended)
    }

    /// Returns the reason to give up the batch: the client has cancelled, or its statement timeout
    /// is over.
    pub(super) fn given_up(&self) -> Option<Fault> {
        if self.interrupt.is_asked() {
            return Some(Fault::called_back());
        }
        let over = self.arrived.is_some_and(|at| self.timeouts.is_over(at));
        over.then(Fault::late)
    }

    /// Returns the verdict for the writes of a table whose request the server has refused, with the
    /// server's own message.
    pub(super) fn refused_verbatim(&self, error: ServerError) -> Verdict {
        let body = error.body.clone();
        let fault = with_error(Fault::from(error), &[], &body);
        verdict_of_table(fault, self.purpose)
    }

    /// Returns the parts that match writes with their tables.
    pub(super) fn placing(&mut self) -> Placing<'_> {
        Placing {
            wire: &mut self.wire,
            dialect: self.dialect,
            catalog: &self.shared.catalog,
            statements: &mut self.statements,
            purpose: self.purpose,
        }
    }

    /// Resets the session after unproven code, or replaces the connection. If no other one can be
    /// opened, the units without a verdict are reported as rolled back: they have not been sent.
    /// `is_reset`: the reset has already been sent.
    pub(super) async fn behind_unproven(
        &mut self,
        batch: &mut Batch<'_>,
        is_reset: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        self.statements.prepared.clear();
        self.usable = false;
        if batch.pending().is_empty() {
            return Ok(());
        }
        match self.renewal.renew(&mut self.wire, is_reset, tally).await? {
            RenewalEnd::Reset => {}
            RenewalEnd::Replaced(wire) => {
                self.interrupt.moved_to(&wire);
                self.wire = *wire;
                self.statements.session_is_new();
                self.used = false;
            }
            RenewalEnd::Refused(fault) => batch.conclude_rest(&Verdict::RolledBack(fault)),
        }
        Ok(())
    }

    /// Drops statements and descriptions that are no longer correct. Descriptions of changed tables
    /// are dropped later, before the batch is planned again.
    pub(super) fn learn(&mut self, batch: &Batch<'_>, findings: &Findings) {
        let prepared = &mut self.statements.prepared;
        for version in &findings.unguarded {
            prepared.fail(StatementKey::Guard(*version));
        }
        prepared.forget(|key| {
            matches!(key, StatementKey::Check(check) if findings.irrelevant.contains(&check.version))
        });
        if findings.statements_gone {
            prepared.clear();
        }
        self.usable &= !findings.leave;
        self.forget(batch, &findings.outdated, false);
    }

    /// Drops the descriptions of tables of these versions. `changed`: the tables differ from their
    /// descriptions; otherwise a further change might go unnoticed.
    pub(super) fn forget(&self, batch: &Batch<'_>, versions: &[u64], changed: bool) {
        let catalog = &self.shared.catalog;
        for compiled in &batch.shapes {
            if !versions.contains(&compiled.table.version) {
                continue;
            }
            match &compiled.form {
                // A changed table is read again anyway, and keeps its version if its description is
                // the same.
                CompiledForm::Row(_) if changed => {}
                CompiledForm::Row(_) => catalog.tables.forget(compiled.table.version),
                CompiledForm::Call(bound) => {
                    bound.statement().retire();
                    catalog.calls.retire(&compiled.table);
                }
            }
        }
    }

    pub(super) fn settler<'a, 'u>(
        &self,
        batch: &'a mut Batch<'u>,
        tally: &'a mut Tally,
        findings: &'a mut Findings,
    ) -> Settler<'a, 'u> {
        Settler {
            batch,
            purpose: self.purpose,
            tally,
            next: Vec::new(),
            findings,
            isolations: Vec::new(),
        }
    }
}

/// Returns the fault of a write that is too large for a protocol message.
pub(super) fn unwritable() -> Fault {
    Fault::new(
        FaultClass::Value,
        "22P02",
        "a value of this write cannot be sent to PostgreSQL: it is larger than 1 GiB, or the write has more than 65535 values",
    )
}
