//! A load generator that speaks PostgreSQL's protocol: statements over raw sockets, one
//! call under way on each connection. pgbench ends a client at its first error and cannot hold ten
//! thousand of them; this one can.

pub mod answer;
pub mod closed;
pub mod job;
pub mod open;
pub mod report;
pub mod session;
pub mod transaction;

pub use job::{Inserts, Job, Mode, Values};
pub use report::{CallOutcome, Report};
