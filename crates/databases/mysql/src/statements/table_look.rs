//! Reads a table's description for a lane, and notices that it has changed.
//!
//! The texts of clients are executed as they are, so a description decides only if a statement may
//! share a transaction or a statement with others, and which column the server numbers.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windrow_core::apart::Apart;
use windrow_core::{Fault, Name, Op, TableName};
use windrow_database::quote::backtick::{push_ident, push_table};
use windrow_mysqlwire::{LaneLogin, Reply};

use super::lane_session::{LaneSession, text_rows};
use super::lane_settings::literal;
use super::row_settings::RowSettings;
use crate::catalog::information::about;
use crate::catalog::proof;
use crate::catalog::schema::{COLUMNS, column};
use crate::catalog::table::OURS;
use crate::fault::{Scope, refusal_of};
use crate::values::column::{Column, Kind};

/// The time for which a look is used without another one. A change that is made through Windrow
/// retires the statements at once; this limit is for changes that are made elsewhere.
const TRUSTED_LOOK: Duration = Duration::from_millis(250);

/// The number of statements of [`guard`].
pub(super) const GUARD_STATEMENTS: usize = 2;

/// A table as it was when it was read.
#[derive(Debug)]
pub(super) struct TableLook {
    pub(super) name: TableName,
    print: TablePrint,
    pub(super) columns: Box<[LookedColumn]>,
    /// The columns of each unique key.
    pub(super) uniques: Box<[Box<[Name]>]>,
    /// The reason why no write of the table is joined.
    pub(super) apart: Option<Apart>,
    /// The facts that decide which rows of it another session may write.
    pub(super) rows: RowFacts,
    triggers: Box<[LookedTrigger]>,
    checked: Mutex<CheckTimes>,
}

/// The times of the last check.
#[derive(Clone, Copy, Debug)]
struct CheckTimes {
    asked: Instant,
    answered: Instant,
}

/// The facts about a table and the lane's sessions that decide which rows another session stores
/// the same.
#[derive(Debug)]
pub(super) struct RowFacts {
    pub(super) settings: RowSettings,
    /// True if Windrow created the table.
    pub(super) is_ours: bool,
    /// True if a row is checked or completed by expressions.
    pub(super) has_conditions: bool,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct LookedColumn {
    pub(super) column: Column,
    /// The type in SQL, as `int(10) unsigned`.
    pub(super) type_name: Box<str>,
    /// The text of the default; `None` if there is none, or NULL.
    pub(super) default: Option<Box<str>>,
    /// True if an INSERT without a list of columns gives the column no value.
    pub(super) is_invisible: bool,
}

#[derive(Debug)]
struct LookedTrigger {
    name: String,
    op: Op,
    /// The reason why the trigger is not proven, or the columns that it sets.
    sets: Result<Vec<String>, String>,
}

/// The fingerprint of a table: the rows of [`guard`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TablePrint(Vec<Vec<Option<String>>>);

impl TablePrint {
    /// Reads the answers to [`guard`]. `None` if the server refused one.
    pub(super) fn of(replies: &[Reply]) -> Option<Self> {
        let mut rows = Vec::new();
        for reply in replies {
            let Reply::Rows(..) = reply else {
                return None;
            };
            rows.extend(text_rows(reply));
        }
        if let Some(Some(definition)) = rows.first_mut().and_then(|row| row.get_mut(1)) {
            // The next AUTO_INCREMENT value is no change.
            if let Some((before, behind)) = definition.rsplit_once(" AUTO_INCREMENT=") {
                let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
                *definition = format!("{before}{rest}");
            }
        }
        Some(Self(rows))
    }
}

/// Returns the statements whose answers change with a table's definition or triggers.
pub(super) fn guard(name: &TableName) -> [String; GUARD_STATEMENTS] {
    let mut create = "SHOW CREATE TABLE ".to_owned();
    push_table(&mut create, name);
    let order = " ORDER BY TRIGGER_NAME";
    [
        create,
        about("TRIGGERS", TRIGGERS, "EVENT_OBJECT", name, order),
    ]
}

const TRIGGERS: &str =
    "TRIGGER_NAME, EVENT_MANIPULATION, ACTION_STATEMENT, SQL_MODE, ACTION_TIMING";

const TABLES: &str = "TABLE_TYPE, ENGINE, TABLE_SCHEMA, TABLE_NAME, TABLE_COMMENT";

const INDEXES: &str = "INDEX_NAME, COLUMN_NAME, SUB_PART";

/// The result of a look at a table.
pub(super) enum Looked {
    Table(Box<TableLook>),
    /// The server refuses the look, with this number.
    Refused(u16),
    /// Another session has locked the table.
    Locked,
}

/// Reads a table. A read of no rows comes first: its lock prevents changes of the table until all
/// has been read.
///
/// # Errors
/// The connection is lost, or the server is in no state to answer.
pub(super) async fn look(
    session: &mut LaneSession,
    login: &LaneLogin,
    name: &TableName,
) -> Result<Looked, Fault> {
    let questions = questions(login, name);
    let replies = session
        .replies(&questions.each_ref().map(String::as_str))
        .await;
    let replies = replies.map_err(|lost| lost.unavailable())?;
    let (first, rest) = replies.split_at(FIRST_ROWS.min(replies.len()));
    for reply in first {
        let Reply::Error(error) = reply else {
            continue;
        };
        let refusal = refusal_of(error);
        return match refusal.scope {
            Scope::Statement => Ok(Looked::Refused(refusal.number)),
            Scope::Lock => Ok(Looked::Locked),
            _ => Err(refusal.fault),
        };
    }
    let Some(print) = TablePrint::of(rest.get(..GUARD_STATEMENTS).unwrap_or_default()) else {
        return Ok(Looked::Refused(0));
    };
    let rows = |at: usize| rest.get(at).map(text_rows).unwrap_or_default();
    let answers = LookAnswers {
        definition: rows(3),
        triggers: rows(4),
        table: rows(5),
        columns: rows(6),
        indexes: rows(7),
        grants: rows(8),
    };
    let settings = session.row_settings;
    Ok(Looked::Table(Box::new(
        answers.table(name, print, settings),
    )))
}

/// The number of questions that come before the guard's.
const FIRST_ROWS: usize = 2;

/// Returns the questions of a look: those of [`guard`] under the lane's settings, then the rest
/// under settings in which the definition can be parsed.
fn questions(login: &LaneLogin, name: &TableName) -> [String; 13] {
    let mut lock = "SELECT 1 FROM ".to_owned();
    push_table(&mut lock, name);
    lock.push_str(" LIMIT 0");
    let [create, triggers] = guard(name);
    let wanted = |name| {
        let found = login.variables.iter().find(|(known, _)| *known == name);
        found.map_or("DEFAULT".to_owned(), |(_, value)| literal(value.as_deref()))
    };
    let unique = " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX";
    [
        "START TRANSACTION".to_owned(),
        lock,
        create.clone(),
        triggers.clone(),
        "SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1, \
         SESSION character_set_results = utf8mb4"
            .to_owned(),
        create,
        triggers,
        about("TABLES", TABLES, "TABLE", name, ""),
        about(
            "COLUMNS",
            COLUMNS,
            "TABLE",
            name,
            " ORDER BY ORDINAL_POSITION",
        ),
        about("STATISTICS", INDEXES, "TABLE", name, unique),
        "SHOW GRANTS".to_owned(),
        format!(
            "SET SESSION sql_mode = {}, SESSION sql_quote_show_create = {}, \
             SESSION character_set_results = {}",
            wanted("sql_mode"),
            wanted("sql_quote_show_create"),
            wanted("character_set_results")
        ),
        "ROLLBACK".to_owned(),
    ]
}

/// The rows of the questions.
struct LookAnswers {
    definition: Vec<Vec<Option<String>>>,
    triggers: Vec<Vec<Option<String>>>,
    table: Vec<Vec<Option<String>>>,
    columns: Vec<Vec<Option<String>>>,
    indexes: Vec<Vec<Option<String>>>,
    grants: Vec<Vec<Option<String>>>,
}

fn text(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

impl LookAnswers {
    fn table(&self, name: &TableName, print: TablePrint, settings: RowSettings) -> TableLook {
        let mut checks = self
            .definition
            .first()
            .map_or("", |row| text(row, 1))
            .to_owned();
        let columns: Box<[_]> = self
            .columns
            .iter()
            .map(|row| looked_column(row, &mut checks))
            .collect();
        let is_generated = |looked: &LookedColumn| looked.column.generated;
        let comment = self.table.first().map_or("", |row| text(row, 4));
        TableLook {
            name: name.clone(),
            print,
            rows: RowFacts {
                settings,
                is_ours: comment == OURS,
                has_conditions: checks.contains("CHECK") || columns.iter().any(is_generated),
            },
            columns,
            uniques: self.uniques(),
            apart: self.why_apart(name),
            triggers: self
                .triggers
                .iter()
                .filter_map(|row| trigger(row))
                .collect(),
            checked: Mutex::new(CheckTimes::now()),
        }
    }

    fn why_apart(&self, name: &TableName) -> Option<Apart> {
        let table = self.table.first().map_or(&[][..], Vec::as_slice);
        let apart = |phrase| Apart::of(phrase).by(format!("table {name}"));
        match text(table, 0) {
            "BASE TABLE" => {}
            "SYSTEM VERSIONED" => return Some(apart("a version history")),
            "" => return Some(apart("a table that cannot be seen")),
            _ => return Some(apart("a view").advised("write to the table itself")),
        }
        if text(table, 1) != "InnoDB" {
            let other = apart("another engine than InnoDB");
            return Some(other.advised("ALTER TABLE .. ENGINE = InnoDB"));
        }
        if self.columns.iter().any(|row| text(row, 12) != "0") {
            return Some(apart("numbers of transactions"));
        }
        let definition = self.definition.first().map_or("", |row| text(row, 1));
        let proven = proof::definition(definition);
        let takes_numbers = definition.to_ascii_lowercase().contains("nextval(");
        let proven = match takes_numbers {
            true => Err("a sequence".to_owned()),
            false => proven,
        };
        if let Err(what) = proven {
            let odd = Apart::of("a definition that is not proven");
            return Some(odd.by(format!("{what} in table {name}")));
        }
        let grants: Vec<String> = self.grants.iter().map(|row| text(row, 0).into()).collect();
        if !proof::may_see_triggers(&grants, text(table, 2), text(table, 3)) {
            let hidden = apart("triggers that cannot be seen");
            return Some(hidden.advised("grant TRIGGER on the table"));
        }
        None
    }

    fn uniques(&self) -> Box<[Box<[Name]>]> {
        let mut indexes: Vec<(&str, Option<Vec<Name>>)> = Vec::new();
        for row in &self.indexes {
            if indexes.last().is_none_or(|(last, _)| *last != text(row, 0)) {
                indexes.push((text(row, 0), Some(Vec::new())));
            }
            // A part of a column, or an expression, names no row by the column's value.
            let is_whole = row.get(2).is_some_and(Option::is_none) && !text(row, 1).is_empty();
            if let Some((_, columns)) = indexes.last_mut() {
                match (columns.as_mut(), is_whole) {
                    (Some(columns), true) => columns.push(text(row, 1).into()),
                    _ => *columns = None,
                }
            }
        }
        let whole = indexes.into_iter().filter_map(|(_, columns)| columns);
        whole.map(Vec::into_boxed_slice).collect()
    }
}

/// Returns true if two names are those of one column: case does not matter.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

/// Reads a column. MariaDB's JSON is a text with a check, which is taken out of `checks`, the
/// table's definition.
fn looked_column(row: &[Option<String>], checks: &mut String) -> LookedColumn {
    let mut column = column(|at| row.get(at).cloned().flatten());
    let mut check = "CHECK (json_valid(".to_owned();
    push_ident(&mut check, &column.name);
    check.push_str("))");
    if checks.contains(&check) {
        *checks = checks.replace(&check, "");
        (column.kind, column.length) = (Kind::Json, 0);
    }
    let default = row.get(5).cloned().flatten();
    LookedColumn {
        type_name: text(row, 2).into(),
        default: default.filter(|text| text != "NULL").map(Into::into),
        is_invisible: text(row, 4).to_ascii_lowercase().contains("invisible"),
        column,
    }
}

fn trigger(row: &[Option<String>]) -> Option<LookedTrigger> {
    let op = match text(row, 1) {
        "INSERT" => Op::Insert,
        "UPDATE" => Op::Update,
        "DELETE" => Op::Delete,
        _ => return None,
    };
    Some(LookedTrigger {
        name: text(row, 0).to_owned(),
        op,
        sets: proof::trigger(text(row, 2), text(row, 3)),
    })
}

impl CheckTimes {
    fn now() -> Self {
        let now = Instant::now();
        Self {
            asked: now,
            answered: now,
        }
    }
}

impl TableLook {
    /// Returns the column that the server numbers.
    pub(super) fn auto_column(&self) -> Option<&Name> {
        let auto = self.columns.iter().find(|looked| looked.column.auto);
        auto.map(|looked| &looked.column.name)
    }

    /// Returns true if an INSERT fires triggers.
    pub(super) fn has_insert_triggers(&self) -> bool {
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.op == Op::Insert)
    }

    /// Returns the reason why a write that does these operations is not joined.
    pub(super) fn why_apart(&self, ops: &[Op]) -> Option<Apart> {
        if let Some(apart) = &self.apart {
            return Some(apart.clone());
        }
        let mut fired = self
            .triggers
            .iter()
            .filter(|trigger| ops.contains(&trigger.op));
        fired.find_map(|trigger| {
            let why = match &trigger.sets {
                Err(what) => what.clone(),
                Ok(columns) => {
                    let auto = self.auto_column()?;
                    let sets_it = columns.iter().any(|name| name.eq_ignore_ascii_case(auto));
                    sets_it.then(|| "it sets the numbered column".to_owned())?
                }
            };
            let object = format!("trigger {} on {} ({why})", trigger.name, self.name);
            let advice =
                "let it do nothing but SET NEW.column, IF and SIGNAL, with built-in functions";
            let apart = Apart::of("a trigger that is not proven").by(object);
            Some(apart.advised(advice).unproven())
        })
    }

    /// Returns true if the table was checked a short time ago.
    pub(super) fn is_trusted(&self) -> bool {
        self.checked.lock().answered.elapsed() < TRUSTED_LOOK
    }

    /// Returns true if a check is to be sent along: always if the table is not trusted, and once
    /// in half of that time, so that a table in use stays trusted.
    pub(super) fn is_due(&self) -> bool {
        let mut times = self.checked.lock();
        let is_trusted = times.answered.elapsed() < TRUSTED_LOOK;
        if is_trusted && times.asked.max(times.answered).elapsed() < TRUSTED_LOOK / 2 {
            return false;
        }
        times.asked = Instant::now();
        true
    }

    /// Compares the table with the answers to [`guard`]. Returns false if the table has changed.
    pub(super) fn check(&self, replies: &[Reply]) -> bool {
        let holds = TablePrint::of(replies).is_some_and(|print| print == self.print);
        if holds {
            self.checked.lock().answered = Instant::now();
        }
        holds
    }

    /// Returns true if two looks saw the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.print == other.print
    }
}
