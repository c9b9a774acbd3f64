//! Replicas: other databases with the rows of the primary, written in whole batches.
//!
//! ```text
//!  lane --> Primary --(1) keys of the batch--> log of each replica --> Applier --> replica
//!              |                                                          |
//!              '--(2) the batch--> primary <--(3) rows of the keys now----'
//! ```
//!
//! **A replica follows keys, not values.** The log contains the keys of the rows that a batch may
//! change. The applier writes the rows that the primary has under these keys at that time: existing
//! rows as upserts, missing rows as deletes. So keys can be applied twice and in any order of
//! batches, many changes of one row become one write, and defaults, generated values and the
//! effects of triggers are included.
//!
//! **Nothing is lost.** Keys are durable before their batch begins. If they are not known then
//! (generated numbers), a note says that rows of the table may have been written, and the keys
//! follow before any client is answered. If the keys never follow, the table is compared. Keys are
//! applied once their batch has ended, whatever its outcome is.
//!
//! **Gateways that share a log** each apply their own entries, because each alone knows when its
//! batches have ended. They see each other in the log. The entries of a gateway that counts as lost
//! are applied by another one, once no transaction is under way at either database. As two gateways
//! may write one row at the same time, each reads the primary again after its write.
//!
//! | module | content |
//! | --- | --- |
//! | `follow` | the keys of the rows that a write may change |
//! | `entry` | keys, and messages between gateways, as the bytes of a log's entries |
//! | `log` | the log of a replica, in files or shared with other gateways |
//! | `members` | the gateways that share a log: which are alive or lost, and their positions |
//! | `signs` | signs of life of this gateway |
//! | `tickets` | batches under way, and the clients that wait for them |
//! | `target` | the database of a replica, and the names of its tables |
//! | `replica` | a replica: its target, its log |
//! | `primary` | the primary with its replicas, as a database |
//! | `shared` | the state that its connections share |
//! | `batch` | logging the rows of a batch, before and after it |
//! | `executor` | a connection of the primary, for rows |
//! | `calls` | the same for statements of SQL clients |
//! | `reading` | entries that were read and not applied yet |
//! | `applier`, `held` | applies a log; rows that are refused for now |
//! | `overtaken` | recovery after other gateways considered this one lost |
//! | `notes`, `letter` | tables with rows whose keys were never logged; refused rows |
//! | `rows` | reading rows of many keys, and writing them |
//! | `copy` | copies all keys to a new replica |
//! | `check`, `comparison`, `alike` | compares a replica with the primary, and repairs it |
//! | `ranges`, `side_by_side` | compares by checksums of ranges, or by rows read in bulk |
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
