//! Handing units to the lane of a session's settings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use windrow_calls::SqlCall;
use windrow_core::{Fault, Unit};

use super::pending::{Ending, Pending, Script};
use super::state::{End, Session};
use crate::lanes::{Lane, LaneSource};
use crate::services::LaneKey;
use crate::session_info::State;

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
        self.wish = None;
        let wish = lanes.wish(&key);
        let opened = lanes.open(&key, &wish).await;
        self.wish = Some(wish);
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
        let (count, shared) = (calls.len(), Arc::clone(&self.shared));
        let Some(source) = &self.source else {
            return self.relay("its lane has ended").await;
        };
        if !shared.gate.is_open(&self.who.identity.database) {
            self.info.set_state(State::Waiting);
            Box::pin(shared.gate.pass(&self.who.identity.database)).await;
        }
        let unit = Unit::of(calls);
        let permit = match self.line.is_charged() {
            true => self.line.pay(&shared.budget, unit.bytes()),
            false => shared.budget.take(unit.bytes()).await.ok(),
        };
        let Some(permit) = permit else {
            // As it came it takes less. What it has become is gone before it waits for a server
            // connection.
            drop((unit, script, ending));
            return self.relay("more than the memory budget holds").await;
        };
        let intake = &source.lane.ports.intake;
        let is_query = matches!(ending, Ending::Query(_));
        match intake.submit(source.id, [unit], permit).await {
            Ok(receipt) => {
                self.pending.push_back(Pending {
                    receipt: Some(receipt),
                    script,
                    ending,
                });
                self.line.take(taken);
                self.line.settle();
                if is_query {
                    // A simple query takes the unnamed statement away.
                    self.statements.set(b"", None);
                }
                self.segment.define(&mut self.statements);
                self.segment.clear();
                let count = u64::try_from(count).unwrap_or_default();
                self.info.joined.fetch_add(count, Ordering::Relaxed);
                self.info.set_state(State::Joining);
                Ok(())
            }
            Err(_) => {
                self.source = None;
                self.relay("its lane has ended").await
            }
        }
    }
}
