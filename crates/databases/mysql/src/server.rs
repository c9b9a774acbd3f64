//! The server that the connections of a sink, a load or a move lead to.

use mysql_async::Opts;
use windrow_core::Fault;
use windrow_database::Options;

use super::session::Session;

/// A MySQL or MariaDB server, and how to connect to it.
#[derive(Clone)]
pub(super) struct MysqlServer {
    pub(super) opts: Opts,
    pub(super) options: Options,
}

impl MysqlServer {
    /// Opens a connection that waits for locks as long as the server lets it.
    pub(super) async fn connect(&self) -> Result<Session, Fault> {
        Session::connect(&self.opts, None, &self.options).await
    }
}
