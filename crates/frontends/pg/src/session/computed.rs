//! Computes the rows of a transaction's certain writes before the server stores them.
//!
//! Called by `keep`. A lane computes the columns that a write does not give. If they depend on no
//! value of a call, it computes rows ahead of their calls; otherwise it answers a question for each
//! call. Nothing is stored.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;
use windrow_core::{
    Arguments, Dones, Fault, FaultClass, Formats, Preview, SqlCall, Statement, Unit, Write,
    WriteDone,
};

use super::block_reasons;
use super::kept::RowsOfBlock;
use super::pending::cancelled_by_client;
use super::state::{LANE_ENDED, Session};
use crate::codec::data_row;
use crate::rows_ahead::{AheadRow, question_rows};

/// The most consecutive statements of which rows are computed together.
const MAX_RUNS: usize = 16;

/// The reason why a block needs a server connection.
pub(super) const UNCERTAIN: &str = block_reasons::UNCERTAIN.phrase;
const REFUSED: &str = block_reasons::REFUSED.phrase;

/// The columns of a computed row.
pub(super) struct Computed {
    /// The columns of RETURNING, in the requested formats.
    pub(super) returned: Vec<Option<Bytes>>,
    /// The stored columns, in binary.
    pub(super) stored: Vec<Option<Bytes>>,
    /// The time of the transaction, if the row may contain it.
    pub(super) moment: Option<[u8; 8]>,
}

/// The reason why writes are not kept.
pub(super) enum NotKept {
    /// The block needs a server connection, for this reason.
    Relay(&'static str),
    /// The client has cancelled them.
    Cancelled(Fault),
}

impl From<&'static str> for NotKept {
    fn from(reason: &'static str) -> Self {
        Self::Relay(reason)
    }
}

/// Computes the columns of rows that their calls do not give. Numbers of a sequence rise in the
/// order of the calls, and all rows have the time that the first question reports.
pub(super) async fn compute(
    session: &mut Session,
    calls: &[SqlCall],
    plans: &[Arc<Preview>],
) -> Result<Vec<Computed>, NotKept> {
    let mut rows: Vec<Computed> = Vec::with_capacity(calls.len());
    let mut drawn = Vec::new();
    let mut moment = session.unsent_block.as_ref().and_then(|b| b.kept.moment());
    let is_like = |one: &SqlCall, other: &SqlCall| one.statement.id() == other.statement.id();
    let runs = calls.chunk_by(is_like);
    if runs.clone().nth(MAX_RUNS).is_some() {
        return Err(UNCERTAIN.into());
    }
    for run in runs {
        let plan = plans.get(rows.len()).ok_or(UNCERTAIN)?;
        rows.extend(compute_run(session, run, plan, (&drawn, moment)).await?);
        moment = moment.or_else(|| rows.iter().find_map(|row| row.moment));
        let last = rows.last().and_then(|row| number(plan, &row.stored));
        drawn.extend(plan.sequence.map(|(sequence, _)| sequence).zip(last));
    }
    let mut moments = rows.iter().filter_map(|row| row.moment);
    match moments.all(|own| Some(own) == moment) {
        true => Ok(rows),
        false => Err(UNCERTAIN.into()),
    }
}

/// Computes them for calls of one statement. `drawn`: numbers of sequences that earlier calls got.
/// `moment`: the time of the transaction, if it is known.
async fn compute_run(
    session: &mut Session,
    calls: &[SqlCall],
    plan: &Preview,
    (drawn, mut moment): (&[(u32, i64)], Option<[u8; 8]>),
) -> Result<Vec<Computed>, NotKept> {
    let mut rows = Vec::with_capacity(calls.len());
    let mut rest = calls;
    while let [call, behind @ ..] = rest
        && let Some(row) = take_ahead(session, rest, plan, (drawn, moment)).await?
    {
        let row = ahead(plan, call, &row).ok_or(REFUSED)?;
        moment = moment.or(row.moment);
        rows.push(row);
        rest = behind;
    }
    while !rest.is_empty() {
        // The first question of a transaction reports its time.
        let (asked, behind) = rest.split_at(if moment.is_some() { rest.len() } else { 1 });
        let questions = asked.iter().filter_map(|call| question(plan, call, moment));
        let unit = Unit::of(questions.map(Write::from));
        for done in &run(session, unit).await? {
            let row = answered(plan, done).ok_or(REFUSED)?;
            moment = moment.or(row.moment);
            rows.push(row);
        }
        rest = behind;
    }
    match rows.len() == calls.len() {
        true => Ok(rows),
        false => Err(UNCERTAIN.into()),
    }
}

/// Returns the number that a row took from a sequence.
pub(super) fn number(plan: &Preview, stored: &[Option<Bytes>]) -> Option<i64> {
    let (_, place) = plan.sequence?;
    integer(stored.get(place)?.as_deref()?)
}

/// Executes a unit of questions.
async fn run(session: &Session, unit: Unit) -> Result<Dones, NotKept> {
    let source = session.source.as_ref().ok_or(LANE_ENDED)?;
    let outcome = source.lane.ports.intake.run(source.id, unit).await;
    outcome.map_err(|failed| not_computed(&session.stop, failed.fault))
}

/// Asks how many rows writes would change. `questions`: with the calls of their writes.
pub(super) async fn count(
    session: &Session,
    questions: Vec<(&Arc<Statement>, &SqlCall)>,
) -> Result<Vec<u64>, NotKept> {
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let calls = questions.into_iter().map(|(question, call)| SqlCall {
        statement: Arc::clone(question),
        results: Formats::Binary,
        fresh: false,
        origin: None,
        ..call.clone()
    });
    let unit = Unit::of(calls.map(Write::from));
    let dones = run(session, unit).await?;
    let counts = dones.iter().map(|done| {
        let rows = data_row::rows(&done.extra.as_ref()?.messages)?;
        let [row] = <[_; 1]>::try_from(rows).ok()?;
        let count = integer(row.first()?.as_deref()?)?;
        u64::try_from(count).ok()
    });
    let counts: Option<Vec<u64>> = counts.collect();
    Ok(counts.ok_or(REFUSED)?)
}

/// Returns the consequence for a block of which a row could not be computed: a server connection
/// reports what is wrong with the row.
fn not_computed(stop: &CancellationToken, fault: Fault) -> NotKept {
    match fault.class {
        FaultClass::Cancelled if !stop.is_cancelled() => {
            NotKept::Cancelled(cancelled_by_client(fault))
        }
        _ => NotKept::Relay(REFUSED),
    }
}

/// Takes the columns of a row that do not depend on its call; `None` if they do. `calls`: the call
/// and those after it, of one statement. `drawn`: numbers of sequences that earlier calls got.
/// `moment`: the time of the transaction, if it is known.
async fn take_ahead(
    session: &mut Session,
    calls: &[SqlCall],
    plan: &Preview,
    (drawn, moment): (&[(u32, i64)], Option<[u8; 8]>),
) -> Result<Option<AheadRow>, NotKept> {
    let (Some(question), Some(call)) = (&plan.ahead, calls.first()) else {
        return Ok(None);
    };
    let statement = &call.statement;
    if !statement.fits(&call.arguments, &call.formats) {
        return Ok(None);
    }
    let (Some(source), Some(block)) = (&session.source, &mut session.unsent_block) else {
        return Err(LANE_ENDED.into());
    };
    let last = plan.sequence.and_then(|(sequence, _)| {
        let mut before = drawn.iter().rev().filter(|(known, _)| *known == sequence);
        let before = before.next().map(|(_, number)| *number);
        before.or_else(|| session.values.current(sequence))
    });
    // Computed before another statement took a number.
    let is_old = |row: &AheadRow| {
        last.zip(number(plan, row))
            .is_some_and(|(last, n)| n <= last)
    };
    let own = block.kept.ahead(statement.id());
    if own.rows.front().is_some_and(is_old) {
        *own = RowsOfBlock::default();
    }
    if own.rows.is_empty() && plan.computed > 0 {
        let before = match own.is_new() {
            true => source.lane.ahead.take_used(statement.id()),
            false => 0,
        };
        let count = own.next_count(calls.len(), before);
        let (of, intake) = ((plan, question), &source.lane.ports.intake);
        let ask = (&*session.info, intake, source.id);
        for is_new in [false, true] {
            let taken = match plan.ahead_has_time {
                true => question_rows(of, (count, moment), (intake, source.id)).await,
                false => {
                    let rows = &source.lane.ahead;
                    rows.take(statement, of, (count, is_new), ask).await
                }
            };
            own.rows = taken
                .map_err(|fault| not_computed(&session.stop, fault))?
                .into();
            if !own.rows.front().is_some_and(is_old) {
                break;
            }
        }
    }
    Ok(Some(own.take().unwrap_or_default()))
}

/// Returns a row that was computed ahead, in the formats of its client; `None` if the server may
/// refuse it.
fn ahead(plan: &Preview, call: &SqlCall, row: &[Option<Bytes>]) -> Option<Computed> {
    let moment = match plan.ahead_has_time {
        true => Some(certain_moment(row.get(2 * plan.computed..)?)?),
        false => None,
    };
    let returned = plan.returned.iter().enumerate().map(|(place, column)| {
        let column = column.unwrap_or_default();
        let text = if call.results.is_binary(place) {
            0
        } else {
            plan.computed
        };
        row.get(text + column).cloned().flatten()
    });
    Some(Computed {
        returned: returned.collect(),
        stored: row.get(..plan.computed).unwrap_or_default().to_vec(),
        moment,
    })
}

/// Reads the last columns of an answer: a boolean and the time of the transaction; `None` if the
/// server may refuse the row.
fn certain_moment(columns: &[Option<Bytes>]) -> Option<[u8; 8]> {
    let [Some(is_certain), Some(moment)] = columns else {
        return None;
    };
    (**is_certain == [1]).then(|| (**moment).try_into().ok())?
}

/// Returns the question for the row of a call.
fn question(plan: &Preview, call: &SqlCall, moment: Option<[u8; 8]>) -> Option<SqlCall> {
    let own = call.statement.parameters().len();
    let mut values = BytesMut::from(call.arguments.as_bytes());
    data_row::value(&mut values, moment.as_ref().map(<[u8; 8]>::as_slice));
    let formats = (0..own + 1).map(|place| place == own || call.formats.is_binary(place));
    let returned = plan.returned.len();
    let results = (0..returned + plan.computed + 2)
        .map(|place| place >= returned || call.results.is_binary(place));
    Some(SqlCall {
        statement: Arc::clone(&plan.question),
        arguments: Arguments::of(&*values, own + 1)?,
        formats: Formats::of(formats),
        results: Formats::of(results),
        fresh: false,
        origin: None,
    })
}

/// Reads the answer to a question; `None` if the server may refuse the row.
fn answered(plan: &Preview, done: &WriteDone) -> Option<Computed> {
    let messages = &done.extra.as_ref()?.messages;
    let [row] = <[_; 1]>::try_from(data_row::rows(messages)?).ok()?;
    let (returned, rest) = row.split_at_checked(plan.returned.len())?;
    let (stored, last) = rest.split_at_checked(plan.computed)?;
    Some(Computed {
        returned: returned.to_vec(),
        stored: stored.to_vec(),
        moment: Some(certain_moment(last)?),
    })
}

/// Reads a binary integer of any length.
fn integer(value: &[u8]) -> Option<i64> {
    match value.len() {
        2 => Some(i16::from_be_bytes(value.try_into().ok()?).into()),
        4 => Some(i32::from_be_bytes(value.try_into().ok()?).into()),
        8 => Some(i64::from_be_bytes(value.try_into().ok()?)),
        _ => None,
    }
}
