//! One connection that executes batches.

mod behind;
mod careful;
mod place;
mod wariness;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Canceller, Executor, Fault, FaultClass, Report, Shape, Tally, Unit, Verdict};
use windrow_proof::Trusted;

use self::careful::Ended;
use self::wariness::Wariness;
use super::absorb::Absorber;
use super::batch::Batch;
use super::calls::{Forms, Lexicon, with_error};
use super::care::Care;
use super::catalog::Catalog;
use super::compiled::Compiled;
use super::create;
use super::dialect::Dialect;
use super::heat::Heat;
use super::interrupt::Interrupt;
use super::listen::{Heard, Listener};
use super::patience::{self, Patience};
use super::prepare::{Trust, prepare};
use super::prepared::{Prepared, StatementKey};
use super::segment::{Mode, Segment};
use super::send::{FORGET, Flown, Sender};
use super::server::Server;
use windrow_pgwire::wire::{Broken, ServerError, Wire};

/// How often a batch begins anew because a table was changed meanwhile.
const MOST_CHANGES: usize = 8;

/// A connection and what it has learned.
pub(super) struct Connection {
    wire: Wire,
    dialect: &'static Dialect,
    shared: Arc<Shared>,
    purpose: Purpose,
    creates: bool,
    prepared: Prepared,
    compiled: HashMap<Arc<Shape>, Arc<Compiled>>,
    /// What the columns of tables with functions of somebody's own were when these ran here last,
    /// by the table's number.
    planned: HashMap<u32, Box<str>>,
    ids: u64,
    forms: Forms,
    heat: Heat,
    scratch: Vec<u8>,
    usable: bool,
    /// Something was written since it was new.
    used: bool,
    patience: Patience,
    wariness: Wariness,
    interrupt: Arc<Interrupt>,
    /// When the unit that runs alone arrived.
    arrived: Option<Instant>,
    /// What a new session of this kind runs first.
    restore: Box<str>,
    /// Where another connection comes from, once this one is not to be used any more.
    server: Option<Arc<Server>>,
    /// Whether code of the database could make up settings, as far as this batch has asked.
    makes_up: Option<bool>,
}

/// What the connections of a sink know together.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Tables, for writes.
    pub(super) catalog: Catalog,
    /// Tables and statements, for SQL calls.
    pub(super) lexicon: Lexicon,
    /// How long the lane's clients allow a statement to take.
    pub(super) allowed: patience::Known,
    /// Functions that the operator answers for.
    pub(super) trusted: Trusted,
}

impl Shared {
    /// `functions`: those that the operator answers for, as `schema.name`.
    pub(super) fn trusting(functions: &[String]) -> Self {
        Self {
            trusted: functions.iter().map(String::as_str).collect(),
            ..Self::default()
        }
    }
}

impl Connection {
    /// `creates`: tables and columns that are not there are made. `lock_wait`: how long batches
    /// wait for locks.
    pub(super) fn new(
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
            forms: Forms::default(),
            heat: Heat::default(),
            scratch: Vec::new(),
            usable: true,
            used: false,
            restore: Box::default(),
            server: None,
            makes_up: None,
        }
    }

    /// The same, with what a new session runs first.
    pub(super) fn restoring(mut self, sql: impl Into<Box<str>>) -> Self {
        self.restore = sql.into();
        self
    }

    /// The same, with where another connection comes from.
    pub(super) fn of_server(mut self, server: Arc<Server>) -> Self {
        self.server = Some(server);
        self
    }

    /// Sees to it that what a unit's client allows it to take is counted from its arrival, and
    /// executes it.
    async fn go(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let rest = self.arrived.and_then(|at| self.patience.rest(at));
        if let Some(settings) = rest {
            tally.round_trips += 1;
            patience::set(&mut self.wire, &settings).await?;
        }
        self.drive(batch, tally).await
    }

    /// Runs round trips until every unit has its verdict.
    async fn drive(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Broken> {
        if let Some(news) = self.wariness.news() {
            tally.round_trips += 1;
            drop(self.wire.simple(&news).await?);
        }
        let mut burst = 0;
        let mut changes = 0;
        let mut missed = false;
        let mut todo = self.begin(batch, false, tally).await?;
        let main = todo.first().map(|s| s.units.clone()).unwrap_or_default();
        self.heat.temper(batch, &mut todo);
        while !todo.is_empty() {
            if let Some(fault) = self.given_up() {
                // What has no verdict by now was rolled back, or has not left.
                batch.conclude_rest(&Verdict::Told(Err(fault.into())));
                return Ok(());
            }
            let mut changed = Vec::new();
            let mut care = Care::needed(batch, &todo);
            let mut stale = false;
            if care.is_none() {
                let trust = self.prepare(batch, &todo, tally).await?;
                if let Trust::Locked(version, error) = trust {
                    let verdict = self.refused_verbatim(*error);
                    todo = batch.without_table(todo, version, &verdict);
                    continue;
                }
                stale = trust == Trust::Stale;
                changed = self.prepared.take_changed();
            }
            if !stale && care.is_none() {
                let (now, later) = batch.in_order(std::mem::take(&mut todo));
                let cut = batch.behind_unproven(now, later);
                let (now, later) = self.no_more_than_one_unproven(batch, cut, tally).await?;
                let unproven = now.iter().any(|segment| batch.is_unproven(segment));
                let flown = self.send(batch, now);
                let heard = self.exchange(batch, flown, tally).await?;
                let mut absorber = self.absorber(batch, tally, burst);
                for (flown, heard) in heard {
                    absorber.absorb(flown, heard);
                }
                let (leave, gone) = (absorber.leave, absorber.statements_gone);
                (stale, burst) = (absorber.stale, absorber.burst);
                missed |= absorber.missed;
                changed.append(&mut absorber.changed);
                let unguarded = absorber.unguarded;
                care = absorber.care;
                let outdated = absorber.outdated;
                todo = absorber.next;
                todo.extend(later);
                for version in unguarded {
                    self.prepared.fail(StatementKey::Guard(version));
                }
                self.outdate(batch, &outdated);
                self.usable &= !leave;
                if gone {
                    self.prepared.clear();
                }
                if unproven {
                    self.behind_unproven(batch, true, tally).await?;
                    if batch.pending().is_empty() {
                        todo.clear();
                    }
                }
            }
            if !stale && let Some(care) = care {
                todo.clear();
                if let Ended::Stale(versions) = self.carefully(batch, care, tally).await? {
                    stale = true;
                    changed.extend(versions);
                }
            }
            if stale {
                self.retire(batch, &changed);
                changes += 1;
                batch.distrusted = changes > MOST_CHANGES / 2;
                if changes > MOST_CHANGES {
                    batch.conclude_rest(&Verdict::Again(keeps_changing()));
                }
                todo = self.begin(batch, true, tally).await?;
            }
        }
        batch.hold();
        self.heat.learn(batch, &main, missed);
        Ok(())
    }

    /// Reads the tables that are not known (or all of them), joins the writes with them, and forms
    /// transactions.
    async fn begin(
        &mut self,
        batch: &mut Batch<'_>,
        anew: bool,
        tally: &mut Tally,
    ) -> Result<Vec<Segment>, Broken> {
        self.place(batch, anew, tally).await?;
        if self.creates && self.grow(batch, tally).await? {
            self.place(batch, true, tally).await?;
        }
        Ok(Segment::cut(batch.first_segments(), self.dialect.piece))
    }

    /// Makes what the rows that do not fit ask for; says whether anything was tried.
    async fn grow(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<bool, Broken> {
        let wishes = batch.wishes();
        let mut grown = false;
        for (name, wish) in &wishes {
            let known = self.shared.catalog.get(name);
            if !create::asks_of(&wish, known.as_ref().map(|table| &table.facts)) {
                continue;
            }
            grown = true;
            tally.round_trips += 1;
            if let Err(fault) = create::grow(&mut self.wire, self.dialect, name, wish).await? {
                batch.conclude_apart(name, &self.refused(fault));
            }
        }
        Ok(grown)
    }

    async fn prepare(
        &mut self,
        batch: &Batch<'_>,
        todo: &[Segment],
        tally: &mut Tally,
    ) -> Result<Trust, Broken> {
        let (trust, asked) = prepare(&mut self.wire, &mut self.prepared, batch, todo).await?;
        tally.round_trips += u32::from(asked);
        Ok(trust)
    }

    /// Appends all transactions. One that cannot be encoded after all is tried write by write, and
    /// in the end refused.
    fn send(&mut self, batch: &mut Batch<'_>, todo: Vec<Segment>) -> Vec<Flown> {
        let mut flown = Vec::with_capacity(todo.len());
        let mut todo: std::collections::VecDeque<_> = todo.into();
        while let Some(segment) = todo.pop_front() {
            let mut sender = Sender {
                batch,
                prepared: &mut self.prepared,
                out: self.wire.out(),
                scratch: &mut self.scratch,
                part: false,
            };
            let unproven = batch.is_unproven(&segment);
            if unproven && self.used {
                flown.extend(sender.send_aside(FORGET));
            }
            match sender.send(segment) {
                Ok(sent) => {
                    flown.push(sent);
                    self.used = !unproven;
                    if unproven {
                        flown.extend(sender.send_reset(&self.restore));
                        // What was prepared is gone, and not all that was left behind can be taken
                        // back.
                        self.usable = false;
                    }
                }
                Err(segment) => match (segment.units.as_slice(), &segment.mode) {
                    ([unit], Mode::Own | Mode::Fresh | Mode::Grouped | Mode::Probe) => {
                        batch.fail(*unit, unwritable());
                    }
                    (units, _) => {
                        for piece in Segment::pieces(units, 1, &Mode::Own).into_iter().rev() {
                            todo.push_front(piece);
                        }
                    }
                },
            }
        }
        flown
    }

    /// One round trip. Where the connection breaks, what was answered before counts, and the rest
    /// is told apart by how far it can have come.
    async fn exchange(
        &mut self,
        batch: &mut Batch<'_>,
        flown: Vec<Flown>,
        tally: &mut Tally,
    ) -> Result<Vec<(Flown, Heard)>, Broken> {
        let mut listener = Listener::new(&flown);
        let start = Instant::now();
        let ended = self
            .wire
            .exchange(flown.len(), &mut |answer| listener.hear(answer))
            .await;
        tally.in_database += start.elapsed();
        tally.round_trips += 1;
        let answers = listener.end();
        let mut heard: Vec<_> = flown.into_iter().zip(answers).collect();
        let Err(broken) = ended else {
            return Ok(heard);
        };
        let lost = heard.split_off(broken.syncs_seen.min(heard.len()));
        let mut absorber = self.absorber(batch, tally, 0);
        for (flown, heard) in heard {
            absorber.absorb(flown, heard);
        }
        for (place, (flown, heard)) in lost.iter().enumerate() {
            let verdict = verdict_of_lost(&broken, flown, heard, place == 0);
            for unit in &flown.segment.units {
                batch.conclude(*unit, verdict.clone());
            }
        }
        Err(broken)
    }

    /// Why a batch is not to go on: its client has asked for that, or does not allow it to take
    /// longer.
    fn given_up(&self) -> Option<Fault> {
        if self.interrupt.is_asked() {
            return Some(Fault::called_back());
        }
        let over = self.arrived.is_some_and(|at| self.patience.is_over(at));
        over.then(Fault::late)
    }

    /// The same as [`Connection::refused`], in the server's own message.
    fn refused_verbatim(&self, error: ServerError) -> Verdict {
        let body = error.body.clone();
        self.refused(with_error(Fault::from(error), &[], &body))
    }

    /// What the writes of a table are told that cannot be looked at.
    fn refused(&self, fault: Fault) -> Verdict {
        let locked = fault.code == "55P03";
        if locked && self.purpose == Purpose::Batches {
            Verdict::Alone(fault)
        } else if fault.class.may_retry() && !locked {
            Verdict::Again(fault)
        } else {
            Verdict::Told(Err(fault.into()))
        }
    }

    fn absorber<'a, 'u>(
        &self,
        batch: &'a mut Batch<'u>,
        tally: &'a mut Tally,
        burst: usize,
    ) -> Absorber<'a, 'u> {
        Absorber {
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

/// What became of a transaction that was under way when the connection broke.
///
/// The server answers in order and reads in order. So it cannot have committed what did not wholly
/// leave, what it had already refused, what came after the one in which it ended the connection, or
/// that one itself if it had not come to its commit.
fn verdict_of_lost(broken: &Broken, flown: &Flown, heard: &Heard, first: bool) -> Verdict {
    let left = flown.end <= broken.sent;
    let at_commit = heard.statements() >= flown.statements.len();
    let ended_before = broken.error.is_some() && !(first && at_commit);
    if flown.reads || !left || heard.error.is_some() || ended_before {
        Verdict::Again(broken.unavailable())
    } else {
        Verdict::Told(Err(broken.unknown().into()))
    }
}

fn keeps_changing() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "55006",
        "the table was altered again and again while this write was under way",
    )
}

fn unwritable() -> Fault {
    Fault::new(
        FaultClass::Value,
        "22P02",
        "a value of this write cannot be sent to PostgreSQL: it is larger than 1 GiB, or the write has more than 65535 values",
    )
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        self.interrupt.begin();
        self.makes_up = None;
        let mut batch = Batch::new(units);
        batch.creates = self.creates;
        let mut tally = Tally::default();
        if let Err(broken) = self.go(&mut batch, &mut tally).await {
            // Whatever had no verdict was not under way: nothing of it can have been committed.
            batch.conclude_rest(&Verdict::Again(broken.unavailable()));
        }
        let defect = Verdict::Told(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        let waits = |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::Alone(_)));
        self.wariness.ended(batch.verdicts.iter().any(waits));
        Report {
            verdicts: batch.verdicts.into_iter().flatten().collect(),
            tally,
            usable: self.usable && self.wire.is_usable(),
        }
    }

    fn arrived(&mut self, at: Instant) {
        self.arrived = Some(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::clone(&self.interrupt) as Arc<dyn Canceller>)
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}
