//! Checks the PostgreSQL frontend's part of the configuration.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, ensure};
use windrow_pg::config::{Roles, UserConfig};
use windrow_pg::{DatabaseConfig, PgConfig, Trusted, Unproven, UnprovenConfig};
use windrow_pgwire::Target;
use windrow_pgwire::scram::Verifier;
use windrow_sockets::Threads;

use super::faults::Faults;
use super::file::{self, File, Pg, PgDatabase, PgUser};
use super::size::bytes;
use super::tls::ServerTls;
use super::{address, secret};

/// The console's name among the databases.
const CONSOLE: &str = "windrow";

/// Beginnings of the URLs of databases that speak PostgreSQL's protocol.
const SCHEMES: [&str; 4] = ["postgres:", "postgresql:", "cockroachdb:", "cockroach:"];

/// The most lanes, unless it is configured.
const MAX_LANES: usize = 200;

/// The checked section `[pg]`.
#[derive(Clone)]
pub struct PgSettings {
    /// The frontend's own settings.
    pub config: PgConfig,
    /// The most lanes at once. A session that would need another one is not joined.
    pub max_lanes: usize,
    /// The most connections to each database; `None` if the server is asked.
    pub max_server_connections: Option<usize>,
}

impl PgSettings {
    /// Returns the address where clients connect, and the socket that a service manager opened
    /// there.
    pub fn listening(&mut self) -> (&mut SocketAddr, &mut Option<Arc<TcpListener>>) {
        (&mut self.config.listen, &mut self.config.socket)
    }

    /// Checks that clients could log in as configured.
    ///
    /// # Errors
    /// The reason why none could.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.config.databases.is_empty() {
            // An error about their URLs was noted.
            true => Ok(()),
            false => self.config.check(),
        }
    }

    /// Sets the threads that serve clients.
    pub(super) fn serve_on(&mut self, threads: Threads) {
        self.config.threads = threads;
    }

    /// Describes where the frontend listens, in lines.
    pub fn greeting(&self, address: SocketAddr) -> Vec<String> {
        let databases = self.config.databases.iter();
        let listening = |database: &DatabaseConfig| {
            format!("pg listening on postgres://{address}/{}", database.name)
        };
        let (ip, port) = (address.ip(), address.port());
        let port_only = format!(
            "try: port {port} in the connection string of an application; its single-row writes are joined from then on"
        );
        let console = format!("pg console: psql -h {ip} -p {port} -d windrow -c 'SHOW LANES'");
        databases
            .map(listening)
            .chain([port_only, console])
            .collect()
    }
}

/// Returns the section; `None` if the frontend is not configured to listen. `url` is the
/// database's, which clients can name too.
pub(super) fn settings(
    file: &File,
    url: &str,
    tls: Option<&ServerTls>,
    faults: &mut Faults,
) -> Option<PgSettings> {
    let pg = &file.pg;
    let users = pg.users.iter().map(user);
    // Users are checked even if the frontend does not listen.
    let users: Vec<_> = users.filter_map(|user| faults.note(user)).collect();
    let Some(listen) = &pg.listen else {
        for (name, written) in &pg.databases {
            faults.note(database(name, written, pg));
        }
        return None;
    };
    let defaults = PgConfig::default();
    let listen = faults.note(address::read("pg.listen", listen, defaults.listen));
    let join = pg.join.unwrap_or(defaults.join);
    let databases = faults.note(databases(file, url, join));
    let mut size = |name, written, default| faults.or(bytes(name, written, default), default);
    let max_message = size("pg.max_message", pg.max_message, defaults.max_message);
    let max_pending = size("pg.max_pending", pg.max_pending, defaults.max_pending);
    let is_known = databases.is_some();
    let config = PgConfig {
        listen: listen.unwrap_or(defaults.listen),
        socket: None,
        threads: Threads::default(),
        unix_socket_dir: pg.unix_socket_dir.clone(),
        tls: tls.map(|tls| Arc::clone(&tls.config)),
        require_tls: pg.require_tls,
        databases: databases.unwrap_or_default(),
        roles: Roles {
            users,
            auth_query: pg.auth_query.clone(),
            admins: pg.admins.clone(),
        },
        max_clients: pg.max_clients.unwrap_or(defaults.max_clients),
        max_server_connections: pg
            .max_server_connections
            .unwrap_or(defaults.max_server_connections),
        server_wait: pg.server_wait.unwrap_or(defaults.server_wait),
        server_idle: pg.server_idle.unwrap_or(defaults.server_idle),
        login_timeout: pg.login_timeout.unwrap_or(defaults.login_timeout),
        max_message,
        max_pending,
        join,
        connect_timeout: file
            .database
            .connect_timeout
            .unwrap_or(defaults.connect_timeout),
    };
    if is_known {
        faults.note(any_database(&config));
    }
    faults.note(numbers(&config));
    let has_tls = !pg.require_tls || pg.tls.is_some();
    faults.note(
        has_tls
            .then_some(())
            .context("pg.require_tls is set, but [pg.tls] names no certificate"),
    );
    let max_lanes = pg.max_lanes.unwrap_or(MAX_LANES);
    Some(PgSettings {
        config,
        max_lanes,
        max_server_connections: pg.max_server_connections,
    })
}

fn any_database(config: &PgConfig) -> anyhow::Result<()> {
    ensure!(
        !config.databases.is_empty(),
        "pg.listen is set, but no PostgreSQL database is: give one with --to or database.url, or in [pg.databases.NAME]"
    );
    Ok(())
}

fn numbers(config: &PgConfig) -> anyhow::Result<()> {
    for (name, n) in [
        ("pg.max_clients", config.max_clients),
        ("pg.max_server_connections", config.max_server_connections),
    ] {
        ensure!(n > 0, "{name} must be at least 1");
    }
    Ok(())
}

/// Returns the database of `database.url` first, under its own name, then those that are configured
/// by name. One that is configured under that name replaces it.
fn databases(file: &File, url: &str, join: bool) -> anyhow::Result<Vec<DatabaseConfig>> {
    let pg = &file.pg;
    let mut databases = Vec::new();
    if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        let target = Target::parse(url).context("database.url")?;
        databases.push(DatabaseConfig {
            join,
            unproven: UnprovenConfig {
                database: unproven(pg.unproven),
                ..UnprovenConfig::default()
            },
            ..DatabaseConfig::new(target.database().to_owned(), target)
        });
    }
    for (name, written) in &pg.databases {
        let database = database(name, written, pg)?;
        databases.retain(|known| known.name != database.name);
        databases.push(database);
    }
    let trusted = file.database.trusted_functions.iter().map(String::as_str);
    let trusted: Arc<Trusted> = Arc::new(trusted.collect());
    for database in &mut databases {
        database.trusted = Arc::clone(&trusted);
    }
    ensure!(
        databases.iter().all(|database| database.name != CONSOLE),
        "the name {CONSOLE} is the console's: give that database another name for clients in [pg.databases.NAME]"
    );
    Ok(databases)
}

fn unproven(written: Option<file::Unproven>) -> Unproven {
    match written {
        None | Some(file::Unproven::Pin) => Unproven::Pin,
        Some(file::Unproven::Reset) => Unproven::Reset,
    }
}

fn database(name: &str, written: &PgDatabase, pg: &Pg) -> anyhow::Result<DatabaseConfig> {
    let section = format!("pg.databases.{name}");
    let url = written
        .url
        .as_ref()
        .with_context(|| format!("{section} has no url"))?;
    Ok(DatabaseConfig {
        join: written.join.or(pg.join).unwrap_or(PgConfig::default().join),
        unproven: UnprovenConfig {
            database: unproven(written.unproven.or(pg.unproven)),
            roles: exceptions(&written.unproven_roles),
            objects: exceptions(&written.unproven_objects),
        },
        ..DatabaseConfig::new(name, Target::parse(url.reveal()).context(section)?)
    })
}

fn exceptions(written: &BTreeMap<String, file::Unproven>) -> BTreeMap<String, Unproven> {
    let each = written.iter();
    each.map(|(name, what)| (name.clone(), unproven(Some(*what))))
        .collect()
}

fn user((name, written): (&String, &PgUser)) -> anyhow::Result<UserConfig> {
    let section = format!("pg.users.{name}");
    let verifier = written
        .verifier
        .clone()
        .with_context(|| format!("{section} has no verifier"))?;
    if let Err(bad) = verifier.reveal().parse::<Verifier>() {
        anyhow::bail!("{section}.verifier cannot be used: {bad}");
    }
    let server_password = match (&written.server_password, &written.server_password_file) {
        (Some(_), Some(_)) => anyhow::bail!(
            "{section}.server_password and server_password_file are both set; keep one"
        ),
        (None, Some(path)) => {
            let password = secret::of_file(path).with_context(|| {
                format!(
                    "{section}.server_password_file: {} cannot be read",
                    path.display()
                )
            })?;
            Some(password)
        }
        (password, None) => password.clone(),
    };
    Ok(UserConfig {
        name: name.clone(),
        verifier,
        server_password,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, url: &str) -> anyhow::Result<Option<PgSettings>> {
        let mut faults = Faults::default();
        let settings = settings(&toml::from_str(text)?, url, None, &mut faults);
        faults.end()?;
        Ok(settings)
    }

    #[test]
    fn the_database_is_known_by_its_name_unless_configured() {
        let names = |text, url| -> Vec<String> {
            let config = read(text, url).unwrap().unwrap().config;
            config.databases.into_iter().map(|d| d.name).collect()
        };
        let listen = "[pg]\nlisten = '127.0.0.1:0'\n";
        assert_eq!(names(listen, "postgres://u@h/app"), ["app"]);
        assert_eq!(names(listen, "postgres://u@h"), ["u"]);
        let more = format!("{listen}[pg.databases.logs]\nurl = 'postgres://u@h/x'\njoin = false");
        assert_eq!(names(&more, "postgres://u@h/app"), ["app", "logs"]);
        assert_eq!(names(&more, "sqlite:x"), ["logs"]);
        let config = read(&more, "sqlite:x").unwrap().unwrap().config;
        assert!(!config.databases[0].join && config.join);
    }

    #[test]
    fn it_is_off_unless_it_listens_and_nonsense_is_refused() {
        assert!(
            read("[pg]\njoin = true", "postgres://u@h/d")
                .unwrap()
                .is_none()
        );
        let listen = "[pg]\nlisten = '127.0.0.1:0'\n";
        for (more, url, word) in [
            ("", "sqlite:x", "--to"),
            ("max_clients = 0", "postgres://u@h/d", "pg.max_clients"),
            ("require_tls = true", "postgres://u@h/d", "[pg.tls]"),
            ("", "postgres://u@h/windrow", "console"),
            (
                "[pg.users.a]\nserver_password = 's3cret'",
                "postgres://u@h/d",
                "verifier",
            ),
            ("[pg.databases.a]\n", "postgres://u@h/d", "pg.databases.a"),
            (
                "[pg.users.a]\nverifier = 's3cret'",
                "postgres://u@h/d",
                "pg.users.a.verifier cannot be used: it is no SCRAM-SHA-256 verifier",
            ),
        ] {
            let refused = read(&format!("{listen}{more}"), url).map(|_| ());
            let error = format!("{:#}", refused.unwrap_err());
            assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_looked_at_while_nobody_listens() {
        let text = "[pg.users.a]\nverifier = 'md5abc'\n[pg.users.b]\n[pg.databases.c]\n";
        let error = read(text, "sqlite:x").map(|_| ()).unwrap_err().to_string();
        for word in [
            "3 settings",
            "users.a.verifier",
            "users.b has no",
            "databases.c has no",
        ] {
            assert!(error.contains(word), "{error}");
        }
    }
}
