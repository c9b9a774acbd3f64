//! Notifications of new rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windrow_core::Moves;

use super::order::Order;
use super::trouble::MoveError;

/// The delay before a lost connection is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(1);

/// A notification that wakes all workers.
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
    /// Returns a receiver for all notifications from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    fn ring(&self) {
        self.rings
            .send_modify(|rings| *rings = rings.wrapping_add(1));
    }
}

/// Wakes the workers whenever the database notifies of new rows. Ends if the database has no
/// notifications.
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
                    // Earlier rows had no notification.
                    bell.ring();
                    while news.wait().await.is_ok() {
                        bell.ring();
                    }
                }
                Err(fault) => tracing::debug!(%fault, "new rows are not notified"),
            }
            tokio::time::sleep(REOPEN_DELAY).await;
        }
    };
    tokio::select! {
        () = hearing => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}
