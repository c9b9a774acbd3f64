//! Joins writes with the descriptions of their tables.

use windrow_core::Tally;
use windrow_pgwire::wire::Broken;

use crate::executor::batch::Batch;
use crate::executor::connection::Connection;
use crate::executor::form::WorkKind;

impl<F: WorkKind> Connection<F> {
    /// Joins the writes with their tables' descriptions. If the server refuses a description, the
    /// writes that need it get the reason as their verdict.
    pub(super) async fn place(
        &mut self,
        batch: &mut Batch<'_, F>,
        anew: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        let (server, catalog) = self.asked(tally);
        let (tables, refused) = F::read(server, catalog, batch.units, anew).await?;
        for refused in refused {
            let verdict = self.refused(refused.fault.clone());
            batch.conclude_refused(&refused, &verdict);
        }
        let (catalog, statements) = (&self.shared.catalog, &mut self.statements);
        batch.place(|write| F::compile(&tables, catalog, statements, write));
        let tables = batch.shapes.iter().map(|compiled| &*compiled.table);
        if statements.has_old_plans(tables) {
            tally.round_trips += 1;
            drop(self.wire.simple("DISCARD PLANS").await?);
        }
        Ok(())
    }
}
