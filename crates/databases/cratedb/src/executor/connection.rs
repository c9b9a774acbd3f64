//! A lane's connection to the cluster.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, Name, Shape, TableName, Tally};
use windrow_database::Options;
use windrow_database::web::Stop;

use super::session::Session;
use super::sql::Statement;
use crate::catalog::cache::Catalog;
use crate::catalog::table::Table;

/// A lane's connection to the cluster.
pub(crate) struct Connection {
    pub(super) session: Session,
    pub(super) catalog: Arc<Catalog>,
    /// True if missing tables are created.
    pub(super) creates: bool,
    /// True if missing columns are added.
    pub(super) extends: bool,
    /// The column of new tables for the moment of each row.
    pub(super) received_at: Option<Name>,
    /// The statements of shapes that were executed before.
    pub(super) statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

impl Connection {
    pub(crate) fn new(session: Session, catalog: Arc<Catalog>, options: &Options) -> Self {
        Self {
            session,
            catalog,
            creates: options.create_tables,
            extends: options.extend_tables,
            received_at: options.received_at.clone(),
            statements: HashMap::new(),
        }
    }

    /// Reads the description of a table.
    ///
    /// # Errors
    /// Outer: the batch cannot continue. Inner: the server does not allow reading it.
    pub(super) async fn read_table(
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

    /// Drops the description of a statement's table, because it differs from the server's table.
    pub(super) fn forget(&self, statement: &Statement) {
        let whole = &statement.table.name;
        self.catalog.put(whole, None);
        self.catalog
            .put(&TableName::bare(whole.table.clone()), None);
    }
}
