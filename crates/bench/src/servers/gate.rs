//! PostgreSQL or MariaDB, and the ways to it: direct, through Windrow, through PgBouncer, through a
//! proxy that only forwards.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::NamedTempFile;
use windrow_testkit::pgbouncer::{self, PgBouncer, Pooling};
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::Windrow;
use windrow_testkit::procfs;

use super::forward::Forwarder;
use super::store::{self, Kind, Store, Table};
use crate::generator::{Target, stream};

/// Connections that the server takes: enough for the most clients that come directly.
const CONNECTIONS: usize = 1_100;

/// Server connections of PgBouncer in transaction mode: its default.
const POOL: usize = 20;

/// And in session mode: as many as the server takes, but for those of others.
const SESSIONS: usize = CONNECTIONS - 50;

/// MySQL clients of Windrow, each with a server connection of its own: Windrow leaves one in eight
/// to others.
const MYSQL_SESSIONS: usize = CONNECTIONS / 8 * 7;

/// The way of clients to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// By themselves.
    Direct,
    /// Through Windrow.
    Windrow,
    /// Through Windrow with `join = false`.
    Relayed,
    /// Through PgBouncer, before PostgreSQL only: in transaction mode; in session mode where
    /// clients prepare and it is older than 1.21, which cannot follow that otherwise.
    #[value(name = "pgbouncer")]
    PgBouncer,
    /// Through a proxy that forwards bytes and does nothing else.
    Forward,
}

/// An open way to a database of its own.
#[derive(Debug)]
pub struct Gate {
    address: Address,
    table: Table,
    running: Running,
    _line: Option<Forwarder>,
}

#[derive(Debug)]
enum Running {
    Nothing,
    Windrow(Windrow),
    PgBouncer(PgBouncer),
    Forwarder(Forwarder),
}

/// Starts a server with real durability and capacity for many direct clients. Each of its fsyncs
/// takes `delay` longer than the disk needs.
///
/// # Errors
/// The database is not installed or is none of both, or this process may not open enough files.
pub fn start(kind: Kind, delay: Duration) -> Result<Store> {
    procfs::raise_open_files()?;
    let most = CONNECTIONS.to_string();
    if kind == Kind::MariaDb {
        ensure!(delay.is_zero(), "only PostgreSQL's fsyncs can be delayed");
        let builder = store::mariadb().set("max-connections", &most);
        return Ok(Store::MariaDb(builder.start()?));
    }
    ensure!(
        kind == Kind::Postgres,
        "this experiment is for PostgreSQL and MariaDB"
    );
    let builder = Postgres::builder().set("max_connections", &most);
    let builder = match delay.is_zero() {
        true => builder.fsync(true),
        false => builder.slow_fsync(delay),
    };
    Ok(Store::Postgres(builder.start()?))
}

impl Way {
    /// Returns the name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Windrow => "windrow",
            Self::Relayed => "relayed",
            Self::PgBouncer => "pgbouncer",
            Self::Forward => "forward",
        }
    }

    /// True if there is capacity for so many clients of a database, of which `busy` write, with
    /// prepared statements or without.
    ///
    /// # Errors
    /// It is not installed.
    pub fn has_room(self, to: Kind, all: usize, busy: usize, prepares: bool) -> Result<bool> {
        Ok(match self {
            Self::Direct | Self::Forward => all <= SESSIONS,
            Self::Windrow | Self::Relayed => to != Kind::MariaDb || all <= MYSQL_SESSIONS,
            // In session mode each client that has written keeps a connection.
            Self::PgBouncer => {
                let sessions = prepares && matches!(pooling_of_prepared()?, Pooling::Session(_));
                all <= pgbouncer::MAX_CLIENTS && !(sessions && busy > SESSIONS)
            }
        })
    }
}

/// Returns PgBouncer's mode for clients that prepare their statements: it follows these in
/// transaction mode from 1.21 on.
///
/// # Errors
/// It is not installed.
pub fn pooling_of_prepared() -> Result<Pooling> {
    let version = pgbouncer::version()?;
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let of = |number: Option<Result<u32, _>>| number.and_then(Result::ok).unwrap_or(0);
    Ok(match (of(numbers.next()), of(numbers.next())) >= (1, 21) {
        true => Pooling::Transaction(POOL),
        false => Pooling::Session(SESSIONS),
    })
}

impl Gate {
    /// Opens a way to an empty table `readings` in a database of its own, for clients that prepare
    /// their statements or not. `options` are Windrow's.
    ///
    /// # Errors
    /// The database or the gateway cannot be started.
    pub fn open(store: &Store, way: Way, prepares: bool, options: &[String]) -> Result<Self> {
        Self::open_far((store, Duration::ZERO), way, prepares, options)
    }

    /// The same where a line with a round trip lies before PostgreSQL, and the gateway on the
    /// clients' side of the line.
    ///
    /// # Errors
    /// As [`Gate::open`], or the database is another one.
    pub fn open_far(
        (store, round_trip): (&Store, Duration),
        way: Way,
        prepares: bool,
        options: &[String],
    ) -> Result<Self> {
        let table = store.table()?;
        let mut direct = Address::of(&table.url)?;
        let mut url = table.url.clone();
        let mut line = None;
        if !round_trip.is_zero() {
            ensure!(
                table.kind == Kind::Postgres,
                "only PostgreSQL stands behind a line"
            );
            let far = Forwarder::start(direct.socket, round_trip)?;
            direct = direct.at(far.listens());
            url = direct.url();
            line = Some(far);
        }
        let (running, address) = match way {
            Way::Direct => (Running::Nothing, direct),
            Way::Windrow | Way::Relayed => {
                let windrow = windrow((table.kind, &url), way == Way::Relayed, options)?;
                let address = super::sql_address(&windrow, &table.url)?;
                (Running::Windrow(windrow), address)
            }
            Way::PgBouncer => {
                let pooling = match prepares {
                    true => pooling_of_prepared()?,
                    false => Pooling::Transaction(POOL),
                };
                let bouncer = PgBouncer::start(&direct, pooling)?;
                let address = bouncer.address().clone();
                (Running::PgBouncer(bouncer), address)
            }
            Way::Forward => {
                let forwarder = Forwarder::start(direct.socket, Duration::ZERO)?;
                let address = direct.at(forwarder.listens());
                (Running::Forwarder(forwarder), address)
            }
        };
        Ok(Self {
            address,
            table,
            running,
            _line: line,
        })
    }

    /// Returns the server of clients.
    pub fn target(&self) -> Target {
        let address = self.address.clone();
        match self.table.kind {
            Kind::MariaDb => Target::MySql(address),
            _ => Target::Pg(address),
        }
    }

    /// Returns Windrow's server of HTTP clients.
    ///
    /// # Errors
    /// The way is another one.
    pub fn http_target(&self) -> Result<Target> {
        let Running::Windrow(windrow) = &self.running else {
            bail!("only Windrow speaks HTTP");
        };
        Ok(Target::Http(windrow.address()))
    }

    /// Returns the database behind the gateway.
    pub fn table(&self) -> &Table {
        &self.table
    }

    fn pid(&self) -> Option<u32> {
        match &self.running {
            Running::Nothing => None,
            Running::Windrow(windrow) => Some(windrow.pid()),
            Running::PgBouncer(bouncer) => Some(bouncer.pid()),
            Running::Forwarder(forwarder) => Some(forwarder.pid()),
        }
    }

    /// CPU time of the gateway; nothing if there is none.
    pub fn cpu_time(&self) -> Option<Duration> {
        procfs::cpu_time(self.pid()?).ok()
    }

    /// Resident memory of the gateway in MiB: now, and at its highest.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident_mib(&self) -> Result<Option<(f64, f64)>> {
        let mib = |bytes: u64| crate::number::as_f64(bytes) / 1_048_576.0;
        let both = |pid| {
            let now = procfs::resident_bytes(pid)?;
            anyhow::Ok((mib(now), mib(procfs::peak_resident_bytes(pid)?)))
        };
        self.pid().map(both).transpose()
    }

    /// A metric of Windrow's lane that writes.
    ///
    /// # Errors
    /// There is no Windrow here, or it has no such metric.
    pub fn lane(&self, metric: &str) -> Result<f64> {
        let Running::Windrow(windrow) = &self.running else {
            bail!("only Windrow has lanes");
        };
        let text = stream::ask(windrow.address(), "GET /metrics")?;
        lane(&text, metric)
    }

    /// Returns the percentage of the clients' statements that Windrow has joined; nothing if there
    /// is no Windrow here.
    ///
    /// # Errors
    /// Windrow has ended.
    pub fn joined_percent(&self) -> Result<Option<f64>> {
        let Running::Windrow(windrow) = &self.running else {
            return Ok(None);
        };
        let text = stream::ask(windrow.address(), "GET /metrics")?;
        Ok(joined_percent(&text))
    }

    /// Connections that PostgreSQL has at the moment; nothing for MySQL clients, whose connections
    /// end with them.
    ///
    /// # Errors
    /// The database is down.
    pub fn connections(&self) -> Result<Option<f64>> {
        if self.table.kind != Kind::Postgres {
            return Ok(None);
        }
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
        let count = self.table.query(sql)?.parse();
        Ok(Some(count.context("a count")?))
    }
}

/// Starts Windrow before a database, for clients that speak the database's protocol.
fn windrow((kind, url): (Kind, &str), is_relayed: bool, options: &[String]) -> Result<Windrow> {
    let (flag, section) = match kind {
        Kind::MariaDb => ("--mysql", "mysql"),
        _ => ("--pg", "pg"),
    };
    let mut config = NamedTempFile::with_suffix(".toml")?;
    if is_relayed {
        write!(config, "[{section}]\njoin = false\n")?;
    }
    let path = config.path().to_string_lossy().into_owned();
    let mut all = vec![flag, "127.0.0.1:0", "--config", &path];
    all.extend(options.iter().map(String::as_str));
    super::windrow(url, &all)
}

/// A metric of the lane in which it is largest: the one that writes.
fn lane(text: &str, metric: &str) -> Result<f64> {
    let values = text.lines().filter_map(|line| {
        let labelled = line.strip_prefix(metric)?.strip_prefix("{lane=\"")?;
        labelled.split_once("\"} ")?.1.trim().parse::<f64>().ok()
    });
    let value = values.reduce(f64::max);
    value.with_context(|| format!("/metrics has no {metric} of a lane"))
}

/// The percentage of joined statements among those of all ways; nothing if there were none.
fn joined_percent(text: &str) -> Option<f64> {
    let (mut joined, mut all) = (0.0, 0.0);
    for line in text.lines() {
        let Some((_, way)) = line.split_once("_statements_total{way=\"") else {
            continue;
        };
        let (way, count) = way.split_once("\"} ")?;
        let count = count.trim().parse::<f64>().ok()?;
        all += count;
        if way == "joined" {
            joined += count;
        }
    }
    (all > 0.0).then_some(100.0 * joined / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_has_no_room_for_thousands() {
        for (way, all, has_room) in [
            (Way::Direct, 1_000, true),
            (Way::Direct, 5_000, false),
            (Way::Forward, 5_000, false),
            (Way::Windrow, 5_000, true),
        ] {
            let room = way.has_room(Kind::Postgres, all, all, true).unwrap();
            assert_eq!(room, has_room, "{way:?}, {all}");
        }
        let windrow = Way::Windrow.has_room(Kind::MariaDb, 5_000, 64, true);
        assert!(!windrow.unwrap());
    }

    #[test]
    fn metrics_are_read_of_the_lane_that_writes_and_of_all_ways() {
        let text =
            "windrow_flights_limit{lane=\"other\"} 1\nwindrow_flights_limit{lane=\"default\"} 2\n";
        assert!((lane(text, "windrow_flights_limit").unwrap() - 2.0).abs() < 1e-9);
        let text = "windrow_mysql_statements_total{way=\"joined\"} 3\n\
                    windrow_mysql_statements_total{way=\"relayed\"} 1\n";
        assert!((joined_percent(text).unwrap() - 75.0).abs() < 1e-9);
        assert_eq!(joined_percent("windrow_flights 1\n"), None);
        let error = lane(text, "windrow_flights").unwrap_err().to_string();
        assert!(error.contains("no windrow_flights of"), "{error}");
    }
}
