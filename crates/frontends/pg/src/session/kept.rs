//! The writes of a transaction block that were answered before the server knows the block.
//!
//! The writes go to the session's lane as one unit at COMMIT, or to a server connection, after
//! BEGIN and before the first statement that cannot be kept.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::{
    Formats, LateWrite, Op, Permit, Preview, PreviewReference, Signature, SqlCall, Statement, Write,
};

use crate::rows_ahead::AheadRow;
use crate::statements::{PreparedStatement, StatementCache};

/// OIDs of the types of keys that are compared.
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const UUID: u32 = 2950;

/// The writes and savepoints of a block, in order.
#[derive(Debug, Default)]
pub(crate) struct KeptWrites {
    steps: Vec<KeptStep>,
    /// The number of savepoints among them.
    savepoints: usize,
    /// True if a write was answered, whether it is kept or not.
    has_answered: bool,
    /// The memory of the writes.
    permit: Permit,
    /// The time of the transaction, as a binary `timestamptz`, once a client knows it.
    moment: Option<[u8; 8]>,
    /// Rows that were computed ahead for this block alone, by the number of their statement.
    ahead: HashMap<u64, RowsOfBlock>,
}

/// Rows of a statement that were computed ahead for one block.
#[derive(Debug, Default)]
pub(super) struct RowsOfBlock {
    pub(super) rows: VecDeque<AheadRow>,
    /// The number of rows in the last request.
    last: usize,
    /// The number of rows taken.
    used: usize,
}

/// The most savepoints kept.
const MAX_SAVEPOINTS: usize = 1_000;

/// The most steps among which the row of a late UPDATE or DELETE is searched.
const MAX_COMPARED: usize = 1_000;

/// The most steps among which a write of a statement is searched.
const MAX_LAST: usize = 16;

/// The most rows that are requested ahead of a block's writes.
const MAX_AHEAD: usize = 512;

impl RowsOfBlock {
    /// Returns true if the block has not requested rows yet.
    pub(super) fn is_new(&self) -> bool {
        self.last == 0
    }

    /// Returns the number of rows to request: those of the block before, or 1, 4, 64, then the
    /// most. A short transaction wastes few of them, and a long loop requests a few times. `least`:
    /// the number that is needed now. `before`: the number of rows that an earlier block has used.
    pub(super) fn next_count(&mut self, least: usize, before: usize) -> usize {
        self.last = match self.last {
            0 => before.clamp(1, MAX_AHEAD),
            last => (4 * last * last).min(MAX_AHEAD),
        };
        self.last = self.last.max(least);
        self.last
    }

    /// Takes the next row.
    pub(super) fn take(&mut self) -> Option<AheadRow> {
        let row = self.rows.pop_front()?;
        self.used += 1;
        Some(row)
    }
}

/// A step of a block.
#[derive(Debug)]
pub(crate) enum KeptStep {
    /// A write of which all values are known.
    Write(KeptWrite),
    /// A savepoint.
    Savepoint {
        name: Box<str>,
        /// The client's own statement, without comments.
        sql: Box<str>,
    },
}

impl KeptStep {
    fn is_savepoint(&self) -> bool {
        matches!(self, Self::Savepoint { .. })
    }
}

/// A write that was answered.
#[derive(Debug)]
pub(crate) struct KeptWrite {
    /// The call that stores the answered row.
    pub(crate) call: SqlCall,
    /// The values of keys that no other row has.
    new_keys: SmallVec<[NewKey; 1]>,
    /// The client's own statement.
    text: LateText,
    /// True if errors of the write may come after its answer.
    is_late: bool,
    /// The form of the write, if it is executed late.
    late_form: Option<Arc<LateWrite>>,
}

/// The text of a statement that was answered before it is executed.
#[derive(Clone, Debug)]
pub(crate) struct LateText {
    pub(crate) statement: Arc<Statement>,
    /// The text with its literals, if they were lifted out of it and the client may get the text.
    own: Option<Arc<[u8]>>,
}

/// The longest text of a refused statement that is sent to its client, in bytes.
const MAX_TEXT_BYTES: usize = 1000;

/// Returns the part of a text that is sent to its client in an error.
pub(crate) fn beginning(text: &[u8]) -> &[u8] {
    text.get(..MAX_TEXT_BYTES).unwrap_or(text)
}

/// Returns true for an error of a write's own values, keys and rights; false for one that shows
/// that the table has changed since the write was answered. `code`: its SQLSTATE; `message`: its
/// words.
pub(crate) fn is_of_values(code: &str, message: &str) -> bool {
    let is_of_table = ["42", "0A"].iter().any(|class| code.starts_with(class));
    (!is_of_table || code == "42501") && !message.contains(LateWrite::NOT_ONE_ROW)
}

impl LateText {
    /// Returns the text of a call. `is_late`: its client may get it in an error.
    fn of(call: &SqlCall, is_late: bool) -> Self {
        let origin = call.origin.as_ref().filter(|_| is_late);
        let own = origin.map(|origin| Arc::clone(&origin.text));
        let statement = Arc::clone(&call.statement);
        Self { statement, own }
    }

    /// Returns the part that is sent to the client in an error.
    pub(crate) fn beginning(&self) -> &[u8] {
        let text = self.own.as_deref();
        beginning(text.unwrap_or(self.statement.parsed().text.as_bytes()))
    }
}

/// A value of a column that no other row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NewKey {
    table: u32,
    column: i16,
    value: KeyValue,
}

/// A value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyValue {
    Int(i64),
    Uuid([u8; 16]),
}

impl KeptWrite {
    /// Returns the write that stores a row by this plan. `client`: the client's own call;
    /// `is_late`: errors of the write may come after its answer.
    pub(super) fn new(plan: &Preview, call: SqlCall, client: &SqlCall, is_late: bool) -> Self {
        let new_keys = plan.new_keys.iter().filter_map(|(column, place)| {
            Some(NewKey {
                table: plan.table,
                column: *column,
                value: key_value(&call, *place)??,
            })
        });
        let new_keys = new_keys.collect();
        Self {
            call,
            new_keys,
            text: LateText::of(client, is_late),
            is_late,
            late_form: None,
        }
    }

    /// Returns the write that is a client's call itself.
    pub(super) fn of_late(form: &Arc<LateWrite>, client: &SqlCall) -> Self {
        Self {
            call: SqlCall {
                statement: Arc::clone(&form.write),
                results: Formats::Text,
                fresh: false,
                origin: None,
                ..client.clone()
            },
            new_keys: SmallVec::new(),
            text: LateText::of(client, true),
            is_late: true,
            late_form: Some(Arc::clone(form)),
        }
    }

    /// Returns true if the row contains a value of a sequence that is not known yet.
    pub(crate) fn generates(&self) -> bool {
        self.late_form.as_ref().is_some_and(|form| form.generates)
    }

    /// Returns the client's own statement, and true if errors of the write may come after its
    /// answer.
    pub(crate) fn text(&self) -> (&LateText, bool) {
        (&self.text, self.is_late)
    }

    /// Returns true if the write certainly does not change a row. `key`: that of
    /// [`Touches::row_key`](windrow_core::Touches::row_key).
    fn leaves_alone(&self, table: &str, key: Option<u64>) -> bool {
        let call = &self.call;
        let statement = match self.late_form {
            Some(_) => &self.text.statement,
            None => &call.statement,
        };
        if self.late_form.as_ref().is_some_and(|form| form.cascades) {
            return false;
        }
        let own = || statement.row_key(&call.arguments, &call.formats);
        *statement.parsed().table.table != *table
            || key.is_some_and(|key| own().is_some_and(|own| own != key))
    }

    /// Returns the bytes of memory that the write takes.
    pub(super) fn bytes(&self) -> usize {
        let own = self.text.own.as_ref();
        size_of::<Write>() + self.call.bytes() + own.map_or(0, |own| own.len())
    }
}

impl KeptWrites {
    /// Returns true if nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns true if there are writes.
    pub(crate) fn has_writes(&self) -> bool {
        !self.steps.iter().all(KeptStep::is_savepoint)
    }

    /// Returns true if a write was answered that changes nothing: the transaction has begun for its
    /// client, so its modes cannot be set any more.
    pub(crate) fn has_only_answered(&self) -> bool {
        self.has_answered && !self.has_writes()
    }

    /// Notes that a write was answered.
    pub(super) fn note_answered(&mut self) {
        self.has_answered = true;
    }

    /// Returns the steps in order.
    pub(crate) fn steps(&self) -> &[KeptStep] {
        &self.steps
    }

    /// Returns the bytes of memory that the writes take.
    pub(super) fn bytes(&self) -> usize {
        self.permit.bytes()
    }

    /// Returns the time of the transaction, as a binary `timestamptz`, if a client knows it.
    pub(super) fn moment(&self) -> Option<[u8; 8]> {
        self.moment
    }

    /// Adds a write. `permit`: the memory that it takes.
    pub(super) fn push(&mut self, write: KeptWrite, permit: Permit) {
        self.steps.push(KeptStep::Write(write));
        self.permit.merge(permit);
    }

    /// Notes the time of the transaction.
    pub(super) fn note_moment(&mut self, moment: [u8; 8]) {
        self.moment.get_or_insert(moment);
    }

    /// Returns the rows that were computed ahead for the calls of a statement.
    pub(super) fn ahead(&mut self, statement: u64) -> &mut RowsOfBlock {
        self.ahead.entry(statement).or_default()
    }

    /// Returns the number of rows that were computed ahead and used, by the number of their
    /// statement.
    pub(super) fn rows_used(&self) -> impl Iterator<Item = (u64, usize)> {
        self.ahead.iter().map(|(id, rows)| (*id, rows.used))
    }

    /// Adds a savepoint. `sql`: its statement. Returns false if there are too many.
    pub(super) fn save(&mut self, name: &str, sql: &str) -> bool {
        if self.savepoints == MAX_SAVEPOINTS {
            return false;
        }
        let (name, sql) = (name.into(), sql.into());
        self.steps.push(KeptStep::Savepoint { name, sql });
        self.savepoints += 1;
        true
    }

    /// Removes a savepoint and those after it. Returns false if none has that name.
    pub(super) fn release(&mut self, name: &str) -> bool {
        let Some(place) = self.place_of(name) else {
            return false;
        };
        let later = self.steps.split_off(place).into_iter();
        let (savepoints, writes): (Vec<_>, Vec<_>) = later.partition(KeptStep::is_savepoint);
        self.savepoints -= savepoints.len();
        self.steps.extend(writes);
        true
    }

    /// Drops everything kept since a savepoint. Returns false if none has that name.
    pub(super) fn roll_back_to(&mut self, name: &str) -> bool {
        let Some(place) = self.place_of(name) else {
            return false;
        };
        let later = self.steps.drain(place + 1..);
        self.savepoints -= later.filter(KeptStep::is_savepoint).count();
        true
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        let is_it = |step: &KeptStep| match step {
            KeptStep::Savepoint { name: known, .. } => **known == *name,
            KeptStep::Write(_) => false,
        };
        self.steps.iter().rposition(is_it)
    }

    /// Returns true if one of the last writes is a row of a statement. The statement then means
    /// what it meant for that row: if its table is changed, the block fails.
    pub(super) fn has_row_of(&self, statement: &Statement) -> bool {
        let Some(plan) = statement.preview().filter(|_| !statement.is_retired()) else {
            return false;
        };
        let mut last = self.steps.iter().rev().take(MAX_LAST);
        last.any(|step| match step {
            KeptStep::Write(kept) => Arc::ptr_eq(&kept.call.statement, &plan.write),
            KeptStep::Savepoint { .. } => false,
        })
    }

    /// Returns true if the row of a late UPDATE or DELETE is not changed by kept writes.
    pub(super) fn leaves_alone(&self, change: &SqlCall) -> bool {
        let table = &change.statement.parsed().table.table;
        let key = change.statement.row_key(&change.arguments, &change.formats);
        self.steps.len() <= MAX_COMPARED
            && self.steps.iter().all(|step| match step {
                KeptStep::Write(write) => write.leaves_alone(table, key),
                KeptStep::Savepoint { .. } => true,
            })
    }

    /// Returns the writes in order, the texts of them all if their errors may come late, and their
    /// memory.
    pub(super) fn into_parts(self) -> (SmallVec<[SqlCall; 1]>, Box<[LateText]>, Permit) {
        let (mut calls, mut texts) = (SmallVec::new(), Vec::new());
        for step in self.steps {
            if let KeptStep::Write(write) = step {
                calls.push(write.call);
                texts.extend(write.is_late.then_some(write.text));
            }
        }
        (calls, texts.into(), self.permit)
    }

    /// Returns true if errors of writes may come late.
    pub(crate) fn has_late(&self) -> bool {
        self.steps.iter().any(|step| match step {
            KeptStep::Write(write) => write.is_late,
            KeptStep::Savepoint { .. } => false,
        })
    }

    /// Returns true if rows may contain a time or a value of a sequence that is not known yet.
    pub(super) fn is_open(&self) -> bool {
        self.steps.iter().any(|step| match step {
            KeptStep::Write(write) => write.late_form.as_ref().is_some_and(|form| form.is_open()),
            KeptStep::Savepoint { .. } => false,
        })
    }

    /// Returns true if a value of a foreign key, at this position of a call, is NULL or the key of
    /// a kept row.
    pub(super) fn holds(
        &self,
        reference: &PreviewReference,
        (call, place): (&SqlCall, usize),
    ) -> bool {
        let value = match key_value(call, place) {
            Some(Some(value)) => value,
            Some(None) => return true,
            None => return false,
        };
        let wanted = NewKey {
            table: reference.table,
            column: reference.column,
            value,
        };
        self.steps.iter().any(|step| match step {
            KeptStep::Write(write) => write.new_keys.contains(&wanted),
            KeptStep::Savepoint { .. } => false,
        })
    }
}

/// Returns the statement by which a server connection executes a kept write: it returns no rows,
/// and fails unless it stores the row that was answered.
pub(crate) fn statement_of(cache: &StatementCache, call: &SqlCall) -> PreparedStatement {
    let parsed = call.statement.parsed();
    let sql = match (parsed.op, call.statement.verified_text()) {
        (Op::Insert, Some(text)) => LateWrite::guarded(text),
        (Op::Insert, None) => LateWrite::guarded(&format!("{} RETURNING true", parsed.text)),
        // It is guarded already.
        _ => parsed.text.to_string(),
    };
    let types = call.statement.parameters();
    let statement = PreparedStatement::new(cache.get(sql.as_bytes(), types.iter().copied(), true));
    statement.fixed.set(&Arc::new(Signature {
        parameters: types.into(),
        fields: Some([0, 0].into()),
    }));
    statement
}

/// Reads the value of a call at a position. Outer `None`: the value cannot be read; inner `None`:
/// NULL.
fn key_value(call: &SqlCall, place: usize) -> Option<Option<KeyValue>> {
    let Some(value) = call.arguments.iter().nth(place)? else {
        return Some(None);
    };
    let type_oid = *call.statement.parameters().get(place)?;
    let value = match (type_oid, call.formats.is_binary(place)) {
        (INT2 | INT4 | INT8, false) => {
            let text = std::str::from_utf8(value).ok()?;
            KeyValue::Int(text.parse().ok()?)
        }
        (INT2, true) => KeyValue::Int(i16::from_be_bytes(value.try_into().ok()?).into()),
        (INT4, true) => KeyValue::Int(i32::from_be_bytes(value.try_into().ok()?).into()),
        (INT8, true) => KeyValue::Int(i64::from_be_bytes(value.try_into().ok()?)),
        (UUID, false) => KeyValue::Uuid(uuid(value)?),
        (UUID, true) => KeyValue::Uuid(value.try_into().ok()?),
        _ => return None,
    };
    Some(Some(value))
}

/// Reads a UUID's text: 32 hexadecimal digits, with or without hyphens.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'-').collect();
    let digits = std::str::from_utf8(&digits).ok()?;
    let is_plain = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_plain.then(|| u128::from_str_radix(digits, 16).ok())??;
    Some(number.to_be_bytes())
}
