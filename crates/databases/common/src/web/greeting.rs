//! Time limits for opening a connection and for its first sign of life.

use std::time::Duration;

use tokio::time::timeout;
use windrow_core::Fault;

use super::client::Origin;

/// The timeout of a check that the server answers.
const PING: Duration = Duration::from_secs(5);

/// Opens a connection and waits for its first sign of life. `connect`: the limit for opening it.
///
/// # Errors
/// Those of the connection, or a timeout.
pub async fn connected<S>(
    origin: &Origin,
    connect: Duration,
    session: impl Future<Output = Result<S, Fault>>,
) -> Result<S, Fault> {
    let limit = connect.saturating_add(PING);
    timeout(limit, session).await.unwrap_or_else(|_| {
        let peer = origin.peer();
        Err(Fault::unavailable(format!(
            "{peer} did not answer within {limit:?}"
        )))
    })
}

/// Waits for a sign of life of an open connection.
///
/// # Errors
/// As [`connected`].
pub async fn alive<S>(
    origin: &Origin,
    session: impl Future<Output = Result<S, Fault>>,
) -> Result<(), Fault> {
    match timeout(PING, session).await {
        Ok(greeted) => greeted.map(drop),
        Err(_) => Err(Fault::unavailable(format!(
            "{} gave no sign of life within {} seconds",
            origin.peer(),
            PING.as_secs()
        ))),
    }
}
