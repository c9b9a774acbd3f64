//! A database with all its abilities besides executing batches of row writes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::bookkeeping::Bookkeeping;
use crate::fault::Fault;
use crate::inventory::Inventory;
use crate::load::Bulk;
use crate::moves::Moves;
use crate::name::{Name, TableName};
use crate::sink::{Executor, Purpose, Sink};
use crate::standing::Standing;

/// The rights of Windrow's role to write into the tables that have no schema in their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteRights {
    /// The role.
    pub role: String,
    /// The schema or database that holds the tables, as SQL names it in a GRANT.
    pub place: String,
    /// True if the role may create tables there.
    pub can_create: bool,
    /// The tables into which the role may insert rows.
    pub open: Vec<String>,
    /// The tables of `open` from which the role may not read, update and delete rows as well.
    pub limited: Vec<String>,
    /// The tables into which the role may not insert rows.
    pub closed: Vec<String>,
}

/// A database that a user has configured.
#[async_trait]
pub trait Database: Sink {
    /// Checks within a few seconds that the database answers. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    async fn ping(&self) -> Result<(), Fault>;

    /// Checks within a few seconds that the database accepts writes, so that operators can direct
    /// clients elsewhere. Cancel safe.
    ///
    /// # Errors
    /// As [`Database::ping`]; [`crate::FaultClass::Unavailable`] with code 25006 if the database is
    /// read-only.
    async fn takes_writes(&self) -> Result<(), Fault> {
        self.ping().await
    }

    /// Returns the role's rights to write; `None` if the database does not report them. Writes
    /// nothing. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    async fn write_rights(&self) -> Result<Option<WriteRights>, Fault> {
        Ok(None)
    }

    /// Returns a sink for batches that only read, which do not wait for writing batches; `None` if
    /// reads use the same sink as writes.
    fn reads(&self) -> Option<Arc<dyn Sink>> {
        None
    }

    /// Returns the database's bulk form; `None` if a lane's batches are its bulk form already.
    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        None
    }

    /// Returns the port through which a move takes rows from a queue table; `None` if the database
    /// has none.
    fn moves(&self) -> Option<Arc<dyn Moves>> {
        None
    }

    /// Returns access to Windrow's own tables; `None` if they cannot change in one transaction with
    /// the clients' rows. A spool then accepts only writes that can be repeated, and keeps its
    /// progress elsewhere.
    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        None
    }

    /// Opens a connection for batches whose successes survive a power failure, as far as the
    /// database can do that. The drain uses it, because it deletes entries that were applied.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    async fn connect_durably(&self) -> Result<Box<dyn Executor>, Fault> {
        self.connect(Purpose::Batches).await
    }

    /// Returns the columns of a table's primary key, in order; none if the table does not exist or
    /// has no key. For databases without transactions, where it decides which writes can be
    /// repeated. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn primary_key(&self, table: &TableName) -> Result<Box<[Name]>, Fault> {
        let _ = table;
        Ok(Box::default())
    }

    /// Returns the port through which replicas read tables and keys; `None` if the database lacks
    /// it.
    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        None
    }

    /// Returns true for a system table whose name has no meaning in other databases.
    fn owns(&self, table: &TableName) -> bool {
        let _ = table;
        false
    }

    /// Returns, for each recently used table, what its writes may share, by name of the table. Does
    /// not query the database.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
}
