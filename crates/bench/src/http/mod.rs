//! An HTTP/1.1 load generator: raw sockets, keep-alive, one request under way on each connection.
//!
//! It reads no more of an answer than its status and length, so that what is measured is the
//! server: less than 1 us a request in this program and some 5 us in the kernel's calls for one
//! send and one receive ([`crate::limit`] measures it).

pub mod answer;
pub mod closed;
pub mod connection;
pub mod job;
pub mod open;
pub mod report;
pub mod stream;

pub use job::{Health, Inserts, Job};
pub use report::{Live, Outcome, Report};
