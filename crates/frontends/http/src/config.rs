//! The settings of the HTTP frontend.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use windrow_sockets::Threads;

use crate::auth::Tokens;

/// The addresses of the frontend, and the limits of a request. Timeouts limit silence, not the
/// duration of a request.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// The address; port 0 means any free port. Default `127.0.0.1:8420`.
    pub listen: SocketAddr,
    /// A socket that a service manager has opened at [`HttpConfig::listen`], used instead of a new
    /// one. Default none.
    pub socket: Option<Arc<TcpListener>>,
    /// The threads that serve clients. Default: those of the runtime that accepts the connections.
    pub threads: Threads,
    /// The tokens of which clients must show one as `Authorization: Bearer TOKEN`. Default none.
    pub tokens: Tokens,
    /// True if the frontend may listen on other addresses than loopback without a token. Default
    /// false.
    pub allow_open: bool,
    /// Names by which clients without a token may call this server, besides its addresses and
    /// `localhost`. Default none.
    pub hosts: Vec<Box<str>>,
    /// True if `GET /v1/lanes` and the status page show the database's messages about rows that
    /// failed, which may quote their values. Default false.
    pub show_values: bool,
    /// Tables of the database itself (such as `pg_catalog.pg_class`) that are served nevertheless.
    /// Default none.
    pub system_tables: Vec<Box<str>>,
    /// TLS, if wanted. Default none.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The largest body that is not streamed (atomic bodies, `POST /v1/batch`, envelopes,
    /// bodies of an extension), in bytes. Default 64 MiB.
    pub max_body: usize,
    /// The largest single row, in bytes of its text: a JSON object, an element of an array, a
    /// line. Default 8 MiB.
    pub max_row: usize,
    /// The most rows of one atomic body, operations of one batch, parts of an envelope and
    /// elements of an array of an extension. Default 100,000.
    pub max_atomic_rows: usize,
    /// The most connections; more wait to be accepted. Default 20,000.
    pub max_connections: usize,
    /// The time limit for the head of a request, and for a TLS handshake.
    /// Default 10 s.
    pub header_timeout: Duration,
    /// The time that a body, or the reading of an answer by the client, may make no progress.
    /// Default 30 s.
    pub body_timeout: Duration,
    /// The time that a connection may be idle between requests. Default 5 min.
    pub idle_timeout: Duration,
    /// True if a read waits until the database has all that its connection has written with
    /// `ack=spool`. Default true.
    pub read_your_writes: bool,
}

impl HttpConfig {
    /// Checks that the address fits the admitted clients.
    ///
    /// # Errors
    /// The address is not loopback, and neither a token nor [`HttpConfig::allow_open`] is set.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.ip().is_loopback() || !self.tokens.is_empty() || self.allow_open {
            return Ok(());
        }
        Err(format!(
            "{} can be reached from other machines, and no token is set: anyone could write. \
             Set http.token, or http.allow_open = true if that is meant",
            self.listen
        ))
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8420)),
            socket: None,
            threads: Threads::default(),
            tokens: Tokens::default(),
            allow_open: false,
            hosts: Vec::new(),
            show_values: false,
            system_tables: Vec::new(),
            tls: None,
            max_body: 64 << 20,
            max_row: 8 << 20,
            max_atomic_rows: 100_000,
            max_connections: 20_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            read_your_writes: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::Secret;

    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let config = HttpConfig {
            tokens: Tokens {
                all: Some(Secret::from("s3cret")),
                named: Vec::new(),
            },
            ..HttpConfig::default()
        };
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
