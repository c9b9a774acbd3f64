//! PostgreSQL's protocol, version 3.0, from the server's side: parses client messages, and writes
//! server messages.
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>

pub(crate) mod answer;
pub(crate) mod data_row;
pub(crate) mod failure;
pub(crate) mod message;
#[cfg(test)]
mod tests;
