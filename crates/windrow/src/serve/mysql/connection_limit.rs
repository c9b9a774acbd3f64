//! The number of server connections that sessions may have.

use std::time::Duration;

use tracing::{info, warn};
use windrow_mysqlwire::answer::Forms;
use windrow_mysqlwire::command;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::query::{put_query, read_reply, text_row};
use windrow_mysqlwire::{CapabilityFlags, Credential, LoginRequest, MariadbCapabilities, Target};

/// The number of connections if the server cannot be asked: MySQL's default limit, without those of
/// lanes.
const GUESS: usize = 130;

/// The fewest connections.
const LEAST: usize = 4;

/// The share of the server's connections that is left to lanes and others, as a divisor.
const RESERVED_PART: usize = 8;

/// Returns the most server connections of sessions, unless it is configured.
pub(super) async fn find(target: &Target, limit: Duration) -> usize {
    let Some(most) = ask(target, limit).await else {
        warn!(
            "the server cannot be asked how many connections it takes: {GUESS} are taken for sessions (mysql.max_server_connections)"
        );
        return GUESS;
    };
    let most = (most - most / RESERVED_PART).max(LEAST);
    info!(
        most,
        "server connections of sessions at most (mysql.max_server_connections)"
    );
    most
}

async fn ask(target: &Target, limit: Duration) -> Option<usize> {
    let login = LoginRequest::own(target);
    let credential = Credential::Password(target.password.clone());
    let connected = connect(target, &login, &credential, limit).await.ok()?;
    let mut wire = connected.wire;
    put_query(&mut wire, "SELECT @@max_connections", false);
    wire.flush().await.ok()?;
    let forms = Forms::of(CapabilityFlags::empty(), MariadbCapabilities::empty());
    let reply = tokio::time::timeout(limit, read_reply(&mut wire, forms)).await;
    wire.set_next(0);
    wire.put(&[command::QUIT]);
    let reply = reply.ok()?.ok()?;
    wire.close().await;
    let row = text_row(reply.rows().first()?.clone());
    str::from_utf8(row.first()?.as_ref()?).ok()?.parse().ok()
}
