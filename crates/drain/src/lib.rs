//! The drain: applies the entries of a spool to a database, each exactly once.
//!
//! ```text
//!  frontend --- Handle ---> intake --> Appender --> log --> Drain --> database
//!                  ^                                          |
//!                  '----------- Progress: how far it is <-----'
//! ```
//!
//! **Exactly once.** A transaction holds the writes of some entries, and before them those that
//! move the row of `windrow_progress` from the position before the entries to the one after them.
//! So this row is correct after a crash, and after a commit without an answer. Two processes that
//! apply the same entries at the same time cannot both commit, because the row's key refuses the
//! second.
//!
//! **An entry that the database refuses** becomes a dead letter: a row of `windrow_rejected`,
//! written in the same transaction instead of the entry's writes. If it is too large for the table,
//! the entry is stored in a file first, and the letter names the file. No entry is ever skipped.
//!
//! | module | content |
//! | --- | --- |
//! | `drain` | a task for each partition |
//! | `handle`, `progress`, `status`, `metrics`, `options` | the drain's port to the rest of the program |
//! | `partition` | the state of a partition, shared by its worker and others |
//! | `worker` | applies a partition: connects, reads its position, goes on from there |
//! | `reader` | reads and decodes entries ahead |
//! | `flight` | entries as one unit |
//! | `sharing` | the entries that may share a unit |
//! | `judge` | the meaning of an executor's report |
//! | `letter` | a refused entry as a dead letter |
//! | `aside` | files for entries that the table of dead letters does not accept |
//! | `beside` | a database without transactions, with Windrow's own tables beside it |
//! | `size` | the number of entries in a transaction |
//! | `trimmer` | trims entries that were applied some time ago |

mod aside;
mod beside;
mod drain;
mod flight;
mod handle;
mod judge;
mod letter;
mod metrics;
mod options;
mod partition;
mod progress;
mod reader;
mod sharing;
mod size;
mod status;
mod trimmer;
mod worker;

pub use self::beside::Beside;
pub use self::drain::Drain;
pub use self::handle::Handle;
pub use self::metrics::DrainMetrics;
pub use self::options::Options;
pub use self::progress::Progress;
pub use self::status::{DrainState, DrainStatus, PartitionStatus};
