//! Opens connections for movers.

use std::time::Duration;

use windrow_core::Fault;

use crate::server::MysqlServer;
use crate::session::Session;

/// The lock timeout of a mover's statement, after which its batch is undone and runs again.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Opens a connection for a mover. A zero that is copied stays a zero in an AUTO_INCREMENT column.
pub(super) async fn connect(server: &MysqlServer) -> Result<Session, Fault> {
    let mut session = server.connect().await?;
    let wait = LOCK_WAIT.as_secs();
    let settings = format!(
        "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'NO_AUTO_VALUE_ON_ZERO'), \
         innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}"
    );
    let (_, ended) = session.script(&settings).await;
    ended?;
    Ok(session)
}
