//! The source for a mover: its statements.

use rusqlite::Connection;
use windrow_core::moves::Destination;
use windrow_core::{Fault, FaultClass, MovePlan, Name, TableName};
use windrow_database::moved::{self, push_filter};
use windrow_database::quote::{push_ident, push_idents};

use super::facts;
use super::text::{push_route, push_table};
use crate::fault::Failure;
use crate::values::column::ColumnType;

/// The temporary table of picked rows: `n` is a row's place, from 1; `k0`, `k1` .. identify it.
const PICKED: &str = "temp.windrow_picked";

/// The condition for picked rows whose numbers are in the first parameter, an array of JSON.
const CHOSEN: &str = "p.n IN (SELECT value FROM json_each(?1))";

/// A table that rows are moved from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: TableName,
    /// All columns, for dead letters.
    pub(super) all: Vec<(Name, ColumnType)>,
    /// The columns of the key.
    pub(super) key: Vec<(Name, ColumnType)>,
    /// The number of the key's columns, for plans across databases.
    pub(super) names: usize,
    /// The types of the columns that are read, for plans across databases.
    pub(super) read: Vec<ColumnType>,
    /// The columns that are copied.
    pub(super) columns: Vec<Name>,
    pub(super) routed: bool,
    /// True if rows go to another file, whose columns also hold values of any type.
    pub(super) alike: bool,
    /// The statement that picks rows. Its one parameter is the number of rows.
    pub(super) pick: String,
    /// The statement that reads picked rows in order: the route, the key, the columns; `None` if
    /// the plan asks for none of them.
    pub(super) look: Option<String>,
    /// The statement that reads key and all columns of chosen rows, after their numbers.
    pub(super) whole: String,
    pub(super) delete: String,
    pub(super) left: String,
    locator: Vec<Name>,
}

impl Source {
    /// Reads the table, makes the statements and the temporary table.
    ///
    /// # Errors
    /// [`FaultClass::NoTable`], [`FaultClass::NoColumn`]; SQLite's own errors.
    pub(super) fn read(connection: &Connection, plan: &MovePlan) -> Result<Self, Fault> {
        let name = &plan.source;
        let Some(facts) = facts::read(connection, name)? else {
            return Err(moved::no_source(name));
        };
        let of = |column: &Name| match facts.column(column) {
            Some(found) => Ok((column.clone(), found.column_type)),
            None => Err(Fault::new(
                FaultClass::NoColumn,
                "42703",
                format!("the table {name} has no column {column}"),
            )),
        };
        let key: Vec<(Name, ColumnType)> = plan.key.iter().map(of).collect::<Result<_, _>>()?;
        let columns: Vec<(Name, ColumnType)> =
            plan.columns.iter().map(of).collect::<Result<_, _>>()?;
        let all = facts
            .columns
            .iter()
            .map(|c| (c.name.clone(), c.column_type));
        for name in &plan.names {
            of(name)?;
        }
        let texts = Texts {
            plan,
            table: &facts.name,
            locator: facts.locator()?,
        };
        texts.hold(connection)?;
        Ok(Self {
            name: TableName::bare(facts.name.clone()),
            key,
            names: plan.names.len(),
            read: match plan.across {
                true => columns
                    .iter()
                    .map(|(_, column_type)| *column_type)
                    .collect(),
                false => Vec::new(),
            },
            columns: plan.columns.to_vec(),
            routed: plan.route.is_some(),
            alike: plan.alike,
            pick: texts.pick(),
            look: (plan.across || plan.route.is_some()).then(|| texts.look()),
            whole: texts.whole(all.clone().map(|(name, _)| name)),
            delete: texts.delete(),
            left: texts.left(),
            locator: texts.locator,
            all: all.collect(),
        })
    }

    /// Returns the statement that copies chosen rows. A failed constraint always makes it fail,
    /// whatever conflict clause the final table has.
    pub(super) fn copy(&self, to: &Destination) -> String {
        let mut sql = "INSERT OR ABORT INTO ".to_owned();
        push_table(&mut sql, &to.table.table);
        sql.push_str(" (");
        push_idents(&mut sql, &to.columns);
        sql.push_str(") SELECT ");
        push_of(&mut sql, "s", &to.columns);
        push_join(&mut sql, &self.name.table, &self.locator);
        sql.push_str(&format!(" WHERE {CHOSEN} ORDER BY p.n"));
        sql
    }
}

struct Texts<'a> {
    plan: &'a MovePlan,
    table: &'a Name,
    locator: Vec<Name>,
}

impl Texts<'_> {
    /// Creates the temporary table. Its columns have no type, so that values stay unchanged.
    fn hold(&self, connection: &Connection) -> Result<(), Fault> {
        let columns: Vec<String> = (0..self.locator.len()).map(|n| format!(", k{n}")).collect();
        let sql = format!(
            "CREATE TEMPORARY TABLE windrow_picked (n INTEGER PRIMARY KEY{})",
            columns.concat()
        );
        connection
            .pragma_update(None, "temp_store", "MEMORY")
            .and_then(|()| connection.execute_batch(&sql))
            .map_err(|error| Failure::from(error).fault)
    }

    fn pick(&self) -> String {
        let columns: Vec<String> = (0..self.locator.len()).map(|n| format!("k{n}")).collect();
        let mut sql = format!("INSERT INTO {PICKED} ({}) SELECT ", columns.join(", "));
        push_idents(&mut sql, &self.locator);
        sql.push_str(" FROM ");
        push_table(&mut sql, self.table);
        push_filter(&mut sql, self.plan.filter.as_deref());
        sql.push_str(" ORDER BY ");
        push_idents(&mut sql, &self.plan.key);
        sql.push_str(" LIMIT ?1");
        sql
    }

    fn look(&self) -> String {
        let plan = self.plan;
        let mut sql = "SELECT ".to_owned();
        match &plan.route {
            Some(route) => push_route(&mut sql, "s.", route),
            None => sql.push_str("NULL"),
        }
        if plan.across {
            sql.push_str(", ");
            push_of(&mut sql, "s", &plan.names);
            sql.push_str(", ");
            push_of(&mut sql, "s", &plan.columns);
        }
        push_join(&mut sql, self.table, &self.locator);
        sql.push_str(" ORDER BY p.n");
        sql
    }

    fn whole(&self, all: impl Iterator<Item = Name>) -> String {
        let mut sql = "SELECT p.n, ".to_owned();
        push_of(&mut sql, "s", &self.plan.key);
        sql.push_str(", ");
        push_of(&mut sql, "s", &all.collect::<Vec<Name>>());
        push_join(&mut sql, self.table, &self.locator);
        sql.push_str(&format!(" WHERE {CHOSEN} ORDER BY p.n"));
        sql
    }

    fn delete(&self) -> String {
        let mut sql = "DELETE FROM ".to_owned();
        push_table(&mut sql, self.table);
        sql.push_str(" WHERE (");
        push_idents(&mut sql, &self.locator);
        let columns: Vec<String> = (0..self.locator.len()).map(|n| format!("p.k{n}")).collect();
        sql.push_str(&format!(
            ") IN (SELECT {} FROM {PICKED} p WHERE {CHOSEN})",
            columns.join(", ")
        ));
        sql
    }

    fn left(&self) -> String {
        let mut sql = "SELECT EXISTS (SELECT 1 FROM ".to_owned();
        push_table(&mut sql, self.table);
        push_filter(&mut sql, self.plan.filter.as_deref());
        sql.push(')');
        sql
    }
}

/// Returns the statement that forgets the rows that were picked before.
pub(super) fn clear() -> String {
    format!("DELETE FROM {PICKED}")
}

/// Appends picked rows, `p`, joined with their rows of the source, `s`, which are looked up in this
/// order.
fn push_join(sql: &mut String, table: &str, locator: &[Name]) {
    sql.push_str(&format!(" FROM {PICKED} p CROSS JOIN "));
    push_table(sql, table);
    sql.push_str(" s ON ");
    for (place, column) in locator.iter().enumerate() {
        sql.push_str(if place > 0 { " AND s." } else { "s." });
        push_ident(sql, column);
        sql.push_str(&format!(" = p.k{place}"));
    }
}

fn push_of(sql: &mut String, alias: &str, columns: &[Name]) {
    for (place, column) in columns.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        sql.push_str(alias);
        sql.push('.');
        push_ident(sql, column);
    }
}
