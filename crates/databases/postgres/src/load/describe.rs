//! Asks the server to describe a table that is to be loaded.

use windrow_core::{Fault, FaultClass, TableName};
use windrow_database::quote::push_table;

use super::message::push_statement;
use crate::catalog::schema;
use crate::catalog::table::Facts;
use crate::dialect::Dialect;
use postgres_protocol::message::frontend;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

/// A table's OID and kind, and its columns' names, types and modifiers, as one text. A description
/// holds as long as this text does not change. The text also covers rules, triggers and row
/// security: a load relies on them, and would not notice a change by itself.
const PRINT: &str = "\
concat_ws(' ', c.oid, c.relkind, row_security_active(c.oid),
  EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid),
  EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal),
  (SELECT string_agg(concat_ws(' ', quote_ident(a.attname), a.atttypid, a.atttypmod, a.attgenerated, a.attidentity), ',' ORDER BY a.attnum)
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))";

/// Further facts that decide whether COPY can fill the table, and the columns' types as SQL.
const MORE: &str = "\
c.relkind,
  EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid),
  row_security_active(c.oid),
  EXISTS (SELECT FROM pg_partition_tree(c.oid) p JOIN pg_class pc ON pc.oid = p.relid WHERE pc.relkind NOT IN ('r', 'p')),
  has_database_privilege(current_database(), 'TEMP'),
  (SELECT json_object_agg(a.attname, format_type(a.atttypid, a.atttypmod))
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)";

const FROM: &str = "FROM pg_class c WHERE c.oid = to_regclass($1)";

/// The description of a table for a load.
pub(super) struct Described {
    pub(super) facts: Facts,
    /// The text that [`check`] compares.
    pub(super) print: String,
    pub(super) more: More,
}

/// Facts for a load that [`Facts`] do not contain.
#[derive(Default)]
pub(super) struct More {
    /// True for an ordinary table, false for a partitioned one.
    pub(super) ordinary: bool,
    /// The reason why COPY would not do what an INSERT does, if there is one.
    pub(super) apart: Option<&'static str>,
    /// True if the role may create temporary tables.
    pub(super) makes_temporary: bool,
    types: serde_json::Map<String, serde_json::Value>,
}

impl More {
    /// Returns a column's type as SQL, with its modifier.
    pub(super) fn type_of(&self, column: &str) -> Option<&str> {
        self.types.get(column)?.as_str()
    }

    fn of(cells: &[Option<String>]) -> Self {
        let cell = |place: usize| cells.get(place).and_then(Option::as_deref);
        let is = |place| cell(place) == Some("t");
        let kind = cell(1).unwrap_or_default();
        let apart = if !matches!(kind, "r" | "p") {
            Some("it is no table, but a view or a foreign table")
        } else if is(2) {
            Some("it has rules, which COPY passes over")
        } else if is(3) {
            Some("it has row-level security, which COPY does not know")
        } else if is(4) {
            Some("some of its partitions are foreign tables")
        } else {
            None
        };
        let types = cell(6).and_then(|json| serde_json::from_str(json).ok());
        Self {
            ordinary: kind == "r",
            apart,
            makes_temporary: is(5),
            types: types.unwrap_or_default(),
        }
    }
}

/// Reads a table; `None` if there is none of that name. Takes two round trips.
///
/// # Errors
/// The connection is lost, or the server refuses to describe the table.
pub(super) async fn describe(
    wire: &mut Wire,
    name: &TableName,
    dialect: &'static Dialect,
) -> Result<Option<Described>, Fault> {
    let lost = |broken: Broken| broken.unavailable();
    // This query goes first: the check after each portion notices a change between the two.
    let sql = format!("SELECT {PRINT}, {MORE} {FROM}");
    let Some(cells) = row(wire, &sql, &quoted(name)).await.map_err(lost)?? else {
        return Ok(None);
    };
    let Some(facts) = schema::read_unproven(wire, name, dialect)
        .await
        .map_err(lost)??
    else {
        return Ok(None);
    };
    Ok(Some(Described {
        facts,
        print: cells.first().cloned().flatten().unwrap_or_default(),
        more: More::of(&cells),
    }))
}

/// Returns the statement that fails (division by zero) if a table (the first parameter) does not
/// match its description (the second). The statement runs after a COPY into the table, whose lock
/// prevents changes until the commit.
pub(super) fn check() -> String {
    format!("SELECT 1 / ((SELECT {PRINT} {FROM}) IS NOT DISTINCT FROM $2)::int")
}

/// Returns a table's name in SQL.
pub(super) fn quoted(name: &TableName) -> String {
    let mut sql = String::new();
    push_table(&mut sql, name);
    sql
}

/// Returns the first row of a query with one parameter.
async fn row(
    wire: &mut Wire,
    sql: &str,
    parameter: &str,
) -> Result<Result<Option<Vec<Option<String>>>, Fault>, Broken> {
    push_statement(wire.out(), sql, &[parameter]);
    frontend::sync(wire.out());
    let mut first = None;
    let mut error: Option<ServerError> = None;
    wire.exchange(1, &mut |answer| match answer {
        Answer::DataRow(row) => {
            let text =
                |cell: Option<&[u8]>| cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            first = Some(row.columns().map(text).collect());
        }
        Answer::Error(said) => error = Some(said),
        _ => {}
    })
    .await?;
    Ok(error.map_or(Ok(first), |error| Err(error.into())))
}

/// Returns the error for a table that does not exist.
pub(super) fn no_table(name: &TableName) -> Fault {
    Fault::new(
        FaultClass::NoTable,
        "42P01",
        format!("relation \"{name}\" does not exist"),
    )
    .with_table(Some(&*name.table))
}
