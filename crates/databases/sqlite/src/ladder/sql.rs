//! The SQL of a plan.

use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Key, Name, OnConflict, Returning, Shape};
use windrow_database::demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::quote::{push_ident, push_idents, push_table};

use super::plan::{Refusal, ReturnedColumns, TableRules};
use crate::catalog::table::Table;
use crate::values::bind::{Slot, Use};
use crate::values::column::ColumnType;

/// A shape and its table, from which the statement is made.
pub(crate) struct SqlBuilder<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) table: &'a Table,
    pub(crate) rules: TableRules,
}

/// The text of a statement, and where the values of a row go in it.
type Parts = (String, Vec<Slot>);

impl SqlBuilder<'_> {
    pub(crate) fn insert(&self) -> Result<Parts, Refusal> {
        let slots = self.stored()?;
        let present = || slots.iter().filter(|s| s.use_ != Use::Missing);
        let mut sql = String::from("INSERT INTO ");
        push_table(&mut sql, &self.shape.table);
        if present().next().is_none() {
            sql.push_str(" DEFAULT VALUES");
            if self.shape.on_conflict != OnConflict::Error {
                return Err(Fault::invalid(format!(
                    "an insert into table {} that minds conflicts must name at least one column",
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

    pub(crate) fn update(&self) -> Result<Parts, Refusal> {
        let mut slots = self.stored()?;
        let keys = self.keys(&slots)?;
        let mut sql = String::from("UPDATE ");
        push_table(&mut sql, &self.shape.table);
        sql.push_str(" SET ");
        let present = slots.iter().filter(|s| s.use_ != Use::Missing);
        let before = sql.len();
        push_assignments(&mut sql, present, ", ");
        if sql.len() == before {
            // Nothing is to change: the row is counted all the same, and keeps what it has.
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

    pub(crate) fn delete(&self) -> Result<Parts, Refusal> {
        let keys = self.keys(&[])?;
        let mut sql = String::from("DELETE FROM ");
        push_table(&mut sql, &self.shape.table);
        push_where(&mut sql, &keys);
        self.push_returning(&mut sql)?;
        Ok((sql, keys))
    }

    pub(crate) fn get(&self) -> Result<Parts, Refusal> {
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

    /// The slots of the values that are stored.
    fn stored(&self) -> Result<Vec<Slot>, Refusal> {
        let mut slots: Vec<Slot> = Vec::with_capacity(self.shape.columns.len());
        let mut parameter = 0;
        for name in &self.shape.columns {
            if slots.iter().any(|s| s.column.eq_ignore_ascii_case(name)) {
                let message = format!("column {name} is named twice");
                return Err(Fault::new(FaultClass::Invalid, "42701", message).into());
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

    /// The slots of the values that find a row; their parameters follow those of `before`.
    fn keys(&self, before: &[Slot]) -> Result<Vec<Slot>, Refusal> {
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

    /// The columns of the key.
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

    fn push_conflict(&self, sql: &mut String, slots: &[Slot]) -> Result<(), Refusal> {
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
        // Where only the key is named, writing it again makes the row count.
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

    fn push_returning(&self, sql: &mut String) -> Result<(), Refusal> {
        if let Some(returned) = self.returned()? {
            sql.push_str(" RETURNING ");
            push_idents(sql, returned.names.iter());
        }
        Ok(())
    }

    /// The columns that come back, if any.
    pub(crate) fn returned(&self) -> Result<Option<ReturnedColumns>, Refusal> {
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

    /// For a column that is not there: the row itself may bring it.
    fn not_yet(&self, name: &Name) -> Refusal {
        if self.adds() && self.shape.columns.contains(name) {
            Refusal::Grow
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
        let message = format!("table {} has no column named {name}", self.shape.table);
        Fault::new(FaultClass::NoColumn, "42703", message)
            .with_table(Some(&*self.shape.table.table))
            .with_column(Some(&**name))
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

/// Equality: a NULL in the key finds nothing.
fn push_where(sql: &mut String, keys: &[Slot]) {
    sql.push_str(" WHERE ");
    push_assignments(sql, keys.iter(), " AND ");
}
