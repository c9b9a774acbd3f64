//! PostgreSQL's protocol, version 3.0, from the server's side: client messages in, server messages
//! out.
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>

pub(crate) mod answer;
pub(crate) mod data_row;
pub(crate) mod failure;
pub(crate) mod message;
#[cfg(test)]
mod tests;
