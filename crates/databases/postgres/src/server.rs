//! The server that a sink's connections lead to.

use std::sync::OnceLock;
use std::time::Duration;

use windrow_core::{Fault, FaultClass, WriteRights};
use windrow_database::Options;

use super::dialect::{COCKROACH, Dialect, POSTGRES};
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// The time limit of a ping.
const PING: Duration = Duration::from_secs(5);

/// The database that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A database that speaks PostgreSQL's protocol.
    Postgres,
    /// CockroachDB.
    Cockroach,
}

/// A server that speaks PostgreSQL's protocol, and how to connect to it.
pub(super) struct Server {
    named: Named,
    /// The dialect that a connection has recognized.
    found: OnceLock<&'static Dialect>,
    target: Target,
    pub(super) options: Options,
}

impl Server {
    pub(super) fn new(target: Target, named: Named, options: &Options) -> Self {
        Self {
            named,
            found: OnceLock::new(),
            target: match options.own_times {
                true => target.with_options_of(&|name| std::env::var(name).ok()),
                false => target,
            },
            options: options.clone(),
        }
    }

    /// Returns the dialect that a connection has recognized; before the first connection, the one
    /// that the URL names.
    pub(super) fn dialect(&self) -> &'static Dialect {
        let named = match self.named {
            Named::Postgres => &POSTGRES,
            Named::Cockroach => &COCKROACH,
        };
        self.found.get().copied().unwrap_or(named)
    }

    /// Opens a new connection, and returns the dialect of its server.
    pub(super) async fn wire(&self) -> Result<(Wire, &'static Dialect), Fault> {
        let parameters = session(self.options.own_times);
        let mut wire =
            Wire::connect(&self.target, &parameters, self.options.connect_timeout).await?;
        let dialect = Dialect::recognize(&mut wire, self.found.get().copied()).await?;
        if self.named == Named::Cockroach && *dialect != COCKROACH {
            return Err(Fault::invalid(
                "the URL says that this is CockroachDB, but the server says that it is not: for PostgreSQL write postgres://",
            ));
        }
        Ok((wire, self.found.get_or_init(|| dialect)))
    }
}

/// Environment variables by which libpq sets how times are read, with the setting of each.
const TIMES: [(&str, &str); 2] = [("PGDATESTYLE", "DateStyle"), ("PGTZ", "TimeZone")];

/// Returns the settings that the encoding and decoding here rely on. All other settings are the
/// role's. `own_times`: this includes how times are read ([`Options::own_times`]).
fn session(own_times: bool) -> Vec<(&'static str, String)> {
    let mut times = vec![
        ("DateStyle", "ISO".to_owned()),
        ("TimeZone", "UTC".to_owned()),
    ];
    if own_times {
        let asked = |(variable, name)| Some((name, std::env::var(variable).ok()?));
        times = TIMES.into_iter().filter_map(asked).collect();
    }
    let mut settings = vec![
        ("client_encoding", "UTF8".to_owned()),
        ("bytea_output", "hex".to_owned()),
        ("extra_float_digits", "1".to_owned()),
        ("standard_conforming_strings", "on".to_owned()),
    ];
    settings.append(&mut times);
    settings
}

/// Runs a statement on a new connection to check that the server answers.
pub(crate) async fn ping(
    connecting: impl Future<Output = Result<(Wire, &'static Dialect), Fault>>,
) -> Result<(), Fault> {
    within_time(async {
        let (mut wire, _) = connecting.await?;
        let answer = first_value(&mut wire, "SELECT 1").await;
        wire.terminate().await;
        answer.map(|_| ())
    })
    .await
}

/// Checks on a new connection that transactions may write there.
pub(super) async fn takes_writes(
    connecting: impl Future<Output = Result<(Wire, &'static Dialect), Fault>>,
) -> Result<(), Fault> {
    within_time(async {
        let (mut wire, _) = connecting.await?;
        let answer = check_writable(&mut wire).await;
        wire.terminate().await;
        answer
    })
    .await
}

async fn check_writable(wire: &mut Wire) -> Result<(), Fault> {
    let is_read_only = first_value(wire, "SHOW transaction_read_only").await?;
    if is_read_only.as_deref() != Some("on") {
        return Ok(());
    }
    let is_standby = first_value(wire, "SELECT pg_is_in_recovery()").await;
    let why = match is_standby.ok().flatten().as_deref() {
        Some("t") => "the server is a standby; name its primary in the URL, or promote it",
        _ => {
            "default_transaction_read_only is on; set it to off for the role, the database or the server that has it on"
        }
    };
    let message = format!("the database takes no writes: {why}");
    Err(Fault::new(FaultClass::Unavailable, "25006", message))
}

/// The tables without a schema, each with true if the role may insert into it, and true if it may
/// read, update and delete from it.
const TABLES: &str = "\
SELECT c.relname, has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'SELECT')
AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') ORDER BY c.relname";

/// Reads the role's rights to write on a new connection.
pub(super) async fn write_rights(
    connecting: impl Future<Output = Result<(Wire, &'static Dialect), Fault>>,
) -> Result<WriteRights, Fault> {
    let (mut wire, _) = connecting.await?;
    let rights = rights(&mut wire).await;
    wire.terminate().await;
    rights
}

async fn rights(wire: &mut Wire) -> Result<WriteRights, Fault> {
    let mut rights = WriteRights {
        role: first_value(wire, "SELECT current_user")
            .await?
            .unwrap_or_default(),
        ..WriteRights::default()
    };
    if let Some(schema) = first_value(wire, "SELECT current_schema()").await? {
        rights.place = format!("SCHEMA {schema}");
        let may = "SELECT has_schema_privilege(current_schema(), 'CREATE')";
        rights.can_create = first_value(wire, may).await?.as_deref() == Some("t");
    }
    let tables = match wire.simple(TABLES).await {
        Ok(tables) => tables.map_err(Fault::from)?,
        Err(broken) => return Err(broken.unavailable()),
    };
    for row in tables {
        let mut row = row.into_iter().flatten();
        let Some(table) = row.next() else { continue };
        let mut is = || row.next().as_deref() == Some("t");
        match (is(), is()) {
            (false, _) => rights.closed.push(table),
            (true, true) => rights.open.push(table),
            (true, false) => {
                rights.limited.push(table.clone());
                rights.open.push(table);
            }
        }
    }
    Ok(rights)
}

/// Returns the first value that a statement gives.
async fn first_value(wire: &mut Wire, sql: &str) -> Result<Option<String>, Fault> {
    match wire.simple(sql).await {
        Ok(Ok(rows)) => Ok(rows.into_iter().flatten().next().flatten()),
        Ok(Err(error)) => Err(Fault::from(error)),
        Err(broken) => Err(broken.unavailable()),
    }
}

/// Awaits an answer, at most for [`PING`].
async fn within_time(sign: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    match tokio::time::timeout(PING, sign).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::unavailable(format!(
            "the database gave no sign of life within {} seconds",
            PING.as_secs()
        ))),
    }
}
