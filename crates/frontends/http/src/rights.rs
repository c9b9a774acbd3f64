//! The rights of a token: operations on rows, by table, and metrics.

use serde::Deserialize;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, FaultClass, OnConflict, Op, Returning, TableName};

/// One right of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Reading rows, and having columns of written rows returned.
    Read,
    /// Inserting rows.
    Insert,
    /// Changing rows, also by an insert that updates.
    Update,
    /// Deleting rows.
    Delete,
    /// Reading metrics, the activity of lanes and the status page's data.
    Metrics,
}

impl Right {
    /// Returns the word used in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Metrics => "metrics",
        }
    }
}

/// The rights of one token.
#[derive(Debug)]
pub struct Rights {
    name: Box<str>,
    rights: Box<[Right]>,
    tables: Box<[TableName]>,
}

impl Rights {
    /// Returns the rights of the token with this name on these tables; on all tables if none is
    /// named.
    pub fn new(name: &str, rights: &[Right], tables: Vec<TableName>) -> Self {
        Self {
            name: name.into(),
            rights: rights.into(),
            tables: tables.into(),
        }
    }

    /// Returns the name of the token in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the named tables into which the token may insert rows.
    pub(crate) fn written_tables(&self) -> &[TableName] {
        match self.rights.contains(&Right::Insert) {
            true => &self.tables,
            false => &[],
        }
    }

    /// Checks a right that belongs to no table.
    ///
    /// # Errors
    /// [`FaultClass::Denied`] with SQLSTATE 42501.
    pub(crate) fn check(&self, right: Right) -> Result<(), Fault> {
        match self.rights.contains(&right) {
            true => Ok(()),
            false => Err(self.refusal(format_args!("has no right to {}", right.as_str()))),
        }
    }

    /// Checks a write or a read of one table's rows.
    ///
    /// # Errors
    /// As [`Rights::check`]; also if the token is not for the table.
    pub(crate) fn check_rows(&self, shape: &ShapeParts) -> Result<(), Fault> {
        let right = match shape.op {
            Op::Insert => Right::Insert,
            Op::Update => Right::Update,
            Op::Delete => Right::Delete,
            Op::Get => Right::Read,
        };
        self.check(right)?;
        if shape.on_conflict == OnConflict::Update {
            self.check(Right::Update)?;
        }
        // As in SQL, RETURNING needs the right to read: a returned column may contain what a
        // default or a trigger has read.
        if shape.returning != Returning::Nothing {
            self.check(Right::Read)?;
        }
        self.check_table(&shape.table)
    }

    /// Checks that the token is for a table.
    ///
    /// # Errors
    /// As [`Rights::check`].
    pub(crate) fn check_table(&self, table: &TableName) -> Result<(), Fault> {
        match self.tables.is_empty() || self.tables.contains(table) {
            true => Ok(()),
            false => Err(self.refusal(format_args!("is not for the table {table}"))),
        }
    }

    fn refusal(&self, why: std::fmt::Arguments<'_>) -> Fault {
        let name = &self.name;
        tracing::debug!(token = %name, "refused: the token {why}");
        let message = format!("the token {name} {why}; see [http.tokens.{name}] of the server");
        Fault::new(FaultClass::Denied, "42501", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::{Key, Shape};

    fn shape(op: Op, table: &str, on_conflict: OnConflict, returning: Returning) -> Shape {
        Shape::new(ShapeParts {
            op,
            table: TableName::parse(table).unwrap(),
            columns: Box::default(),
            key: Key::Primary,
            on_conflict,
            returning,
        })
    }

    #[test]
    fn a_token_may_do_what_its_rights_name_and_nothing_else() {
        let tables = vec![TableName::parse("readings").unwrap()];
        let device = Rights::new("device", &[Right::Insert], tables);
        let may = |op, table, conflict, returning| {
            device
                .check_rows(&shape(op, table, conflict, returning))
                .is_ok()
        };
        use OnConflict::{Error, Ignore, Update};
        assert!(may(Op::Insert, "readings", Error, Returning::Nothing));
        assert!(!may(Op::Insert, "readings", Error, Returning::All));
        assert!(may(Op::Insert, "readings", Ignore, Returning::Nothing));
        assert!(!may(Op::Insert, "readings", Ignore, Returning::All));
        assert!(!may(Op::Insert, "readings", Update, Returning::Nothing));
        assert!(!may(Op::Insert, "orders", Error, Returning::Nothing));
        assert!(!may(Op::Insert, "app.readings", Error, Returning::Nothing));
        for op in [Op::Update, Op::Delete, Op::Get] {
            assert!(!may(op, "readings", Error, Returning::Nothing));
        }
        assert!(device.check(Right::Metrics).is_err());

        let editor = Rights::new("editor", &[Right::Update], Vec::new());
        let changes = shape(Op::Update, "orders", Error, Returning::Nothing);
        assert!(editor.check_rows(&changes).is_ok());
        let reads = shape(Op::Update, "orders", Error, Returning::All);
        assert!(editor.check_rows(&reads).is_err());
    }
}
