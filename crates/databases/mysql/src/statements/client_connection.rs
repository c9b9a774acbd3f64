//! A lane's connection that executes statements in transactions, or each by itself.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use windrow_core::sink::Purpose;
use windrow_core::{Fault, SqlCall, Verdict};
use windrow_mysqlwire::Reply;

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_catalog::ClientCatalog;
use super::command::{execute, own_text};
use super::lane_interrupt::LaneInterrupt;
use super::lane_session::{LaneSession, LostConnection, success};
use super::prepared::PreparedKey;
use super::steps::{ClientStep, StepLimits};
use super::table_look::{GUARD_STATEMENTS, TableLook, guard};
use crate::executor::settle::TRUSTED;
use crate::fault::unknown;

/// The time for which statements do not wait for locks after one has met a lock.
const HURRY: Duration = Duration::from_secs(5);

/// The longest time that a statement may take behind one that met a lock.
const MAX_STALL: Duration = Duration::from_millis(50);

/// The command that checks that a connection works.
const PING: u8 = 0x0e;

/// The reason why a connection cannot be used any more. Units without a verdict were not written.
#[derive(Debug)]
pub(super) enum Stop {
    /// The connection is lost.
    Lost(Box<str>),
    /// The server ends the connection.
    Ended(Fault),
}

impl From<LostConnection> for Stop {
    fn from(lost: LostConnection) -> Self {
        Self::Lost(lost.0)
    }
}

/// A lane's connection that executes batches.
pub(super) struct ClientConnection {
    pub(super) session: LaneSession,
    pub(super) catalog: Arc<ClientCatalog>,
    pub(super) interrupt: Arc<LaneInterrupt>,
    purpose: Purpose,
    /// The time that a statement behind one that met a lock may take.
    lock_wait: Duration,
    /// True once statements of the transaction were cancelled because they met locks.
    pub(super) has_killed: bool,
    /// The time when a statement met another session's lock.
    met_lock: Option<Instant>,
    is_hurried: bool,
    /// The arrival of the unit that is executed next.
    pub(super) arrived: Option<Instant>,
    /// True once a statement ran whose table had changed: it may have left something behind.
    pub(super) is_spoiled: bool,
}

impl ClientConnection {
    /// Wraps a session that has executed nothing yet.
    pub(super) fn new(
        session: LaneSession,
        interrupt: Arc<LaneInterrupt>,
        catalog: Arc<ClientCatalog>,
        (purpose, lock_wait): (Purpose, Duration),
    ) -> Self {
        Self {
            session,
            catalog,
            interrupt,
            purpose,
            lock_wait,
            has_killed: false,
            met_lock: None,
            is_hurried: false,
            arrived: None,
            is_spoiled: false,
        }
    }

    /// Returns the limits of the server.
    pub(super) fn limits(&self) -> StepLimits {
        StepLimits {
            packet_bytes: self.session.packet_bytes,
            has_fixed_types: !self.session.is_mariadb,
        }
    }

    /// Checks that an idle connection still works: if it is lost now, no statement was under way.
    pub(super) async fn wake(&mut self) -> Result<(), Stop> {
        if !self.session.is_quiet().await {
            return Err(Stop::Lost("it was closed".into()));
        }
        self.set_lock_wait().await?;
        if self.session.heard.elapsed() >= TRUSTED {
            self.session.put(&[PING]).await?;
            self.session.send().await?;
            self.session.count_trip();
            self.session.reply().await?;
        }
        Ok(())
    }

    /// Sets the time that statements wait for locks. In MySQL, whose least timeout is a second, a
    /// lock that was met changes nothing.
    pub(super) async fn set_lock_wait(&mut self) -> Result<(), Stop> {
        let wait = match self.purpose {
            Purpose::Batches => {
                let met = self.met_lock.is_some_and(|at| at.elapsed() < HURRY);
                let hurries = met && self.session.is_mariadb;
                if self.is_hurried == hurries {
                    return Ok(());
                }
                self.is_hurried = hurries;
                if hurries { 0 } else { self.session.lock_wait }
            }
            Purpose::LockWait => {
                let waited = self.arrived.take().map_or(0, |at| at.elapsed().as_secs());
                if waited == 0 {
                    return Ok(());
                }
                self.session.lock_wait.saturating_sub(waited).max(1)
            }
        };
        let set = format!("SET SESSION innodb_lock_wait_timeout = {wait}");
        self.session.ask(&set).await?;
        Ok(())
    }

    /// Reads the next answer. After a statement that met a lock, all others that take long are
    /// cancelled: they were sent already, and each would wait for its own timeout.
    pub(super) async fn reply(&mut self, has_met_lock: bool) -> Result<Reply, Stop> {
        let mut reply = pin!(self.session.reply());
        if !has_met_lock {
            return Ok(reply.await?);
        }
        loop {
            match timeout(self.lock_wait.min(MAX_STALL), reply.as_mut()).await {
                Ok(reply) => return Ok(reply?),
                Err(_) if self.interrupt.kill().await.is_ok() => self.has_killed = true,
                Err(_) => return Ok(reply.await?),
            }
        }
    }

    /// Executes a statement that does nothing, which may meet a late request to cancel.
    pub(super) async fn absorb_kill(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.has_killed) {
            self.session.ask("DO 0").await?;
        }
        Ok(())
    }

    /// Undoes a transaction. The server warns if a table kept what was written: the table's engine
    /// has no transactions by now. All units that have no verdict are an unknown outcome then.
    pub(super) async fn roll_back(&mut self, batch: &mut ClientBatch<'_>) -> Result<(), Stop> {
        let reply = self.session.ask("ROLLBACK").await?;
        let ok = success(&reply).map_err(|refusal| Stop::Ended(refusal.fault))?;
        if ok.warning_count > 0 {
            let fault = unknown("a table's engine was changed");
            batch.conclude_rest(&Verdict::Final(Err(fault.into())));
        }
        Ok(())
    }

    /// Prepares the statements that are not prepared yet, in one round trip. Returns the errors of
    /// those that the server refuses, by their places.
    pub(super) async fn prepare(
        &mut self,
        batch: &ClientBatch<'_>,
        steps: &[ClientStep],
    ) -> Result<HashMap<usize, Bytes>, Stop> {
        let asked = self.put_prepares(batch, steps).await?;
        if asked.is_empty() {
            return Ok(HashMap::new());
        }
        self.session.send().await?;
        self.session.count_trip();
        let mut errors = HashMap::new();
        for (key, placeholders) in asked {
            match self.session.reply().await? {
                Reply::Prepared(statement) => {
                    let prepared = &mut self.session.prepared;
                    prepared.insert(key, statement.id, placeholders);
                }
                Reply::Error(error) => {
                    errors.insert(key, error);
                }
                Reply::Ok(_) | Reply::Rows(..) => {}
            }
        }
        for id in self.session.prepared.take_surplus() {
            self.session.close_statement(id).await?;
        }
        let error = |step: &ClientStep| errors.get(&step.prepared?).cloned();
        let refused = steps.iter().enumerate();
        Ok(refused
            .filter_map(|(at, step)| Some((at, error(step)?)))
            .collect())
    }

    /// Puts the preparation of each statement that is not prepared yet. Returns their keys, and the
    /// numbers of their placeholders.
    async fn put_prepares(
        &mut self,
        batch: &ClientBatch<'_>,
        steps: &[ClientStep],
    ) -> Result<Vec<(PreparedKey, usize)>, Stop> {
        let mut asked: Vec<(PreparedKey, usize)> = Vec::new();
        for step in steps {
            let first = step.units.first().and_then(|unit| batch.call(*unit));
            let (Some(key), Some(of)) = (step.prepared, first) else {
                continue;
            };
            let is_asked = asked.iter().any(|(known, _)| *known == key);
            if is_asked || self.session.prepared.get(&key).is_some() {
                continue;
            }
            let form = of.meaning.and_then(|meaning| meaning.rows.as_ref());
            let text = match form.filter(|_| key.rows > 0) {
                Some(form) => form.prepared_text(key.rows).into_bytes(),
                None => own_text(of.call).to_vec(),
            };
            self.session.put_prepare(&text).await?;
            let placeholders = of.call.arguments.iter().count() * step.units.len();
            asked.push((key, placeholders));
        }
        Ok(asked)
    }

    /// Puts the statement of a step, which is prepared if it has to be.
    pub(super) async fn put_statement(
        &mut self,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
    ) -> Result<(), Stop> {
        let of = step.units.iter().filter_map(|unit| batch.call(*unit));
        let calls: Vec<&SqlCall> = of.map(|of| of.call).collect();
        if let Some(key) = step.prepared {
            let id = self.session.prepared.get(&key);
            let missing = || Stop::Lost("a statement was not prepared".into());
            let content = execute(id.ok_or_else(missing)?, &calls);
            return Ok(self.session.put(&content).await?);
        }
        let first = step.units.first().and_then(|unit| batch.call(*unit));
        let form = first.and_then(|of| of.meaning?.rows.as_ref());
        match (calls.as_slice(), form) {
            ([call], _) => self.session.put_query(own_text(call)).await?,
            (calls, Some(form)) => self.session.put_query(&form.text(calls)).await?,
            _ => return Err(Stop::Lost("rows have no form".into())),
        }
        Ok(())
    }

    /// Puts the questions that show if tables have changed.
    pub(super) async fn put_guards(&mut self, tables: &[Arc<TableLook>]) -> Result<(), Stop> {
        for table in tables {
            for question in guard(&table.name) {
                self.session.put_query(question.as_bytes()).await?;
            }
        }
        Ok(())
    }

    /// Returns true if a lock timeout has rolled back the whole transaction.
    pub(super) fn has_lost_all(&self, waiting: &[(u32, Fault)]) -> bool {
        !waiting.is_empty() && self.session.timeout_ends_all
    }

    /// Concludes units that met another session's lock.
    pub(super) fn conclude_waiting(
        &mut self,
        batch: &mut ClientBatch<'_>,
        waiting: Vec<(u32, Fault)>,
    ) {
        for (unit, fault) in waiting {
            let verdict = self.waits(fault);
            batch.conclude(unit, verdict);
        }
    }

    /// Returns true if statements met locks lately, and the server's own timeout is too long.
    pub(super) fn hurries(&self) -> bool {
        !self.session.is_mariadb && self.met_lock.is_some_and(|at| at.elapsed() < HURRY)
    }

    /// Notes that a statement met another session's lock.
    pub(super) fn note_lock(&mut self) {
        self.met_lock = Some(Instant::now());
    }

    fn waits(&self, fault: Fault) -> Verdict {
        match self.purpose {
            Purpose::Batches => Verdict::WaitsForLock(fault),
            Purpose::LockWait => Verdict::Final(Err(fault.into())),
        }
    }

    /// Puts a statement and the questions that follow it. `count`: the statement that counts it.
    pub(super) async fn put_step(
        &mut self,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
        count: Option<&[u8]>,
    ) -> Result<(), Stop> {
        if step.asks_id {
            self.session.put_query(b"SELECT LAST_INSERT_ID(0)").await?;
        }
        self.put_statement(batch, step).await?;
        if step.shows_warnings {
            self.session.put_query(b"SHOW WARNINGS").await?;
        }
        if let Some(count) = count {
            self.session.put_query(count).await?;
        }
        if step.asks_id {
            self.session.put_query(b"SELECT LAST_INSERT_ID()").await?;
        }
        Ok(())
    }

    /// Reads the answers to [`ClientConnection::put_step`].
    pub(super) async fn step_answer(
        &mut self,
        step: &ClientStep,
        is_counted: bool,
        has_met_lock: bool,
    ) -> Result<StepAnswer, Stop> {
        if step.asks_id {
            self.reply(has_met_lock).await?;
        }
        let reply = self.reply(has_met_lock).await?;
        let warnings = match step.shows_warnings {
            true => Some(self.reply(has_met_lock).await?),
            false => None,
        };
        if is_counted {
            self.reply(has_met_lock).await?;
        }
        let id = match step.asks_id {
            true => Some(self.reply(has_met_lock).await?),
            false => None,
        };
        Ok(StepAnswer {
            reply,
            warnings,
            id,
        })
    }

    /// Retires the statements of tables that have changed.
    pub(super) fn retire(&self, tables: &[Arc<TableLook>]) {
        for table in tables {
            self.catalog.retire_table(&table.name);
        }
    }

    /// Reads the answers to [`ClientConnection::put_guards`]. Returns the tables that have changed.
    pub(super) async fn stale(
        &mut self,
        tables: &[Arc<TableLook>],
    ) -> Result<Vec<Arc<TableLook>>, Stop> {
        let mut stale = Vec::new();
        for table in tables {
            let mut replies = Vec::with_capacity(GUARD_STATEMENTS);
            for _ in 0..GUARD_STATEMENTS {
                replies.push(self.session.reply().await?);
            }
            if !table.check(&replies) {
                stale.push(Arc::clone(table));
            }
        }
        Ok(stale)
    }
}
