//! One connection that executes batches.

use async_trait::async_trait;
use windrow_core::{Executor, Fault, Report, Unit};

use super::place::place;
use super::session::Session;
use crate::web::{Batch, Placed};

/// A connection.
pub(super) struct Connection {
    pub(super) session: Session,
    /// Collections that are not there are made.
    pub(super) creates: bool,
}

/// Why a batch ended before all of its writes were sent: none of the others was.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Fault);

impl Connection {
    pub(super) fn new(session: Session, creates: bool) -> Self {
        Self { session, creates }
    }

    async fn drive(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        let database = self.session.database.clone();
        let (forms, placed) = place(batch, &database);
        for (group, items) in Placed::steps(batch, &placed) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            if let Some(form) = forms.get(group as usize) {
                self.step(batch, form, &items).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = Batch::new(units, "ArangoDB");
        match self.drive(&mut batch).await {
            Ok(()) => batch.report(true),
            Err(Stop(fault)) => {
                batch.again_rest(&fault);
                batch.report(false)
            }
        }
    }
}
