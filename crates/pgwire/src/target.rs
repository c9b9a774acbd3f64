//! Server, role and credentials from a connection URL, with the meaning that libpq gives it.
//!
//! `postgres://user:password@host:port/database?parameter=value`. Reserved characters are
//! percent-encoded. Several hosts, `host1:port1,host2:port2`, are tried in their order; a host that
//! begins with `/` is the directory of a UNIX-domain socket (percent-encoded, or as `?host=/path`).
//! Without a host the usual socket directories are tried and then localhost. A URL that begins with
//! `cockroachdb://` or `cockroach://` means the same, with CockroachDB's port. Of libpq's
//! environment `PGUSER`, `PGPASSWORD` and `PGPASSFILE` are read, and `~/.pgpass`.
//!
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS>

mod host;
mod options;
mod passfile;
mod passing;
mod percent;
mod query;
mod url;

#[cfg(test)]
mod tests;

use std::time::Duration;

use windrow_core::{Fault, Secret};

use crate::scram::Keys;

pub(crate) use host::{Address, Host};
pub(crate) use options::{ChannelBinding, Roots, SessionKind, SslMode, TcpOptions, TlsOptions};

/// A database to connect to. Neither `Debug` nor any error shows a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The servers, in the order in which they are tried; never empty.
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    /// The name of the database; the server uses the user's name if there is none.
    pub(super) database: Option<String>,
    pub(super) tls: TlsOptions,
    pub(super) binding: ChannelBinding,
    pub(super) session: SessionKind,
    pub(super) application_name: String,
    /// Command-line options for the server's process.
    pub(super) options: Option<String>,
    /// The timeout for each address, if the URL has one.
    pub(super) connect_timeout: Option<Duration>,
    pub(super) tcp: TcpOptions,
    /// True if the hosts are tried in random order.
    pub(super) is_balanced: bool,
    /// The keys that a client's proof revealed, instead of a password.
    pub(super) keys: Option<Keys>,
    /// True for a session of a client's role ([`Target::for_session`]).
    pub(super) is_guest: bool,
}

impl Target {
    /// Parses a connection URL.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if it makes no sense or has a parameter that is not
    /// known. The message names the parameter, never a part of the URL that could be a
    /// password.
    pub fn parse(url: &str) -> Result<Self, Fault> {
        Self::parse_with(url, &|name| std::env::var(name).ok())
    }

    pub(super) fn parse_with(
        url: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        let mut raw = url::split(url)?;
        let parameters = query::read(&mut raw)?;
        let user = raw
            .user
            .or_else(|| env("PGUSER"))
            .or_else(|| env("USER"))
            .filter(|user| !user.is_empty())
            .ok_or_else(|| {
                Fault::invalid(
                    "the URL names no user: write postgres://USER@HOST/DATABASE, or set PGUSER",
                )
            })?;
        let password = raw
            .password
            .or_else(|| env("PGPASSWORD").map(Secret::from))
            .filter(|password| !password.is_empty());
        let mut target = Self {
            hosts: url::hosts(&raw.hosts, &raw.ports, raw.default_port, password.as_ref())?,
            user,
            database: raw.database.filter(|name| !name.is_empty()),
            tls: parameters.tls,
            binding: parameters.binding,
            session: parameters.session,
            application_name: parameters
                .application_name
                .unwrap_or_else(|| "windrow".to_owned()),
            options: parameters.options,
            connect_timeout: parameters.connect_timeout,
            tcp: parameters.tcp,
            is_balanced: parameters.is_balanced,
            keys: None,
            is_guest: false,
        };
        if password.is_none() {
            let database = target.database.as_deref().unwrap_or(&target.user);
            let path = parameters.passfile.or_else(|| env("PGPASSFILE"));
            passfile::fill_in(&mut target.hosts, database, &target.user, path, env);
        }
        Ok(target)
    }
}

impl Target {
    /// Adds libpq's `PGOPTIONS` if the URL has no options. `env` returns environment variables.
    #[must_use]
    pub fn with_options_of(mut self, env: &dyn Fn(&str) -> Option<String>) -> Self {
        self.options = self.options.or_else(|| env("PGOPTIONS"));
        self
    }
}

/// The credential with which a session logs in as its client's role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Credential {
    /// The target's own password, if the role is the target's. Other roles have none, so the server
    /// must trust the connection.
    #[default]
    Own,
    /// The role's password.
    Password(Secret),
    /// The keys that the client's proof revealed. They log in at a server with the same SCRAM
    /// verifier.
    Scram(Keys),
}

impl Target {
    /// Returns the target for a session of a client: the same server, another role and its
    /// credential. The session has the client_encoding of its settings, or the server's default. A
    /// refusal of the server is passed on unchanged.
    #[must_use]
    pub fn for_session(&self, role: &str, credential: &Credential) -> Self {
        let mut target = self.clone();
        // Without a database name the server uses the role's name. The database must not change
        // with the role.
        target.database.get_or_insert_with(|| self.user.clone());
        let own = target.user == role;
        target.user = role.to_owned();
        target.is_guest = true;
        for host in &mut target.hosts {
            host.password = match credential {
                Credential::Own if own => host.password.take(),
                Credential::Own | Credential::Scram(_) => None,
                Credential::Password(password) => Some(password.clone()),
            };
        }
        target.keys = match credential {
            Credential::Scram(keys) => Some(keys.clone()),
            Credential::Own | Credential::Password(_) => None,
        };
        target
    }

    /// Returns true if the target has a password of this role.
    pub fn has_password_of(&self, role: &str) -> bool {
        self.user == role && self.hosts.iter().any(|host| host.password.is_some())
    }

    /// Returns the role.
    pub fn role(&self) -> &str {
        &self.user
    }

    /// Returns true if another target has the same servers.
    pub fn is_at(&self, other: &Self) -> bool {
        let places = |target: &Self| -> Vec<_> {
            let hosts = target.hosts.iter();
            hosts
                .map(|host| (host.address.clone(), host.port))
                .collect()
        };
        places(self) == places(other)
    }

    /// Returns the name of the database at the server.
    pub fn database(&self) -> &str {
        self.database.as_deref().unwrap_or(&self.user)
    }
}
