//! Where a server is, and as whom to come.

use std::net::SocketAddr;

use anyhow::{Context, Result};

/// A server with the role and database to connect to. Made from a URL, or from another address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Where it listens.
    pub socket: SocketAddr,
    /// The role.
    pub role: String,
    /// The database.
    pub database: String,
}

impl Address {
    /// Reads `postgres://ROLE@IP:PORT/DATABASE`, the form that this crate's servers say.
    ///
    /// # Errors
    /// It has another form.
    pub fn of(url: &str) -> Result<Self> {
        let parts = || {
            let (role, rest) = url.split_once("://")?.1.split_once('@')?;
            let (socket, database) = rest.split_once('/')?;
            Some(Self {
                socket: socket.parse().ok()?,
                role: role.to_owned(),
                database: database.to_owned(),
            })
        };
        parts().with_context(|| format!("not postgres://ROLE@IP:PORT/DATABASE: {url}"))
    }

    /// Returns the same role and database at another socket.
    #[must_use]
    pub fn at(&self, socket: SocketAddr) -> Self {
        Self {
            socket,
            ..self.clone()
        }
    }

    /// As a URL.
    pub fn url(&self) -> String {
        format!("postgres://{}@{}/{}", self.role, self.socket, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_there_and_back() {
        let url = "postgres://windrow@127.0.0.1:15432/test_1";
        assert_eq!(Address::of(url).unwrap().url(), url);
        assert!(Address::of("postgres://localhost/x").is_err());
    }
}
