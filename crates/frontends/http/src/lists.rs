//! Lists of tables and rows, as the database returns them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use windrow_core::{Fault, FaultClass, Inventory};

use crate::answers::Refusal;

/// The time limit of a list.
pub(crate) const LIST_TIME: Duration = Duration::from_secs(30);

/// The most lists that are read from the database at once, each on a connection of its own.
const MAX_LISTS: usize = 4;

/// The bytes of values after which a list ends.
pub(crate) const LIST_BYTES: usize = 4 << 20;

/// The lists of the database's tables and rows.
pub(crate) struct Lists {
    inventory: Option<Arc<dyn Inventory>>,
    slots: Semaphore,
}

impl Lists {
    pub(crate) fn new(inventory: Option<Arc<dyn Inventory>>) -> Self {
        Self {
            inventory,
            slots: Semaphore::new(MAX_LISTS),
        }
    }

    /// Queries the database, within [`LIST_TIME`].
    ///
    /// # Errors
    /// 501 if the database has no lists, 503 if it takes longer, and its own errors.
    pub(crate) async fn ask<'l, T, F>(
        &'l self,
        ask: impl FnOnce(&'l dyn Inventory) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let inventory = self.inventory.as_deref().ok_or_else(unlisted)?;
        let asked = timeout(LIST_TIME, async {
            // The semaphore is never closed.
            let _slot = self.slots.acquire().await.ok();
            ask(inventory).await
        });
        Ok(asked.await.unwrap_or_else(|_| Err(too_slow()))?)
    }
}

fn unlisted() -> Refusal {
    let message =
        "this database gives no lists of tables and rows through Windrow; read rows by their key";
    let fault = Fault::new(FaultClass::Unsupported, "0A000", message);
    Refusal::new(StatusCode::NOT_IMPLEMENTED, fault)
}

fn too_slow() -> Fault {
    Fault::unavailable(format!(
        "the database did not list the rows within {} s; add conditions or an order that an index has",
        LIST_TIME.as_secs()
    ))
}
