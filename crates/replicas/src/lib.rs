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
//! **Gateways that share a log** each apply what themselves have noted, because each alone knows
//! when its batches have ended. They see from the log who is there. What one has left that counts
//! as lost is applied by another, once nothing is under way any more at either database. As two may
//! write one row at the same time, each looks at the primary once more behind its write.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `follow` | what a write says of the keys of its rows |
//! | `entry` | keys as the bytes of a log's entries, and what gateways tell each other |
//! | `log` | the log of a replica, in files or shared with other gateways |
//! | `members` | gateways that share a log: who is there, who is lost, how far each is |
//! | `signs` | signs of life for them |
//! | `tickets` | batches under way, and who waits for them |
//! | `target` | where its rows go: its database, its tables' names there |
//! | `replica` | a replica: its target, its log |
//! | `primary` | the primary with its replicas, as a database |
//! | `shared` | what its connections share |
//! | `batch` | the way of a batch past the logs |
//! | `executor` | a connection of the primary, for rows |
//! | `calls` | the same for statements of SQL clients |
//! | `reading` | what of a log is read and not applied yet |
//! | `applier`, `held` | applies a log; rows that are refused for now |
//! | `overtaken` | when other gateways took this one for lost |
//! | `notes`, `letter` | rows whose keys were never noted; rows that are refused |
//! | `rows` | reading rows of many keys, and writing them |
//! | `copy` | all keys of a new replica |
//! | `check`, `comparison`, `alike` | comparing a replica with the primary, and mending it |
//! | `ranges`, `side_by_side` | by sums of ranges, where both databases have them; by rows read in bulk |
//! | `status`, `metrics` | the state of replicas, for operators |

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
mod followed;
mod held;
mod letter;
mod log;
mod members;
mod metrics;
mod notes;
mod overtaken;
mod primary;
mod promised;
mod ranges;
mod reading;
mod replica;
mod rows;
mod shared;
mod side_by_side;
mod signs;
mod status;
mod target;
mod tickets;

pub use check::check;
pub use comparison::Checked;
pub use log::KeyLog;
pub use metrics::ReplicaMetrics;
pub use primary::Primary;
pub use replica::Replica;
pub use shared::WaitFor;
pub use status::{ReplicaState, ReplicaStatus};
pub use target::Names;
