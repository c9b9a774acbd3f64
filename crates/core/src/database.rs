//! A database as a whole: what can be done with it besides executing batches of row writes.

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
use crate::write::RowWrite;

/// A database that a user has named.
#[async_trait]
pub trait Database: Sink<RowWrite> {
    /// Asks the database for a sign of life, within a few seconds. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    async fn ping(&self) -> Result<(), Fault>;

    /// Asks the database if it takes writes, within a few seconds: for operators, who send clients
    /// elsewhere if it does not. Cancel safe.
    ///
    /// # Errors
    /// As [`Database::ping`]; [`crate::FaultClass::Unavailable`] with code 25006 if it can only be
    /// read.
    async fn takes_writes(&self) -> Result<(), Fault> {
        self.ping().await
    }

    /// A sink for batches that only read, whose connections wait for no batch that writes; `None`
    /// if reads go with the writes.
    fn reads(&self) -> Option<Arc<dyn Sink<RowWrite>>> {
        None
    }

    /// The database's own way to take many rows at once; `None` where a lane's batches are that
    /// already.
    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        None
    }

    /// The database as one that holds pending rows, which a move takes out; `None` where that is
    /// not possible.
    fn moves(&self) -> Option<Arc<dyn Moves>> {
        None
    }

    /// The tables that Windrow keeps in the database for itself; `None` where what they hold could
    /// not change in one transaction with what is written. A spool then applies writes that can be
    /// repeated, and keeps these tables elsewhere.
    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        None
    }

    /// Opens a connection for batches of which each success survives the loss of power, as far as
    /// the database can do that: who applies a spool gives up what has succeeded. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    async fn connect_durably(&self) -> Result<Box<dyn Executor<RowWrite>>, Fault> {
        self.connect(Purpose::Batches).await
    }

    /// The columns of a table's primary key, in their order; none where the table is not there or
    /// has no key. Asked of databases without transactions: whether a write can be repeated
    /// depends on it. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn primary_key(&self, table: &TableName) -> Result<Box<[Name]>, Fault> {
        let _ = table;
        Ok(Box::default())
    }

    /// Its tables and the keys of their rows, for replicas; `None` where it cannot tell them.
    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        None
    }

    /// True for a table that the database keeps for itself, by a name that other databases have no
    /// meaning for.
    fn owns(&self, table: &TableName) -> bool {
        let _ = table;
        false
    }

    /// What the writes of each table share, for the tables that have been met lately, by name. Asks
    /// the database nothing.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
}
