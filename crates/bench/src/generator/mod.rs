//! The load generator: clients over raw sockets, each with one call under way, which speak
//! HTTP/1.1, PostgreSQL's or MySQL's protocol.
//!
//! The clients read of an answer only where it ends and if the call succeeded, so that the server
//! is measured: less than 1 us a call in this program and some 5 us in the kernel's
//! calls for one send and one receive ([`limit`] measures it). Usual drivers take several times as
//! much, and pgbench ends a client at its first error and cannot hold ten thousand of them.

mod answer;
mod arrivals;
mod clients;
pub mod connection;
pub mod http;
mod job;
pub mod limit;
mod mysql;
pub mod pg;
mod report;
mod running;
mod schedule;
pub mod stream;
pub mod transaction;

pub use clients::Clients;
pub use connection::{Connection, Target};
pub use job::{Call, Health, Inserts, Job, Lookups, Style};
pub use report::{Live, Outcome, Report};
pub use running::Running;
pub use schedule::{Schedule, Until};
