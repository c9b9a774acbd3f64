//! The spool of a session: submits rows to it, and waits until the database has them.
//!
//! A client's statements keep their order although some use the spool. While some are under way in
//! a lane, nothing is submitted to the spool, and nothing is sent to the database before it has all
//! rows that the session has in the spool.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, SpooledWrites, Unit};
use windrow_idempotency::{Extent, KeyedRequest};
use windrow_sql::Property;

use super::client_connection::HIGH;
use super::pending::{AwaitedOutcome, Pending};
use super::rows::RowUnit;
use super::state::{End, NO_MEMORY, Session, no_memory, shutdown};
use super::traces;
use crate::session_info::{Interrupt, State};
use crate::statements::CachedStatement;

/// Submits rows to the spool, once everything under way in a lane is answered.
///
/// # Errors
/// The session ends.
pub(super) async fn submit(
    session: &mut Session,
    key: Option<KeyedRequest>,
    mut rows: RowUnit,
    mut pending: Pending,
    taken: usize,
) -> Result<(), End> {
    let shared = Arc::clone(&session.shared);
    let Some(spool) = &shared.spool else {
        traces::discard(pending.traced);
        return session.relay("the spool is gone").await;
    };
    if session.pending.any(Pending::is_of_lane) {
        session.drain().await?;
    }
    let is_keyed = key.is_some();
    // The request is under way until the spool has the rows.
    if let Some(key) = &key {
        match key.spooled([rows.unit], Extent::Alone) {
            Ok(units) => rows.unit = units.into_iter().next().unwrap_or_else(|| Unit::of([])),
            Err(refused) => {
                traces::refused(pending.traced, refused.fault());
                return session.refuse(refused.fault()).await;
            }
        }
    }
    let Some(permit) = session.memory(rows.unit.bytes()).await else {
        traces::discard(pending.traced.take());
        drop((rows, pending));
        return Box::pin(session.relay_for_now(NO_MEMORY, &no_memory())).await;
    };
    if rows.generates {
        session.values.note_spooled();
    }
    let intake = spool.spooling.intake();
    let new = || Box::new(SpooledWrites::new(intake.new_source()));
    let source = session.spooled.get_or_insert_with(new).source();
    match intake.submit(source, [rows.unit], permit).await {
        Ok(receipt) => {
            pending.awaited = Some(match is_keyed {
                true => AwaitedOutcome::KeyedSpool(receipt),
                false => AwaitedOutcome::Spool(receipt),
            });
            session.handed_over(pending, taken);
            Ok(())
        }
        Err(fault) => {
            traces::refused(pending.traced, &fault);
            session.refuse(&fault).await
        }
    }
}

/// Notes that the spool has answered a unit of the session.
pub(super) fn note_answered(session: &mut Session) {
    if let (Some(spooled), Some(spool)) = (&mut session.spooled, &session.shared.spool) {
        spooled.answered(spool.spooling.end());
    }
}

/// Returns true if the database may not have all rows that the session has in the spool.
pub(super) fn is_ahead(session: &Session) -> bool {
    let spooled = session.spooled.as_ref();
    spooled.is_some_and(|spooled| spooled.is_ahead())
}

/// Waits until the database has the session's rows in the spool. Nothing may be under way. The
/// client may cancel the wait.
///
/// # Errors
/// Outside: the session ends. Inside: the error that the client gets.
pub(super) async fn reach(session: &mut Session) -> Result<Result<(), Fault>, End> {
    let shared = Arc::clone(&session.shared);
    let spooled = session.spooled.take_if(|spooled| spooled.is_ahead());
    let (Some(mut spooled), Some(spool)) = (spooled, &shared.spool) else {
        return Ok(Ok(()));
    };
    session.info.set_state(State::Waiting);
    let cancelled = CancellationToken::new();
    let interrupt = Interrupt::Waiting(cancelled.clone());
    session.info.set_interrupt(interrupt).await;
    let stop = session.stop.clone();
    let waiting = async {
        tokio::select! {
            biased;
            applied = spooled.reach(&*spool.spooling) => Ok(applied),
            () = cancelled.cancelled() => Ok(Err(Fault::called_back())),
            () = stop.cancelled() => Err(End::Fatal(shutdown())),
        }
    };
    let mut waiting = Box::pin(waiting);
    let applied = poll_fn(|cx| {
        // Earlier answers are sent meanwhile.
        if let Poll::Ready(Err(error)) = session.connection.poll_flush(cx) {
            return Poll::Ready(Err(End::from(error)));
        }
        // A client that has closed its side may be gone: then the wait ends.
        while !session.connection.ended && session.connection.inbox.len() < HIGH {
            if session.connection.poll_read(cx)?.is_pending() {
                break;
            }
        }
        if session.connection.ended {
            cancelled.cancel();
        }
        waiting.as_mut().poll(cx)
    })
    .await?;
    drop(waiting);
    if applied.is_ok() {
        spooled.applied();
    }
    session.spooled = Some(spooled);
    Ok(applied)
}

/// Returns true if the statement at the front of the inbox must wait for the session's rows in the
/// spool. The first statement of a block must, whatever it is, because later ones may see the
/// database as of that moment.
pub(super) fn is_awaited(session: &Session) -> bool {
    let may_pass = !session.own.read_your_writes && session.unsent_block.is_none();
    is_ahead(session) && !(may_pass && session.front_is(reads))
}

/// Returns true for a text that only reads.
fn reads(cached: &CachedStatement) -> bool {
    let names = cached.names();
    names.is_some_and(|names| {
        // EXPLAIN ANALYZE executes, even a prepared statement that writes.
        let reads = names.all_are(&[Property::Reads]) && !names.begins_with(&["explain"]);
        reads && !names.writes()
    })
}
