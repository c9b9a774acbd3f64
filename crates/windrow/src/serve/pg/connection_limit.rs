//! Finds the number of connections that a server can still accept.

use std::time::Duration;

use tracing::{info, warn};
use windrow_pg::DatabaseConfig;
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// The number of connections if the server cannot be asked.
const GUESS: usize = 50;

/// The fewest and the most that a database gets.
const LEAST: usize = 4;
const MOST: usize = 200;

const QUESTION: &str = "SELECT pg_catalog.current_setting('max_connections')::int \
     - pg_catalog.current_setting('superuser_reserved_connections')::int \
     - coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0) \
     - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' \
     AND pid <> pg_catalog.pg_backend_pid())";

/// Returns the most connections to a database, unless it is configured: three quarters of those
/// that its server can still accept, shared with the other databases of the same server.
pub(super) async fn of(
    database: &DatabaseConfig,
    all: &[DatabaseConfig],
    patience: Duration,
) -> usize {
    let others = all.iter().map(|other| &other.target);
    let same = others.filter(|other| other.is_at(&database.target));
    let Some(room) = ask(&database.target, patience).await else {
        warn!(
            database = database.name,
            "the server cannot be asked how many connections it has room for: {GUESS} are taken for it (pg.max_server_connections)"
        );
        return GUESS;
    };
    let most = (room * 3 / 4 / same.count().max(1)).clamp(LEAST, MOST);
    info!(
        database = database.name,
        most, "server connections at most (pg.max_server_connections)"
    );
    most
}

/// Warns if the server cannot accept as many connections as are configured.
pub(super) async fn check(database: &DatabaseConfig, most: usize, patience: Duration) {
    let Some(room) = ask(&database.target, patience).await else {
        return;
    };
    if most > room {
        warn!(
            database = database.name,
            most,
            room,
            "pg.max_server_connections is more than the server has room for at this moment: clients would be refused by it (53300). Lower it, or raise max_connections of the server"
        );
    }
}

async fn ask(target: &Target, patience: Duration) -> Option<usize> {
    let mut wire = Wire::connect(target, &[], patience).await.ok()?;
    let rows = wire.simple(QUESTION).await.ok()?.ok()?;
    wire.terminate().await;
    let room: i64 = rows.first()?.first()?.as_ref()?.parse().ok()?;
    Some(usize::try_from(room).unwrap_or_default())
}
