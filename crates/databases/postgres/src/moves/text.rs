//! The statements of a move.

use windrow_core::moves::{Destination, MovePlan};
use windrow_core::{Name, Value};
use windrow_database::moved::push_filter;
use windrow_database::quote::{push_ident, push_idents};
use windrow_pgwire::wire::DataRow;

use super::facts::{Facts, quoted};
use crate::catalog::column::Kind;
use crate::catalog::table::Facts as Described;
use crate::values::decode;

/// The handle that identifies a picked row until the end of the transaction.
#[derive(Clone, Debug)]
enum Handle {
    /// The row's place in the table, which no other session can change while the row is locked.
    Place,
    /// The values of the row's key, if the rows lie in several tables: the columns, and their
    /// types.
    Key(Vec<(Name, String)>),
}

/// The texts that do not change during a move.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    pub(super) plan: MovePlan,
    /// The source as SQL.
    pub(super) source: String,
    handle: Handle,
    /// The columns' kinds, if rows are read.
    kinds: Vec<Kind>,
    /// The kinds of the columns that name a row, if rows are read.
    names: Vec<Kind>,
    /// All columns of the source.
    pub(super) all: Vec<Name>,
}

impl Texts {
    pub(super) fn new(plan: &MovePlan, facts: &Facts, described: Option<&Described>) -> Self {
        let typed = |name: &Name| (name.clone(), facts.type_of(name).to_owned());
        let kind = |name: &Name| {
            let columns = described.map(|d| d.columns.as_slice()).unwrap_or_default();
            let column = columns.iter().find(|column| column.name == *name);
            column.map_or(Kind::Other, |column| column.kind.clone())
        };
        Self {
            source: quoted(&plan.source),
            handle: match facts.parted {
                true => Handle::Key(plan.key.iter().map(typed).collect()),
                false => Handle::Place,
            },
            kinds: plan.columns.iter().map(kind).collect(),
            names: plan.names.iter().map(kind).collect(),
            all: facts.table.columns.clone(),
            plan: plan.clone(),
        }
    }

    /// Returns the number of texts that identify a row.
    pub(super) fn handles(&self) -> usize {
        match &self.handle {
            Handle::Place => 1,
            Handle::Key(columns) => columns.len(),
        }
    }

    /// Appends `SELECT what FROM source ..`, for rows that no other session has locked.
    fn push_pick(&self, sql: &mut String, what: &str, rows: usize) {
        sql.push_str(&format!("SELECT {what} FROM {}", self.source));
        push_filter(sql, self.plan.filter.as_deref());
        // Orders by the table's own columns: selected expressions have the same names.
        let mut table = String::new();
        push_ident(&mut table, &self.plan.source.table);
        let mut before = " ORDER BY ";
        for name in &self.plan.key {
            sql.push_str(before);
            sql.push_str(&table);
            sql.push('.');
            push_ident(sql, name);
            before = ", ";
        }
        sql.push_str(&format!(" LIMIT {rows} FOR UPDATE SKIP LOCKED"));
    }

    /// Returns the query that locks rows and reads them.
    pub(super) fn pick(&self, rows: usize) -> String {
        let mut sql = String::new();
        self.push_pick(&mut sql, &self.what(), rows);
        sql
    }

    /// Returns the query that locks rows and reads their handles alone.
    pub(super) fn lock(&self, rows: usize) -> String {
        let mut sql = String::new();
        self.push_pick(&mut sql, &self.handle_texts(), rows);
        sql
    }

    /// Returns the query that reads locked rows.
    pub(super) fn read(&self) -> String {
        let (what, source, held) = (self.what(), &self.source, self.held());
        format!("SELECT {what} FROM {source} WHERE {held}")
    }

    /// Returns the query that reads a single column of locked rows.
    pub(super) fn probe(&self, column: &Name) -> String {
        let (source, held) = (&self.source, self.held());
        let mut what = String::new();
        push_ident(&mut what, column);
        format!("SELECT {what}::text FROM {source} WHERE {held}")
    }

    /// Returns the list of columns to read: the handles as texts, the route as text, then (across
    /// databases) the columns that name the row, and the columns to move.
    fn what(&self) -> String {
        let mut what = self.handle_texts();
        what.push_str(", ");
        match &self.plan.route {
            Some(route) => {
                push_ident(&mut what, route);
                what.push_str("::text");
            }
            None => what.push_str("NULL"),
        }
        if self.plan.across {
            what.push_str(", ");
            what.push_str(&self.name());
            for (name, kind) in self.plan.columns.iter().zip(&self.kinds) {
                what.push_str(", ");
                self.push_read(&mut what, name, kind);
            }
        }
        what
    }

    /// Appends a column as it is read. Values of types that other databases lack are read as JSON,
    /// or unchanged if the destination is of the same kind.
    fn push_read(&self, sql: &mut String, name: &Name, kind: &Kind) {
        let mut column = String::new();
        push_ident(&mut column, name);
        sql.push_str(&match kind {
            _ if self.plan.alike => column,
            // JSON has no form for an array's bounds, and does not distinguish NULL from a JSON
            // null. Such an array stays in its own spelling, as a JSON text.
            Kind::Array(element, _) => {
                let null = match **element {
                    Kind::Json | Kind::Jsonb => format!(" OR 'null' = ANY ({column}::text[])"),
                    _ => String::new(),
                };
                format!(
                    "CASE WHEN {column}::text LIKE '[%'{null} THEN to_json({column}::text) ELSE to_json({column}) END"
                )
            }
            Kind::Composite => format!("to_json({column})"),
            _ => column,
        });
    }

    /// Returns the values of a row that [`Texts::pick`] gave.
    pub(super) fn values(&self, row: &DataRow<'_>) -> Box<[Value]> {
        if !self.plan.across {
            return Box::default();
        }
        let first = self.handles() + 2;
        let value = |(place, kind): (usize, &Kind)| {
            let kind = match kind {
                Kind::Array(..) | Kind::Composite if self.plan.alike => &Kind::Other,
                kind => kind,
            };
            match decode::value(kind, row.get(first + place)) {
                Value::Json(json) if matches!(kind, Kind::Array(..)) => spelled(json),
                value => value,
            }
        };
        self.kinds.iter().enumerate().map(value).collect()
    }

    /// Returns an expression for the columns that name a row, as text. Arrays, composites and types
    /// without a form in JSON are written as the type's own text, because JSON would lose an
    /// array's bounds, or whatever a cast to JSON leaves out.
    fn name(&self) -> String {
        let mut sql = String::from("json_build_array(");
        for (place, (name, kind)) in self.plan.names.iter().zip(&self.names).enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            push_ident(&mut sql, name);
            if matches!(kind, Kind::Array(..) | Kind::Composite | Kind::Other) {
                sql.push_str("::text");
            }
        }
        sql.push_str(")::text");
        sql
    }

    /// Returns the expressions of a row's handle: `ctid::text`, or the bytes of the key's columns
    /// as texts, which may have no form in UTF-8.
    pub(super) fn handle_texts(&self) -> String {
        let Handle::Key(columns) = &self.handle else {
            return "ctid::text".to_owned();
        };
        let mut sql = String::new();
        for (place, (name, _)) in columns.iter().enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            let mut column = String::new();
            push_ident(&mut column, name);
            sql.push_str(&hex(&column));
        }
        sql
    }

    /// Returns the condition on rows of the source that are identified by the first parameters, one
    /// array for each text of a handle.
    pub(super) fn held(&self) -> String {
        let Handle::Key(columns) = &self.handle else {
            return "ctid = ANY ($1::tid[])".to_owned();
        };
        let mut sql = String::from("(");
        push_idents(&mut sql, columns.iter().map(|(name, _)| name));
        sql.push_str(") IN (SELECT ");
        for (place, (_, cast)) in columns.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            let text = format!("convert_from(decode(u.k{place}, 'hex'), {ENCODING})");
            sql.push_str(&format!("{comma}{text}::{cast}"));
        }
        sql.push_str(" FROM unnest(");
        for place in 1..=columns.len() {
            let comma = if place > 1 { ", " } else { "" };
            sql.push_str(&format!("{comma}${place}::text[]"));
        }
        sql.push_str(") AS u(");
        for place in 0..columns.len() {
            let comma = if place > 0 { ", " } else { "" };
            sql.push_str(&format!("{comma}k{place}"));
        }
        sql.push_str("))");
        sql
    }

    /// Returns the statement that moves a whole batch: locks rows, inserts them at the destination
    /// and deletes them. The statement divides by zero if not every row arrives. It locks one more
    /// row than it moves, to show whether there are more rows. It returns the number of rows moved,
    /// and the number of rows locked.
    pub(super) fn sweep(&self, rows: usize, to: &Destination) -> String {
        let mut sql = String::from("WITH picked AS MATERIALIZED (");
        let (names, held) = match &self.handle {
            Handle::Place => (
                "ctid AS place".to_owned(),
                format!("ctid = ANY (ARRAY(SELECT place FROM picked LIMIT {rows}))"),
            ),
            Handle::Key(_) => {
                let mut key = String::new();
                push_idents(&mut key, &*self.plan.key);
                let held = format!("({key}) IN (SELECT {key} FROM picked LIMIT {rows})");
                (key, held)
            }
        };
        self.push_pick(&mut sql, &names, rows.saturating_add(1));
        sql.push_str("), ");
        self.push_carry(&mut sql, &held, to);
        sql.push_str(&format!(
            " SELECT m.n, p.n, 1 / (least(p.n, {rows}) = m.n AND m.n = i.n)::int FROM (SELECT count(*) AS n FROM picked) AS p, \
             (SELECT count(*) AS n FROM moved) AS m, (SELECT count(*) AS n FROM put) AS i"
        ));
        sql
    }

    /// Returns the statement that moves picked rows to one destination, and returns the numbers of
    /// rows deleted and inserted.
    pub(super) fn transfer(&self, to: &Destination) -> String {
        let mut sql = String::from("WITH ");
        self.push_carry(&mut sql, &self.held(), to);
        sql.push_str(" SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM put)");
        sql
    }

    /// Appends `moved AS (DELETE ..), put AS (INSERT ..)`.
    fn push_carry(&self, sql: &mut String, held: &str, to: &Destination) {
        let mut columns = String::new();
        push_idents(&mut columns, &*to.columns);
        let (source, table) = (&self.source, quoted(&to.table));
        sql.push_str(&format!(
            "moved AS (DELETE FROM {source} WHERE {held} RETURNING {columns}), put AS (INSERT INTO {table} ({columns}) \
             OVERRIDING SYSTEM VALUE SELECT {columns} FROM moved RETURNING 1)"
        ));
    }

    /// Returns the statement by which the server checks types and permissions before a row is
    /// moved.
    pub(super) fn trial(&self, to: &Destination) -> String {
        let mut columns = String::new();
        push_idents(&mut columns, &*to.columns);
        let (source, table) = (&self.source, quoted(&to.table));
        format!(
            "EXPLAIN INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {source}"
        )
    }

    /// Returns the statement that deletes rows which have been written elsewhere, and counts those
    /// deleted.
    pub(super) fn delete(&self) -> String {
        let (source, held) = (&self.source, self.held());
        format!(
            "WITH gone AS (DELETE FROM {source} WHERE {held} RETURNING 1) SELECT count(*) FROM gone"
        )
    }

    /// Returns the query that checks if any row is left, locked or not.
    pub(super) fn left(&self) -> String {
        let mut sql = format!("SELECT EXISTS (SELECT FROM {}", self.source);
        push_filter(&mut sql, self.plan.filter.as_deref());
        sql.push(')');
        sql
    }
}

/// An expression: the encoding of the database's texts.
pub(super) const ENCODING: &str = "getdatabaseencoding()";

/// Returns an expression for the bytes of a value's text in the database's encoding, as hexadecimal
/// digits.
pub(super) fn hex(value: &str) -> String {
    format!("encode(convert_to({value}::text, {ENCODING}), 'hex')")
}

/// Returns the value of a JSON text: an array in its own spelling came as a JSON string, and
/// becomes a text.
fn spelled(json: Box<str>) -> Value {
    match serde_json::from_str::<String>(&json) {
        Ok(text) => Value::text(text),
        Err(_) => Value::Json(json),
    }
}
