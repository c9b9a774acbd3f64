//! Executes the batches of a lane. A unit by itself commits by itself in one round trip; several
//! are one transaction. Called by the lane; it never holds units back.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, timeout};
use windrow_core::sink::Purpose;
use windrow_core::{Canceller, Executor, Fault, Report, Rung, SqlCall, Tally, Unit, Verdict};
use windrow_mysqlwire::Reply;
use windrow_mysqlwire::answer::command;

use super::answers::StepAnswer;
use super::attempt::{Attempted, attempt};
use super::client_batch::ClientBatch;
use super::client_catalog::ClientCatalog;
use super::command::{execute, is_prepared, own_text};
use super::lane_interrupt::LaneInterrupt;
use super::lane_session::{LaneSession, LostConnection, success};
use super::meaning::Generates;
use super::steps::{ClientStep, StepLimits, single, steps};
use super::table_look::{TableLook, guard};
use crate::executor::settle::TRUSTED;
use crate::fault::{Refusal, Scope, unavailable, unknown};

/// Attempts to commit units together. After that each is executed by itself.
const MAX_ATTEMPTS: usize = 6;

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
    interrupt: Arc<LaneInterrupt>,
    purpose: Purpose,
    /// The time that a statement behind one that met a lock may take.
    lock_wait: Duration,
    /// True once statements of the transaction were cancelled because they met locks.
    pub(super) has_killed: bool,
    /// The time when a statement met another session's lock.
    met_lock: Option<Instant>,
    is_hurried: bool,
    /// The arrival of the unit that is executed next.
    arrived: Option<Instant>,
    /// True once a statement ran whose table had changed: it may have left something behind.
    is_spoiled: bool,
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

    fn limits(&self) -> StepLimits {
        StepLimits {
            packet_bytes: self.session.packet_bytes,
            has_fixed_types: !self.session.is_mariadb,
        }
    }

    async fn drive(&mut self, batch: &mut ClientBatch<'_>, tally: &mut Tally) -> Result<(), Stop> {
        self.wake().await?;
        let mut singles = HashSet::new();
        for round in 0..MAX_ATTEMPTS {
            let open = batch.open_units();
            if open.len() <= 1 || open.iter().any(|unit| batch.is_retired(*unit)) {
                break;
            }
            let steps = steps(batch, &open, &singles, self.limits());
            match attempt(self, batch, &steps, round > 0, tally).await? {
                Attempted::Committed => return Ok(()),
                Attempted::RolledBack { singles: more } => singles.extend(more),
            }
        }
        for unit in batch.open_units() {
            // A unit that must run again concludes its followers.
            if batch.open_units().contains(&unit) {
                self.lone(batch, unit, tally).await?;
            }
        }
        Ok(())
    }

    /// Checks that an idle connection still works: if it is lost now, no statement was under way.
    async fn wake(&mut self) -> Result<(), Stop> {
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
    async fn set_lock_wait(&mut self) -> Result<(), Stop> {
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

    /// Begins a transaction. `BEGIN` would not do: if the server ends the transaction at a deadlock,
    /// the statements behind it would commit by themselves.
    pub(super) async fn begin(&mut self) -> Result<(), Stop> {
        self.set_lock_wait().await?;
        if self.session.has_autocommit {
            let reply = self.session.ask("SET autocommit = 0").await?;
            if let Err(refusal) = success(&reply) {
                return Err(Stop::Ended(refusal.fault));
            }
        }
        Ok(())
    }

    /// Reads the next answer. After a statement that met a lock, all others that take long are
    /// cancelled: they were sent already, and each would wait for its own timeout.
    pub(super) async fn reply(&mut self, has_met_lock: bool) -> Result<Reply, Stop> {
        let mut reply = pin!(self.session.reply());
        while has_met_lock {
            match timeout(self.lock_wait.min(MAX_STALL), reply.as_mut()).await {
                Ok(reply) => return Ok(reply?),
                Err(_) => {
                    self.has_killed = true;
                    if self.interrupt.kill().await.is_err() {
                        break;
                    }
                }
            }
        }
        Ok(reply.await?)
    }

    /// Executes a statement that does nothing, which may meet a late request to cancel.
    pub(super) async fn absorb_kill(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.has_killed) {
            self.session.ask("DO 0").await?;
        }
        Ok(())
    }

    /// Undoes a transaction.
    pub(super) async fn roll_back(&mut self) -> Result<(), Stop> {
        let reply = self.session.ask("ROLLBACK").await?;
        success(&reply).map_err(|refusal| Stop::Ended(refusal.fault))?;
        Ok(())
    }

    /// Prepares the statements that are not prepared yet, in one round trip. Returns the errors of
    /// those that the server refuses, by their places.
    pub(super) async fn prepare(
        &mut self,
        batch: &ClientBatch<'_>,
        steps: &[ClientStep],
    ) -> Result<HashMap<usize, Bytes>, Stop> {
        let mut asked = Vec::new();
        let mut refused = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            let Some(key) = step.prepared else { continue };
            let first = step.units.first().and_then(|unit| batch.call(*unit));
            let (Some(of), None) = (first, self.session.prepared.get(&key)) else {
                continue;
            };
            let mut content = vec![command::STMT_PREPARE];
            let form = of.meaning.and_then(|meaning| meaning.rows.as_ref());
            match form.filter(|_| key.rows > 0) {
                Some(form) => content.extend_from_slice(form.prepared_text(key.rows).as_bytes()),
                None => content.extend_from_slice(own_text(of.call)),
            }
            let placeholders = of.call.arguments.iter().count() * step.units.len();
            if !asked.iter().any(|(_, known, _)| *known == key) {
                self.session.put(&content).await?;
                asked.push((at, key, placeholders));
            }
        }
        if asked.is_empty() {
            return Ok(refused);
        }
        self.session.send().await?;
        self.session.count_trip();
        let mut errors = HashMap::new();
        for (_, key, placeholders) in asked {
            match self.session.reply().await? {
                Reply::Prepared(statement) => {
                    self.session
                        .prepared
                        .insert(key, statement.id, placeholders);
                }
                Reply::Error(error) => {
                    errors.insert(key, error);
                }
                Reply::Ok(_) | Reply::Rows(..) => {}
            }
        }
        for id in self.session.prepared.take_surplus() {
            let mut content = vec![command::STMT_CLOSE];
            content.extend_from_slice(&id.to_le_bytes());
            self.session.put(&content).await?;
        }
        for (at, step) in steps.iter().enumerate() {
            if let Some(error) = step.prepared.and_then(|key| errors.get(&key)) {
                refused.insert(at, error.clone());
            }
        }
        Ok(refused)
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

    /// Executes a unit by itself: it commits by itself.
    async fn lone(
        &mut self,
        batch: &mut ClientBatch<'_>,
        unit: u32,
        tally: &mut Tally,
    ) -> Result<(), Stop> {
        let limits = self.limits();
        let Some(of) = batch.call(unit) else {
            return Ok(());
        };
        let mut step = single(&of, unit, limits);
        self.is_spoiled |= of.meaning.is_none();
        let generates = of
            .meaning
            .map_or(Generates::Unknown, |m| m.generates(of.call));
        let meaning = of.meaning.cloned();
        let table = meaning.as_ref().map(|meaning| &meaning.table);
        let tables: Vec<_> = table
            .filter(|t| !t.is_trusted())
            .cloned()
            .into_iter()
            .collect();
        // Later statements would hide the warnings.
        step.shows_warnings |= !tables.is_empty() || step.asks_id;
        if is_prepared(of.call) {
            let refused = self.prepare(batch, std::slice::from_ref(&step)).await?;
            if let Some(error) = refused.into_values().next() {
                let refusal = crate::fault::refusal_of(&error);
                return self.refused(batch, unit, refusal).await;
            }
        }
        tally.add(
            if batch.len() == 1 {
                Rung::Solo
            } else {
                Rung::Isolated
            },
            1,
        );
        let answered = self.lone_answer(batch, &step, &tables).await;
        let mut answer = match answered {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                let why = Fault::unavailable("the server refused SET autocommit");
                batch.conclude(unit, Verdict::RolledBack(why));
                return Ok(());
            }
            // The server may have executed the statement.
            Err(Stop::Lost(why)) => {
                batch.conclude(unit, Verdict::Final(Err(unknown(&why).into())));
                self.session.give_up();
                return Err(Stop::Lost(why));
            }
            Err(ended) => return Err(ended),
        };
        if let Err(refusal) = success(&answer.reply) {
            return self.refused(batch, unit, *refusal).await;
        }
        tally.commits += 1;
        let has_warned = success(&answer.reply).is_ok_and(|ok| ok.warning_count > 0);
        if let Some(meaning) = &meaning {
            meaning.note_warnings(has_warned);
        }
        if has_warned && answer.warnings.is_none() {
            // If the connection is lost now, the warnings' texts are lost with it.
            let shown = self.session.ask("SHOW WARNINGS").await;
            let none = Reply::Ok(Default::default());
            answer.warnings = Some(shown.unwrap_or(none));
        }
        if let Some(done) = answer.single(generates) {
            batch.finish(unit, Ok(done));
        }
        Ok(())
    }

    /// Sends a statement that commits by itself, and reads its answers. Returns `None` if the
    /// statement did not commit.
    async fn lone_answer(
        &mut self,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
        tables: &[Arc<TableLook>],
    ) -> Result<Option<StepAnswer>, Stop> {
        let switches = !self.session.has_autocommit;
        if switches {
            self.session.put_query(b"SET autocommit = 1").await?;
        }
        self.put_step(batch, step).await?;
        self.put_guards(tables).await?;
        self.session.send().await?;
        self.session.count_trip();
        let mut is_on = true;
        if switches {
            is_on = success(&self.session.reply().await?).is_ok();
        }
        let answer = self.step_answer(step, false).await?;
        for table in self.stale(tables).await? {
            self.catalog.retire_table(&table.name);
        }
        if !is_on {
            self.roll_back().await?;
            return Ok(None);
        }
        Ok(Some(answer))
    }

    /// Concludes a unit whose statement was refused: nothing was written.
    async fn refused(
        &mut self,
        batch: &mut ClientBatch<'_>,
        unit: u32,
        refusal: Refusal,
    ) -> Result<(), Stop> {
        match refusal.scope {
            Scope::Connection => return Err(Stop::Ended(refusal.fault)),
            Scope::Transaction => batch.conclude(unit, Verdict::RolledBack(refusal.fault)),
            Scope::Lock => {
                self.note_lock();
                self.conclude_waiting(batch, vec![(unit, refusal.fault)]);
            }
            Scope::Statement => batch.finish(unit, Err(refusal.fault)),
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for ClientConnection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = ClientBatch::new(units, &self.catalog);
        let mut tally = Tally::default();
        self.session.prepared.begin();
        // Units without a verdict were not committed.
        match self.drive(&mut batch, &mut tally).await {
            Ok(()) => {}
            Err(Stop::Lost(why)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(unavailable(&why)));
            }
            Err(Stop::Ended(fault)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(fault));
            }
        }
        let defect = Verdict::Final(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        self.session.settle(&mut tally);
        let usable = self.session.is_usable() && !self.interrupt.was_asked() && !self.is_spoiled;
        Report {
            verdicts: batch.into_verdicts(),
            tally,
            usable,
        }
    }

    fn arrived(&mut self, at: Instant) {
        self.arrived = Some(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::clone(&self.interrupt) as Arc<dyn Canceller>)
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}
