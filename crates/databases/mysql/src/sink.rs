//! The sink: opens connections, which share a catalog.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::{Opts, Row};
use windrow_core::sink::Purpose;
use windrow_core::{
    Bookkeeping, Bulk, Database, Executor, Fault, Inventory, Moves, Profile, Sink, Standing, Unit,
    WriteRights,
};
use windrow_database::Options;

use super::catalog::proof::has_privilege;
use super::executor::cache::Catalog;
use super::executor::connection::Connection;
use super::load::MysqlBulk;
use super::server::MysqlServer;
use super::session::Session;

/// The time limit of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The abilities of MySQL and MariaDB.
pub(super) const PROFILE: Profile = Profile {
    name: "MySQL and MariaDB",
    transactional: true,
    flights: 8,
    batch_rows: 10_000,
    limitations: &[],
};

/// The product of the server, which the first connection learns.
#[derive(Default)]
pub(super) struct ServerProduct(OnceLock<bool>);

impl ServerProduct {
    /// Notes that the server is MariaDB, or is not.
    pub(super) fn note(&self, is_mariadb: bool) {
        self.0.get_or_init(|| is_mariadb);
    }

    /// Returns the name of the product; MySQL if it is not known.
    pub(super) fn name(&self) -> &'static str {
        match self.0.get() {
            Some(true) => "MariaDB",
            _ => "MySQL",
        }
    }
}

/// A MySQL or MariaDB database.
pub(super) struct MysqlSink {
    server: MysqlServer,
    catalog: Arc<Catalog>,
    product: ServerProduct,
}

impl MysqlSink {
    pub(super) fn new(opts: Opts, options: &Options) -> Self {
        Self {
            server: MysqlServer {
                opts,
                options: options.clone(),
            },
            catalog: Arc::new(Catalog::new(options.create_tables)),
            product: ServerProduct::default(),
        }
    }
}

#[async_trait]
impl Sink for MysqlSink {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn system(&self) -> &'static str {
        self.product.name()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let server = &self.server;
        let mut session = Session::connect(&server.opts, Some(purpose), &server.options).await?;
        self.product.note(session.server.mariadb);
        let interrupt = session.interrupt(&server.opts).await?;
        let connection = Connection::new(
            (session, interrupt),
            self.catalog.clone(),
            purpose,
            &server.options,
        );
        Ok(Box::new(connection))
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        for write in unit.writes() {
            let Some(table) = self.catalog.get(&write.shape.table) else {
                continue;
            };
            let compiled = self.catalog.compile(&write.shape, &table);
            if compiled.trouble.is_none() {
                // A write that cannot be encoded is refused later, and touches no row.
                compiled.encode(write, hashes).ok();
            }
        }
    }
}

impl MysqlSink {
    /// Reads the user's rights to write on a new connection.
    async fn rights(&self) -> Result<WriteRights, Fault> {
        let mut session = self.server.connect().await?;
        let mut read = async |sql: &str| {
            let rows = session.rows(sql).await?;
            let first = |row: &Row| row.get_opt::<String, _>(0)?.ok();
            Ok::<Vec<String>, Fault>(rows.iter().filter_map(first).collect())
        };
        let user = read("SELECT CURRENT_USER()").await?;
        let database = read("SELECT DATABASE()").await?.pop().unwrap_or_default();
        let grants = read("SHOW GRANTS").await?;
        let tables = read(TABLES).await?;
        session.close().await;
        let may = |what: &str, table: &str| has_privilege(&grants, what, &database, Some(table));
        let (open, closed): (Vec<String>, _) =
            tables.into_iter().partition(|table| may("INSERT", table));
        let others = ["SELECT", "UPDATE", "DELETE"];
        let is_limited = |table: &&String| others.iter().any(|what| !may(what, table));
        let limited = open.iter().filter(is_limited).cloned().collect();
        let can_create = has_privilege(&grants, "CREATE", &database, None);
        Ok(WriteRights {
            role: user.concat(),
            place: format!("{database}.*"),
            can_create,
            open,
            limited,
            closed,
        })
    }

    /// Executes a statement on a new connection within [`PING_TIMEOUT`].
    async fn say(&self, sql: &str) -> Result<(), Fault> {
        let sign = async {
            let mut session = self.server.connect().await?;
            let answer = session.rows(sql).await;
            session.close().await;
            answer.map(|_| ()).map_err(Fault::from)
        };
        match tokio::time::timeout(PING_TIMEOUT, sign).await {
            Ok(answer) => answer,
            Err(_) => Err(Fault::unavailable(format!(
                "MySQL gave no sign of life within {} seconds",
                PING_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// The tables of the database.
const TABLES: &str = "SELECT TABLE_NAME FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE <> 'VIEW' ORDER BY TABLE_NAME";

/// The statement that a read-only server refuses to users without the right to write there.
const BEGIN_WRITING: &str = "START TRANSACTION READ WRITE";

#[async_trait]
impl Database for MysqlSink {
    async fn ping(&self) -> Result<(), Fault> {
        self.say("SELECT 1").await
    }

    async fn takes_writes(&self) -> Result<(), Fault> {
        let said = self.say(BEGIN_WRITING).await;
        said.map_err(|fault| match &*fault.code {
            "25006" => Fault::new(
                fault.class,
                fault.code,
                "the database takes no writes: read_only is on; name the server that replicates to it in the URL, or set read_only to 0",
            ),
            _ => fault,
        })
    }

    async fn write_rights(&self) -> Result<Option<WriteRights>, Fault> {
        self.rights().await.map(Some)
    }

    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        Some(Arc::new(MysqlBulk::new(self.server.clone())))
    }

    fn moves(&self) -> Option<Arc<dyn Moves>> {
        Some(Arc::new(self.server.clone()))
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        Some(Arc::new(self.server.clone()))
    }

    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        Some(Arc::new(self.server.clone()))
    }

    fn standings(&self) -> Vec<Standing> {
        let mut standings = Vec::new();
        for (name, table) in self.catalog.all() {
            table.standings(&name, &mut standings);
        }
        standings
    }
}
