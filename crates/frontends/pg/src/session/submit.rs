//! Handing units to the lane of a session's settings.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::sleep;
use windrow_calls::SqlCall;
use windrow_core::{AnswerPermit, Fault, FaultClass, Unit};

use super::pending::{Awaited, Ending, Pending, Script};
use super::relay;
use super::retryable::{lane_ended, no_memory};
use super::room::ExpectedAnswer;
use super::state::{End, Session, shutdown};
use super::traces;
use crate::lanes::{Lane, LaneSource};
use crate::services::LaneKey;
use crate::session_info::State;

/// Why statements go to a server connection for now.
pub(super) const LANE_ENDED: &str = "its lane has ended";
pub(super) const NO_MEMORY: &str = "more than the memory budget holds";

/// How long a write waits for room for its answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Session {
    /// Takes a place in the lane of the session's settings.
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
        // One that it has from before is not counted.
        self.interest = None;
        let interest = lanes.interest(&key);
        let opened = lanes.open(&key, &interest, self.is_followed()).await;
        self.interest = Some(interest);
        opened
    }

    /// Hands calls to the lane. `taken`: the bytes at the front of the inbox that they came in.
    pub(super) async fn submit(
        &mut self,
        calls: SmallVec<[SqlCall; 1]>,
        script: Script,
        ending: Ending,
        taken: usize,
    ) -> Result<(), End> {
        let asked = self.asked_trace(&calls);
        let asks = !script.lastvals.is_empty();
        match Box::pin(self.rows_of(&calls, asks)).await {
            Ok(Some(rows)) => {
                return Box::pin(self.write(rows, script, ending, taken, asked)).await;
            }
            Err(fault) if self.own.key.is_some() || self.own.spool => {
                self.segment.clear();
                return Box::pin(relay::refuse(self, &fault)).await;
            }
            Ok(None) | Err(_) => {}
        }
        if let Some(fault) = self.refused_for_key() {
            self.segment.clear();
            return Box::pin(relay::refuse(self, &fault)).await;
        }
        if self.pending.iter().any(Pending::is_of_rows) {
            self.drain().await?;
        }
        if self.is_ahead()
            && let Err(fault) = Box::pin(self.reach_lane()).await?
        {
            self.segment.clear();
            return Box::pin(relay::refuse(self, &fault)).await;
        }
        let (count, shared) = (calls.len(), Arc::clone(&self.shared));
        if !shared.gate.is_open(&self.who.identity.database) {
            self.info.set_state(State::Waiting);
            Box::pin(shared.gate.pass(&self.who.identity.database)).await;
        }
        let mut unit = Unit::of(calls);
        let permit = self.memory(unit.bytes()).await;
        let Some(permit) = permit else {
            // As it came it takes less. What it has become is gone before it waits for a server
            // connection.
            drop((unit, script, ending));
            return Box::pin(self.relay_for_now(NO_MEMORY, &no_memory())).await;
        };
        let mut answer = ExpectedAnswer::of(&mut unit);
        if let Some(answer) = &mut answer
            && answer.is_long(&shared.budget)
            && let Err(fault) = Box::pin(self.take_room(answer)).await?
        {
            drop((unit, permit));
            self.segment.clear();
            return Box::pin(relay::refuse(self, &fault)).await;
        }
        let Some(source) = &self.source else {
            return Box::pin(self.relay_for_now(LANE_ENDED, &lane_ended())).await;
        };
        let traced = asked.and_then(|asked| self.begin_traced(asked, &unit));
        let trace = traced.as_ref().map(|traced| traced.trace());
        let intake = &source.lane.ports.intake;
        match intake.submit_traced(source.id, [unit], permit, trace).await {
            Ok(receipt) => {
                let pending = Pending {
                    awaited: Some(Awaited::Lane(receipt)),
                    script,
                    ending,
                    traced,
                    answer,
                };
                self.handed_over(pending, count, taken);
                Ok(())
            }
            Err(_) => {
                traces::discard(traced);
                self.source = None;
                Box::pin(self.relay_for_now(LANE_ENDED, &lane_ended())).await
            }
        }
    }

    /// Waits until the database has what the session has in the spool, before a lane gets more.
    async fn reach_lane(&mut self) -> Result<Result<(), Fault>, End> {
        let reached = self.reach().await;
        if let Some(source) = &self.source {
            self.info.set_interrupt(source.interrupt()).await;
        }
        reached
    }

    /// Takes room for an answer. What was answered before goes out meanwhile.
    ///
    /// # Errors
    /// Outside: the session ends. Inside: what the client is told, where there was no room for a
    /// long time.
    async fn take_room(&mut self, answer: &mut ExpectedAnswer) -> Result<Result<(), Fault>, End> {
        let bytes = answer.bytes(&self.shared.budget);
        match self.wait_for_room(bytes).await? {
            Ok(permit) => answer.permit = permit,
            Err(fault) => return Ok(Err(fault)),
        }
        // Others may have learned meanwhile how long it is.
        let bytes = answer.bytes(&self.shared.budget).min(answer.permit.bytes());
        let room = self.shared.budget.answers();
        answer.permit.resize(room, bytes);
        Ok(Ok(()))
    }

    async fn wait_for_room(&mut self, bytes: usize) -> Result<Result<AnswerPermit, Fault>, End> {
        let shared = Arc::clone(&self.shared);
        let mut taking = pin!(shared.budget.answers().take(bytes));
        let mut time = pin!(sleep(PATIENCE));
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
}

fn no_room() -> Fault {
    let message = format!(
        "the room for answers that wait for their clients (a quarter of limits.memory) has been full for {} seconds; nothing was executed, try again later",
        PATIENCE.as_secs()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}
