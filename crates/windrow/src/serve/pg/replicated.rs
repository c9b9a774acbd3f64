//! Passes the writes of SQL clients on to replicas.

use std::sync::Arc;

use windrow_core::{Name, Sink};
use windrow_postgres::StatementSink;
use windrow_replicas::Primary;

/// The primary of replicas, and its database's name for clients.
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

    /// Returns the sink of a lane. If the lane's database is the primary, the sink notes its rows
    /// for the replicas.
    pub(super) fn follow(&self, database: &Name, sink: Arc<StatementSink>) -> Arc<dyn Sink> {
        match self.database == *database {
            true => self.primary.follow(sink),
            false => sink,
        }
    }
}
