//! Staying on a server connection that could be given back.
//!
//! A server connection knows all values that a statement took from sequences, so a question for
//! `currval()` right after it can be answered there. If another session needs the connection, this
//! one gives it back.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use windrow_core::Op;
use windrow_sql::{BlockStatement, Effect};

use super::ends::Ends;
use crate::codec::message::{Front, Message};
use crate::session::single_rows;
use crate::session::state::{End, Session};
use crate::session::unsent_block;
use crate::statements::{CachedStatement, NotJoined, in_lane};

/// The longest time that a silent session stays.
const MAX_STAY: Duration = Duration::from_secs(60);

/// Waits for the next message of the client. Returns true if the session continues here.
///
/// # Errors
/// The session ends.
pub(super) async fn stay(ends: &mut Ends<'_>) -> Result<bool, End> {
    let stop = ends.session.stop.clone();
    let timeout = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(MAX_STAY) => {}
        }
    };
    let mut timeout = std::pin::pin!(timeout);
    loop {
        if let Some(stays) = stays(ends) {
            return Ok(stays);
        }
        let Ends { session, loan, .. } = &mut *ends;
        let connection = &mut session.connection;
        let reading = poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = connection.poll_flush(cx) {
                return Poll::Ready(Err(End::from(error)));
            }
            connection.poll_read(cx).map_err(End::from)
        });
        tokio::select! {
            biased;
            () = timeout.as_mut() => return Ok(false),
            read = reading => drop(read?),
            () = loan.wanted() => return Ok(false),
        }
    }
}

/// Returns true if the session stays for the message that its client has sent; `None` until the
/// message is complete.
fn stays(ends: &Ends<'_>) -> Option<bool> {
    if ends.session.connection.ended {
        return Some(false);
    }
    match ends.session.connection.front(0) {
        Ok(Front::Whole { tag, total }) => {
            let message = ends.message(tag, total);
            if matches!(message, Message::Terminate) {
                return Some(false);
            }
            let statement = ends.statement_of(&message);
            if let Some(block) = &ends.session.unsent_block {
                if block.kept.has_writes() {
                    return Some(false);
                }
                let is_kept = statement.is_some_and(|cached| may_be_kept(ends.session, &cached));
                return Some(!(is_kept && unsent_block::may_keep(ends.session)));
            }
            let block = statement.as_ref().and_then(|cached| cached.block());
            if block.is_some_and(BlockStatement::opens_usual) {
                return Some(!begins_with_kept(ends));
            }
            Some(statement.is_none_or(|cached| is_for_server(&cached)))
        }
        Ok(Front::Part { .. }) => None,
        Err(_) => Some(false),
    }
}

/// Returns true if the BEGIN at the front is followed by a first write that may be kept.
fn begins_with_kept(ends: &Ends<'_>) -> bool {
    let session = &*ends.session;
    let connection = &session.connection;
    let (mut at, mut is_behind) = (0, false);
    while let Ok(Front::Whole { tag, total }) = connection.front(at) {
        if is_behind {
            let message = Message::read(tag, connection.body(at, total));
            let statement = ends.statement_of(&message);
            let is_kept = statement.is_some_and(|cached| may_be_kept(session, &cached));
            return is_kept && unsent_block::is_plain(session);
        }
        at += total;
        is_behind = matches!(tag, b'Q' | b'S');
    }
    false
}

/// Returns true for a first write of a transaction block that can probably be kept without a server
/// connection.
fn may_be_kept(session: &Session, cached: &Arc<CachedStatement>) -> bool {
    let parsed = cached.parsed();
    let late = session.own.late;
    if cached.asks() || parsed.is_none_or(|parsed| !late && parsed.op != Op::Insert) {
        return false;
    }
    let Some(source) = &session.source else {
        return true;
    };
    let row = single_rows::first_row(session, cached);
    match in_lane(row.as_ref().unwrap_or(cached), &source.lane, None) {
        Ok(statement) if late => statement.preview().is_some() || statement.late_write().is_some(),
        Ok(statement) => statement
            .preview()
            .is_some_and(|plan| plan.doubt.is_none() && plan.references.is_empty()),
        Err(why) => matches!(why, NotJoined::Unknown(_)),
    }
}

/// Returns false for a question that can be answered once the connection is given back, and for a
/// write that can be joined.
fn is_for_server(cached: &CachedStatement) -> bool {
    match cached.effect() {
        None => cached.asks(),
        Some(effect) => *effect != Effect::Lastval,
    }
}
