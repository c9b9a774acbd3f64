//! The servers that a URL names.

use std::fmt;
use std::path::{Path, PathBuf};

use windrow_core::Secret;

/// One server of a [`super::Target`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) address: Address,
    pub(crate) port: u16,
    pub(crate) password: Option<Secret>,
}

/// The address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A name or an IP address.
    Tcp(String),
    /// The directory of a UNIX-domain socket.
    Unix(PathBuf),
}

impl Host {
    /// Returns the path of the UNIX-domain socket in a directory.
    pub(crate) fn socket_path(&self, directory: &Path) -> PathBuf {
        directory.join(format!(".s.PGSQL.{}", self.port))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(name) if name.contains(':') => write!(f, "[{name}]:{}", self.port),
            Address::Tcp(name) => write!(f, "{name}:{}", self.port),
            Address::Unix(directory) => write!(f, "{}", self.socket_path(directory).display()),
        }
    }
}
