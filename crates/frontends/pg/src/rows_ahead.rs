//! Rows whose computed columns (numbers of sequences, defaults) are requested before a client needs
//! them, for the INSERTs of a lane.
//!
//! One question serves all sessions that wait for a row of a statement. If many wait, it requests
//! some more, which are dropped after a moment: like the numbers of a transaction that is rolled
//! back, theirs are never used.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use windrow_core::intake::Intake;
use windrow_core::{
    Arguments, Fault, Formats, Preview, SourceId, SqlCall, Statement, Unit, UnitFault, Write,
};

use crate::codec::data_row;
use crate::session_info::{Interrupt, SessionInfo};

/// The most spare rows that one question requests.
const MAX_SPARE: usize = 128;

/// The number of rows that other sessions wait for from which on a question requests spare rows.
const MANY: usize = 7;

/// The time after which spare rows are dropped.
const MAX_AGE: Duration = Duration::from_millis(100);

/// The most statements for which rows are kept.
const MAX_STATEMENTS: usize = 1000;

/// The computed columns of a row, in binary and then as text. If they contain a time, they are
/// followed by a boolean and the time of the transaction, as in the answer to a question.
pub(crate) type AheadRow = Vec<Option<Bytes>>;

/// Rows requested ahead, by the number of the statement.
#[derive(Debug, Default)]
pub(crate) struct RowsAhead {
    of_statements: Mutex<HashMap<u64, Arc<OfStatement>>>,
}

/// The rows of one statement.
#[derive(Debug, Default)]
struct OfStatement {
    /// The rows, and when they were requested.
    rows: Mutex<VecDeque<(Instant, AheadRow)>>,
    /// The number of rows that sessions wait for.
    wanted: AtomicUsize,
    /// The number of rows that the last transaction used, until another one takes it.
    used: AtomicUsize,
    /// Locked by the session that asks.
    asking: tokio::sync::Mutex<()>,
}

/// Counts rows that a session waits for, until it is dropped.
struct Wanted<'a>(&'a AtomicUsize, usize);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl RowsAhead {
    /// Takes rows for calls of a statement. `plan`: their preview; `is_new`: true if all of the
    /// rows must be computed now; `ask`: the session, its access to the database, and the
    /// describer.
    ///
    /// # Errors
    /// The database does not return them, or the client has cancelled the wait for another session.
    pub(crate) async fn take(
        &self,
        statement: &Statement,
        (plan, question): (&Preview, &Arc<Statement>),
        (count, is_new): (usize, bool),
        (session, intake, source): (&SessionInfo, &Intake, SourceId),
    ) -> Result<Vec<AheadRow>, Fault> {
        let known = self.of_statement(statement.id());
        known.wanted.fetch_add(count, Ordering::Relaxed);
        let _wanted = Wanted(&known.wanted, count);
        let _asking = match known.asking.try_lock() {
            Ok(asking) => asking,
            Err(_) => {
                let then = Interrupt::Lane(intake.clone(), source);
                let asking = session.wait(known.asking.lock(), then).await;
                asking.ok_or_else(Fault::called_back)?
            }
        };
        let mut taken = known.pop(if is_new { 0 } else { count });
        if taken.len() == count {
            return Ok(taken);
        }
        let wanted = known.wanted.load(Ordering::Relaxed);
        let spare = match wanted - count {
            others if others >= MANY => wanted.min(MAX_SPARE),
            _ => 0,
        };
        let asked = Instant::now();
        let count_new = wanted + spare - taken.len();
        let ask = (intake, source);
        let mut rows = question_rows((plan, question), (count_new, None), ask).await?;
        let own = rows.len().min(count - taken.len());
        taken.extend(rows.drain(..own));
        known.push(asked, rows);
        match taken.len() == count {
            true => Ok(taken),
            false => Err(Fault::internal("fewer rows were computed than asked for")),
        }
    }

    /// Notes the number of rows that a transaction has used.
    pub(crate) fn note_used(&self, statement: u64, count: usize) {
        if count > 1 {
            self.of_statement(statement)
                .used
                .store(count, Ordering::Relaxed);
        }
    }

    /// Returns the number of rows that the last transaction has used, once, for one other
    /// transaction that requests as many: so no more rows are wasted than were used. 0 if it is not
    /// known.
    pub(crate) fn take_used(&self, statement: u64) -> usize {
        self.of_statement(statement).used.swap(0, Ordering::Relaxed)
    }

    fn of_statement(&self, statement: u64) -> Arc<OfStatement> {
        let mut known = self.of_statements.lock();
        if known.len() >= MAX_STATEMENTS {
            known.clear();
        }
        Arc::clone(known.entry(statement).or_default())
    }
}

impl OfStatement {
    fn pop(&self, count: usize) -> Vec<AheadRow> {
        let mut rows = self.rows.lock();
        while rows
            .front()
            .is_some_and(|(asked, _)| asked.elapsed() > MAX_AGE)
        {
            rows.pop_front();
        }
        let count = count.min(rows.len());
        rows.drain(..count).map(|(_, row)| row).collect()
    }

    fn push(&self, asked: Instant, new: Vec<AheadRow>) {
        self.rows
            .lock()
            .extend(new.into_iter().map(|row| (asked, row)));
    }
}

/// Requests rows. `plan`: as in [`RowsAhead::take`]. `time`: the time of their transaction, if it
/// is known.
///
/// # Errors
/// The reason why the database does not return them.
pub(crate) async fn question_rows(
    (plan, question): (&Preview, &Arc<Statement>),
    (count, time): (usize, Option<[u8; 8]>),
    (intake, source): (&Intake, SourceId),
) -> Result<Vec<AheadRow>, Fault> {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let mut values = BytesMut::new();
    data_row::value(&mut values, Some(&count.to_be_bytes()));
    let (mut parameters, mut columns) = (1, 2 * plan.computed);
    if plan.ahead_has_time {
        data_row::value(&mut values, time.as_ref().map(<[u8; 8]>::as_slice));
        (parameters, columns) = (2, columns + 2);
    }
    let arguments = Arguments::of(&*values, parameters);
    let is_binary = |place: usize| !(plan.computed..2 * plan.computed).contains(&place);
    let formats = (0..columns).map(is_binary);
    let call = SqlCall {
        statement: Arc::clone(question),
        arguments: arguments.unwrap_or_default(),
        formats: Formats::Binary,
        results: Formats::of(formats),
        fresh: false,
        origin: None,
    };
    let unit = Unit::one(Write::from(call));
    let done = intake.run(source, unit).await;
    let done = done.map_err(|UnitFault { fault, .. }| fault)?;
    let extra = done.first().and_then(|done| done.extra.as_ref());
    let messages = extra.map_or(Bytes::new(), |extra| extra.messages.clone());
    let rows = data_row::rows(&messages);
    rows.ok_or_else(|| Fault::internal("the answer is not rows alone"))
}
