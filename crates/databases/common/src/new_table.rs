//! Decides from the rows of a batch if a missing table is created, and with which primary key.

use windrow_core::{Key, Name, Op, Shape, Value};

use super::infer::SeenColumns;
use super::quote::{push_ident, push_idents};

/// A column that every row has and that nobody named as the key.
const ID: &str = "id";

/// The facts of the writes to one table.
#[derive(Clone, Debug, Default)]
pub struct NewTable {
    /// Columns that identify the rows, if a write names them.
    key: Option<Vec<Name>>,
    /// An `id` that was NULL or not given cannot be a key.
    lacks_id: bool,
    /// A new row is to be written: only then a table is made.
    inserts: bool,
    /// The column for the moment of each row, if one is asked for.
    pub received_at: Option<Name>,
}

impl NewTable {
    /// Takes in one write.
    pub fn see(&mut self, shape: &Shape, row: &[Value]) {
        if shape.op != Op::Insert {
            return;
        }
        self.inserts = true;
        if let Key::Columns(names) = &shape.key {
            self.key.get_or_insert_with(|| names.to_vec());
        }
        let id = shape.columns.iter().position(|name| &**name == ID);
        let value = id.and_then(|place| row.get(place));
        self.lacks_id |= value.is_none_or(Value::is_null);
    }

    /// True if the table is to be made, should it not be there.
    pub fn is_wanted(&self) -> bool {
        self.inserts
    }

    /// The primary key: what a write names, or else a column `id` that every row has.
    pub fn primary(&self, seen_columns: &SeenColumns) -> Vec<Name> {
        let columns = seen_columns.columns();
        let has = |name: &Name| columns.iter().any(|s| s.name == *name && s.kind.is_some());
        let id = || (!self.lacks_id).then(|| vec![Name::from(ID)]);
        let key = self.key.clone().or_else(id).unwrap_or_default();
        if key.iter().all(has) { key } else { Vec::new() }
    }

    /// Returns the column for the moment of each row, if one is asked for and the rows have none of
    /// that name.
    pub fn moment_column(&self, seen_columns: &SeenColumns) -> Option<&Name> {
        let wanted = self.received_at.as_ref();
        let has = |name: &Name| {
            seen_columns
                .columns()
                .iter()
                .any(|s| s.name.eq_ignore_ascii_case(name))
        };
        wanted.filter(|name| !has(name))
    }

    /// Appends the end of a CREATE TABLE that quotes names as PostgreSQL does: the column for the
    /// moment of each row, of this type, and the primary key.
    pub fn push_end(&self, sql: &mut String, seen_columns: &SeenColumns, moment_type: &str) {
        if let Some(moment) = self.moment_column(seen_columns) {
            sql.push_str(", ");
            push_ident(sql, moment);
            sql.push(' ');
            sql.push_str(moment_type);
        }
        let primary = self.primary(seen_columns);
        if !primary.is_empty() {
            sql.push_str(", PRIMARY KEY (");
            push_idents(sql, &primary);
            sql.push(')');
        }
        sql.push(')');
    }
}
