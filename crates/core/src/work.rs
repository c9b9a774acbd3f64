//! The work of a lane.

use std::fmt::Debug;

use crate::name::TableName;
use crate::shape::Op;

/// One write of a client, of a kind that a lane carries: [`crate::RowWrite`] for those whose values
/// Windrow knows, and the SQL calls of PostgreSQL's protocol, whose values are the client's bytes.
///
/// A lane and all that stands before it is generic over its kind of work, so that the two meet
/// nowhere but in a database that can execute both.
pub trait Work: Clone + Debug + Send + Sync + 'static {
    /// The client's answer if the work succeeded.
    type Done: Clone + Debug + Default + PartialEq + Send + Sync + 'static;

    /// Returns the operation.
    fn op(&self) -> Op;

    /// The table that it is about.
    fn table(&self) -> &TableName;

    /// Bytes that it takes in memory.
    fn bytes(&self) -> usize;
}
