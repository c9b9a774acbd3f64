//! The tables of the console: columns with explanations, and rows.

use std::collections::BTreeMap;

use windrow_core::LaneStatus;

use super::command::Show;
use super::config;
use super::table::{Column, Rows, on};
use crate::client::Identity;
use crate::session_info::{SessionInfo, State, StatementWay};
use crate::shared::Shared;

const LANES: &[Column] = &[
    ("name", "the lane, as its metrics are labelled"),
    ("database", "the database that clients name"),
    ("role", "the role"),
    ("queued_units", "units that wait to leave"),
    ("queued_rows", "rows of those"),
    ("queued_bytes", "bytes of those"),
    ("flights", "batches under way"),
    (
        "flights_limit",
        "the most batches at once, as found for now",
    ),
    (
        "batch_rows_limit",
        "the most rows in one batch, as found for now",
    ),
    ("last_batch_rows", "rows of the batch that landed last"),
    (
        "away_ms",
        "for how many milliseconds the database has not been reachable; empty while it is",
    ),
    ("away_why", "why it cannot be reached"),
    ("writes", "writes accepted"),
    ("succeeded", "units answered with success"),
    ("failed", "units answered with an error"),
    ("batches", "batches that landed"),
    ("retried", "units that were run again"),
    ("alone", "units that were run on a connection of their own"),
    ("abandoned", "units taken out because their client had left"),
    ("reconnects", "connections opened in place of lost ones"),
];

const CLIENTS: &[Column] = &[
    ("pid", "the process number that the client got"),
    ("database", "the database"),
    ("role", "the role"),
    ("application_name", "what the client calls itself"),
    ("peer", "where it is"),
    (
        "state",
        "idle; joining: writes of it are in a lane; waiting: for a server connection; relaying: over one; pinned: it keeps one",
    ),
    (
        "pinned_by",
        "for what the session keeps its server connection",
    ),
    ("advice", "what can be done about that"),
    ("joined", StatementWay::Joined.meaning()),
    ("joinable", StatementWay::Joinable.meaning()),
    ("relayed", StatementWay::Relayed.meaning()),
];

const SERVERS: &[Column] = &[
    ("database", "the database"),
    ("role", "as which role"),
    ("used", "server connections that sessions have"),
    (
        "idle",
        "server connections that nobody needs at this moment",
    ),
    (
        "most",
        "the most of the database, for all roles (max_server_connections)",
    ),
];

/// The columns of PgBouncer's table of this name that make sense here.
const POOLS: &[Column] = &[
    ("database", "the database that clients name"),
    ("user", "the role"),
    (
        "cl_active",
        "clients that are in and do not wait for a server connection",
    ),
    ("cl_waiting", "clients that wait for one"),
    ("sv_active", "server connections that sessions have"),
    ("sv_idle", "server connections that nobody needs"),
    (
        "pool_mode",
        "transaction: a session has a server connection for a transaction; its writes in autocommit need none",
    ),
];

const DATABASES: &[Column] = &[
    ("name", "what clients call it"),
    ("server_database", "its name at the server"),
    ("server_role", "the role of its URL"),
    (
        "join",
        "on: writes are joined unless a session says otherwise (windrow.join)",
    ),
    ("paused", "yes after PAUSE"),
    ("clients", "clients that are in"),
];

const STATS: &[Column] = &[
    ("name", "what is counted"),
    ("value", "how many"),
    ("meaning", "in words"),
];

const BYPASS: &[Column] = &[
    (
        "reason",
        "why statements were not joined, or kept their server connection",
    ),
    ("count", "how many, since the start"),
    ("database", "where what stands in the way is"),
    ("object", "what stands in the way"),
    ("advice", "what can be done about it"),
];

const CONFIG: &[Column] = &[("name", "the setting"), ("value", "what it is")];

const VERSION: &[Column] = &[("version", "the program and its version")];

const HELP: &[Column] = &[
    ("command", "what can be asked"),
    ("meaning", "what it does"),
];

const MEANINGS: &[Column] = &[
    ("column", "a column of the table"),
    ("meaning", "what it says"),
];

/// Returns the columns of a table.
pub(super) fn columns(show: Show) -> &'static [Column] {
    match show {
        Show::Lanes => LANES,
        Show::Clients => CLIENTS,
        Show::Servers => SERVERS,
        Show::Pools => POOLS,
        Show::Databases => DATABASES,
        Show::Stats => STATS,
        Show::Bypass => BYPASS,
        Show::Config => CONFIG,
        Show::Version => VERSION,
        Show::Help => HELP,
    }
}

/// Returns the columns of the table that explains another one.
pub(super) fn meaning_columns() -> &'static [Column] {
    MEANINGS
}

/// Returns the explanations of a table's columns.
pub(super) fn meanings(show: Show) -> Rows {
    let columns = columns(show).iter();
    columns
        .map(|(name, meaning)| texts([name, meaning]))
        .collect()
}

/// Returns a table's rows at this moment.
pub(super) fn rows(show: Show, shared: &Shared) -> Rows {
    match show {
        Show::Lanes => lanes(shared),
        Show::Clients => clients(shared),
        Show::Servers => servers(shared),
        Show::Pools => pools(shared),
        Show::Databases => databases(shared),
        Show::Stats => stats(shared),
        Show::Bypass => bypass(shared),
        Show::Config => config::rows(shared),
        Show::Version => vec![vec![format!("Windrow {}", env!("CARGO_PKG_VERSION"))]],
        Show::Help => help(),
    }
}

fn lanes(shared: &Shared) -> Rows {
    let mut lanes = (shared.console.lanes)();
    lanes.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    let row = |(identity, lane): (Identity, LaneStatus)| {
        let (ms, why) = lane.away.map_or_else(Default::default, |(away, why)| {
            (away.as_millis().to_string(), why.to_string())
        });
        let names = [lane.name, identity.database, identity.role];
        let mut row = names.map(|name| name.to_string()).to_vec();
        let before = [
            lane.queued_units,
            lane.queued_rows,
            lane.queued_bytes,
            lane.flights,
            lane.flights_limit,
            lane.batch_rows_limit,
            lane.last_batch_rows,
        ];
        row.extend(before.map(|number| number.to_string()));
        row.extend([ms, why]);
        let behind = [
            lane.writes,
            lane.succeeded,
            lane.failed,
            lane.batches,
            lane.retried,
            lane.alone,
            lane.abandoned,
            lane.reconnects,
        ];
        row.extend(behind.map(|number| number.to_string()));
        row
    };
    lanes.into_iter().map(row).collect()
}

fn clients(shared: &Shared) -> Rows {
    let mut all = shared.register.list();
    all.sort_by(|a, b| (&a.identity, a.pid).cmp(&(&b.identity, b.pid)));
    let row = |info: &std::sync::Arc<SessionInfo>| {
        let mut row = vec![
            info.pid.to_string(),
            info.identity.database.to_string(),
            info.identity.role.to_string(),
            info.application_name().to_string(),
            info.peer.to_string(),
            info.state().as_str().to_owned(),
            info.pinned().0.into_string(),
            info.pinned().1.to_owned(),
        ];
        let counts = StatementWay::ALL.map(|way| info.statements.get(way).to_string());
        row.extend(counts);
        row
    };
    all.iter().map(row).collect()
}

fn servers(shared: &Shared) -> Rows {
    let row = |line: crate::pool::ServerLine| {
        vec![
            line.database.to_string(),
            line.role.to_string(),
            line.used.to_string(),
            line.idle.to_string(),
            line.most.to_string(),
        ]
    };
    shared.databases.pool.lines().into_iter().map(row).collect()
}

/// The numbers of clients that do not wait, of clients that wait, of server connections in use, and
/// of idle ones.
type PoolCounts = [usize; 4];

fn pools(shared: &Shared) -> Rows {
    let mut pools: BTreeMap<(String, String), PoolCounts> = BTreeMap::new();
    for info in shared.register.list() {
        let who = (
            info.identity.database.to_string(),
            info.identity.role.to_string(),
        );
        let [active, waiting, ..] = pools.entry(who).or_default();
        match info.state() {
            State::Waiting => *waiting += 1,
            _ => *active += 1,
        }
    }
    for line in shared.databases.pool.lines() {
        let who = (line.database.to_string(), line.role.to_string());
        let [.., used, idle] = pools.entry(who).or_default();
        *used += line.used;
        *idle += line.idle;
    }
    let row = |((database, role), counts): ((String, String), PoolCounts)| {
        let counts = counts.map(|count| count.to_string());
        let mode = "transaction".to_owned();
        [database, role]
            .into_iter()
            .chain(counts)
            .chain([mode])
            .collect()
    };
    pools.into_iter().map(row).collect()
}

fn databases(shared: &Shared) -> Rows {
    let all = shared.register.list();
    let row = |database: &crate::config::DatabaseConfig| {
        let clients = all
            .iter()
            .filter(|info| *info.identity.database == *database.name);
        vec![
            database.name.clone(),
            database.target.database().to_owned(),
            database.target.role().to_owned(),
            on(database.join),
            if shared.gate.is_paused(&database.name) {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
            clients.count().to_string(),
        ]
    };
    shared.databases.configured.iter().map(row).collect()
}

fn stats(shared: &Shared) -> Rows {
    let lanes = (shared.console.lanes)();
    let counts = (shared.console.counts)();
    let [joined, joinable, relayed] = shared.register.statements().map(|(way, count)| {
        let name = format!("statements_{}", way.as_str());
        vec![name, count.to_string(), way.meaning().to_owned()]
    });
    let all = shared.register.list();
    let pinned = all.iter().filter(|info| info.state() == State::Pinned);
    let metrics = &shared.metrics;
    let number = |gauge: i64| gauge.max(0).to_string();
    let row =
        |name: &str, value: String, meaning: &str| vec![name.to_owned(), value, meaning.to_owned()];
    vec![
        row("clients", all.len().to_string(), "clients that are in"),
        row(
            "clients_pinned",
            pinned.count().to_string(),
            "clients that keep a server connection",
        ),
        joined,
        joinable,
        relayed,
        row(
            "cancels",
            metrics.cancels.get().to_string(),
            "cancel requests",
        ),
        row(
            "server_connections_used",
            number(metrics.servers_used.get()),
            "server connections that sessions have",
        ),
        row(
            "server_connections_idle",
            number(metrics.servers_idle.get()),
            "server connections that nobody needs",
        ),
        row(
            "server_connections_waiting",
            number(metrics.waiting.get()),
            "sessions that wait for one",
        ),
        row("lanes", lanes.len().to_string(), "lanes that are open"),
        row(
            "writes",
            counts.writes.to_string(),
            "writes that lanes accepted",
        ),
        row(
            "batches",
            counts.batches.to_string(),
            "batches that they made of them",
        ),
        row(
            "memory_held",
            shared.budget.held().to_string(),
            "bytes of what is accepted and not answered",
        ),
        row(
            "memory",
            shared.budget.total().to_string(),
            "the most of those (limits.memory)",
        ),
    ]
}

fn bypass(shared: &Shared) -> Rows {
    let row = |line: crate::bypass::BypassLine| {
        let database = line.database.as_deref().unwrap_or_default();
        vec![
            line.reason.to_owned(),
            line.count.to_string(),
            database.to_owned(),
            line.object.into_string(),
            line.advice.to_owned(),
        ]
    };
    shared.bypass.lines().into_iter().map(row).collect()
}

fn help() -> Rows {
    let rows = [
        ["SHOW LANES", "where writes of many clients are joined"],
        ["SHOW CLIENTS", "who is in, and what it does"],
        ["SHOW SERVERS", "server connections for what is not joined"],
        [
            "SHOW POOLS",
            "clients and server connections, as PgBouncer tells them",
        ],
        ["SHOW DATABASES", "the databases that clients can name"],
        ["SHOW STATS", "counts of the whole"],
        ["SHOW BYPASS", "statements that were not joined, by reason"],
        ["SHOW CONFIG", "the settings in force"],
        ["SHOW VERSION", "the program and its version"],
        ["HELP TABLE", "what the columns of a table mean: HELP LANES"],
        [
            "PAUSE [DATABASE]",
            "holds new writes and transactions back, and answers once none is under way; sessions that keep a server connection go on",
        ],
        ["RESUME [DATABASE]", "lets them go on"],
        [
            "RELOAD",
            "reads users, verifiers, auth_query and admins again",
        ],
        ["SHUTDOWN", "ends the program in an orderly way"],
    ];
    rows.map(texts).into()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}
