//! Splits the calls of a transaction that is kept into calls of one row each.
//!
//! Called by `keep` before rows are computed. A call of several rows becomes one call of an INSERT
//! of one row for each, and its answer is composed of theirs. The INSERT must have the same types
//! and columns in the server's description.

use std::sync::Arc;

use bytes::BytesMut;
use smallvec::SmallVec;
use windrow_core::{Arguments, Dones, Formats, ParsedStatement, SqlCall, Statement, WriteDone};
use windrow_sql::SingleRow;

use super::segment::Meaning;
use super::state::{End, Session};
use crate::codec::data_row;
use crate::statements::CachedStatement;

/// The reason why a block needs a server connection.
const UNLIKE: &str = super::block_reasons::SEVERAL_ROWS.phrase;

/// The calls of a query or segment.
pub(super) type Calls = SmallVec<[SqlCall; 1]>;

/// The calls of a query or segment, as calls of one row each.
pub(super) struct SingleRows {
    pub(super) calls: Calls,
    /// The number of rows of each call of the client.
    counts: SmallVec<[usize; 1]>,
}

/// Returns calls of one row each.
///
/// # Errors
/// Outside: the session ends. Inside: the reason why the calls need a server connection.
pub(super) async fn of(
    session: &mut Session,
    calls: Calls,
) -> Result<Result<SingleRows, &'static str>, End> {
    let mut single = SingleRows {
        calls: Calls::with_capacity(calls.len()),
        counts: SmallVec::with_capacity(calls.len()),
    };
    for call in calls {
        let before = single.calls.len();
        match call.statement.parsed().set_based {
            true => single.calls.push(call),
            false => match Box::pin(rows(session, &call)).await? {
                Ok(rows) => single.calls.extend(rows),
                Err(reason) => return Ok(Err(reason)),
            },
        }
        single.counts.push(single.calls.len() - before);
    }
    Ok(Ok(single))
}

impl SingleRows {
    /// Returns the outcomes of the client's calls, given those of all rows.
    pub(super) fn merge(&self, rows: impl IntoIterator<Item = WriteDone>) -> Dones {
        let mut rows = rows.into_iter();
        let counts = self.counts.iter();
        counts
            .map(|count| merged(rows.by_ref().take(*count)))
            .collect()
    }
}

/// Returns the outcome of a call with these rows.
fn merged(mut rows: impl Iterator<Item = WriteDone>) -> WriteDone {
    let mut all = rows.next().unwrap_or_default();
    let mut messages = BytesMut::new();
    for row in rows {
        all.rows += row.rows;
        match (&mut all.extra, row.extra) {
            (Some(all), Some(extra)) => {
                messages.extend_from_slice(&extra.messages);
                all.generated = extra.generated.or_else(|| all.generated.take());
            }
            (first @ None, extra) => *first = extra,
            (Some(_), None) => {}
        }
    }
    if let Some(extra) = all.extra.as_mut().filter(|_| !messages.is_empty()) {
        extra.messages = [&*extra.messages, &*messages].concat().into();
    }
    all
}

/// Returns a call for each row of a call.
async fn rows(
    session: &mut Session,
    call: &SqlCall,
) -> Result<Result<Vec<SqlCall>, &'static str>, End> {
    let parsed = call.statement.parsed();
    let Some(rows) = windrow_sql::single_rows(&parsed.text) else {
        return Ok(Err(UNLIKE));
    };
    let values: Vec<Option<&[u8]>> = call.arguments.iter().collect();
    let mut known: Option<(SingleRow, Arc<Statement>)> = None;
    let mut calls = Vec::with_capacity(rows.len());
    for row in rows {
        let statement = match &known {
            Some((like, statement)) if is_like(call, like, &row) => Arc::clone(statement),
            _ => match statement(session, call, &row).await? {
                Ok(statement) => statement,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        match one(call, &row, &values, &statement) {
            Some(call) => calls.push(call),
            None => return Ok(Err(UNLIKE)),
        }
        known = Some((row, statement));
    }
    Ok(Ok(calls))
}

/// Returns the INSERT of the first row of an INSERT of several rows; `None` for any other.
pub(super) fn first_row(
    session: &Session,
    cached: &Arc<CachedStatement>,
) -> Option<Arc<CachedStatement>> {
    let parsed = cached.parsed().filter(|parsed| !parsed.set_based)?;
    let row = windrow_sql::single_rows(&parsed.text)?.into_iter().next()?;
    Some(insert_of(session, parsed, &row))
}

/// Returns the INSERT of a row.
fn insert_of(session: &Session, all: &ParsedStatement, row: &SingleRow) -> Arc<CachedStatement> {
    let types = types(all, row).into_iter();
    let cache = &session.shared.cache;
    cache.get(row.text.as_bytes(), types, session.utf8)
}

/// Returns the types that a client names for the parameters of a row.
fn types(all: &ParsedStatement, row: &SingleRow) -> Vec<u32> {
    let named = &all.types;
    let places = row.parameters.iter().map(|place| usize::from(*place));
    let types = places.map(|place| named.get(place).copied().unwrap_or_default());
    let types: Vec<u32> = types.collect();
    match types.iter().all(|known| *known == 0) {
        true => Vec::new(),
        false => types,
    }
}

fn is_like(call: &SqlCall, one: &SingleRow, other: &SingleRow) -> bool {
    let all = call.statement.parsed();
    one.text == other.text && types(all, one) == types(all, other)
}

/// Returns the INSERT of a row in the session's lane.
///
/// # Errors
/// Outside: the session ends. Inside: the reason why the row cannot be kept.
async fn statement(
    session: &mut Session,
    call: &SqlCall,
    row: &SingleRow,
) -> Result<Result<Arc<Statement>, &'static str>, End> {
    let cached = insert_of(session, call.statement.parsed(), row);
    Ok(match session.meaning(&cached).await? {
        Ok(Meaning::Call(statement)) => Ok(statement),
        Ok(Meaning::Local) => Err(UNLIKE),
        Err(not) => Err(not.reason),
    })
}

/// Returns the call of a row; `None` if the INSERT of the row has other types or columns. `values`:
/// those of the call of all rows.
fn one(
    call: &SqlCall,
    row: &SingleRow,
    values: &[Option<&[u8]>],
    statement: &Arc<Statement>,
) -> Option<SqlCall> {
    let types = call.statement.parameters();
    let mut bytes = BytesMut::new();
    let mut formats = SmallVec::<[bool; 16]>::new();
    if row.parameters.len() != statement.parameters().len() {
        return None;
    }
    for (place, expected) in row.parameters.iter().zip(statement.parameters()) {
        let place = usize::from(*place);
        if types.get(place) != Some(expected) {
            return None;
        }
        data_row::value(&mut bytes, *values.get(place)?);
        formats.push(call.formats.is_binary(place));
    }
    let is_same = statement.fields() == call.statement.fields();
    Some(SqlCall {
        statement: Arc::clone(statement),
        arguments: Arguments::of(&*bytes, row.parameters.len())?,
        formats: Formats::of(formats.iter().copied()),
        results: call.results.clone(),
        fresh: false,
        origin: None,
    })
    .filter(|_| is_same)
}
