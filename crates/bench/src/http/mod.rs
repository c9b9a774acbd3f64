//! An HTTP/1.1 load generator: raw sockets, keep-alive, one request under way on each connection.
//!
//! It reads no more of an answer than its status and length, so that what is measured is the server: some 4 us of CPU
//! a request.

pub mod answer;
pub mod closed;
pub mod connection;
pub mod job;
pub mod open;
pub mod report;
pub mod stream;

pub use job::{Inserts, Job};
pub use report::{Live, Outcome, Report};
