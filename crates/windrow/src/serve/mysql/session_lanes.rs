//! The lanes of MySQL's clients: one for each user, database and set of session settings.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, LanePorts, Name, Standing};
use windrow_database::Options;
use windrow_mysql::ClientSink;
use windrow_mysql_frontend::Lanes;
use windrow_mysqlwire::{LaneLogin, Target};

use crate::serve::client_lanes::{ClientLanes, LaneDatabase, LaneKind, StatementSource};

/// The server that lanes write to.
pub(super) struct MysqlLaneKind {
    pub(super) target: Target,
    /// The same server, for pings.
    pub(super) server: Arc<dyn Database>,
    pub(super) options: Options,
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

impl Lanes for ClientLanes<MysqlLaneKind> {
    fn open(&self, login: &LaneLogin) -> Result<LanePorts, Fault> {
        self.ports(login)
    }

    fn revoke(&self, user: &[u8]) {
        self.end(|login| *login.user == *user);
    }
}
