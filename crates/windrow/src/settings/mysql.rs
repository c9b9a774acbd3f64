//! Checks the MySQL frontend's part of the configuration.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, ensure};
use windrow_mysql_frontend::{MysqlConfig, UserConfig};
use windrow_mysqlwire::{Target, Verifier};
use windrow_sockets::Threads;

use super::address;
use super::faults::Faults;
use super::file::{File, MysqlUser};
use super::tls::ServerTls;

/// The most lanes, if nothing else is set.
const MAX_LANES: usize = 200;

/// Beginnings of the URLs of databases that speak MySQL's protocol.
const SCHEMES: [&str; 2] = ["mysql:", "mariadb:"];

/// The checked section `[mysql]`.
#[derive(Clone)]
pub struct MysqlSettings {
    /// The frontend's own settings.
    pub config: MysqlConfig,
    /// The most lanes at once: sets of user, database and session settings.
    pub max_lanes: usize,
    /// True if the server is asked for the most connections of sessions.
    pub finds_most: bool,
}

impl MysqlSettings {
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
        self.config.check()
    }

    /// Sets the threads that serve clients.
    pub(super) fn serve_on(&mut self, threads: Threads) {
        self.config.threads = threads;
    }

    /// Describes where the frontend listens.
    pub fn greeting(&self, address: SocketAddr) -> String {
        let database = &self.config.target.database;
        format!("mysql listening on mysql://{address}/{database}")
    }
}

/// Returns the section; `None` if the frontend is not configured to listen. `url` is the
/// database's.
pub(super) fn settings(
    file: &File,
    url: &str,
    tls: Option<&ServerTls>,
    faults: &mut Faults,
) -> Option<MysqlSettings> {
    let written = &file.mysql;
    let users = written.users.iter().map(user);
    // Users are checked even if the frontend does not listen.
    let users: Vec<_> = users.filter_map(|user| faults.note(user)).collect();
    let listen = written.listen.as_ref()?;
    let target = faults.note(target(url))?;
    let mut config = MysqlConfig::new(target);
    let listen = faults.note(address::read("mysql.listen", listen, config.listen));
    config.listen = listen.unwrap_or(config.listen);
    config.unix_socket = written.unix_socket.clone();
    config.tls = tls.map(|tls| Arc::clone(&tls.config));
    config.require_tls = written.require_tls;
    config.users = users;
    config.join = written.join.unwrap_or(config.join);
    config.max_clients = written.max_clients.unwrap_or(config.max_clients);
    let most = written.max_server_connections;
    config.max_server_connections = most.unwrap_or(config.max_server_connections);
    let finds_most = most.is_none();
    config.server_wait = written.server_wait.unwrap_or(config.server_wait);
    config.login_timeout = written.login_timeout.unwrap_or(config.login_timeout);
    let connect_timeout = file.database.connect_timeout;
    config.connect_timeout = connect_timeout.unwrap_or(config.connect_timeout);
    let has_tls = !written.require_tls || written.tls.is_some();
    faults.note(checked(&config, has_tls));
    let max_lanes = written.max_lanes.unwrap_or(MAX_LANES);
    Some(MysqlSettings {
        config,
        max_lanes,
        finds_most,
    })
}

fn target(url: &str) -> anyhow::Result<Target> {
    ensure!(
        SCHEMES.iter().any(|scheme| url.starts_with(scheme)),
        "mysql.listen is set, but the database is none of MySQL or MariaDB: give one with --to or database.url"
    );
    Target::parse(url).context("database.url")
}

fn checked(config: &MysqlConfig, has_tls: bool) -> anyhow::Result<()> {
    ensure!(
        has_tls,
        "mysql.require_tls is set, but [mysql.tls] names no certificate"
    );
    ensure!(
        config.max_clients > 0 && config.max_server_connections > 0,
        "mysql.max_clients and mysql.max_server_connections must be at least 1"
    );
    Ok(())
}

fn user((name, written): (&String, &MysqlUser)) -> anyhow::Result<UserConfig> {
    let section = format!("mysql.users.{name}");
    let verifier = written.verifier.as_ref();
    let verifier = verifier.with_context(|| format!("{section} has no verifier"))?;
    let verifier = verifier.reveal().parse::<Verifier>();
    Ok(UserConfig {
        name: name.clone(),
        verifier: verifier.with_context(|| format!("{section}.verifier cannot be used"))?,
        server_password: written.server_password.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, url: &str) -> anyhow::Result<Option<MysqlSettings>> {
        let mut faults = Faults::default();
        let settings = settings(&toml::from_str(text)?, url, None, &mut faults);
        faults.end()?;
        Ok(settings)
    }

    #[test]
    fn it_is_off_unless_it_listens_and_nonsense_is_refused() {
        let url = "mysql://u@h/d";
        assert!(read("[mysql]\nmax_clients = 7", url).unwrap().is_none());
        let listen = "[mysql]\nlisten = '127.0.0.1:0'\n";
        let config = read(listen, url).unwrap().unwrap().config;
        assert_eq!((config.listen.port(), &*config.target.database), (0, "d"));
        for (more, url, word) in [
            ("", "sqlite:x", "--to"),
            ("max_clients = 0", url, "mysql.max_clients"),
            ("require_tls = true", url, "[mysql.tls]"),
            ("[mysql.users.a]", url, "has no verifier"),
            (
                "[mysql.users.a]\nverifier = 's3cret'",
                url,
                "mysql.users.a.verifier",
            ),
        ] {
            let refused = read(&format!("{listen}{more}"), url).map(|_| ());
            let error = format!("{:#}", refused.unwrap_err());
            assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
        }
    }
}
