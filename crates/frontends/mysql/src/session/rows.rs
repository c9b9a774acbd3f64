//! INSERTs that the spool answers or that are executed once under a key, and the order of a
//! session's other statements after them. One of Windrow's own connections writes such an INSERT as
//! a row. This is called for each write that could be joined, and before a statement is relayed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::{
    AsRow, Fault, FaultClass, Op, RowNumber, SpooledWrites, SqlCall, Unit, UnitOutcome, Value,
    Write, WriteDone,
};
use windrow_idempotency::{Extent, KeyedRequest, without_mark};
use windrow_mysqlwire::{Head, Success};

use super::client_session::{Session, SessionEnd};
use super::outcome::{end_trace, outcome};
use crate::errors;
use crate::own_settings::{AckSetting, ForbiddenSettings};
use crate::register::Interrupt;
use crate::session_state::LastWrite;
use crate::statement_kind::StatementKind;

/// The most bytes of a row for the spool. The database answers a larger one.
const MAX_ROW_BYTES: usize = 512 << 10;

/// The way in which a write is executed.
pub(super) enum RowWay {
    /// The client has its answer.
    Answered,
    /// The lane executes the call.
    Lane,
}

/// The reason why a call is not written as a row.
enum NoRow {
    /// The reason, for the client.
    Because(Box<str>),
    /// The database could not be asked.
    Fault(Fault),
}

/// Returns the reasons why a session cannot use the spool, or keys.
pub(super) fn forbidden(session: &Session) -> ForbiddenSettings {
    let shared = &session.shared;
    let own = &shared.config.target.user;
    let other_user = (session.admitted.request.user != own.as_bytes())
        .then(|| format!("because such writes are executed as the user {own}"));
    let joins_nothing = (!shared.config.join).then(|| "while mysql.join is false".to_owned());
    let why = |missing: Option<&str>| {
        let missing = missing.map(str::to_owned);
        missing.or(joins_nothing.clone()).or(other_user.clone())
    };
    let no_spool = shared.spool.is_none();
    let no_spool = no_spool.then_some("because Windrow has no spool: start it with --spool DIR");
    let no_keys = shared.keys.is_none();
    let no_keys = no_keys.then_some("because Windrow keeps no keys in this database");
    let in_transaction = session.state.has_transaction();
    let in_transaction = in_transaction.then_some("within a transaction, or without autocommit");
    ForbiddenSettings {
        spool: why(no_spool).map(|why| format!("only 'commit' {why}")),
        key: why(no_keys.or(in_transaction)).map(|why| format!("only NULL {why}")),
    }
}

/// Returns true if the spool answers INSERTs of the session.
fn spools(session: &Session) -> bool {
    let by_default = session.shared.spool.as_ref().map(|spool| spool.by_default);
    match session.own.ack {
        Some(ack) => ack == AckSetting::Spool,
        None => by_default == Some(true),
    }
}

/// Returns true if the spool answers a row of the session. If the spool is only the configured
/// default, it does not answer a row with a generated number, because the client may ask for the
/// number.
fn spools_row(session: &Session, row: &AsRow) -> bool {
    let has_asked = session.own.ack == Some(AckSetting::Spool);
    spools(session) && (has_asked || !matches!(row.number, RowNumber::Generated(_)))
}

/// Returns true if the session itself has asked for the spool or set a key: its INSERTs must not be
/// executed in another way.
pub(super) fn has_asked(session: &Session) -> bool {
    session.own.ack == Some(AckSetting::Spool) || session.own.key.is_some()
}

/// Returns true if INSERTs of the session may be written as rows.
pub(super) fn may_write(session: &Session) -> bool {
    session.own.key.is_some() || spools(session)
}

/// Writes a call as a row, if the session asks for that and it is possible. Before any other call,
/// waits until the session's writes in the spool are in the database.
///
/// # Errors
/// The session ends.
pub(super) async fn write(
    session: &mut Session,
    call: &SqlCall,
    head: Head,
) -> Result<RowWay, SessionEnd> {
    let is_insert = call.statement.parsed().op == Op::Insert;
    let is_wanted = session.own.key.is_some() || (is_insert && spools(session));
    let no_row = match is_wanted {
        true => match row(session, call).await {
            Ok(row) => return commit(session, row, call, head).await,
            Err(no_row) => Some(no_row),
        },
        false => None,
    };
    let kind = StatementKind {
        is_insert,
        only_reads: false,
    };
    let is_due = match no_row {
        Some(NoRow::Fault(fault)) => {
            let error = errors::of_fault(&fault);
            session.answer_error(head, fault.class, &error).await?;
            false
        }
        Some(NoRow::Because(reason)) => before_another(session, head, kind, &reason).await?,
        None => before_another(session, head, kind, "").await?,
    };
    Ok(match is_due {
        true => RowWay::Lane,
        false => RowWay::Answered,
    })
}

/// Returns a call as a row.
async fn row(session: &mut Session, call: &SqlCall) -> Result<AsRow, NoRow> {
    let because = |reason: &str| NoRow::Because(reason.into());
    let shared = &session.shared;
    let target = &shared.config.target;
    let source = session.state.source.as_ref();
    let lane = source.map(|source| Arc::clone(&source.lane));
    let lane = lane.ok_or_else(|| because("its lane has ended"))?;
    if lane.user() != target.user.as_bytes() || *lane.database() != *target.database {
        let (user, database) = (&target.user, &target.database);
        let reason = format!("such rows are written as {user} in the database {database}");
        return Err(NoRow::Because(reason.into()));
    }
    let (statement, arguments, formats) = (&call.statement, &call.arguments, &call.formats);
    let Some(row) = statement.as_row(arguments, formats) else {
        let reason = statement.why_no_row(arguments, formats);
        return Err(NoRow::Because(reason.unwrap_or_default()));
    };
    if matches!(row.number, RowNumber::Generated(_)) && !has_asked(session) {
        return Err(because("its number is known only once it is stored"));
    }
    if row.row.iter().map(Value::bytes).sum::<usize>() > MAX_ROW_BYTES {
        return Err(because("it is longer than 512 KiB"));
    }
    match lane.is_current(&shared.current, statement).await {
        Ok(true) => Ok(row),
        Ok(false) => Err(because("its table has just changed: send it again")),
        Err(fault) => Err(NoRow::Fault(fault)),
    }
}

/// Has a row written, and answers the client.
async fn commit(
    session: &mut Session,
    row: AsRow,
    call: &SqlCall,
    head: Head,
) -> Result<RowWay, SessionEnd> {
    let spools = spools_row(session, &row);
    let shape = match &row.number {
        RowNumber::Generated(returning) if !spools => returning,
        _ => &row.shape,
    };
    let unit = Unit::one(Write::new(Arc::clone(shape), row.row));
    let caller = session.caller(call, head);
    let traced = session.begin_trace(caller, &unit);
    session.admitted.client.skip(head);
    let key = begin_key(session);
    let outcome = match key {
        Err(fault) => Err(fault.into()),
        Ok(key) if spools => spool(session, key, unit).await,
        Ok(Some(key)) => match reach(session).await? {
            Ok(()) => under_key(session, key, unit).await,
            Err(fault) => Err(fault.into()),
        },
        Ok(None) => Err(Fault::internal("a row has neither a spool nor a key").into()),
    };
    end_trace(traced, &outcome);
    session.shared.metrics.rows.inc();
    let number = head.number.wrapping_add(1);
    session.admitted.client.set_next(number);
    match outcome {
        Ok(dones) => put_done(session, &row.number, dones.first()),
        Err(failed) => session.put_fault(&failed.fault),
    }
    session.admitted.client.flush().await?;
    Ok(RowWay::Answered)
}

/// Begins the write that the session's key is for; `None` if the session has no key.
fn begin_key(session: &mut Session) -> Result<Option<KeyedRequest>, Fault> {
    let key = session.own.key.take();
    let (Some(keys), Some(key)) = (&session.shared.keys, key) else {
        return Ok(None);
    };
    let begun = keys.begin(key).map_err(|refused| refused.fault().clone());
    begun.map(Some)
}

/// Appends a row to the spool, and waits until it is durable.
async fn spool(session: &mut Session, key: Option<KeyedRequest>, unit: Unit) -> UnitOutcome {
    let shared = Arc::clone(&session.shared);
    let Some(spool) = &shared.spool else {
        return Err(Fault::internal("the spool is gone").into());
    };
    let units = match &key {
        None => [unit].into_iter().collect(),
        Some(key) => {
            let marked = key.spooled([unit], Extent::Alone);
            marked.map_err(|refused| refused.fault().clone())?
        }
    };
    let intake = spool.spooling.intake();
    let permit = intake
        .budget()
        .try_take(units.iter().map(Unit::bytes).sum())?;
    let new = || SpooledWrites::new(intake.new_source());
    let source = session.spooled.get_or_insert_with(new).source();
    let receipt = intake.submit(source, units, permit).await?;
    let outcome = outcome(&mut session.admitted.client, receipt, || {}).await;
    // If the outcome is unknown, the spool may have the row.
    if let Some(spooled) = &mut session.spooled {
        spooled.answered(spool.spooling.end());
    }
    let outcome = match key {
        Some(_) => without_mark(outcome),
        None => outcome,
    };
    outcome.map(|_| [WriteDone::rows(1)].into_iter().collect())
}

/// Commits a row under a key. This continues even if the client leaves.
async fn under_key(session: &mut Session, key: KeyedRequest, unit: Unit) -> UnitOutcome {
    let ended = || Fault::internal("a write was not answered");
    let source = session.state.source.as_ref().ok_or_else(ended)?;
    let budget = source.lane.ports.intake.budget();
    let permit = budget.try_take(unit.bytes())?;
    let source = key.source();
    let committing = async move { key.commit(source, [unit], permit, Extent::Alone).await };
    let committed = tokio::spawn(committing).await.map_err(|_| ended())?;
    let outcomes = committed.map_err(|refused| refused.fault().clone());
    outcomes?.pop().unwrap_or_else(|| Err(ended().into()))
}

/// Answers an INSERT that wrote a row. The row's number is 0 if the server has not generated it
/// yet.
fn put_done(session: &mut Session, number: &RowNumber, done: Option<&WriteDone>) {
    let returned = done.and_then(|done| done.returned.as_ref()?.rows.first()?.first());
    let returned = match returned {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or_default(),
        Some(Value::Number(digits)) => digits.parse().unwrap_or_default(),
        _ => 0,
    };
    let insert_id = match number {
        RowNumber::None => 0,
        RowNumber::Given(number) => *number,
        RowNumber::Generated(_) => {
            session.state.insert_id = Some(returned);
            returned
        }
    };
    let affected = done.map_or(1, |done| done.rows);
    let success = Success {
        affected,
        insert_id,
        status: session.state.status_of_write(),
        warning_count: 0,
        info: Default::default(),
    };
    session.admitted.client.put(&success.encode());
    session.state.last_write = Some(LastWrite {
        affected: Some(affected),
        ..LastWrite::default()
    });
}

/// Prepares for a statement that is not written as a row: waits until the session's writes in the
/// spool are in the database. `reason` tells the client why the statement is no row. Returns false
/// if the statement must not be executed: the client has an error then.
///
/// # Errors
/// The session ends.
pub(super) async fn before_another(
    session: &mut Session,
    head: Head,
    kind: StatementKind,
    reason: &str,
) -> Result<bool, SessionEnd> {
    let is_asked = session.own.ack == Some(AckSetting::Spool);
    let error = match &session.own.key {
        Some(key) if !kind.only_reads => {
            let error = errors::not_keyed(key.as_str(), reason);
            Some((FaultClass::Unsupported, error))
        }
        None if is_asked && kind.is_insert && !session.state.has_transaction() => {
            Some((FaultClass::Unsupported, errors::not_spooled(reason)))
        }
        _ => match reach(session).await? {
            Ok(()) => None,
            Err(fault) => Some((fault.class, errors::of_fault(&fault))),
        },
    };
    if let Some((class, error)) = &error {
        session.answer_error(head, *class, error).await?;
    }
    Ok(error.is_none())
}

/// Waits until the session's writes in the spool are in the database. `KILL QUERY` ends the wait.
///
/// # Errors
/// Outer: the session ends. Inner: the error that the client gets.
async fn reach(session: &mut Session) -> Result<Result<(), Fault>, SessionEnd> {
    let shared = Arc::clone(&session.shared);
    let spooled = session.spooled.take_if(|spooled| spooled.is_ahead());
    let (Some(mut spooled), Some(spool)) = (spooled, &shared.spool) else {
        return Ok(Ok(()));
    };
    let cancelled = CancellationToken::new();
    let info = Arc::clone(&session.admitted.entry.info);
    info.set_interrupt(Some(Interrupt::Spool(cancelled.clone())));
    let server = &mut session.admitted.server.wire;
    let reached = tokio::select! {
        biased;
        reached = spooled.reach(&*spool.spooling) => Ok(reached),
        () = cancelled.cancelled() => Ok(Err(Fault::called_back())),
        () = shared.stop.cancelled() => Err(SessionEnd::Said(FaultClass::Unavailable, errors::shutdown())),
        // The server ends the connection.
        _ = server.head(0) => Err(SessionEnd::Gone),
    };
    info.set_interrupt(None);
    if let Ok(Ok(())) = reached {
        spooled.applied();
    }
    session.spooled = Some(spooled);
    reached
}
