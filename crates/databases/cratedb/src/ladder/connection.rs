//! A connection to the cluster, and what it has learned.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, RowDone, Shape, TableName, Tally, Verdict};
use windrow_database::Options;

use super::session::Session;
use super::statement::Statement;
use crate::catalog::cache::Catalog;
use crate::catalog::table::Table;

/// A connection and what it has learned.
pub(crate) struct Connection {
    pub(super) session: Session,
    pub(super) catalog: Arc<Catalog>,
    pub(super) creates: bool,
    pub(super) extends: bool,
    pub(super) statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

/// Why a batch ended before all of its writes were sent: none of the others was.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Fault);

impl Connection {
    pub(crate) fn new(session: Session, catalog: Arc<Catalog>, options: &Options) -> Self {
        Self {
            session,
            catalog,
            creates: options.create_tables,
            extends: options.extend_tables,
            statements: HashMap::new(),
        }
    }

    /// Reads a table.
    ///
    /// # Errors
    /// Outside: no batch can go on. Inside: the server does not let it be read.
    pub(super) async fn look_at(
        &mut self,
        name: &TableName,
        tally: &mut Tally,
    ) -> Result<Result<Option<Arc<Table>>, Fault>, Stop> {
        let whole = self.session.whole_name(name);
        match self.session.read(&whole, tally).await {
            Ok(facts) => Ok(Ok(self.catalog.put(name, facts))),
            Err(fault) if fault.may_retry() => Err(Stop(fault)),
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// The server says something else of a table than what is known.
    pub(super) fn forget(&self, statement: &Statement) {
        let whole = &statement.table.name;
        self.catalog.put(whole, None);
        self.catalog
            .put(&TableName::bare(whole.table.clone()), None);
    }
}

/// Units that were certainly not written, because of what the fault says.
pub(super) fn retry(fault: &Fault) -> Verdict<RowDone> {
    Verdict::RolledBack(fault.clone())
}
