//! Checks that a table can be loaded, and writes the statement.

use mysql_async::Row;
use windrow_core::load::Fields;
use windrow_core::{Fault, FaultClass, Field, LoadPlan, OnConflict, TableName};
use windrow_database::quote::backtick::{push_ident, push_table};
use windrow_database::{decimal, infer};

use super::field;
use crate::catalog::create;
use crate::catalog::guard;
use crate::catalog::information::about;
use crate::catalog::schema;
use crate::catalog::table::Facts;
use crate::catalog::table::Print;
use crate::fault::Trouble;
use crate::session::Session;
use crate::values::cell::get;
use crate::values::column::{Column, Kind};

/// The statement that carries rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// LOAD DATA LOCAL, with the rows as a file.
    File,
    /// INSERT, with the rows in its text: for servers that do not allow LOAD DATA LOCAL.
    Insert,
}

/// A load, ready to be executed.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) table: TableName,
    /// The text that opens the transaction and checks that the table is as it was described. From
    /// then on the table stays so.
    pub(super) open: String,
    pub(super) print: Print,
    pub(super) sql: String,
    /// The statement that carries rows.
    pub(super) way: Way,
    /// True if rows are left out whose key exists.
    pub(super) ignores: bool,
    pub(super) columns: Box<[Column]>,
    /// The kinds of those columns for which Windrow itself decides which values they keep.
    judged: Box<[Option<infer::Kind>]>,
}

impl Load {
    /// Appends the next row.
    ///
    /// # Errors
    /// A value cannot be written.
    pub(super) fn push_row(&self, fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        for (at, (column, judged)) in self.columns.iter().zip(&self.judged).enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            let field = fields.next().ok_or_else(too_few)?;
            check(*judged, column, &field)?;
            field::push(out, &self.table, column, field)?;
        }
        out.push(b'\n');
        Ok(())
    }

    /// Appends the next row as one of an INSERT.
    ///
    /// # Errors
    /// A value cannot be written, or the server would store another one.
    pub(super) fn push_values(
        &self,
        fields: &mut Fields<'_>,
        out: &mut String,
    ) -> Result<(), Fault> {
        for (at, (column, judged)) in self.columns.iter().zip(&self.judged).enumerate() {
            out.push_str(if at > 0 { ", " } else { "(" });
            let field = fields.next().ok_or_else(too_few)?;
            check(*judged, column, &field)?;
            field::push_literal(out, &self.table, column, field)?;
        }
        out.push(')');
        Ok(())
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }
}

fn too_few() -> Fault {
    Fault::internal("a portion has fewer fields than its load has columns")
}

/// Refuses a value that a column would not keep. `judged` is the kind of a column for which Windrow
/// decides that.
fn check(judged: Option<infer::Kind>, column: &Column, field: &Field<'_>) -> Result<(), Fault> {
    match judged.is_some_and(|kind| !keeps(kind, column, field)) {
        true => Err(unsupported("a column does not keep a value as it is")),
        false => Ok(()),
    }
}

/// Reads the table and makes the statement.
///
/// # Errors
/// [`FaultClass::Unsupported`] if rows must be written by a lane; the table or a column does not
/// exist; the connection is lost.
pub(super) async fn make(
    session: &mut Session,
    plan: &LoadPlan,
    creates: bool,
) -> Result<Load, Fault> {
    let way = prepare(session).await?;
    let facts = schema::read(session, &plan.table).await?;
    let facts = facts.ok_or_else(|| {
        let message = format!("no such table: {}", plan.table);
        Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*plan.table.table))
    })?;
    let asked = about("COLUMNS", MORE, "TABLE", &plan.table, "");
    let more = session.rows(&asked).await?;
    of_facts(plan, &facts, &more, creates, way)
}

/// Makes the server keep all warnings. Returns the statement that carries rows.
async fn prepare(session: &mut Session) -> Result<Way, Trouble> {
    let allowed = session.rows("SELECT @@local_infile").await?;
    let is_allowed = allowed.first().and_then(|row| get::<u8>(row, 0)) == Some(1);
    let mut settings = vec!["SET SESSION max_error_count = 65535"];
    if !session.server.mariadb {
        // MySQL only notes some values that it otherwise refuses: LOAD DATA stores 12abc as 12 in a
        // DECIMAL.
        settings.push(match is_allowed {
            true => "SET SESSION sql_notes = 1",
            false => "SET SESSION sql_notes = 0",
        });
    }
    for setting in settings {
        match session.say(setting).await {
            // A user without the right to set it gets fewer warnings, so more rows are written one
            // by one.
            Err(Trouble::Refused(_)) if session.is_usable() => {}
            said => drop(said?),
        }
    }
    Ok(if is_allowed { Way::File } else { Way::Insert })
}

/// The columns of a query for facts that a table's description does not hold.
const MORE: &str = "COLUMN_NAME, DATA_TYPE IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint', \
    'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection', 'vector'), \
    IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL";

fn of_facts(
    plan: &LoadPlan,
    facts: &Facts,
    more: &[Row],
    creates: bool,
    way: Way,
) -> Result<Load, Fault> {
    let places = places(plan, facts)?;
    let proven = facts.fuses && facts.apart.is_none() && facts.triggers.is_empty();
    let Some(print) = facts.print.clone().filter(|_| proven) else {
        return Err(unsupported(
            "LOAD DATA is used for tables of InnoDB without triggers that do not refer to themselves, that the user may read, and of whose \
             definition all is known",
        ));
    };
    for row in more {
        let (name, shape, needed) = (get::<String>(row, 0), get(row, 1), get(row, 2));
        let place = name.and_then(|name| facts.place_of(&name));
        let column = place.and_then(|place| facts.columns.get(place));
        let given = place.is_some_and(|place| places.contains(&place));
        if given && (shape == Some(1) || column.is_some_and(|c| c.generated)) {
            return Err(unsupported("a column's type is not loaded by LOAD DATA"));
        }
        if !given && needed == Some(1) && column.is_some_and(|c| !c.auto && !c.generated) {
            return Err(unsupported(
                "a column that must have a value is not given one",
            ));
        }
    }
    check_conflict(plan, facts, &places, way)?;
    let columns = places.iter().filter_map(|place| facts.columns.get(*place));
    let columns: Box<[Column]> = columns.cloned().collect();
    if creates && columns.iter().any(|column| column.no_value_yet) {
        return Err(unsupported("a column has no type yet"));
    }
    let judged = |column: &Column| create::judged(facts, column).filter(|_| creates);
    let judged = columns.iter().map(judged).collect();
    let mut open = "START TRANSACTION; ".to_owned();
    guard::push_all(&mut open, &plan.table);
    Ok(Load {
        open,
        print,
        sql: match way {
            Way::File => statement(&plan.table, &columns, |_| true),
            Way::Insert => insert(&plan.table, &columns),
        },
        way,
        ignores: plan.on_conflict == OnConflict::Ignore,
        table: plan.table.clone(),
        columns,
        judged,
    })
}

fn places(plan: &LoadPlan, facts: &Facts) -> Result<Vec<usize>, Fault> {
    let mut places = Vec::with_capacity(plan.columns.len());
    for name in &plan.columns {
        let place = facts.place_of(name).ok_or_else(|| {
            let message = format!("table {} has no column named {name}", plan.table);
            Fault::new(FaultClass::NoColumn, "42703", message)
                .with_table(Some(&*plan.table.table))
                .with_column(Some(&**name))
        })?;
        if places.contains(&place) {
            let message = format!("column {name} is named twice");
            return Err(Fault::new(FaultClass::Invalid, "42701", message));
        }
        places.push(place);
    }
    if places.is_empty() {
        return Err(unsupported("a load must name at least one column"));
    }
    Ok(places)
}

/// Checks the table's unique keys. The warning of a row that is left out says only that some key
/// existed, so the table must have no unique key but the one that the conflict rule names.
fn check_conflict(plan: &LoadPlan, facts: &Facts, given: &[usize], way: Way) -> Result<(), Fault> {
    match plan.on_conflict {
        OnConflict::Error => return Ok(()),
        // An INSERT that leaves rows out does not tell which ones.
        _ if way == Way::Insert => {
            return Err(unsupported(
                "the server does not allow LOAD DATA LOCAL (local_infile is off)",
            ));
        }
        OnConflict::Update => {
            return Err(unsupported("LOAD DATA cannot change rows that are there"));
        }
        OnConflict::Ignore => {}
    }
    let names = facts.key_names(&plan.key).unwrap_or_default();
    let key: Option<Vec<usize>> = names.iter().map(|name| facts.place_of(name)).collect();
    match key {
        Some(key) if facts.is_unique(&key) && !facts.has_rival(&key, given) => Ok(()),
        _ => Err(unsupported(
            "with several unique keys LOAD DATA does not tell which one was there already",
        )),
    }
}

/// Returns the statement for a table that has these columns, or those of them that `there` marks.
/// It ignores the file's values for the others.
pub(super) fn statement(
    table: &TableName,
    columns: &[Column],
    there: impl Fn(&Column) -> bool,
) -> String {
    // The server uses the file's name for nothing else. Separators are written in hexadecimal, so
    // that `sql_mode` does not change their meaning.
    let mut sql = "LOAD DATA LOCAL INFILE 'windrow' INTO TABLE ".to_owned();
    push_table(&mut sql, table);
    sql.push_str(
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY X'09' ENCLOSED BY '' ESCAPED BY X'5C' LINES TERMINATED BY X'0A' (",
    );
    let mut set = String::new();
    for (at, column) in columns.iter().enumerate() {
        sql.push_str(if at > 0 { ", " } else { "" });
        let by_variable = by_variable(column.kind);
        if by_variable.is_none() && there(column) {
            push_ident(&mut sql, &column.name);
            continue;
        }
        let variable = format!("@windrow_{at}");
        sql.push_str(&variable);
        let Some((before, behind)) = by_variable.filter(|_| there(column)) else {
            continue;
        };
        set.push_str(if set.is_empty() { " SET " } else { ", " });
        push_ident(&mut set, &column.name);
        set.push_str(&format!(" = {before}{variable}{behind}"));
    }
    sql.push(')');
    sql.push_str(&set);
    sql
}

/// Returns the beginning of an INSERT, up to its rows.
fn insert(table: &TableName, columns: &[Column]) -> String {
    let mut sql = "INSERT INTO ".to_owned();
    push_table(&mut sql, table);
    for (at, column) in columns.iter().enumerate() {
        sql.push_str(if at > 0 { ", " } else { " (" });
        push_ident(&mut sql, &column.name);
    }
    sql.push_str(") VALUES ");
    sql
}

/// Returns the expression that converts the text for a column, if the column does not convert it.
fn by_variable(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Binary | Kind::Blob => Some(("FROM_BASE64(", ")")),
        Kind::Bit => Some(("CAST(", " AS UNSIGNED)")),
        _ => None,
    }
}

/// Returns false if a column that Windrow created would not keep a field exactly. A double keeps
/// only the digits that it returns.
fn keeps(kind: infer::Kind, column: &Column, field: &Field<'_>) -> bool {
    let rounds = match *field {
        Field::Plain(digits) | Field::Number(digits) if column.kind == Kind::Double => {
            !decimal::is_double(digits)
        }
        _ => false,
    };
    !rounds && kind.takes_field(field)
}

fn unsupported(why: &str) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", why)
}
