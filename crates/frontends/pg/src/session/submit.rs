//! Asks the lane of a session's settings for the meaning of statements, and submits units to it.
//! Everything else is relayed on a server connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::sleep;
use windrow_core::{AnswerPermit, Fault, FaultClass, Permit, SqlCall, Unit, Write};

use super::expected_answer::ExpectedAnswer;
use super::pending::{AnswerEnd, AwaitedOutcome, Pending, Script};
use super::rows::{self, RowUnit};
use super::state::{End, LANE_ENDED, NO_MEMORY, Session, lane_ended, no_memory, shutdown};
use super::traces::{self, AskedTrace};
use super::unsent_block::{self, BlockAnswer};
use super::{keep, keys, relay, spool};
use crate::client::Settings;
use crate::lanes::{Lane, LaneSource, UNSHARED};
use crate::services::LaneKey;
use crate::session_info::{Interrupt, State};
use crate::statements::{Answer, CachedStatement};

/// The time for which a write waits for memory for its answer.
const ROOM_TIMEOUT: Duration = Duration::from_secs(30);

impl Session {
    /// Enters the lane of the session's settings, as a source.
    pub(super) async fn enter_lane(&mut self) -> Result<(), Fault> {
        if self.source.is_some() {
            return Ok(());
        }
        let lane = self.open_lane().await?;
        let id = lane.ports.intake.new_source();
        let source = LaneSource { lane, id };
        self.info.set_interrupt(source.interrupt()).await;
        self.source = Some(source);
        Ok(())
    }

    /// Opens the lane of the session's settings.
    pub(super) async fn open_lane(&mut self) -> Result<Arc<Lane>, Fault> {
        let key = LaneKey {
            identity: self.who.identity.clone(),
            settings: self.who.settings.clone(),
            credential: self.who.credential.clone(),
        };
        let lanes = &self.shared.lanes;
        // The interest for the settings before is not counted.
        self.interest = None;
        let interest = lanes.interest(&key);
        let opened = lanes.open(&key, &interest, self.is_followed()).await;
        self.interest = Some(interest);
        opened
    }

    /// Submits calls to the lane. `taken`: the bytes at the front of the inbox that they came in.
    pub(super) async fn submit(
        &mut self,
        calls: SmallVec<[SqlCall; 1]>,
        script: Script,
        ending: AnswerEnd,
        taken: usize,
    ) -> Result<(), End> {
        if self.unsent_block.is_some() {
            return Box::pin(keep::keep(self, calls, script, ending, taken)).await;
        }
        let asked = AskedTrace::of(self, &calls);
        match Box::pin(self.rows_of(&calls, script.asks())).await {
            Ok(Some(rows)) => {
                let pending = Pending::new(script, ending);
                return Box::pin(self.write_rows(rows, pending, taken, asked)).await;
            }
            Err(fault) if self.own.key.is_some() || self.own.spool => {
                return Box::pin(self.refuse(&fault)).await;
            }
            Ok(None) | Err(_) => {}
        }
        if let Some(fault) = keys::refused(self) {
            return Box::pin(self.refuse(&fault)).await;
        }
        if self.pending.any(Pending::is_of_rows) {
            self.drain().await?;
        }
        if spool::is_ahead(self)
            && let Err(fault) = Box::pin(self.reach_lane()).await?
        {
            return Box::pin(self.refuse(&fault)).await;
        }
        let shared = Arc::clone(&self.shared);
        if !shared.gate.is_open(&self.who.identity.database) {
            self.info.set_state(State::Waiting);
            Box::pin(shared.gate.pass(&self.who.identity.database)).await;
        }
        let mut unit = Unit::of(calls.into_iter().map(Write::from));
        let Some(permit) = self.memory(unit.bytes()).await else {
            // The message takes less memory than the calls. They are dropped before the session
            // waits for a server connection.
            drop((unit, script, ending));
            return Box::pin(self.relay_for_now(NO_MEMORY, &no_memory())).await;
        };
        let mut answer = ExpectedAnswer::of(&mut unit);
        if let Some(answer) = &mut answer
            && answer.is_long(&shared.budget)
            && let Err(fault) = Box::pin(self.take_room(answer)).await?
        {
            drop((unit, permit));
            return Box::pin(self.refuse(&fault)).await;
        }
        let Some(source) = &self.source else {
            return Box::pin(self.relay_for_now(LANE_ENDED, &lane_ended())).await;
        };
        let traced = asked.and_then(|asked| asked.begin(self, &unit));
        let trace = traced.as_ref().map(|traced| traced.trace());
        let intake = &source.lane.ports.intake;
        match intake.submit_traced(source.id, [unit], permit, trace).await {
            Ok(receipt) => {
                let pending = Pending {
                    awaited: Some(AwaitedOutcome::Lane(receipt)),
                    script,
                    ending,
                    traced,
                    answer,
                    status: b'I',
                };
                self.handed_over(pending, taken);
                Ok(())
            }
            Err(_) => {
                traces::discard(traced);
                self.source = None;
                Box::pin(self.relay_for_now(LANE_ENDED, &lane_ended())).await
            }
        }
    }

    /// Returns calls as row writes, if they use the spool or are executed under a key.
    async fn rows_of(&self, calls: &[SqlCall], asks: bool) -> Result<Option<RowUnit>, Fault> {
        let is_wanted = self.own.spool || self.own.key.is_some() || keys::has_own(self);
        match is_wanted {
            true => rows::of(self, calls, asks).await,
            false => Ok(None),
        }
    }

    /// Writes rows: through the spool, or under a key.
    async fn write_rows(
        &mut self,
        rows: RowUnit,
        mut pending: Pending,
        taken: usize,
        asked: Option<AskedTrace>,
    ) -> Result<(), End> {
        let key = match keys::begin(self) {
            Ok(key) => key,
            Err(fault) => return self.refuse(&fault).await,
        };
        pending.traced = asked.and_then(|asked| asked.begin(self, &rows.unit));
        match key {
            Some(key) if !self.own.spool => keys::commit(self, key, rows, pending, taken).await,
            key => spool::submit(self, key, rows, pending, taken).await,
        }
    }

    /// Waits until the database has the session's rows in the spool, before a lane gets more.
    async fn reach_lane(&mut self) -> Result<Result<(), Fault>, End> {
        let reached = spool::reach(self).await;
        if let Some(source) = &self.source {
            self.info.set_interrupt(source.interrupt()).await;
        }
        reached
    }

    /// Takes memory for an answer. Earlier answers are sent meanwhile.
    ///
    /// # Errors
    /// Outside: the session ends. Inside: the error that the client gets if there was no memory for
    /// a long time.
    async fn take_room(&mut self, answer: &mut ExpectedAnswer) -> Result<Result<(), Fault>, End> {
        let bytes = answer.bytes(&self.shared.budget);
        match self.wait_for_room(bytes).await? {
            Ok(permit) => answer.permit = permit,
            Err(fault) => return Ok(Err(fault)),
        }
        // The expected length may have changed meanwhile.
        let bytes = answer.bytes(&self.shared.budget).min(answer.permit.bytes());
        let room = self.shared.budget.answers();
        answer.permit.resize(room, bytes);
        Ok(Ok(()))
    }

    async fn wait_for_room(&mut self, bytes: usize) -> Result<Result<AnswerPermit, Fault>, End> {
        let shared = Arc::clone(&self.shared);
        let mut taking = pin!(shared.budget.answers().take(bytes));
        let mut time = pin!(sleep(ROOM_TIMEOUT));
        let stop = self.stop.clone();
        let mut stopped = pin!(stop.cancelled());
        let part = self.segment.bytes;
        poll_fn(|cx| {
            if let Poll::Ready(permit) = taking.as_mut().poll(cx) {
                return Poll::Ready(Ok(Ok(permit)));
            }
            self.poll_say(cx)?;
            let connection = &mut self.connection;
            if let Poll::Ready(stalled) = connection.poll_stalled(&shared.budget, part, cx) {
                return Poll::Ready(Err(End::from(stalled)));
            }
            if time.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(Err(no_room())));
            }
            let stopped = stopped.as_mut().poll(cx);
            stopped.map(|()| Err(End::Fatal(shutdown())))
        })
        .await
    }

    /// Takes memory for units of this size; `None` if there is too little.
    pub(super) async fn memory(&mut self, bytes: usize) -> Option<Permit> {
        let shared = Arc::clone(&self.shared);
        match self.connection.is_charged() {
            true => self.connection.pay(&shared.budget, bytes),
            false => shared.budget.take(bytes).await.ok(),
        }
    }

    /// Notes a unit that was submitted and waits for its outcome. `taken`: the bytes at the front
    /// of the inbox that it came in.
    pub(super) fn handed_over(&mut self, mut pending: Pending, taken: usize) {
        self.take_in(&mut pending, taken);
        self.pending.push(pending);
        self.info.set_state(State::Joining);
    }

    /// Removes a query or segment that is answered, or about to be, from the inbox, and applies its
    /// definitions.
    pub(super) fn take_in(&mut self, pending: &mut Pending, taken: usize) {
        self.connection.take(taken);
        self.connection.settle();
        if matches!(pending.ending, AnswerEnd::Query) {
            // A simple query removes the unnamed statement.
            self.statements.set(b"", None);
        }
        self.segment.define(&mut self.statements);
        if let Some(behind) = &mut pending.script.behind {
            behind.end(self.statements.changes());
        }
        self.segment.clear();
    }

    /// Relays what is in the inbox, and what follows, until the server connection is given back.
    pub(super) async fn relay(&mut self, reason: &'static str) -> Result<(), End> {
        self.drain().await?;
        if self.segment.answered == 0 && Box::pin(self.answer_block()).await? {
            self.segment.clear();
            return Ok(());
        }
        // A cancelled write gets the error of its cancellation.
        if !self.cancel_requested
            && let Some(fault) = keys::refused_front(self)
        {
            return Box::pin(self.refuse(&fault)).await;
        }
        if spool::is_awaited(self)
            && let Err(fault) = Box::pin(spool::reach(self)).await?
        {
            self.after_relay(&self.who.settings.clone()).await;
            return Box::pin(self.refuse(&fault)).await;
        }
        let answered = self.segment.answered;
        self.segment.clear();
        let settings = self.who.settings.clone();
        let end = Box::pin(relay::run(self, answered, reason)).await;
        self.after_relay(&settings).await;
        end
    }

    /// Answers a statement about a block that the server does not know. Returns false for any other
    /// message.
    async fn answer_block(&mut self) -> Result<bool, End> {
        match unsent_block::answer(self, true) {
            BlockAnswer::Given => Ok(true),
            BlockAnswer::Commits(lone) => keep::commit(self, *lone).await,
            BlockAnswer::None => Ok(false),
        }
    }

    /// Relays because of a temporary reason, `fault`. A write that must be joined (for its key, for
    /// replicas or for the spool) is refused instead, and can be sent again: on a server connection
    /// it would overtake older rows in the spool.
    pub(super) async fn relay_for_now(
        &mut self,
        reason: &'static str,
        fault: &Fault,
    ) -> Result<(), End> {
        if !self.has_to_join() {
            return self.relay(reason).await;
        }
        self.drain().await?;
        Box::pin(self.refuse(fault)).await
    }

    /// Returns true if writes that can be joined may not be relayed.
    pub(super) fn has_to_join(&self) -> bool {
        self.own.key.is_some() || self.own.spool || self.is_followed()
    }

    /// Returns true if replicas follow the writes of its database's lanes.
    pub(super) fn is_followed(&self) -> bool {
        let databases = &self.shared.databases;
        let database = databases.find(&self.who.identity.database);
        database.is_some_and(|database| database.followed)
    }

    async fn after_relay(&mut self, before: &Settings) {
        if self.who.settings != *before {
            (self.source, self.reads_committed) = (None, None);
        }
        let interrupt = match &self.source {
            Some(source) => source.interrupt(),
            None => Interrupt::Nothing,
        };
        self.info.set_interrupt(interrupt).await;
    }
}

fn no_room() -> Fault {
    let message = format!(
        "the room for answers that wait for their clients (a quarter of limits.memory) has been full for {} seconds; nothing was executed, try again later",
        ROOM_TIMEOUT.as_secs()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}

/// The reason why the meaning of a statement is not known.
pub(super) struct NotDescribed {
    /// The reason why the statement is relayed.
    pub(super) reason: &'static str,
    /// The lane's error, if the reason is temporary.
    pub(super) passing: Option<Fault>,
}

impl NotDescribed {
    /// Returns a reason that is not temporary.
    pub(super) fn of(reason: &'static str) -> Self {
        let passing = None;
        Self { reason, passing }
    }
}

impl Session {
    /// Asks the lane for the meaning of a statement.
    ///
    /// # Errors
    /// The reason why it is relayed.
    pub(super) async fn describe(
        &mut self,
        cached: &Arc<CachedStatement>,
    ) -> Result<Answer, NotDescribed> {
        let described = self.ask_lane(cached).await;
        match described {
            // A lane's lost connection is replaced.
            Err(NotDescribed {
                passing: Some(_), ..
            }) if self.has_to_join() => self.ask_lane(cached).await,
            other => other,
        }
    }

    async fn ask_lane(&mut self, cached: &Arc<CachedStatement>) -> Result<Answer, NotDescribed> {
        let parsed = cached.parsed().ok_or(NotDescribed::of("not a write"))?;
        self.enter_lane().await.map_err(away)?;
        let Some(source) = &self.source else {
            return Err(NotDescribed {
                reason: "its lane has ended",
                passing: Some(lane_ended()),
            });
        };
        let describing = self.shared.cache.describe(&source.lane, cached, parsed);
        let answer = match self.pending.is_empty() {
            // A cancel request can only mean this wait, which may be for a table's lock.
            true => self.info.wait(describing, source.interrupt()).await,
            false => Some(describing.await),
        };
        let Some(answer) = answer else {
            self.cancel_requested = true;
            return Err(NotDescribed::of("cancelled before it was known"));
        };
        let answer = answer.map_err(away)?;
        if let Some(apart) = answer.apart() {
            let database = &self.who.identity.database;
            self.shared.bypass.learn(database, apart);
        }
        Ok(answer)
    }
}

/// Returns the reason why a lane's refusal sends a statement to a server connection.
fn away(fault: Fault) -> NotDescribed {
    if *fault.message == *UNSHARED {
        return NotDescribed::of(UNSHARED);
    }
    tracing::warn!(%fault, "a lane does not answer");
    NotDescribed {
        reason: "its lane does not answer",
        passing: Some(fault),
    }
}
