//! A database as a whole: what can be done with it besides executing batches of row writes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::bookkeeping::Bookkeeping;
use crate::fault::Fault;
use crate::inventory::Inventory;
use crate::load::Bulk;
use crate::moves::Moves;
use crate::name::TableName;
use crate::sink::Sink;
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
    /// not change in one transaction with what is written, so that no spool can be applied
    /// exactly once.
    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        None
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
