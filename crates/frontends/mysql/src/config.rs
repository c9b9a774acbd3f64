//! The configuration of the frontend.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windrow_core::Secret;
use windrow_mysqlwire::{Target, Verifier};
use windrow_sockets::Threads;

/// The frontend's configuration.
#[derive(Clone)]
pub struct MysqlConfig {
    /// The address where clients connect.
    pub listen: SocketAddr,
    /// A socket that a service manager opened at [`MysqlConfig::listen`].
    pub socket: Option<Arc<TcpListener>>,
    /// The threads that serve clients. Default: those of the runtime that accepts them.
    pub threads: Threads,
    /// The path of an additional UNIX-domain socket.
    pub unix_socket: Option<PathBuf>,
    /// TLS for clients that ask for it.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// True if clients that do not use TLS are refused. Those on the UNIX-domain socket are exempt.
    pub require_tls: bool,
    /// The server. Its user's password is used for clients that log in as that user.
    pub target: Target,
    /// The users that are admitted. If there are none, clients over loopback or the UNIX-domain
    /// socket are trusted, and the server decides if it admits the user.
    pub users: Vec<UserConfig>,
    /// True if single-row writes are joined.
    pub join: bool,
    /// The most clients at once.
    pub max_clients: usize,
    /// The most server connections of sessions.
    pub max_server_connections: usize,
    /// The time for which a client waits for a server connection.
    pub server_wait: Duration,
    /// The time in which a client has to log in.
    pub login_timeout: Duration,
    /// The time that opening a server connection may take.
    pub connect_timeout: Duration,
}

/// A user that is admitted.
#[derive(Clone, Debug)]
pub struct UserConfig {
    /// The user's name.
    pub name: String,
    /// The verifier of the user's password.
    pub verifier: Verifier,
    /// The user's password at the server, if the client's own proof does not open the server.
    pub server_password: Option<Secret>,
}

impl MysqlConfig {
    /// Checks that clients could log in as configured.
    ///
    /// # Errors
    /// The address is not loopback, and no users are configured.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.ip().is_loopback() || !self.users.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{} can be reached from other machines, and no users are configured: nobody could log in from there. \
             Configure mysql.users, or listen on 127.0.0.1",
            self.listen
        ))
    }

    /// Returns the configuration for a server, with defaults.
    pub fn new(target: Target) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3307)),
            socket: None,
            threads: Threads::default(),
            unix_socket: None,
            tls: None,
            require_tls: false,
            target,
            users: Vec::new(),
            join: true,
            max_clients: 20_000,
            max_server_connections: 100,
            server_wait: Duration::from_secs(60),
            login_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
        }
    }
}
