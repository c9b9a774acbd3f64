//! What the answers to a round trip say of what its connection knows of tables and statements.

use super::batch::Batch;
use super::codes::Meaning;
use super::connection::Connection;
use super::form::Form;
use super::prepared::StatementKey;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// A description is not true any more: the batch begins anew.
    pub(crate) stale: bool,
    /// Versions of tables that are not as they were described.
    pub(crate) changed: Vec<u64>,
    /// Versions of tables that are as they were described, but of which a further change might not
    /// be seen.
    pub(crate) outdated: Vec<u64>,
    /// Versions of tables of which the server has been told a change, but none that matters: their
    /// checks are to be prepared anew.
    pub(crate) told: Vec<u64>,
    /// A row that would fail was not told apart.
    pub(crate) missed: bool,
    /// Versions of tables whose guards fail by themselves.
    unguarded: Vec<u64>,
    /// The server does not know the prepared statements.
    statements_gone: bool,
    /// The server goes away.
    leave: bool,
}

impl Findings {
    /// Takes note of what an error means for others than the units that it was about.
    pub(crate) fn note(&mut self, meaning: Meaning) {
        match meaning {
            Meaning::Leave => self.leave = true,
            Meaning::StatementsGone => (self.statements_gone, self.stale) = (true, true),
            Meaning::Changed(version) => {
                self.stale = true;
                self.changed.push(version);
            }
            Meaning::Unguarded(version) => self.unguarded.push(version),
            Meaning::Again | Meaning::Unknown | Meaning::TableLocked(_) | Meaning::Own => {}
        }
    }
}

impl<F: Form> Connection<F> {
    /// Forgets what is not true any more, but for the descriptions of tables that have changed:
    /// those go when the batch begins anew.
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

    /// Tables of these versions are to be described anew before the next use: they are not as they
    /// were described (`changed`), or a further change might not be seen.
    pub(super) fn forget(&self, batch: &Batch<'_, F>, versions: &[u64], changed: bool) {
        for compiled in &batch.shapes {
            if versions.contains(&compiled.table.version) {
                F::forget(compiled, &self.shared.catalog, changed);
            }
        }
    }
}
