//! A shape joined with its table: one statement text for every batch size, and where its values
//! come from.

use std::sync::Arc;

use serde_json::value::RawValue;
use windrow_core::{
    Fault, FaultClass, Key, Name, OnConflict, Op, Returning, Shape, Value, WriteDone,
};
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::quote::{push_ident, push_idents, push_table};
use windrow_database::shape_faults;

use super::key;
use crate::catalog::table::{Facts, Table};
use crate::values::column::{Column, Kind};
use crate::values::decode;

/// The SQL for the writes of one shape, valid as long as the table does not change.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) table: Arc<Table>,
    pub(super) op: Op,
    pub(super) on_conflict: OnConflict,
    /// The statement for one row. For reads and updates that change nothing, the text before WHERE.
    pub(super) sql: String,
    /// The number of values in each row.
    pub(super) width: usize,
    /// The values of a row in the order of the statement's parameters.
    pub(super) slots: Vec<Slot>,
    /// The number of slots, at the end, that identify the row.
    pub(super) key_slots: usize,
    /// Places of the primary key's parts in a row; empty if the row does not name the key.
    pub(super) key: Vec<usize>,
    /// The returned columns.
    pub(super) returned: Option<Returned>,
    /// True if nothing is written: a read, or an update that names no column.
    pub(super) reads: bool,
    /// True if many rows may be sent in one request.
    pub(super) fuses: bool,
    /// True if an existing row counts as one that was written.
    pub(super) counts_one: bool,
}

impl Statement {
    /// Returns the number of rows that a write counts, of which the server counted `rows`.
    pub(super) fn count(&self, rows: i64) -> u64 {
        match self.counts_one {
            true => 1,
            false => u64::try_from(rows).unwrap_or_default(),
        }
    }

    /// Returns the outcome of a statement with these rows.
    pub(super) fn gave(&self, rows: Vec<Box<[Value]>>) -> WriteDone {
        let count = rows.len() as u64;
        let returned = self.returned.as_ref().map(|wanted| {
            Box::new(windrow_core::Returned {
                columns: wanted.names.clone(),
                rows,
            })
        });
        WriteDone {
            returned,
            ..WriteDone::rows(count)
        }
    }
}

/// The source of one parameter.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The place in the row.
    pub(super) place: usize,
    /// The column as it is known. An unknown one accepts any value.
    pub(super) column: Column,
}

/// The returned columns.
#[derive(Clone, Debug)]
pub(super) struct Returned {
    pub(super) names: Arc<[Name]>,
    pub(super) kinds: Vec<Kind>,
}

impl Returned {
    /// Returns the values of a row.
    pub(super) fn values(&self, row: &[&RawValue]) -> Box<[Value]> {
        let values = self.kinds.iter().zip(row);
        values
            .map(|(kind, raw)| decode::value(*kind, raw.get()))
            .collect()
    }
}

/// Joins a shape with its table. Missing columns are left out if they may be created. Otherwise
/// they are left to the server, which creates them itself in a table with a dynamic column policy.
///
/// # Errors
/// The shape can never be executed.
pub(super) fn compile(
    shape: &Shape,
    table: &Arc<Table>,
    creates: bool,
) -> Result<Statement, Fault> {
    let parsed = ParsedStatement {
        shape,
        table,
        creates,
    };
    let names = parsed.key_names()?;
    let returned = parsed.returned()?;
    let primary = table.is_primary(&names);
    let mut statement = Statement {
        table: table.clone(),
        op: shape.op,
        on_conflict: shape.on_conflict,
        sql: String::new(),
        width: shape.columns.len()
            + if shape.has_key_values() {
                names.len()
            } else {
                0
            },
        slots: parsed.values()?,
        key_slots: 0,
        key: key::places(shape, table),
        reads: shape.op == Op::Get,
        fuses: returned.is_none() && (primary || shape.op == Op::Insert),
        counts_one: false,
        returned,
    };
    match shape.op {
        Op::Insert => parsed.insert(&mut statement, &names)?,
        Op::Update => parsed.update(&mut statement, &names),
        Op::Delete => parsed.delete(&mut statement, &names)?,
        Op::Get if statement.returned.is_none() => {
            return Err(Fault::invalid("a get must say which columns it reads"));
        }
        Op::Get => parsed.get(&mut statement, &names),
    }
    Ok(statement)
}

struct ParsedStatement<'a> {
    shape: &'a Shape,
    table: &'a Facts,
    creates: bool,
}

impl ParsedStatement<'_> {
    fn insert(&self, statement: &mut Statement, key: &[Name]) -> Result<(), Fault> {
        if statement.slots.is_empty() {
            return Err(Fault::invalid(format!(
                "an insert into table {} must name at least one column, and hold a value that is not null",
                self.table.name
            )));
        }
        let sql = &mut statement.sql;
        sql.push_str("INSERT INTO ");
        push_table(sql, &self.table.name);
        sql.push_str(" (");
        push_idents(sql, statement.slots.iter().map(|slot| &slot.column.name));
        sql.push_str(") VALUES (");
        for place in 0..statement.slots.len() {
            sql.push_str(if place > 0 { ", ?" } else { "?" });
        }
        sql.push(')');
        self.conflict(statement, key)?;
        self.returning(statement);
        Ok(())
    }

    fn conflict(&self, statement: &mut Statement, key: &[Name]) -> Result<(), Fault> {
        if self.shape.on_conflict == OnConflict::Error {
            return Ok(());
        }
        if !self.table.is_primary(key) {
            let ignores = self.shape.on_conflict == OnConflict::Ignore;
            if ignores && self.shape.key == Key::Primary && self.table.primary.is_empty() {
                // Nothing can conflict.
                return Ok(());
            }
            let why = "is not the primary key, the only unique key that CrateDB has";
            return Err(self.table.no_such_key(&self.table.name, key, why));
        }
        let others = statement.slots.iter().map(|slot| &slot.column.name);
        let others: Vec<&Name> = others.filter(|name| !key.contains(name)).collect();
        let sql = &mut statement.sql;
        sql.push_str(" ON CONFLICT (");
        push_idents(sql, key);
        sql.push_str(") DO ");
        if self.shape.on_conflict == OnConflict::Ignore || others.is_empty() {
            sql.push_str("NOTHING");
            // A key cannot be changed. The row exists, and counts.
            statement.counts_one = self.shape.on_conflict == OnConflict::Update;
            return Ok(());
        }
        sql.push_str("UPDATE SET ");
        for (place, name) in others.into_iter().enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            push_ident(sql, name);
            sql.push_str(" = excluded.");
            push_ident(sql, name);
        }
        Ok(())
    }

    fn update(&self, statement: &mut Statement, key: &[Name]) {
        if statement.slots.is_empty() {
            // There is nothing to change, but the row counts.
            statement.reads = true;
            self.get(statement, key);
            return;
        }
        let sql = &mut statement.sql;
        sql.push_str("UPDATE ");
        push_table(sql, &self.table.name);
        sql.push_str(" SET ");
        for (place, slot) in statement.slots.iter().enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            push_ident(sql, &slot.column.name);
            sql.push_str(" = ?");
        }
        self.find(statement, key, true);
        self.returning(statement);
    }

    fn delete(&self, statement: &mut Statement, key: &[Name]) -> Result<(), Fault> {
        if statement.returned.is_some() {
            return Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                "CrateDB gives nothing back from a delete; read the row before, or delete without returning",
            ));
        }
        statement.sql.push_str("DELETE FROM ");
        push_table(&mut statement.sql, &self.table.name);
        self.find(statement, key, true);
        Ok(())
    }

    /// Sets the SQL of a read. It returns the primary key first, which identifies the rows.
    fn get(&self, statement: &mut Statement, key: &[Name]) {
        let mut names: Vec<&Name> = self.table.key().map(|column| &column.name).collect();
        if names.is_empty() {
            names.extend(key.first());
        }
        if let Some(returned) = &statement.returned {
            names.extend(returned.names.iter());
        }
        let sql = &mut statement.sql;
        sql.push_str("SELECT ");
        push_idents(sql, names);
        sql.push_str(" FROM ");
        push_table(sql, &self.table.name);
        self.find(statement, key, false);
    }

    /// Adds the slots that identify a row, and their places in the statement.
    fn find(&self, statement: &mut Statement, key: &[Name], writes: bool) {
        let first = self.shape.columns.len();
        for (place, name) in key.iter().enumerate() {
            statement.slots.push(self.slot(first + place, name));
        }
        statement.key_slots = key.len();
        if writes {
            statement.sql.push_str(" WHERE ");
            push_match(&mut statement.sql, key);
        }
    }

    fn returning(&self, statement: &mut Statement) {
        if let Some(returned) = &statement.returned {
            statement.sql.push_str(" RETURNING ");
            push_idents(&mut statement.sql, returned.names.iter());
        }
    }

    /// Returns the slots of the values that are stored.
    fn values(&self) -> Result<Vec<Slot>, Fault> {
        let mut slots: Vec<Slot> = Vec::with_capacity(self.shape.columns.len());
        for (place, name) in self.shape.columns.iter().enumerate() {
            if self
                .shape
                .columns
                .iter()
                .take(place)
                .any(|before| before == name)
            {
                return Err(shape_faults::named_twice(name));
            }
            if !self.creates || self.table.column(name).is_some() {
                slots.push(self.slot(place, name));
            }
        }
        Ok(slots)
    }

    fn slot(&self, place: usize, name: &Name) -> Slot {
        let column = self.table.column(name).cloned();
        Slot {
            place,
            column: column.unwrap_or_else(|| Column {
                name: name.clone(),
                kind: Kind::Other,
                not_null: false,
            }),
        }
    }

    /// Returns the columns of the key, if one is needed.
    fn key_names(&self) -> Result<Vec<Name>, Fault> {
        let names = self.table.key_names(&self.shape.key);
        let needed = self.shape.has_key_values() || self.shape.on_conflict == OnConflict::Update;
        if names.is_empty() && needed {
            let message = match &self.shape.key {
                Key::Primary => format!(
                    "table {} has no primary key, by which rows are found",
                    self.table.name
                ),
                Key::Columns(_) => "a key must have at least one column".to_owned(),
            };
            return Err(Fault::invalid(message).with_table(Some(&*self.table.name.table)));
        }
        if self.shape.has_key_values() {
            for name in &names {
                self.known(name)?;
            }
            self.table.check_named_key(self.shape)?;
        }
        Ok(names)
    }

    fn returned(&self) -> Result<Option<Returned>, Fault> {
        let names: Arc<[Name]> = match &self.shape.returning {
            Returning::Nothing => return Ok(None),
            Returning::All => self.table.columns.iter().map(|c| c.name.clone()).collect(),
            Returning::Columns(names) if names.is_empty() => return Ok(None),
            Returning::Columns(names) => names.iter().cloned().collect(),
        };
        let kinds = names.iter().map(|name| Ok(self.known(name)?.kind));
        let kinds = kinds.collect::<Result<_, Fault>>()?;
        Ok(Some(Returned { names, kinds }))
    }

    fn known(&self, name: &Name) -> Result<&Column, Fault> {
        let column = self.table.column(name);
        column.ok_or_else(|| shape_faults::no_column(&self.table.name, name))
    }
}

/// Appends comparisons by equality, so a NULL in the key finds nothing.
pub(super) fn push_match(sql: &mut String, key: &[Name]) {
    for (place, name) in key.iter().enumerate() {
        sql.push_str(if place > 0 { " AND " } else { "" });
        push_ident(sql, name);
        sql.push_str(" = ?");
    }
}
