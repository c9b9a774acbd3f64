//! The error of a connection that ended before all answers had arrived.

use std::fmt;

use super::server_error::ServerError;

/// A broken connection with outstanding answers.
///
/// A Sync or COMMIT that ends after [`Broken::sent`] never reached the server, so its transaction
/// is rolled back. One that was sent and not answered has an unknown outcome, unless
/// [`Broken::error`] arrived before the answer to its last statement: the server answers in order,
/// so it had not reached the commit.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The largest number of bytes of [`super::Wire::out`] that may have reached the server.
    pub sent: usize,
    /// The number of ReadyForQuery messages received in this exchange.
    pub syncs_seen: usize,
    /// The FATAL error with which the server ended the connection, if it sent one.
    pub error: Option<ServerError>,
    /// A message that names the server and the cause.
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
