//! Windrow's own tables in a user's database: their contents, and their creation.
//!
//! The drain, the replicas, `idempotency` and the program write into them with ordinary
//! [`Write`](windrow_core::Write)s, in the transactions of the clients' rows. A database only
//! provides the texts of statements ([`OwnStatement`](windrow_core::bookkeeping::OwnStatement)) and
//! a way to run them ([`OwnSession`](windrow_core::bookkeeping::OwnSession)).
//!
//! | module | content |
//! | --- | --- |
//! | `progress` | the position up to which a spool's partition is in the database |
//! | `dead_letter` | writes that the database refused |
//! | `shorter` | other forms of them, for a table that does not take them as they are |
//! | `keys` | records of executed requests with keys |
//! | `marks` | the rows of a load that are in the database |
//! | `marker` | the rows of a move that are in its destination |
//! | `batches` | the batches of a move that were deleted from its source |
//! | `tables` | creating, upgrading, reading and cleaning the tables |
//! | `write`, `plain` | the shapes of writes to them, and texts that every database understands |

mod batches;
mod dead_letter;
mod keys;
mod marker;
mod marks;
mod plain;
mod progress;
mod shorter;
mod tables;
mod write;

pub use self::batches::{forget_batches, list_batches, note_batch, noted_batches};
pub use self::dead_letter::{DeadLetter, KeptLetter};
pub use self::keys::{Executed, KeyPart};
pub use self::marker::{Marker, MarkerWrites, has_strange_markers, prepare_markers};
pub use self::marks::TableOfMarks;
pub use self::progress::{Applied, ProgressRow};
pub use self::shorter::is_of_content;
pub use self::tables::{
    count_dead_letters, create, create_all, dead_letters, forget_keys, prepare, prepare_keys,
};
pub use windrow_core::bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};
