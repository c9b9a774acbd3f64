//! Decides from the rows of a batch if a missing table is created, and with which primary key.

use windrow_core::{Key, Name, Op, Shape, Value};

use super::infer::SeenColumns;
use super::quote::{push_ident, push_idents};

/// The column that becomes the primary key if every row has it and no write names another key.
const ID: &str = "id";

/// The facts of the writes to one table.
#[derive(Clone, Debug, Default)]
pub struct NewTable {
    /// The columns of the key, if a write names them.
    key: Option<Vec<Name>>,
    /// True if an `id` was NULL or missing, so that it cannot be the key.
    lacks_id: bool,
    /// True if a write inserts a row: only then is a table created.
    inserts: bool,
    /// The column for the time at which a row arrives, if one is configured.
    pub received_at: Option<Name>,
}

impl NewTable {
    /// Adds one write.
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

    /// True if the table should be created if it does not exist.
    pub fn is_wanted(&self) -> bool {
        self.inserts
    }

    /// Returns the primary key: the one that a write names, or else a column `id` that every row
    /// has.
    pub fn primary(&self, seen_columns: &SeenColumns) -> Vec<Name> {
        let columns = seen_columns.columns();
        let has = |name: &Name| columns.iter().any(|s| s.name == *name && s.kind.is_some());
        let id = || (!self.lacks_id).then(|| vec![Name::from(ID)]);
        let key = self.key.clone().or_else(id).unwrap_or_default();
        if key.iter().all(has) { key } else { Vec::new() }
    }

    /// Returns the column for the time of arrival, if one is configured and the rows have no column
    /// of that name.
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

    /// Appends the end of a CREATE TABLE, with names quoted as PostgreSQL does: the column for the
    /// time of arrival, of this type, and the primary key.
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
