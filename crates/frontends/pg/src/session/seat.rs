//! A session's place in a lane, and handing units over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use windrow_core::{Call, Fault, SourceId, Unit};

use super::engine::{End, Session};
use super::lane::Lane;
use super::pending::{Ending, Pending, Script};
use crate::presence::{Interrupt, State};
use crate::services::LaneKey;

/// A session's place in a lane.
pub(super) struct Seat {
    pub(super) lane: Arc<Lane>,
    pub(super) source: SourceId,
}

impl Seat {
    /// What a cancel request means while the session has something in its lane.
    pub(super) fn interrupt(&self) -> Interrupt {
        Interrupt::Lane(self.lane.door.intake.clone(), self.source)
    }
}

impl Session {
    /// Takes a place in the lane of the session's settings.
    pub(super) async fn sit(&mut self) -> Result<(), Fault> {
        if self.seat.is_some() {
            return Ok(());
        }
        let key = LaneKey {
            identity: self.who.identity.clone(),
            settings: self.who.settings.clone(),
            credential: self.who.credential.clone(),
        };
        let (book, lanes) = (&self.house.lane_book, &*self.house.lanes);
        // One that it has from before is not counted.
        self.wish = None;
        let wish = book.wish(&key);
        let opened = book.open(lanes, (&key, &wish)).await;
        self.wish = Some(wish);
        let lane = opened?;
        let source = lane.door.intake.new_source();
        let seat = Seat { lane, source };
        self.presence.set_interrupt(seat.interrupt()).await;
        self.seat = Some(seat);
        Ok(())
    }

    /// Hands calls to the lane. `taken`: the bytes at the front of the inbox that they came in.
    pub(super) async fn submit(
        &mut self,
        calls: SmallVec<[Call; 1]>,
        script: Script,
        ending: Ending,
        taken: usize,
    ) -> Result<(), End> {
        let (count, house) = (calls.len(), Arc::clone(&self.house));
        let Some(seat) = &self.seat else {
            return self.relay("its lane has ended").await;
        };
        if !house.gate.is_open(&self.who.identity.database) {
            self.presence.set_state(State::Waiting);
            Box::pin(house.gate.pass(&self.who.identity.database)).await;
        }
        let unit = Unit::calls_of(calls);
        let permit = match self.line.is_charged() {
            true => self.line.pay(&house.budget, unit.bytes()),
            false => house.budget.take(unit.bytes()).await.ok(),
        };
        let Some(permit) = permit else {
            // As it came it takes less. What it has become is gone before it waits for a server
            // connection.
            drop((unit, script, ending));
            return self.relay("more than the memory budget holds").await;
        };
        let intake = &seat.lane.door.intake;
        let is_query = matches!(ending, Ending::Query(_));
        match intake.submit(seat.source, [unit], permit).await {
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
                self.presence.joined.fetch_add(count, Ordering::Relaxed);
                self.presence.set_state(State::Joining);
                Ok(())
            }
            Err(_) => {
                self.seat = None;
                self.relay("its lane has ended").await
            }
        }
    }
}
