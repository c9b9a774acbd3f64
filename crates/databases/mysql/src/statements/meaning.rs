//! Decides which statements are joined, and how.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::FixedState;
use windrow_core::apart::Apart;
use windrow_core::{
    Arguments, AsRow, Expression, Formats, Level, Name, Op, ParsedStatement, Piece, SqlCall,
    Touches,
};

use super::command::RowForm;
use super::row_plan::RowPlan;
use super::table_look::{TableLook, is_same};

/// Successful statements for which `SHOW WARNINGS` is sent along after one has warned or failed.
const WARY_STATEMENTS: u32 = 500;

/// A joined statement as a lane executes it.
#[derive(Debug)]
pub(super) struct ClientMeaning {
    pub(super) table: Arc<TableLook>,
    /// The form in which rows become one INSERT; `None` if they do not.
    pub(super) rows: Option<RowForm>,
    /// The plan by which calls become row writes, or the reason why there is none.
    row_plan: Result<RowPlan, Box<str>>,
    numbering: Numbering,
    /// The meaning of a zero for the AUTO_INCREMENT column.
    zero: Generates,
    pub(super) has_returning: bool,
    /// The columns of a unique key, and the parameters that give their values.
    key: Box<[(Name, usize)]>,
    /// Executions to come in which the statement is expected to warn.
    wary: AtomicU32,
    /// Executions to come that are expected to fail.
    failing: AtomicU32,
}

/// The source of the number in the AUTO_INCREMENT column.
#[derive(Debug, PartialEq, Eq)]
enum Numbering {
    /// The statement generates none.
    None,
    /// The server.
    Server,
    /// The value of this parameter, if there is one; the server, if the value is NULL.
    Parameter(usize),
    /// Known only to the server.
    Unknown,
}

/// The certainty that a call has the server generate a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generates {
    /// The table has no such column. A number in the answer shows that it got one meanwhile.
    Never,
    /// The call's own number counts.
    No,
    Yes,
    Unknown,
}

/// Returns how a statement is executed.
///
/// # Errors
/// The reason that keeps the statement from being joined.
pub(super) fn meaning(
    parsed: &ParsedStatement,
    table: &Arc<TableLook>,
    sql_mode: Option<&str>,
) -> Result<ClientMeaning, Apart> {
    let updates = parsed
        .conflict
        .as_ref()
        .is_some_and(|conflict| conflict.update);
    let ops = operations(parsed.op, updates).ok_or(Apart::of("a read"))?;
    if let Some(apart) = table.why_apart(ops) {
        return Err(apart);
    }
    if parsed.op != Op::Insert && covered(parsed, table).is_none() {
        let apart = no_key(table).unwrap_or_else(|| {
            let apart = Apart::of("a condition that names no unique key");
            let apart = apart.by(format!("table {}", table.name));
            apart.advised("compare all columns of a unique key by =")
        });
        return Err(apart);
    }
    let is_plain = parsed.op == Op::Insert && parsed.set_based && parsed.conflict.is_none();
    let numbering = numbering(parsed, table);
    let rows = is_plain
        .then(|| RowForm::of(parsed, parameters(parsed)))
        .flatten();
    Ok(ClientMeaning {
        table: Arc::clone(table),
        row_plan: RowPlan::of(parsed, table),
        rows: rows.filter(|_| numbering != Numbering::Unknown),
        numbering,
        zero: match sql_mode.map(|mode| mode.contains("NO_AUTO_VALUE_ON_ZERO")) {
            Some(true) => Generates::No,
            Some(false) => Generates::Yes,
            None => Generates::Unknown,
        },
        has_returning: parsed.returning.is_some(),
        key: key(parsed, table),
        wary: AtomicU32::new(0),
        failing: AtomicU32::new(0),
    })
}

/// Returns the operations that a statement may do to its row, by its own operation; `updates`: an
/// INSERT that changes a row with the same key. `None` for a read.
pub(super) fn operations(op: Op, updates: bool) -> Option<&'static [Op]> {
    Some(match (op, updates) {
        (Op::Insert, true) => &[Op::Insert, Op::Update, Op::Delete],
        (Op::Insert, false) => &[Op::Insert],
        (Op::Update, _) => &[Op::Update],
        (Op::Delete, _) => &[Op::Delete],
        (Op::Get, _) => return None,
    })
}

/// Returns the reason why no UPDATE and no DELETE of a table is joined: no column names a row.
pub(super) fn no_key(table: &TableLook) -> Option<Apart> {
    let apart = Apart::of("no unique key").by(format!("table {}", table.name));
    let has_none = table.uniques.is_empty();
    has_none.then(|| apart.advised("add a primary key"))
}

/// Returns the level of a statement's joining.
pub(super) fn level(meaning: &ClientMeaning) -> Level {
    match meaning.rows {
        Some(_) => Level::Fused,
        None => Level::Grouped,
    }
}

/// Counts the parameters in the row of an INSERT.
fn parameters(parsed: &ParsedStatement) -> usize {
    let pieces = parsed.values.iter().filter_map(|value| match value {
        Expression::Sql(pieces) => Some(pieces),
        Expression::Default => None,
    });
    let is_parameter = |piece: &&Piece| matches!(piece, Piece::Parameter(_));
    pieces.flatten().filter(is_parameter).count()
}

/// Returns the unique key whose columns all have a condition.
fn covered<'t>(parsed: &ParsedStatement, table: &'t TableLook) -> Option<&'t [Name]> {
    let has = |name: &Name| condition(parsed, name).is_some();
    let mut uniques = table.uniques.iter();
    uniques
        .find(|columns| columns.iter().all(has))
        .map(|columns| &**columns)
}

fn condition<'p>(parsed: &'p ParsedStatement, name: &str) -> Option<&'p Expression> {
    let mut keys = parsed.keys.iter();
    keys.find(|(key, _)| is_same(key, name))
        .map(|(_, value)| value)
}

fn only_parameter(value: &Expression) -> Option<usize> {
    match value {
        Expression::Sql(pieces) => match &**pieces {
            [Piece::Parameter(at)] => Some(usize::from(*at)),
            _ => None,
        },
        Expression::Default => None,
    }
}

fn given<'p>(
    parsed: &'p ParsedStatement,
    table: &TableLook,
    name: &str,
) -> Result<Option<&'p Expression>, ()> {
    let visible = table.columns.iter().filter(|column| !column.is_invisible);
    let place = match &parsed.columns {
        Some(columns) => columns.iter().position(|column| is_same(column, name)),
        None if parsed.values.len() != visible.clone().count() => return Err(()),
        None => visible
            .clone()
            .position(|looked| is_same(&looked.column.name, name)),
    };
    match place {
        Some(place) => parsed.values.get(place).map(Some).ok_or(()),
        None => Ok(None),
    }
}

fn numbering(parsed: &ParsedStatement, table: &TableLook) -> Numbering {
    let Some(auto) = table.auto_column().filter(|_| parsed.op == Op::Insert) else {
        return Numbering::None;
    };
    if parsed.conflict.is_some() {
        return Numbering::Unknown;
    }
    match given(parsed, table, auto) {
        Ok(None | Some(Expression::Default)) => Numbering::Server,
        Ok(Some(value)) => only_parameter(value).map_or(Numbering::Unknown, Numbering::Parameter),
        Err(()) => Numbering::Unknown,
    }
}

/// Returns the columns of the key by which a statement touches a row.
fn key(parsed: &ParsedStatement, table: &TableLook) -> Box<[(Name, usize)]> {
    let columns = match parsed.op {
        Op::Insert if parsed.conflict.is_none() => None,
        Op::Insert => table.uniques.first().map(|columns| &**columns),
        _ => covered(parsed, table),
    };
    let place = |name: &Name| {
        let value = match parsed.op {
            Op::Insert => given(parsed, table, name).ok()??,
            _ => condition(parsed, name)?,
        };
        Some((name.clone(), only_parameter(value)?))
    };
    let key = columns.unwrap_or_default().iter().map(place);
    key.collect::<Option<_>>().unwrap_or_default()
}

impl ClientMeaning {
    /// Returns the certainty that a call has the server generate a number.
    pub(super) fn generates(&self, call: &SqlCall) -> Generates {
        match self.numbering {
            Numbering::None => Generates::Never,
            Numbering::Server => Generates::Yes,
            Numbering::Unknown => Generates::Unknown,
            Numbering::Parameter(at) => match call.arguments.iter().nth(at) {
                Some(Some(text)) if call.formats == Formats::Text => self.of_literal(text),
                Some(Some(value)) => self.of_value(value),
                Some(None) => Generates::Yes,
                None => Generates::Unknown,
            },
        }
    }

    fn of_literal(&self, text: &[u8]) -> Generates {
        match text {
            _ if text.eq_ignore_ascii_case(b"NULL") => Generates::Yes,
            [] => Generates::Unknown,
            _ if !text.iter().all(u8::is_ascii_digit) => Generates::Unknown,
            _ if text.iter().all(|digit| *digit == b'0') => self.zero,
            _ => Generates::No,
        }
    }

    /// Returns the same of a value of a prepared statement: its type, a flag, and its bytes.
    fn of_value(&self, value: &[u8]) -> Generates {
        match value {
            // Whole numbers of one, two, four and eight bytes.
            [1 | 2 | 3 | 8, _, bytes @ ..] => match bytes.iter().all(|byte| *byte == 0) {
                true => self.zero,
                false => Generates::No,
            },
            [253 | 254 | 15, _, length, text @ ..] if usize::from(*length) == text.len() => {
                match self.of_literal(text) {
                    // The text NULL is no number.
                    Generates::Yes if text.first() != Some(&b'0') => Generates::Unknown,
                    known => known,
                }
            }
            _ => Generates::Unknown,
        }
    }

    /// Returns true if the call may give a number of its own.
    pub(super) fn has_number(&self, call: &SqlCall) -> bool {
        self.numbering != Numbering::None && self.generates(call) != Generates::Yes
    }

    /// Returns true if the statement is expected to warn.
    pub(super) fn is_wary(&self) -> bool {
        self.wary.load(Ordering::Relaxed) > 0
    }

    /// Returns true if a call of the statement failed a short time ago.
    pub(super) fn has_failed_lately(&self) -> bool {
        self.failing.load(Ordering::Relaxed) > 0
    }

    /// Notes that a call succeeded, and if it warned.
    pub(super) fn note_warnings(&self, has_warned: bool) {
        if has_warned {
            self.wary.store(WARY_STATEMENTS, Ordering::Relaxed);
            return;
        }
        for counter in [&self.wary, &self.failing] {
            let left = counter.load(Ordering::Relaxed);
            counter.store(left.saturating_sub(1), Ordering::Relaxed);
        }
    }

    /// Notes that a call failed.
    pub(super) fn note_failure(&self) {
        self.failing.store(WARY_STATEMENTS, Ordering::Relaxed);
    }
}

impl ClientMeaning {
    fn row(&self, arguments: &Arguments, formats: &Formats) -> Result<AsRow, Box<str>> {
        let plan = self.row_plan.as_ref().map_err(Clone::clone)?;
        plan.row(arguments, formats)
    }
}

impl Touches for ClientMeaning {
    fn as_row(&self, arguments: &Arguments, formats: &Formats) -> Option<AsRow> {
        self.row(arguments, formats).ok()
    }

    fn why_no_row(&self, arguments: &Arguments, formats: &Formats) -> Option<Box<str>> {
        self.row(arguments, formats).err()
    }

    fn touches(
        &self,
        arguments: &Arguments,
        formats: &Formats,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) {
        if self.key.is_empty() {
            return;
        }
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(self.table.name.table.as_bytes());
        for (name, at) in &self.key {
            scratch.clear();
            hasher.write(name.as_bytes());
            let value = arguments.iter().nth(*at).flatten();
            let is_binary = *formats == Formats::Binary;
            let known = value.and_then(|value| canon(value, is_binary, scratch));
            if known.is_none() {
                return;
            }
            hasher.write(scratch);
        }
        hashes.push(hasher.finish());
    }
}

/// Writes a value so that spellings of equal keys are mostly equal. `None` if the value is of
/// another form.
fn canon(value: &[u8], is_binary: bool, to: &mut Vec<u8>) -> Option<()> {
    let text = match (value, is_binary) {
        (_, false) => match value {
            [b'\'', inner @ .., b'\''] => inner,
            _ => value,
        },
        ([8, 0, bytes @ ..], true) => {
            let number = i64::from_le_bytes(bytes.try_into().ok()?);
            to.extend_from_slice(number.to_string().as_bytes());
            return Some(());
        }
        ([3, 0, bytes @ ..], true) => {
            let number = i32::from_le_bytes(bytes.try_into().ok()?);
            to.extend_from_slice(number.to_string().as_bytes());
            return Some(());
        }
        ([253 | 254 | 15, _, length, text @ ..], true) if usize::from(*length) == text.len() => {
            text
        }
        _ => return None,
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@:+".contains(byte);
    if !text.iter().all(is_plain) {
        return None;
    }
    to.extend(text.iter().map(u8::to_ascii_lowercase));
    Some(())
}
