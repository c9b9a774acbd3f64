//! Loading many rows by COPY.
//!
//! A portion is one round trip and one transaction: COPY, its data, the mark, a check that the
//! table still matches its description, and the Sync that commits. A field means the same as in a
//! write of its row alone.
//!
//! | file | what it does |
//! | --- | --- |
//! | `describe`, `layout` | the table's description, and the statements that follow from it |
//! | `binary`, `numeric`, `plain`, `misspelled` | fields in COPY's two forms, and fields that have none |
//! | `stream`, `verbatim`, `transfer` | sending a portion: encoded while the server reads it, or unchanged from its file |
//! | `row_checks`, `without_bad` | the rows that would be refused, and the portion without them |
//! | `answers` | the portion's outcome from the server's answers |
//! | `loader`, `marks` | the ports |
//!
//! Records of CSV are sent unchanged. Other rows go in binary, which costs the server less time
//! than text. A portion with a field whose spelling the encoder does not know goes as text, so that
//! the server decides. If keys may exist already, rows go into a temporary table and from there by
//! `INSERT .. SELECT .. ON CONFLICT`.
//!
//! CockroachDB has COPY too, but cannot combine it in a transaction with other statements of the
//! extended protocol, and older releases commit it in pieces of a hundred rows. So its rows go
//! through a lane.

mod answers;
mod binary;
mod data;
mod describe;
mod layout;
mod loader;
mod marks;
mod message;
mod misspelled;
mod numeric;
mod plain;
mod row_checks;
mod stream;
mod target;
mod transfer;
mod verbatim;
mod without_bad;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use windrow_bookkeeping::TableOfMarks;
use windrow_core::{
    Bulk, Fault, FaultClass, Holds, LoadColumn, LoadPlan, Loader, Marks, Means, Rows, TableName,
};
use windrow_database::demand::Demand;

use self::describe::{describe, no_table};
use self::layout::Layout;
use self::loader::PortionLoader;
use super::catalog::column::{Column, Kind};
use super::catalog::create;
use super::catalog::schema;
use super::dialect::Dialect;
use super::server::Server;
use windrow_pgwire::wire::Wire;

/// COPY into one database.
pub(super) struct Copy {
    server: Arc<Server>,
    /// The connection that read the table's columns. Its session has the catalog cached, so it
    /// loads first.
    spare: Mutex<Option<(Wire, &'static Dialect)>>,
}

impl Copy {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            spare: Mutex::default(),
        }
    }

    async fn wire(&self) -> Result<(Wire, &'static Dialect), Fault> {
        let mut spare = self.spare.lock().take();
        match spare.take_if(|(wire, _)| wire.is_alive()) {
            Some(spare) => Ok(spare),
            None => self.server.wire().await,
        }
    }

    async fn layout(
        &self,
        wire: &mut Wire,
        dialect: &'static Dialect,
        plan: &LoadPlan,
    ) -> Result<Layout, Fault> {
        if let Some(why) = dialect.no_copy {
            return Err(Fault::new(FaultClass::Unsupported, "0A000", why));
        }
        let creates = self.server.options.create_tables;
        match describe(wire, &plan.table, dialect).await? {
            Some(table) => Layout::new(plan, &table, creates),
            None if creates => Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                format!("COPY cannot fill {}: it is still to be made", plan.table),
            )),
            None => Err(no_table(&plan.table)),
        }
    }
}

#[async_trait]
impl Bulk for Copy {
    fn form(&self) -> &'static str {
        "COPY"
    }

    // Each portion is a commit; with this many rows its wait hardly counts.
    fn portion_rows(&self) -> usize {
        20_000
    }

    fn passes(&self) -> bool {
        self.server.dialect().no_copy.is_none()
    }

    fn most_loaders(&self) -> usize {
        self.server.dialect().profile.flights
    }

    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault> {
        let (mut wire, dialect) = self.wire().await?;
        let read = schema::read_unproven(&mut wire, table, dialect).await;
        if wire.is_usable() {
            self.spare.lock().replace((wire, dialect));
        }
        let facts = read.map_err(|broken| broken.unavailable())??;
        let creates = self.server.options.create_tables;
        Ok(facts.map(|facts| {
            let grows = creates && facts.ours;
            let columns = facts.columns.into_iter();
            columns.map(|column| load_column(column, grows)).collect()
        }))
    }

    async fn make(
        &self,
        plan: &LoadPlan,
        rows: &Rows,
        declared: &[Option<Holds>],
    ) -> Result<bool, Fault> {
        let (mut wire, dialect) = self.wire().await?;
        let demand = Demand::of_rows(plan, rows, declared);
        let extends = self.server.options.extend_tables;
        let grown = create::grow(&mut wire, dialect, &plan.table, &demand, extends).await;
        if wire.is_usable() {
            self.spare.lock().replace((wire, dialect));
        }
        grown.map_err(|broken| broken.unavailable())??;
        Ok(true)
    }

    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        let (mut wire, dialect) = self.wire().await?;
        match self.layout(&mut wire, dialect, plan).await {
            Ok(layout) => Ok(Box::new(PortionLoader::new(wire, layout))),
            Err(fault) => {
                wire.terminate().await;
                Err(fault)
            }
        }
    }

    fn marks(&self) -> Option<Arc<dyn Marks>> {
        Some(Arc::new(TableOfMarks::new(self.server.clone())))
    }
}

/// Describes a column to a load. `grows`: its type follows from its values.
fn load_column(column: Column, grows: bool) -> LoadColumn {
    LoadColumn {
        generated: column.always_generated,
        defaults: column.has_default,
        means: match column.kind {
            _ if grows => Means::Looks,
            Kind::Json | Kind::Jsonb => Means::Json,
            _ => Means::Itself,
        },
        name: column.name,
        type_name: column.type_name.into(),
    }
}
