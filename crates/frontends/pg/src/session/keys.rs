//! Idempotency keys of a session: `windrow.idempotency_key`, and the gateway's own keys.
//!
//! A write under a key is committed once. While the session's key is set, no other statement is
//! executed.

use windrow_core::{Fault, FaultClass};
use windrow_idempotency::{Extent, KeyedRequest};

use super::pending::{AwaitedOutcome, Pending};
use super::rows::RowUnit;
use super::state::{End, Session};
use super::{spool, traces};
use crate::statements::CachedStatement;

/// Statements that write nothing, and need no key while one is set.
const WITHOUT_KEY: [&str; 10] = [
    "deallocate",
    "discard",
    "listen",
    "reset",
    "select",
    "set",
    "show",
    "table",
    "unlisten",
    "values",
];

/// Returns true if writes that the session has committed without a key are executed under one of
/// the gateway's own.
pub(super) fn has_own(session: &Session) -> bool {
    let keys = session.shared.keys.as_ref();
    let identity = &session.who.identity;
    keys.is_some_and(|sql| sql.keys.is_for_all() && sql.identity == *identity)
}

/// Begins the keyed write for the session's key, or for one of the gateway's own; `None` for a
/// write without a key.
///
/// # Errors
/// A write with the same key is under way.
pub(super) fn begin(session: &mut Session) -> Result<Option<KeyedRequest>, Fault> {
    let Some(keys) = &session.shared.keys else {
        return Ok(None);
    };
    let Some(key) = session.own.key.take() else {
        let own = !session.own.spool && has_own(session);
        return Ok(own.then(|| keys.keys.begin_own()).flatten());
    };
    match keys.keys.begin(key) {
        Ok(request) => Ok(Some(request)),
        Err(refused) => Err(refused.fault().clone()),
    }
}

/// Commits rows under a key, after all units that the session has under way or in the spool.
///
/// # Errors
/// The session ends.
pub(super) async fn commit(
    session: &mut Session,
    key: KeyedRequest,
    rows: RowUnit,
    mut pending: Pending,
    taken: usize,
) -> Result<(), End> {
    session.drain().await?;
    if spool::is_ahead(session)
        && let Err(fault) = Box::pin(spool::reach(session)).await?
    {
        traces::refused(pending.traced, &fault);
        return session.refuse(&fault).await;
    }
    let Some(permit) = session.memory(rows.unit.bytes()).await else {
        let fault = Fault::new(
            FaultClass::Overloaded,
            "53200",
            "the row does not fit the memory budget (limits.memory); nothing was written",
        );
        traces::refused(pending.traced, &fault);
        return session.refuse(&fault).await;
    };
    if rows.generates {
        session.values.note_spooled();
    }
    let source = key.source();
    let committing = async move { key.commit(source, [rows.unit], permit, Extent::Alone).await };
    pending.awaited = Some(AwaitedOutcome::Keyed(tokio::spawn(committing)));
    session.handed_over(pending, taken);
    Ok(())
}

/// Returns the reason why the statement at the front of the inbox is refused while a key is set.
pub(super) fn refused_front(session: &Session) -> Option<Fault> {
    let fault = refused(session)?;
    (!session.front_is(runs_without_key)).then_some(fault)
}

/// Returns the reason why only a plain insert is executed while a key is set; `None` without a key.
pub(super) fn refused(session: &Session) -> Option<Fault> {
    let key = session.own.key.as_ref()?;
    let text = format!(
        "windrow.idempotency_key is set (\"{}\"), and this statement cannot be executed under a key: that is possible for an INSERT of plain values without RETURNING, outside of a transaction, into a table of which Windrow knows how it stores them",
        key.as_str()
    );
    let hint = "RESET windrow.idempotency_key to execute it without one.";
    Some(Fault::new(FaultClass::Unsupported, "0A000", text).with_hint(Some(hint)))
}

/// Returns true for a statement that writes nothing.
fn runs_without_key(cached: &CachedStatement) -> bool {
    let names = cached.names();
    names.is_some_and(|names| {
        let mut verbs = names.verbs.iter();
        verbs.all(|verb| WITHOUT_KEY.contains(&&**verb)) && !names.writes()
    })
}
