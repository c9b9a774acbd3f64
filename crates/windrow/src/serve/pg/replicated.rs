//! Writes of SQL clients, as replicas follow them.

use std::sync::Arc;

use windrow_calls::{CallDone, SqlCall};
use windrow_core::{Name, Sink, Value};
use windrow_postgres::StatementSink;
use windrow_replicas::{Primary, Says};

/// The primary of replicas, and the name that clients know its database by.
pub(super) struct Replicated {
    primary: Arc<Primary>,
    database: Name,
}

impl Replicated {
    pub(super) fn new(primary: Arc<Primary>, database: &Name) -> Self {
        Self {
            primary,
            database: Name::clone(database),
        }
    }

    /// Returns the sink of a lane of a database, which tells replicas of its rows if the database
    /// is theirs.
    pub(super) fn follow(
        &self,
        database: &Name,
        sink: Arc<StatementSink>,
    ) -> Arc<dyn Sink<SqlCall>> {
        match self.database == *database {
            true => self.primary.follow(sink, SAYS),
            false => sink,
        }
    }
}

/// The rows that a call names.
const SAYS: Says<SqlCall> = Says {
    row: |call| call.statement.row_of(&call.arguments, &call.formats),
    generated: |done: &CallDone| {
        let generated = done.extra.as_ref()?.generated.as_ref()?;
        Some(Value::Int(generated.value))
    },
    changed: |done: &CallDone| done.rows,
};
