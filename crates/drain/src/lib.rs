//! The drain: what is in a spool, into a database, each entry exactly once.
//!
//! ```text
//!  frontend --- Handle ---> intake --> Appender --> log --> Drain --> database
//!                  ^                                          |
//!                  '----------- Progress: how far it is <-----'
//! ```
//!
//! **Exactly once.** A transaction holds the writes of some entries, and before them those that
//! move the row of `windrow_progress` from the position before the entries to the one after them.
//! So this row is right after a crash, and after a commit without an answer. Two processes that
//! apply the same entries at the same time cannot both commit, because the row's key refuses the
//! second.
//!
//! **What the database refuses** becomes a dead letter: a row of `windrow_rejected`, written in the
//! same transaction in place of the entry's writes. Where it is too large for the table, the entry
//! goes into a file first, and the letter names that. No entry is ever skipped.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `drain` | a task for each partition |
//! | `handle`, `progress`, `status`, `metrics`, `options` | what others see of it |
//! | `partition` | what is known of a partition, between its worker and others |
//! | `worker` | applies a partition: connects, asks how far it is, goes on from there |
//! | `reader` | entries, read and decoded ahead |
//! | `flight` | entries as one unit |
//! | `sharing` | which entries may share a unit |
//! | `judge` | what an executor's report means |
//! | `letter` | a refused entry as a dead letter |
//! | `aside` | entries that the table of dead letters does not take, in files |
//! | `beside` | a database without transactions, with Windrow's own tables beside it |
//! | `size` | how many entries go into a transaction |
//! | `trimmer` | gives up what was applied some time ago |

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
