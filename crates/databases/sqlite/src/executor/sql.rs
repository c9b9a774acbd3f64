//! Writes the SQL of a plan.

use std::sync::Arc;

use windrow_core::moves::TableFacts;
use windrow_core::{Fault, Key, Name, OnConflict, Returning, Shape};
use windrow_database::demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::quote::{push_ident, push_idents, push_table};
use windrow_database::shape_faults;

use crate::catalog::table::Table;
use crate::values::bind::{Slot, Use};
use crate::values::column::ColumnType;

/// The returned columns of a statement.
#[derive(Debug)]
pub(crate) struct ReturnedColumns {
    pub(crate) names: Arc<[Name]>,
    pub(crate) types: Box<[ColumnType]>,
}

/// The reason why a shape has no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// The shape can never be executed.
    Fault(Fault),
    /// The table has to be created or extended first.
    Grow,
}

impl From<Fault> for NoPlan {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The options for tables that are missing, or lack columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableRules {
    /// [`crate::Options::create_tables`].
    pub(crate) create: bool,
    /// [`crate::Options::extend_tables`].
    pub(crate) extend: bool,
    /// [`crate::Options::exact_names`].
    pub(crate) exact: bool,
}

impl TableRules {
    /// Refuses a table that is not spelled as the shape names it, if `exact` is set.
    pub(crate) fn check(self, shape: &Shape, table: &Table) -> Result<(), Fault> {
        match self.exact && table.name != shape.table.table {
            true => Err(TableFacts::otherwise_spelled(&shape.table, &table.name)),
            false => Ok(()),
        }
    }
}

/// A shape and its table, for which the statement is written.
pub(crate) struct SqlBuilder<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) table: &'a Table,
    pub(crate) rules: TableRules,
}

/// The text of a statement, and its parameters.
type Parts = (String, Vec<Slot>);

impl SqlBuilder<'_> {
    pub(crate) fn insert(&self) -> Result<Parts, NoPlan> {
        let slots = self.stored()?;
        let present = || slots.iter().filter(|s| s.use_ != Use::Missing);
        let mut sql = String::from("INSERT INTO ");
        push_table(&mut sql, &self.shape.table);
        if present().next().is_none() {
            sql.push_str(" DEFAULT VALUES");
            if self.shape.on_conflict != OnConflict::Error {
                return Err(Fault::invalid(format!(
                    "an insert into table {} with a conflict rule must name at least one column",
                    self.shape.table
                ))
                .into());
            }
        } else {
            sql.push_str(" (");
            push_idents(&mut sql, present().map(|s| &s.column));
            sql.push_str(") VALUES (");
            push_parameters(&mut sql, present());
            sql.push(')');
            self.push_conflict(&mut sql, &slots)?;
        }
        self.push_returning(&mut sql)?;
        Ok((sql, slots))
    }

    pub(crate) fn update(&self) -> Result<Parts, NoPlan> {
        let mut slots = self.stored()?;
        let keys = self.keys(&slots)?;
        let mut sql = String::from("UPDATE ");
        push_table(&mut sql, &self.shape.table);
        sql.push_str(" SET ");
        let present = slots.iter().filter(|s| s.use_ != Use::Missing);
        let before = sql.len();
        push_assignments(&mut sql, present, ", ");
        if sql.len() == before {
            // The update changes no column. The row counts, and keeps its values.
            if let Some(key) = keys.first() {
                push_ident(&mut sql, &key.column);
                sql.push_str(" = ");
                push_ident(&mut sql, &key.column);
            }
        }
        push_where(&mut sql, &keys);
        slots.extend(keys);
        self.push_returning(&mut sql)?;
        Ok((sql, slots))
    }

    pub(crate) fn delete(&self) -> Result<Parts, NoPlan> {
        let keys = self.keys(&[])?;
        let mut sql = String::from("DELETE FROM ");
        push_table(&mut sql, &self.shape.table);
        push_where(&mut sql, &keys);
        self.push_returning(&mut sql)?;
        Ok((sql, keys))
    }

    pub(crate) fn get(&self) -> Result<Parts, NoPlan> {
        let keys = self.keys(&[])?;
        let mut sql = String::from("SELECT ");
        match self.returned()? {
            Some(returned) => push_idents(&mut sql, returned.names.iter()),
            None => {
                return Err(Fault::invalid("a get must say which columns it reads").into());
            }
        }
        sql.push_str(" FROM ");
        push_table(&mut sql, &self.shape.table);
        push_where(&mut sql, &keys);
        Ok((sql, keys))
    }

    /// Returns the parameters of the stored values.
    fn stored(&self) -> Result<Vec<Slot>, NoPlan> {
        let mut slots: Vec<Slot> = Vec::with_capacity(self.shape.columns.len());
        let mut parameter = 0;
        for name in &self.shape.columns {
            if slots.iter().any(|s| s.column.eq_ignore_ascii_case(name)) {
                return Err(shape_faults::named_twice(name).into());
            }
            let (column_type, use_) = match self.table.column(name) {
                Some((_, column)) if self.table.made => (column.column_type, Use::Firm),
                Some((_, column)) => (column.column_type, Use::Fixed),
                None if self.adds() => (ColumnType::Any, Use::Missing),
                None => return Err(self.no_column(name).into()),
            };
            if use_ != Use::Missing {
                parameter += 1;
            }
            slots.push(Slot {
                column: name.clone(),
                column_type,
                use_,
                parameter,
            });
        }
        Ok(slots)
    }

    /// Returns the parameters that find a row. They follow those of `before`.
    fn keys(&self, before: &[Slot]) -> Result<Vec<Slot>, NoPlan> {
        let first = before.last().map_or(0, |s| s.parameter) + 1;
        let names = self.key()?;
        self.table.check_named_key(self.shape)?;
        let use_ = match self.shape.is_spelled() {
            true => Use::Spelled,
            false => Use::Key,
        };
        let slot = |(i, name): (usize, &Name)| {
            let (_, column) = self
                .table
                .column(name)
                .ok_or_else(|| self.no_column(name))?;
            Ok(Slot {
                column: name.clone(),
                column_type: column.column_type,
                use_,
                parameter: first + i,
            })
        };
        names.iter().enumerate().map(slot).collect()
    }

    /// Returns the columns of the key.
    fn key(&self) -> Result<Vec<Name>, Fault> {
        let names: Vec<Name> = match &self.shape.key {
            Key::Columns(names) => names.to_vec(),
            Key::Primary => self.table.primary_names().cloned().collect(),
        };
        if names.is_empty() {
            let message = match &self.shape.key {
                Key::Primary => format!(
                    "table {} has no primary key; name the columns of a unique key",
                    self.shape.table
                ),
                Key::Columns(_) => "a key must have at least one column".to_owned(),
            };
            return Err(Fault::invalid(message).with_table(Some(&*self.shape.table.table)));
        }
        Ok(names)
    }

    fn push_conflict(&self, sql: &mut String, slots: &[Slot]) -> Result<(), NoPlan> {
        match (self.shape.on_conflict, &self.shape.key) {
            (OnConflict::Error, _) => return Ok(()),
            // A table without a primary key: any conflict at all.
            (OnConflict::Ignore, Key::Primary) if self.table.primary.is_empty() => {
                sql.push_str(" ON CONFLICT DO NOTHING");
                return Ok(());
            }
            _ => {}
        }
        let key = self.key()?;
        for name in &key {
            if self.table.column(name).is_none() {
                return Err(self.not_yet(name));
            }
        }
        sql.push_str(" ON CONFLICT (");
        push_idents(sql, &key);
        if self.shape.on_conflict == OnConflict::Ignore {
            sql.push_str(") DO NOTHING");
            return Ok(());
        }
        sql.push_str(") DO UPDATE SET ");
        let is_key = |name: &Name| key.iter().any(|k| k.eq_ignore_ascii_case(name));
        let present = slots.iter().filter(|s| s.use_ != Use::Missing);
        let others: Vec<&Name> = present.map(|s| &s.column).filter(|n| !is_key(n)).collect();
        // If only the key is named, setting it again makes the row count.
        let set = if others.is_empty() {
            key.iter().collect()
        } else {
            others
        };
        for (i, name) in set.into_iter().enumerate() {
            if i > 0 {
                sql.push_str(", ");
            }
            push_ident(sql, name);
            sql.push_str(" = excluded.");
            push_ident(sql, name);
        }
        Ok(())
    }

    fn push_returning(&self, sql: &mut String) -> Result<(), NoPlan> {
        if let Some(returned) = self.returned()? {
            sql.push_str(" RETURNING ");
            push_idents(sql, returned.names.iter());
        }
        Ok(())
    }

    /// Returns the columns of the result, if there are any.
    pub(crate) fn returned(&self) -> Result<Option<ReturnedColumns>, NoPlan> {
        let names: Arc<[Name]> = match &self.shape.returning {
            Returning::Nothing => return Ok(None),
            Returning::All => self.table.columns.iter().map(|c| c.name.clone()).collect(),
            Returning::Columns(names) if names.is_empty() => return Ok(None),
            Returning::Columns(names) => names.iter().cloned().collect(),
        };
        let column_type = |name: &Name| match self.table.column(name) {
            Some((_, column)) => Ok(column.column_type),
            None => Err(self.not_yet(name)),
        };
        let types = names.iter().map(column_type).collect::<Result<_, _>>()?;
        Ok(Some(ReturnedColumns { names, types }))
    }

    /// Returns the reason for a missing column, which the row itself may add.
    fn not_yet(&self, name: &Name) -> NoPlan {
        if self.adds() && self.shape.columns.contains(name) {
            NoPlan::Grow
        } else {
            self.no_column(name).into()
        }
    }

    /// Returns true if columns that are not there may be added.
    fn adds(&self) -> bool {
        self.rules.create && self.table.plain && (self.table.made || self.rules.extend)
    }

    fn no_column(&self, name: &Name) -> Fault {
        if self.rules.create && self.table.plain {
            return demand::not_extended(&self.shape.table, name);
        }
        shape_faults::no_column(&self.shape.table, name)
    }
}

fn push_parameter(sql: &mut String, slot: &Slot) {
    sql.push('?');
    sql.push_str(&slot.parameter.to_string());
}

fn push_parameters<'a>(sql: &mut String, slots: impl Iterator<Item = &'a Slot>) {
    for (i, slot) in slots.enumerate() {
        if i > 0 {
            sql.push_str(", ");
        }
        push_parameter(sql, slot);
    }
}

fn push_assignments<'a>(sql: &mut String, slots: impl Iterator<Item = &'a Slot>, between: &str) {
    for (i, slot) in slots.enumerate() {
        if i > 0 {
            sql.push_str(between);
        }
        push_ident(sql, &slot.column);
        sql.push_str(" = ");
        push_parameter(sql, slot);
    }
}

/// Appends the condition that finds a row by equality, so that NULL in the key finds none.
fn push_where(sql: &mut String, keys: &[Slot]) {
    sql.push_str(" WHERE ");
    push_assignments(sql, keys.iter(), " AND ");
}
