//! Executes a batch: joins its writes with their collections and sends them step by step.

use async_trait::async_trait;
use windrow_core::{Executor, Report, RowDone, RowWrite, Unit};
use windrow_database::web::{Batch, BoundWrite};

use super::bind::bind;
use super::connection::{Connection, Stop};

impl Connection {
    async fn drive(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        let database = self.session.database.clone();
        let (requests, writes) = bind(batch, &database);
        for (group, items) in BoundWrite::steps(batch, &writes) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            if let Some(request) = requests.get(group as usize) {
                self.step(batch, request, &items).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Executor<RowWrite> for Connection {
    async fn execute(&mut self, units: &[Unit<RowWrite>]) -> Report<RowDone> {
        let mut batch = Batch::new(units, "ArangoDB");
        match self.drive(&mut batch).await {
            Ok(()) => batch.report(true),
            Err(Stop(fault)) => {
                batch.retry_rest(&fault);
                batch.report(false)
            }
        }
    }
}
