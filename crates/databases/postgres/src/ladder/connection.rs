//! A connection, and what it has learned.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Shape, Tally, Verdict};
use windrow_pgwire::wire::{Broken, ServerError, Wire};
use windrow_proof::Trusted;

use super::answers::{AnswerReader, Answers};
use super::batch::Batch;
use super::calls::CompiledCalls;
use super::failure_rates::FailureRates;
use super::form::Compiled;
use super::interrupt::Interrupt;
use super::patience::{self, Patience};
use super::prepare::{Trust, prepare};
use super::prepared::Prepared;
use super::segment::Segment;
use super::send::SentTransaction;
use super::settle::Settler;
use super::wariness::Wariness;
use crate::calls::CallCatalog;
use crate::catalog::cache::Catalog;
use crate::dialect::Dialect;
use crate::fault::with_error;
use crate::server::Server;

/// A connection and what it has learned.
pub(crate) struct Connection {
    pub(super) wire: Wire,
    pub(super) dialect: &'static Dialect,
    pub(super) shared: Arc<Shared>,
    pub(super) purpose: Purpose,
    pub(super) creates: bool,
    pub(super) prepared: Prepared,
    pub(super) compiled: HashMap<Arc<Shape>, Arc<Compiled>>,
    /// What the columns of tables with functions of somebody's own were when these ran here last,
    /// by the table's number.
    pub(super) planned: HashMap<u32, Box<str>>,
    pub(super) ids: u64,
    pub(super) calls: CompiledCalls,
    pub(super) failure_rates: FailureRates,
    pub(super) scratch: Vec<u8>,
    pub(super) usable: bool,
    /// Something was written since it was new.
    pub(super) used: bool,
    pub(super) patience: Patience,
    pub(super) wariness: Wariness,
    pub(super) interrupt: Arc<Interrupt>,
    /// When the unit that runs alone arrived.
    pub(super) arrived: Option<Instant>,
    /// What a new session of this kind runs first.
    pub(super) restore: Box<str>,
    /// Where another connection comes from, once this one is not to be used any more.
    pub(super) server: Option<Arc<Server>>,
    /// Whether code of the database could make up settings, as far as this batch has asked.
    pub(super) makes_up: Option<bool>,
}

/// What the connections of a sink know together.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Tables, for writes.
    pub(crate) catalog: Catalog,
    /// Tables and statements, for SQL calls.
    pub(crate) call_catalog: CallCatalog,
    /// How long the lane's clients allow a statement to take.
    pub(crate) allowed: patience::Known,
    /// Functions that the operator answers for.
    pub(crate) trusted: Trusted,
}

impl Shared {
    /// `functions`: those that the operator answers for, as `schema.name`.
    pub(crate) fn trusting(functions: &[String]) -> Self {
        Self {
            trusted: functions.iter().map(String::as_str).collect(),
            ..Self::default()
        }
    }
}

impl Connection {
    /// `creates`: tables and columns that are not there are made. `lock_wait`: how long batches
    /// wait for locks.
    pub(crate) fn new(
        (wire, dialect): (Wire, &'static Dialect),
        shared: Arc<Shared>,
        (purpose, patience): (Purpose, Patience),
        creates: bool,
        lock_wait: Duration,
    ) -> Self {
        Self {
            interrupt: Interrupt::of(&wire),
            wariness: Wariness::new(purpose, patience.of_batches(lock_wait)),
            patience,
            arrived: None,
            wire,
            dialect,
            shared,
            purpose,
            creates,
            prepared: Prepared::default(),
            compiled: HashMap::new(),
            planned: HashMap::new(),
            ids: 0,
            calls: CompiledCalls::default(),
            failure_rates: FailureRates::default(),
            scratch: Vec::new(),
            usable: true,
            used: false,
            restore: Box::default(),
            server: None,
            makes_up: None,
        }
    }

    /// The same, with what a new session runs first.
    pub(crate) fn restoring(mut self, sql: impl Into<Box<str>>) -> Self {
        self.restore = sql.into();
        self
    }

    /// The same, with where another connection comes from.
    pub(crate) fn of_server(mut self, server: Arc<Server>) -> Self {
        self.server = Some(server);
        self
    }

    /// Prepares what the segments need and the connection does not have yet.
    pub(super) async fn prepare(
        &mut self,
        batch: &Batch<'_>,
        todo: &[Segment],
        tally: &mut Tally,
    ) -> Result<Trust, Broken> {
        let (trust, asked) = prepare(&mut self.wire, &mut self.prepared, batch, todo).await?;
        tally.round_trips += u32::from(asked);
        Ok(trust)
    }

    /// One round trip: the answers, as far as they came, and whether the connection broke.
    pub(super) async fn answers_to(
        &mut self,
        transactions: &[SentTransaction],
        tally: &mut Tally,
    ) -> (Vec<Answers>, Result<(), Broken>) {
        let mut reader = AnswerReader::new(transactions);
        let start = Instant::now();
        let ended = self
            .wire
            .exchange(transactions.len(), &mut |answer| reader.take(answer))
            .await;
        tally.in_database += start.elapsed();
        tally.round_trips += 1;
        (reader.end(), ended)
    }

    /// Why a batch is not to go on: its client has asked for that, or does not allow it to take
    /// longer.
    pub(super) fn given_up(&self) -> Option<Fault> {
        if self.interrupt.is_asked() {
            return Some(Fault::called_back());
        }
        let over = self.arrived.is_some_and(|at| self.patience.is_over(at));
        over.then(Fault::late)
    }

    /// The same as [`Connection::refused`], in the server's own message.
    pub(super) fn refused_verbatim(&self, error: ServerError) -> Verdict {
        let body = error.body.clone();
        self.refused(with_error(Fault::from(error), &[], &body))
    }

    /// What the writes of a table are told that cannot be looked at.
    pub(super) fn refused(&self, fault: Fault) -> Verdict {
        let locked = fault.code == "55P03";
        if locked && self.purpose == Purpose::Batches {
            Verdict::Alone(fault)
        } else if fault.class.may_retry() && !locked {
            Verdict::Again(fault)
        } else {
            Verdict::Told(Err(fault.into()))
        }
    }

    pub(super) fn settler<'a, 'u>(
        &self,
        batch: &'a mut Batch<'u>,
        tally: &'a mut Tally,
        burst: usize,
    ) -> Settler<'a, 'u> {
        Settler {
            batch,
            purpose: self.purpose,
            tally,
            next: Vec::new(),
            stale: false,
            changed: Vec::new(),
            outdated: Vec::new(),
            unguarded: Vec::new(),
            statements_gone: false,
            missed: false,
            leave: false,
            burst,
            care: None,
        }
    }
}

/// What a write is told that no message can hold.
pub(super) fn unwritable() -> Fault {
    Fault::new(
        FaultClass::Value,
        "22P02",
        "a value of this write cannot be sent to PostgreSQL: it is larger than 1 GiB, or the write has more than 65535 values",
    )
}
