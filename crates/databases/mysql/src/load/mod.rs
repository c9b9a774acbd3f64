//! Bulk loads: LOAD DATA LOCAL (or INSERT, if the server does not allow it), with a "file" that is
//! made of the rows.
//!
//! The server asks for the file while it executes the statement. It always gets these rows,
//! whatever name it asks for: no file is ever read.
//!
//! With LOCAL the server cannot stop the sender, so it behaves as if the statement had IGNORE: it
//! skips a row that it does not accept, or stores changed values, with a warning. So a portion is
//! committed only if every row was written and there was no warning at all.
//!
//! When rows are filtered, the warnings tell which rows are left out: the portion is committed once
//! every row without a warning was written, and none with one. So that no changed value is stored,
//! the values are written to a temporary table first. The rows that are left out are written by a
//! lane, and each gets its own error.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the port: which tables can be loaded, how many connections |
//! | `plan` | checks that a table can be loaded, and writes the statement |
//! | `field` | writes values as the statement reads them |
//! | `feed` | writes the file |
//! | `loader` | loads a portion in one transaction: all rows or none |
//! | `insert` | writes rows as the text of INSERTs, for servers without LOAD DATA LOCAL |
//! | `connection` | a connection that loads rows, and the steps that all portions need |
//! | `filter` | writes a portion without the rows that the server does not accept |
//! | `selection` | which rows of a portion are sent |
//! | `warnings` | reads the server's warnings, and the rows that they concern |
//! | `numbering` | the numbers that rows have in warnings |
//! | `verdict` | classifies the warnings |
//! | `probe` | the temporary table |
//! | `fault` | classifies failures |

mod connection;
mod fault;
mod feed;
mod field;
mod filter;
mod insert;
mod loader;
mod numbering;
mod plan;
mod probe;
mod selection;
mod verdict;
mod warnings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use windrow_bookkeeping::TableOfMarks;
use windrow_core::{
    Bulk, Fault, Holds, LoadColumn, LoadPlan, Loader, Marks, Means, Rows, TableName,
};
use windrow_database::demand::Demand;

use self::connection::MysqlLoader;
use super::catalog::create;
use super::catalog::schema;
use super::server::MysqlServer;
use super::values::column::{Column, Kind};

/// LOAD DATA LOCAL.
pub(super) struct MysqlBulk {
    server: MysqlServer,
    /// True if the server is known not to allow LOAD DATA LOCAL.
    inserts: AtomicBool,
}

impl MysqlBulk {
    pub(super) fn new(server: MysqlServer) -> Self {
        Self {
            server,
            inserts: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl Bulk for MysqlBulk {
    fn form(&self) -> &'static str {
        match self.inserts.load(Ordering::Relaxed) {
            true => "INSERT of many rows (local_infile is off at the server)",
            false => "LOAD DATA LOCAL",
        }
    }

    fn most_loaders(&self) -> usize {
        8
    }

    fn portion_rows(&self) -> usize {
        20_000
    }

    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault> {
        let mut session = self.server.connect().await?;
        let facts = schema::read(&mut session, table).await;
        session.close().await;
        let facts = facts?;
        Ok(facts.map(|facts| {
            let grows = self.server.options.create_tables && facts.ours;
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
        let mut session = self.server.connect().await?;
        let demand = Demand::of_rows(plan, rows, declared);
        let extends = self.server.options.extend_tables;
        let grown = create::grow(&mut session, &plan.table, &demand, extends).await;
        session.close().await;
        grown?;
        Ok(true)
    }

    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        let mut session = self.server.connect().await?;
        let load = plan::make(&mut session, plan, self.server.options.create_tables).await?;
        let inserts = load.way == plan::Way::Insert;
        self.inserts.store(inserts, Ordering::Relaxed);
        Ok(Box::new(MysqlLoader::new(session, load)))
    }

    fn marks(&self) -> Option<Arc<dyn Marks>> {
        let tables = Arc::new(self.server.clone());
        Some(Arc::new(TableOfMarks::new(tables)))
    }
}

/// Describes a column for a load. `grows` is true if its type follows from its values.
fn load_column(column: Column, grows: bool) -> LoadColumn {
    LoadColumn {
        generated: column.generated,
        defaults: !column.null_by_default,
        means: match column.kind {
            _ if grows => Means::Looks,
            Kind::Json => Means::Json,
            _ => Means::Itself,
        },
        name: column.name,
        type_name: column.kind.as_str().into(),
    }
}
