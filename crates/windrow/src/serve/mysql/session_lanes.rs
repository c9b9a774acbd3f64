//! The lanes of MySQL's clients: one for each user, database and set of session settings.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, LanePorts, LaneStatus, Name, Standing};
use windrow_database::Options;
use windrow_mysql::ClientSink;
use windrow_mysql_frontend::Lanes;
use windrow_mysqlwire::{LaneLogin, Target};

use crate::serve::client_lanes::{ClientLanes, LaneDatabase, LaneKind, LaneSizes, StatementSource};
use crate::serve::lane_view::LaneView;

/// All lanes of MySQL sessions.
pub(crate) struct MysqlSessionLanes(ClientLanes<MysqlLaneKind>);

/// The server that lanes write to.
struct MysqlLaneKind {
    target: Target,
    /// The same server, for pings.
    server: Arc<dyn Database>,
    options: Options,
}

impl MysqlSessionLanes {
    /// Makes an empty set of lanes.
    pub(crate) fn new(
        (target, server): (Target, Arc<dyn Database>),
        options: Options,
        sizes: LaneSizes,
    ) -> Arc<Self> {
        let kind = MysqlLaneKind {
            target,
            server,
            options,
        };
        Arc::new(Self(ClientLanes::new(kind, sizes)))
    }

    /// Ends unused lanes and probes the others' server. Runs until its future is dropped.
    pub(crate) async fn tend(&self) {
        self.0.tend().await;
    }

    /// Finishes what was accepted and ends all lanes. Sessions must have ended before.
    pub(crate) async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}

impl LaneView for MysqlSessionLanes {
    fn status(&self) -> Vec<LaneStatus> {
        let lanes = self.0.status().into_iter();
        lanes.map(|(_, status)| status).collect()
    }

    fn standings(&self) -> Vec<Standing> {
        self.0.standings()
    }
}

#[async_trait]
impl LaneKind for MysqlLaneKind {
    type Key = LaneLogin;

    fn name(&self, key: &LaneLogin) -> String {
        let database = key.database.as_deref().unwrap_or("-");
        format!("{database}/{}", String::from_utf8_lossy(&key.user))
    }

    fn limit(&self) -> &'static str {
        "mysql.max_lanes: sets of user, database and session settings"
    }

    fn open(&self, key: &LaneLogin) -> Result<LaneDatabase, Fault> {
        let statements = ClientSink::new(self.target.clone(), key.clone(), &self.options);
        Ok(LaneDatabase {
            sink: statements.clone(),
            statements,
        })
    }

    /// Returns the same name for all lanes, because they write to one server, whatever database
    /// they name.
    fn database(&self, _: &LaneLogin) -> Name {
        Name::from("")
    }

    async fn ping(&self, _: &LaneLogin) -> Result<(), Fault> {
        self.server.ping().await
    }
}

impl StatementSource for ClientSink {
    fn rest(&self) {
        self.rest();
    }

    fn standings(&self) -> Vec<Standing> {
        self.standings()
    }
}

impl Lanes for MysqlSessionLanes {
    fn open(&self, login: &LaneLogin) -> Result<LanePorts, Fault> {
        self.0.ports(login)
    }

    fn revoke(&self, user: &[u8]) {
        self.0.end(|login| *login.user == *user);
    }
}
