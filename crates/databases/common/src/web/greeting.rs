//! Connections that show a sign of life within their time.

use std::time::Duration;

use tokio::time::timeout;
use windrow_core::Fault;

use super::client::Origin;

/// The timeout of a check that the server answers.
const PING: Duration = Duration::from_secs(5);

/// Waits for a connection that was greeted. `connect`: how long it may take until it stands.
///
/// # Errors
/// Its own, or that it took too long.
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

/// Waits for a sign of life alone.
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
