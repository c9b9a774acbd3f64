//! Signs of life for the gateways that share a log.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::replica::Replica;

/// The interval of the signs.
const PAUSE: Duration = Duration::from_secs(1);

/// Appends signs of life until `stop` is cancelled, also while the replica is away: only a gateway
/// can be lost, not a replica.
pub(crate) async fn run(replica: Arc<Replica>, stop: CancellationToken) {
    if replica.log.is_alone() {
        return;
    }
    loop {
        let signed = tokio::select! {
            () = stop.cancelled() => return,
            signed = replica.sign(false) => signed,
        };
        if let Err(fault) = signed {
            tracing::debug!(replica = %replica.name, %fault, "the sign of life for other gateways was not written");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
