//! Waiting for rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windrow_core::Moves;

use super::order::Order;
use super::trouble::MoveError;

/// How long it is waited before a lost connection is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// Rings for all workers.
#[derive(Debug)]
pub(super) struct Bell {
    rings: watch::Sender<u64>,
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            rings: watch::Sender::new(0),
        }
    }
}

impl Bell {
    /// Receives all rings from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    fn ring(&self) {
        self.rings
            .send_modify(|rings| *rings = rings.wrapping_add(1));
    }
}

/// Rings whenever the database tells of new rows. It ends where the database has no such thing.
pub(super) async fn listen(
    moves: Arc<dyn Moves>,
    order: Arc<Order>,
    bell: Arc<Bell>,
    stop: CancellationToken,
) -> Result<(), MoveError> {
    let hearing = async {
        loop {
            match moves.news(&order.plan).await {
                Ok(None) => return,
                Ok(Some(mut news)) => {
                    // Nobody told what came before.
                    bell.ring();
                    while news.wait().await.is_ok() {
                        bell.ring();
                    }
                }
                Err(fault) => tracing::debug!(%fault, "new rows are not told of"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = hearing => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}
