//! Reads a table's description from the information schema.

use mysql_async::Row;
use windrow_core::apart::Apart;
use windrow_core::{Op, TableName};

use super::guard;
use super::information::about;
use super::proof;
use super::table::{Facts, NO_VALUE_YET, OURS, Trigger, Unique};
use crate::fault::{Scope, Trouble};
use crate::quoted::quoted_name;
use crate::session::{QueryResult, Session};
use crate::values::cell::{get, text};
use crate::values::column::{Column, ColumnDefault, Kind};

/// Reads a table; `None` if it does not exist. A read of no rows comes first: its lock prevents
/// changes of the table until all has been read.
///
/// # Errors
/// The server refused a query, or the connection is lost.
pub(crate) async fn read(
    session: &mut Session,
    name: &TableName,
) -> Result<Option<Facts>, Trouble> {
    let mut held = "START TRANSACTION; ".to_owned();
    guard::push_all(&mut held, name);
    let (seen, ended) = session.looks(&held).await;
    let seen = match ended {
        Ok(()) => Some(seen),
        Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Statement => {
            match refusal.number {
                // No such table, or no such database.
                1146 | 1049 => {
                    session.say("ROLLBACK").await?;
                    return Ok(None);
                }
                // A user who may insert and not select gets no guard.
                1142 | 1143 => None,
                _ => {
                    session.say("ROLLBACK").await?;
                    return Err(Trouble::Refused(refusal));
                }
            }
        }
        Err(trouble) => return Err(trouble),
    };
    let facts = describe(session, name, seen.as_deref()).await;
    session.say("ROLLBACK").await?;
    facts
}

async fn describe(
    session: &mut Session,
    name: &TableName,
    seen: Option<&[QueryResult]>,
) -> Result<Option<Facts>, Trouble> {
    let table = session
        .rows(&about("TABLES", TABLES, "TABLE", name, ""))
        .await?;
    let Some(table) = table.first() else {
        return Ok(None);
    };
    let order = " ORDER BY ORDINAL_POSITION";
    let rows = session
        .rows(&about("COLUMNS", COLUMNS, "TABLE", name, order))
        .await?;
    let mut columns: Vec<Column> = rows.iter().map(|row| column(|at| get(row, at))).collect();
    if session.server.mariadb {
        let checks = "CHECK_CLAUSE";
        let rows = session
            .rows(&about("CHECK_CONSTRAINTS", checks, "CONSTRAINT", name, ""))
            .await?;
        mark_json(&mut columns, &rows);
    }
    let indexes = session
        .rows(&about(
            "STATISTICS",
            INDEXES,
            "TABLE",
            name,
            " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX",
        ))
        .await?;
    let own = " AND REFERENCED_TABLE_NAME = TABLE_NAME AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA LIMIT 1";
    let own = about("KEY_COLUMN_USAGE", "1", "TABLE", name, own);
    let (more, ended) = session.looks(&format!("{own}; SHOW GRANTS")).await;
    ended?;
    let more = |at: usize| more.get(at).map_or(&[][..], |seen| &seen.rows);
    let (own_parent, grants) = (more(0), more(1));
    let place = (text(table, 3), text(table, 4));
    let grants: Vec<String> = grants.iter().map(|row| text(row, 0)).collect();
    let sees_triggers = proof::may_see_triggers(&grants, &place.0, &place.1);
    let kind = Kindred {
        plain: text(table, 0) == "BASE TABLE",
        versioned: text(table, 0) == "SYSTEM VERSIONED",
        innodb: text(table, 5) == "InnoDB",
        numbered: rows.iter().any(|row| number(row, 12) > 0),
    };
    let (uniques, hidden_unique) = uniques(&columns, &indexes);
    let is_view = text(table, 0).ends_with("VIEW");
    let mut facts = Facts {
        name: name.clone(),
        columns,
        uniques,
        hidden_unique,
        transactional: text(table, 2) == "YES" || is_view,
        is_view,
        fuses: kind.plain && kind.innodb && own_parent.is_empty(),
        apart: kind.why_apart(name, seen, sees_triggers),
        triggers: Vec::new(),
        sees_triggers,
        retypes: !session.server.mariadb,
        ours: text(table, 1) == OURS,
        print: seen.and_then(guard::print),
    };
    let triggers = seen.and_then(|seen| seen.get(2));
    let triggers = triggers.map_or(&[][..], |seen| &seen.rows).iter();
    facts.triggers = triggers.filter_map(|row| trigger(&facts, row)).collect();
    Ok(Some(facts))
}

const TABLES: &str = "TABLE_TYPE, TABLE_COMMENT, (SELECT e.TRANSACTIONS FROM information_schema.ENGINES e \
    WHERE e.ENGINE = x.ENGINE), TABLE_SCHEMA, TABLE_NAME, ENGINE";

/// The sort of a table.
struct Kindred {
    plain: bool,
    versioned: bool,
    innodb: bool,
    /// A table that stores the numbers of transactions in its rows.
    numbered: bool,
}

impl Kindred {
    fn why_apart(
        &self,
        name: &TableName,
        seen: Option<&[QueryResult]>,
        sees_triggers: bool,
    ) -> Option<Apart> {
        if !(self.plain || self.versioned) {
            let view = Apart::of("a view").by(format!("view {name}"));
            return Some(view.advised("write to the table itself").unproven());
        }
        if self.numbered {
            return Some(Apart::of("numbers of transactions").by(format!("table {name}")));
        }
        let definition = seen.and_then(|seen| seen.get(1)?.rows.first());
        let Some(definition) = definition.map(|row| text(row, 1)) else {
            let hidden = Apart::of("a definition that cannot be seen").by(format!("table {name}"));
            return Some(hidden.advised("grant SELECT on the table").unproven());
        };
        if let Err(what) = proof::definition(&definition) {
            let odd = Apart::of("a definition that is not proven");
            return Some(odd.by(format!("{what} in table {name}")).unproven());
        }
        if !sees_triggers {
            let hidden = Apart::of("triggers that cannot be seen").by(format!("table {name}"));
            return Some(hidden.advised("grant TRIGGER on the table").unproven());
        }
        // Other engines do not undo a failed statement as InnoDB does.
        let other = Apart::of("another engine than InnoDB").by(format!("table {name}"));
        (!self.innodb).then(|| other.advised("ALTER TABLE .. ENGINE = InnoDB"))
    }
}

/// Reads a trigger from the result of the guard's query.
fn trigger(facts: &Facts, row: &Row) -> Option<Trigger> {
    let op = match &*text(row, 1) {
        "INSERT" => Op::Insert,
        "UPDATE" => Op::Update,
        "DELETE" => Op::Delete,
        _ => return None,
    };
    let apart = |what: String| {
        let object = format!("trigger {} on {} ({what})", text(row, 0), facts.name);
        let advice = "let it do nothing but SET NEW.column, IF and SIGNAL, with built-in functions";
        let apart = Apart::of("a trigger that is not proven").by(object);
        apart.advised(advice).unproven()
    };
    let (body, mode) = (text(row, 2), text(row, 3));
    let sets = proof::trigger(&body, &mode).and_then(|names| {
        let place = |name: &String| facts.place_of(name).ok_or_else(|| name.clone());
        names.iter().map(place).collect()
    });
    // After the write, the new row does not change any more.
    let may_set = match &*text(row, 4) {
        "BEFORE" => proof::named_in(&body, &mode),
        _ => Some(Vec::new()),
    };
    let places = |names: Vec<String>| {
        names
            .iter()
            .filter_map(|name| facts.place_of(name))
            .collect()
    };
    Some(Trigger {
        op,
        sets: sets.map_err(apart),
        may_set: may_set.map(places),
    })
}

/// The columns of the information schema that describe a column.
pub(crate) const COLUMNS: &str = "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, EXTRA, COLUMN_DEFAULT, CHARACTER_SET_NAME, \
    COLLATION_NAME, COALESCE(CHARACTER_MAXIMUM_LENGTH, DATETIME_PRECISION, 0), COALESCE(NUMERIC_PRECISION, 0), \
    COALESCE(NUMERIC_SCALE, 0), COLUMN_COMMENT, COALESCE(GENERATION_EXPRESSION = 'ROW START' AND DATA_TYPE = 'bigint', 0)";

const INDEXES: &str = "INDEX_NAME, COLUMN_NAME, SUB_PART";

/// Reads a column. `cell`: the values of [`COLUMNS`] by their places.
pub(crate) fn column(cell: impl Fn(usize) -> Option<String>) -> Column {
    let text = |place| cell(place).unwrap_or_default();
    let number = |place| cell(place).and_then(|n| n.parse().ok()).unwrap_or_default();
    let (data_type, column_type) = (text(1), text(2));
    let extra = text(4).to_ascii_lowercase();
    let not_null = text(3) == "NO";
    let default = cell(5).filter(|default| default != "NULL");
    let kind = Kind::of(&data_type, &column_type, number(9), number(10));
    let length = match kind {
        // TEXT limits bytes and not characters: too low a limit does no harm.
        Kind::Json | Kind::Blob | Kind::Vector => 0,
        Kind::Bit => number(9),
        _ => number(8),
    };
    let given_none = ColumnDefault::of(kind, length, default.as_deref(), &extra);
    Column {
        name: text(0).into(),
        kind,
        not_null,
        auto: extra.contains("auto_increment"),
        generated: extra.contains("virtual")
            || extra.contains("stored generated")
            || extra.contains("persistent"),
        null_by_default: !not_null && default.is_none(),
        charset: text(6).into(),
        collation: text(7).into(),
        length,
        default: given_none,
        no_value_yet: text(11) == NO_VALUE_YET,
    }
}

/// Returns true for MariaDB's JSON, which is a text with a check.
fn mark_json(columns: &mut [Column], checks: &[Row]) {
    for check in checks {
        let clause = text(check, 0);
        let name = clause
            .strip_prefix("json_valid(")
            .and_then(|rest| quoted_name('`', rest))
            .and_then(|(name, rest)| (rest == ")").then_some(name));
        let is_named = |c: &&mut Column| Some(&*c.name) == name.as_deref();
        if let Some(column) = columns.iter_mut().find(is_named) {
            column.kind = Kind::Json;
            column.length = 0;
        }
    }
}

fn uniques(columns: &[Column], rows: &[Row]) -> (Vec<Unique>, bool) {
    let mut indexes: Vec<(String, Option<Vec<usize>>)> = Vec::new();
    for row in rows {
        let name = text(row, 0);
        if indexes.last().is_none_or(|(last, _)| *last != name) {
            indexes.push((name, Some(Vec::new())));
        }
        let column = text(row, 1);
        let place = columns.iter().position(|c| *c.name == *column);
        let whole = get::<u64>(row, 2).is_none();
        if let Some((_, places)) = indexes.last_mut() {
            match (places.as_mut(), place.filter(|_| whole)) {
                (Some(places), Some(place)) => places.push(place),
                _ => *places = None,
            }
        }
    }
    let hidden = indexes.iter().any(|(_, places)| places.is_none());
    let unique = |(name, places): (String, Option<Vec<usize>>)| {
        Some(Unique {
            columns: places?.into(),
            primary: name == "PRIMARY",
            name: name.into(),
        })
    };
    (indexes.into_iter().filter_map(unique).collect(), hidden)
}

fn number(row: &Row, place: usize) -> usize {
    get(row, place).unwrap_or_default()
}
