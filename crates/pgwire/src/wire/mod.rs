//! A PostgreSQL connection: the protocol, version 3.0, over the message codec of
//! `postgres-protocol`.
//!
//! The caller appends frontend messages to [`Wire::out`] and runs [`Wire::exchange`]: everything is
//! sent while the answers are read, each answer borrowed from the receive buffer. No task, no
//! channel and no allocation per message stands between the socket and the caller.

mod answer;
mod auth;
mod broken;
mod cancel;
mod connect;
mod connection;
mod cursor;
mod dial;
mod endpoint;
mod entrance;
mod exchange;
mod inbox;
mod malformed;
mod server_error;
mod session;
mod socket;
mod startup;
#[cfg(test)]
mod tests;
mod tls;

pub use answer::{Answer, DataRow, Field};
pub use broken::Broken;
pub use cancel::CancelKey;
pub use connection::Wire;
pub use cursor::Cursor;
pub use exchange::{Dialogue, On, TextRows};
pub use server_error::{ServerError, Words};
pub use socket::Socket;
pub use tls::server_end_point;
