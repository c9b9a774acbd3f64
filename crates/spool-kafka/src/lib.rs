//! A spool on a replicated log, over Kafka's protocol.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`address`] | the address of the log, from a URL |
//! | `wire`, `tls`, `sasl`, `dial` | a connection to a broker |
//! | `failure` | failures of requests |
//! | `cluster` | sends each request to the broker that leads the partition |
//! | `check` | checks that the topic keeps acknowledged entries |
//! | `record` | entries as records |
//! | `writer` | appends, one group after the other |
//! | `cursor` | reads ahead |
//! | `log` | a partition |
//! | `state` | the state that the partitions share |
//! | [`spool`] | the spool |
//!
//! **Promise.** A successful append is on all in-sync replicas, which are at least
//! `min.insync.replicas`, and it is in the log once.
//!
//! **Once.** Each group of entries is one record batch, which a broker accepts as a whole or not at
//! all. The batch has a producer's number and a sequence number, which the partition's leader
//! checks and replicates. If an answer is lost, the writer sends the same bytes again; the broker
//! recognizes the sequence and repeats its first answer. The writer has one batch under way at a
//! time, and readers see no duplicates. If no answer ever arrives, the clients get an unknown
//! outcome, and the writer continues with a new producer's number, because the old number may be
//! used with this sequence only for these entries.
//!
//! **Positions** are offsets. They have no gaps unless another program writes transactions to the
//! topic or the topic is compacted. A gap only makes counts of waiting entries too high.

pub mod address;
mod check;
mod cluster;
mod cursor;
mod dial;
mod failure;
mod log;
mod record;
mod sasl;
pub mod spool;
mod state;
mod wire;
mod writer;

pub use address::{Address, Login, Mechanism};
pub use check::Risk;
pub use spool::KafkaSpool;
