//! A connection that ended before all answers were there.

use std::fmt;

use super::server_error::ServerError;

/// The connection cannot be used any more, and not all that was asked for is answered.
///
/// What is certain: a Sync or COMMIT that ends behind [`Broken::sent`] was never seen by the
/// server, so what only it would have committed is rolled back. One that was sent and is not
/// answered has an unknown outcome, unless [`Broken::error`] came before the answer to its last
/// statement: the server answers in order, so it had not come as far as the commit.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The most bytes of [`super::Wire::out`] that may have reached the server, counted from its
    /// start.
    pub sent: usize,
    /// ReadyForQuery messages that were given out in this exchange.
    pub syncs_seen: usize,
    /// The FATAL error with which the server ended the connection, if it said one.
    pub error: Option<ServerError>,
    /// What happened, and on the connection to which server.
    pub cause: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match &self.error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}
