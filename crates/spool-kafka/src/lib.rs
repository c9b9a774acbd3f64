//! A spool on a replicated log, over Kafka's protocol.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`address`] | where the log is, from a URL |
//! | `wire`, `tls`, `sasl`, `dial` | a connection to a broker |
//! | `failure` | what went wrong with a request |
//! | `cluster` | requests, each to the broker that leads the partition |
//! | `check` | whether the topic keeps what it acknowledges |
//! | `record` | entries as records |
//! | `writer` | appends, one group after the other |
//! | `cursor` | reads ahead |
//! | `log` | a partition |
//! | `state` | what the parts share |
//! | [`spool`] | the spool |
//!
//! **What is promised.** An append that has ended well is on all replicas that are in sync, and
//! those are as many as `min.insync.replicas` says. It is in the log once.
//!
//! **Why once.** Each group of entries is one record batch, which a broker takes as a whole or not
//! at all. It carries a producer's number and a sequence that the partition's leader checks and
//! replicates with the batch: a batch that is sent again, because its answer was lost, is known by
//! its sequence, and gets the answer of the first. So the writer sends the same bytes until it is
//! told what became of them, one batch at a time; nothing has to be looked for by whoever reads.
//! Where an answer never comes, those who wait are told that the outcome is unknown, and the writer
//! goes on under another producer's number: a number is never used for other entries with a
//! sequence that may have been taken.
//!
//! **Positions** are offsets. They are without a gap as long as nobody else writes transactions to
//! the topic and nothing is compacted; a gap does no harm but that counts of waiting entries are
//! too high.

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
mod tls;
mod wire;
mod writer;

pub use address::{Address, Login, Mechanism};
pub use check::Risk;
pub use spool::KafkaSpool;
