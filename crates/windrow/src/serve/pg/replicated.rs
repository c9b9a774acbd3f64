//! Writes of SQL clients, as replicas follow them.

use std::sync::Arc;

use windrow_core::{Name, Sink};
use windrow_postgres::StatementSink;
use windrow_replicas::Primary;

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
    pub(super) fn follow(&self, database: &Name, sink: Arc<StatementSink>) -> Arc<dyn Sink> {
        match self.database == *database {
            true => self.primary.follow(sink),
            false => sink,
        }
    }
}
