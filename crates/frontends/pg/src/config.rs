//! The configuration of the frontend.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windrow_core::Secret;
use windrow_pgwire::Target;
use windrow_proof::Trusted;
use windrow_sockets::Threads;

use crate::connection_slots::ConnectionSlots;

/// The frontend's configuration.
#[derive(Clone)]
pub struct PgConfig {
    /// The address for clients.
    pub listen: SocketAddr,
    /// A socket that a service manager has opened at [`PgConfig::listen`], used instead of a new
    /// one.
    pub socket: Option<Arc<TcpListener>>,
    /// The threads that serve clients. Default: those of the runtime that accepts the connections.
    pub threads: Threads,
    /// The directory of an additional UNIX-domain socket `.s.PGSQL.<port>`.
    pub unix_socket_dir: Option<PathBuf>,
    /// TLS for clients that ask for it.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// True if clients must use TLS, except on a UNIX-domain socket.
    pub require_tls: bool,
    /// The databases, by name. The first one is where `auth_query` runs.
    pub databases: Vec<DatabaseConfig>,
    /// The roles that are admitted.
    pub roles: Roles,
    /// The most clients; one more is refused with 53300.
    pub max_clients: usize,
    /// The most server connections of each database without [`DatabaseConfig::connection_slots`]. A
    /// session that finds none waits.
    pub max_server_connections: usize,
    /// The time for which a session waits for a server connection before it gets 53300.
    pub server_wait: Duration,
    /// The time for which an idle server connection is kept.
    pub server_idle: Duration,
    /// The time in which a client must log in.
    pub login_timeout: Duration,
    /// The longest message of a client other than COPY data, in bytes.
    pub max_message: usize,
    /// The bytes that one session may hold back until its Sync. Beyond them the session continues
    /// on a server connection of its own.
    pub max_pending: usize,
    /// True if writes are joined (`windrow.join`), unless a session says otherwise.
    pub join: bool,
    /// The time that opening a server connection may take.
    pub connect_timeout: Duration,
}

/// A database that clients can name.
#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// The name that clients use.
    pub name: String,
    /// The server. Its role and password are used for `auth_query`, and for clients with that role.
    pub target: Target,
    /// True if writes in it are joined (`windrow.join`).
    pub join: bool,
    /// The treatment of connections that have run unproven code.
    pub unproven: UnprovenConfig,
    /// Functions that the operator trusts, as `schema.name`: they have no lasting effects on a
    /// connection.
    pub trusted: Arc<Trusted>,
    /// The slots for connections, shared with the database's lanes; `None`:
    /// [`PgConfig::max_server_connections`].
    pub connection_slots: Option<Arc<ConnectionSlots>>,
    /// True if replicas follow the writes of its lanes. Then a write that can be joined is refused,
    /// instead of relayed, while its lane is temporarily unavailable.
    pub followed: bool,
}

impl DatabaseConfig {
    /// Returns a database in which writes are joined.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        Self {
            name: name.into(),
            target,
            join: true,
            unproven: UnprovenConfig::default(),
            trusted: Arc::default(),
            connection_slots: None,
            followed: false,
        }
    }
}

/// The treatment of a connection that has run unproven code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unproven {
    /// The session keeps the connection until it ends. Then the connection is closed.
    #[default]
    Pin,
    /// The connection is reset after each transaction, before another session gets it.
    Reset,
}

impl Unproven {
    /// Returns the word used in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Reset => "reset",
        }
    }
}

/// [`Unproven`] for a database, with exceptions: an object's has precedence over a role's, and that
/// over the database's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnprovenConfig {
    /// The database's treatment.
    pub database: Unproven,
    /// The treatment for sessions of these roles.
    pub roles: BTreeMap<String, Unproven>,
    /// The treatment for code of these tables and functions (`schema.name`).
    pub objects: BTreeMap<String, Unproven>,
}

impl UnprovenConfig {
    /// Returns the treatment after a role's session has run unproven code. `object` is
    /// [`windrow_core::Apart::object`].
    pub fn of(&self, role: &str, object: &str) -> Unproven {
        let words = || object.split_whitespace();
        let named = |name: &str| words().any(|word| word.trim_end_matches([':', ',']) == name);
        let mut objects = self.objects.iter();
        let object = objects.find(|(name, _)| named(name)).map(|(_, what)| what);
        let found = object.or_else(|| self.roles.get(role));
        found.copied().unwrap_or(self.database)
    }
}

/// A role that may log in.
#[derive(Clone, Debug)]
pub struct UserConfig {
    /// The role.
    pub name: String,
    /// The user's SCRAM verifier (`SCRAM-SHA-256$...`, as in `pg_authid.rolpassword`).
    pub verifier: Secret,
    /// The user's password at the server, if the client's own proof does not open the server.
    pub server_password: Option<Secret>,
}

/// The part of the configuration that may change while clients are connected.
#[derive(Clone, Default)]
pub struct Roles {
    /// Admitted roles. If there are none, and no [`Roles::auth_query`], clients over loopback or a
    /// UNIX-domain socket are trusted, and the server decides if it knows the role.
    pub users: Vec<UserConfig>,
    /// A query with one parameter, the role's name, that returns the role's name and its verifier,
    /// as in PgBouncer: for example `SELECT usename, passwd FROM pg_shadow WHERE usename = $1`.
    /// Asked for roles that are not in [`Roles::users`].
    pub auth_query: Option<String>,
    /// Roles that may use the console. If empty: trusted clients.
    pub admins: Vec<String>,
}

impl Roles {
    /// True if clients are trusted: no role can prove anything.
    pub(crate) fn trusts(&self) -> bool {
        self.users.is_empty() && self.auth_query.is_none()
    }
}

impl Default for PgConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6432)),
            socket: None,
            threads: Threads::default(),
            unix_socket_dir: None,
            tls: None,
            require_tls: false,
            databases: Vec::new(),
            roles: Roles::default(),
            max_clients: 20_000,
            max_server_connections: 50,
            server_wait: Duration::from_secs(60),
            server_idle: Duration::from_secs(60),
            login_timeout: Duration::from_secs(60),
            max_message: 64 << 20,
            max_pending: 1 << 20,
            join: true,
            connect_timeout: Duration::from_secs(5),
        }
    }
}
