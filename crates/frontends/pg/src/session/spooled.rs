//! Writes that the spool acknowledges, and waiting for the database to have them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;
use windrow_calls::{CallDone, SqlCall};
use windrow_core::{Dones, RowDone, RowWrite, SourceId, SpoolPlace, Unit, UnitFault, UnitOutcome};
use windrow_sql::{Effect, Reading};

use super::pending::{Ending, Pending, Receipt, Script};
use super::state::{End, Session, shutdown};
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::own_settings::Ack;
use crate::session_info::{Interrupt, State};
use crate::spool::SqlSpool;
use crate::statements::CachedStatement;

/// A unit of more bytes waits for the commit: large ones are not what a spool is for.
const LARGEST: usize = 1 << 20;

/// What a session has in the spool.
#[derive(Debug, Default)]
pub(crate) struct Spooled {
    /// Who it is for the spool.
    source: Option<SourceId>,
    /// Behind all of it; `None` once the database has it.
    place: Option<SpoolPlace>,
    /// Units that are not acknowledged yet.
    under_way: usize,
}

/// A unit of calls as rows.
pub(super) struct Rows {
    unit: Unit<RowWrite>,
    generates: bool,
}

impl Session {
    /// Calls as the rows that the spool acknowledges; `None` where the database is to answer.
    pub(super) fn rows_of(&self, calls: &[SqlCall]) -> Option<Rows> {
        if self.own.ack != Ack::Spool || self.asks || !SqlSpool::suits(&self.who.settings) {
            return None;
        }
        let mut generates = false;
        let mut rows: SmallVec<[RowWrite; 1]> = SmallVec::new();
        for call in calls {
            let row = call.statement.as_row(&call.arguments, &call.formats)?;
            generates |= row.generates;
            rows.push(row.write);
        }
        let unit = Unit::of(rows);
        (unit.bytes() <= LARGEST).then_some(Rows { unit, generates })
    }

    /// Hands rows to the spool. `taken`: the bytes at the front of the inbox that they came in.
    pub(super) async fn spool(
        &mut self,
        Rows { unit, generates }: Rows,
        script: Script,
        ending: Ending,
        taken: usize,
    ) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        let Some(spool) = &shared.spool else {
            return self.relay("the spool has ended").await;
        };
        if self.pending.len() > self.spooled.under_way {
            // What went to the lane comes first.
            self.drain().await?;
        }
        let intake = spool.spooling.intake();
        let source = *self
            .spooled
            .source
            .get_or_insert_with(|| intake.new_source());
        let count = unit.work().len();
        let permit = match self.line.is_charged() {
            true => self.line.pay(&shared.budget, unit.bytes()),
            false => shared.budget.take(unit.bytes()).await.ok(),
        };
        let Some(permit) = permit else {
            return self.relay("more than the memory budget holds").await;
        };
        let Ok(receipt) = intake.submit(source, [unit], permit).await else {
            return self.relay("the spool has ended").await;
        };
        if generates {
            // What they take from a sequence is not known before they are applied.
            self.values.clear();
            self.values.note_unknown();
        }
        self.spooled.under_way += 1;
        let receipt = Some(Receipt::Spool(receipt));
        self.accepted(
            Pending {
                receipt,
                script,
                ending,
            },
            taken,
        );
        let count = u64::try_from(count).unwrap_or_default();
        self.info.joined.fetch_add(count, Ordering::Relaxed);
        self.info.set_state(State::Joining);
        Ok(())
    }

    /// The spool has answered.
    pub(super) fn has_spooled(&mut self, outcome: UnitOutcome<RowDone>) -> UnitOutcome<CallDone> {
        self.spooled.under_way -= 1;
        let done = |_: &RowDone| CallDone::rows(1);
        match outcome {
            Ok(dones) => {
                let spool = self.shared.spool.as_ref();
                self.spooled.place = spool.map(|spool| spool.spooling.end());
                Ok(dones.iter().map(done).collect::<Dones<CallDone>>())
            }
            Err(UnitFault { at, fault, before }) => Err(UnitFault {
                at,
                fault,
                before: before.iter().map(done).collect(),
            }),
        }
    }

    /// Waits until the database has what the session has in the spool. A cancel request ends that:
    /// what comes next is not executed then.
    pub(crate) async fn catch_up(&mut self) -> Result<(), End> {
        if self.spooled.under_way > 0 {
            self.drain().await?;
        }
        let (Some(place), Some(spool)) = (self.spooled.place.take(), self.shared.spool.clone())
        else {
            return Ok(());
        };
        self.drain().await?;
        self.info.set_state(State::Waiting);
        let cancelled = CancellationToken::new();
        let interrupt = Interrupt::Waiting(cancelled.clone());
        self.info.set_interrupt(interrupt).await;
        let applied = tokio::select! {
            applied = spool.spooling.applied(&place) => Some(applied),
            () = cancelled.cancelled() => None,
            () = self.stop.cancelled() => return Err(End::Fatal(shutdown())),
        };
        let interrupt = match &self.source {
            Some(source) => source.interrupt(),
            None => Interrupt::Nothing,
        };
        self.info.set_interrupt(interrupt).await;
        match applied {
            Some(Ok(())) => {}
            Some(Err(fault)) => return Err(End::Fatal(fault)),
            None => {
                self.spooled.place = Some(place);
                self.cancel_requested = true;
            }
        }
        Ok(())
    }

    /// True where the message at the front of the inbox has to wait for what the session has in the
    /// spool.
    pub(crate) fn has_to_catch_up(&self) -> bool {
        if !self.has_in_spool() {
            return false;
        }
        let Ok(Front::Whole { tag, total }) = self.line.front(0) else {
            return false;
        };
        let message = Message::read(tag, self.line.body(0, total));
        let cached = match &message {
            Message::Query(text) => Some(self.simple_query(text).cached),
            Message::Parse(parse) => {
                let cache = &self.shared.cache;
                Some(cache.get(parse.text, parse.type_oids(), self.utf8))
            }
            Message::Bind(bind) => {
                let statement = self.statements.get(bind.statement);
                statement.map(|statement| Arc::clone(&statement.cached))
            }
            // Behind one of those, or nothing that sees rows.
            _ => return !matches!(tag, b'S' | b'H' | b'D' | b'E' | b'C'),
        };
        self.own.read_your_writes || !cached.is_some_and(|cached| is_read(&cached))
    }

    /// True where something of the session is in the spool.
    pub(super) fn has_in_spool(&self) -> bool {
        self.spooled.under_way > 0 || self.spooled.place.is_some()
    }
}

/// True for a statement that reads rows and writes none, and for the ends of transactions.
fn is_read(cached: &CachedStatement) -> bool {
    let Reading::Apart(apart) = &cached.reading else {
        return false;
    };
    let reads = matches!(
        apart.reason,
        "SELECT" | "VALUES" | "TABLE" | "SHOW" | "FETCH" | "DECLARE" | "a transaction block"
    );
    reads && matches!(apart.effect, Effect::Nothing | Effect::Begin | Effect::End)
}
