//! A frontend between a test's clients and a database of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, LanePorts};
use windrow_mysql_frontend::{
    Lanes, MysqlConfig, MysqlFrontend, MysqlMetrics, Services, UserKeeper,
};
use windrow_mysqlwire::{LaneLogin, Target};
use windrow_testkit::mariadb::{MariaDbDatabase, shared};

/// Statements are relayed where no lane can be had.
struct NoLanes;

impl Lanes for NoLanes {
    fn open(&self, _: &LaneLogin) -> Result<LanePorts, Fault> {
        Err(Fault::invalid("no lanes here"))
    }

    fn revoke(&self, _: &[u8]) {}
}

/// A frontend. Dropped, it ends.
pub(crate) struct Stand {
    pub(crate) database: MariaDbDatabase,
    pub(crate) target: Target,
    pub(crate) front: SocketAddr,
    pub(crate) keeper: UserKeeper,
    pub(crate) registry: Registry,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<()>,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Stand {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut MysqlConfig)) -> Self {
        let database = shared().unwrap();
        let target = Target::parse(database.url()).unwrap();
        let mut config = MysqlConfig::new(target.clone());
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        change(&mut config);
        let mut registry = Registry::default();
        let services = Services {
            spool: None,
            keys: None,
            tracer: None,
            lanes: Arc::new(NoLanes),
            metrics: MysqlMetrics::register(&mut registry),
        };
        let frontend = MysqlFrontend::bind(config, services).await.unwrap();
        let (front, keeper) = (frontend.local_addr(), frontend.user_keeper());
        let stop = CancellationToken::new();
        let running = tokio::spawn(frontend.run(stop.clone()));
        Self {
            database,
            target,
            front,
            keeper,
            registry,
            stop,
            running,
        }
    }

    /// Returns the server as the frontend's clients see it.
    pub(crate) fn through(&self) -> Target {
        Target {
            host: self.front.ip().to_string(),
            port: self.front.port(),
            ..self.target.clone()
        }
    }

    /// Returns the options of a driver's connection through the frontend.
    pub(crate) fn opts(&self) -> OptsBuilder {
        let opts = Opts::from_url(self.database.url()).unwrap();
        OptsBuilder::from_opts(opts)
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.front.port())
            .prefer_socket(false)
    }

    /// Connects a driver through the frontend.
    pub(crate) async fn client(&self) -> Conn {
        Conn::new(self.opts()).await.unwrap()
    }

    /// Connects a driver to the server.
    pub(crate) async fn direct(&self) -> Conn {
        Conn::new(Opts::from_url(self.database.url()).unwrap())
            .await
            .unwrap()
    }

    /// Waits until the server has so many connections of this database, the asking one included.
    pub(crate) async fn until_connections(&self, count: u64) {
        let mut direct = self.direct().await;
        let question = "select count(*) from information_schema.processlist where db = database()";
        while direct.query_first::<u64, _>(question).await.unwrap() != Some(count) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}
