//! Corrects what a connection knows of tables and statements by the server's answers.

use crate::executor::batch::Batch;
use crate::executor::connection::Connection;
use crate::executor::findings::Findings;
use crate::executor::form::WorkKind;
use crate::executor::prepared::StatementKey;

impl<F: WorkKind> Connection<F> {
    /// Forgets statements and descriptions that are no longer correct. Descriptions of changed
    /// tables are forgotten later, before the batch is planned again.
    pub(super) fn learn(&mut self, batch: &Batch<'_, F>, findings: &Findings) {
        let prepared = &mut self.statements.prepared;
        for version in &findings.unguarded {
            prepared.fail(StatementKey::Guard(*version));
        }
        prepared.forget(|key| {
            matches!(key, StatementKey::Check(check) if findings.told.contains(&check.version))
        });
        if findings.statements_gone {
            prepared.clear();
        }
        self.usable &= !findings.leave;
        self.forget(batch, &findings.outdated, false);
    }

    /// Forgets the descriptions of tables of these versions. `changed`: the tables differ from
    /// their descriptions; otherwise a further change might go unnoticed.
    pub(super) fn forget(&self, batch: &Batch<'_, F>, versions: &[u64], changed: bool) {
        for compiled in &batch.shapes {
            if versions.contains(&compiled.table.version) {
                F::forget(compiled, &self.shared.catalog, changed);
            }
        }
    }
}
