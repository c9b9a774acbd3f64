//! The database as a sink: its connections, and their shared state.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{
    Bookkeeping, Bulk, Database, Executor, Fault, Inventory, Moves, Name, Profile, Sink, Standing,
    TableName, Unit, WriteRights,
};
use windrow_database::Options;

use super::dialect::{COCKROACH_PROFILE, POSTGRES};
use super::executor::connection::{Connection, Shared};
use super::executor::timeouts::Timeouts;
use super::lane_catalog::LaneCatalog;
use super::load::Copy;
use super::moves::PgMoves;
use super::server::{Named, Server, ping, takes_writes, write_rights};
use windrow_pgwire::Target;

/// A database that speaks PostgreSQL's protocol.
pub(crate) struct PostgresSink {
    server: Arc<Server>,
    shared: Arc<Shared>,
}

impl PostgresSink {
    pub(crate) fn new(target: Target, named: Named, options: &Options) -> Self {
        Self {
            server: Arc::new(Server::new(target, named, options)),
            shared: Arc::new(Shared::new(LaneCatalog::new(options))),
        }
    }
}

#[async_trait]
impl Sink for PostgresSink {
    fn profile(&self) -> &Profile {
        &self.server.dialect().profile
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let (mut wire, dialect) = self.server.wire().await?;
        let (lock_wait, known) = (self.server.options.lock_wait, &self.shared.allowed);
        let timeouts = Timeouts::read(&mut wire, purpose, lock_wait, known).await?;
        let restore = timeouts.session("", purpose, lock_wait);
        let how = (purpose, timeouts);
        let connection = Connection::new((wire, dialect), self.shared.clone(), how, lock_wait);
        let connection = connection.restoring(restore);
        Ok(Box::new(connection.of_server(self.server.clone())))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.shared.allowed.statement()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.shared.catalog.touches(unit, hashes);
    }
}

#[async_trait]
impl Database for PostgresSink {
    async fn ping(&self) -> Result<(), Fault> {
        ping(self.server.wire()).await
    }

    async fn takes_writes(&self) -> Result<(), Fault> {
        takes_writes(self.server.wire()).await
    }

    async fn write_rights(&self) -> Result<Option<WriteRights>, Fault> {
        write_rights(self.server.wire()).await.map(Some)
    }

    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        Some(Arc::new(Copy::new(self.server.clone())))
    }

    fn moves(&self) -> Option<Arc<dyn Moves>> {
        let is_postgres = *self.server.dialect() == POSTGRES;
        is_postgres.then(|| Arc::new(PgMoves::new(self.server.clone())) as Arc<dyn Moves>)
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        Some(self.server.clone())
    }

    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        let is_postgres = *self.server.dialect() == POSTGRES;
        is_postgres.then(|| self.server.clone() as Arc<dyn Inventory>)
    }

    fn owns(&self, table: &TableName) -> bool {
        // CockroachDB also accepts a database's name as a table's qualifier, and keeps users and
        // sessions in a database called `system`.
        let system = |schema: &Name| schema.eq_ignore_ascii_case("system");
        self.profile().name == COCKROACH_PROFILE.name && table.schema.as_ref().is_some_and(system)
    }

    fn standings(&self) -> Vec<Standing> {
        self.shared.catalog.standings()
    }
}
