//! Replicas: other databases that hold what the primary holds, written in whole batches.
//!
//! ```text
//!  lane --> Primary --(1) keys of the batch--> log of each replica --> Applier --> replica
//!              |                                                          |
//!              '--(2) the batch--> primary <--(3) what the keys hold now--'
//! ```
//!
//! **A replica follows keys, not values.** What is logged is which rows a batch may change. What is
//! written is what the primary holds under these keys when they are applied: rows that are there as
//! upserts, rows that are gone as deletes. So applying twice does no harm, order between batches
//! needs no care, many changes of one row become one write, and defaults, generated values and what
//! triggers make of the row come along.
//!
//! **Nothing is lost.** Keys are durable before their batch begins. Where they are not known then
//! (numbers that the database counts up), a note says that rows of the table may have been
//! written, and the keys follow before anybody is answered. A note without keys has the table
//! compared. Keys are applied once their batch has ended, whatever came of it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `follow` | what a write says of the keys of its rows |
//! | `entry` | keys as the bytes of a log's entries |
//! | `tickets` | batches under way, and who waits for them |
//! | `target` | where its rows go: its database, its tables' names there |
//! | `replica` | a replica: its target, its log |
//! | `primary` | the primary with its replicas, as a database |
//! | `shared` | what its connections share |
//! | `batch` | the way of a batch past the logs |
//! | `executor` | a connection of the primary, for rows |
//! | `calls` | the same for statements of SQL clients |
//! | `applier`, `held` | applies a log; rows that are refused for now |
//! | `notes`, `letter` | rows that nobody has told of; rows that are not taken |
//! | `rows` | reading rows of many keys, and writing them |
//! | `copy` | all keys of a new replica |
//! | `check`, `comparison`, `alike` | comparing a replica with the primary, and mending it |
//! | `ranges`, `side_by_side` | by sums of ranges, where both databases have them; by rows read in bulk |
//! | `status`, `metrics` | what is told of replicas |

mod alike;
mod applier;
mod batch;
mod calls;
mod check;
mod comparison;
mod copy;
mod entry;
mod executor;
mod follow;
mod held;
mod letter;
mod metrics;
mod notes;
mod primary;
mod ranges;
mod replica;
mod rows;
mod shared;
mod side_by_side;
mod status;
mod target;
mod tickets;

pub use calls::Says;
pub use check::check;
pub use comparison::Checked;
pub use metrics::ReplicaMetrics;
pub use primary::Primary;
pub use replica::Replica;
pub use shared::WaitFor;
pub use status::{ReplicaState, ReplicaStatus};
pub use target::Names;
