//! The address at which a server was reached, and its form in messages.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::target::{Address, Host};

/// The address at which a server was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// Returns true if the connection does not leave the machine.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// Shows a host in messages, with its address if that says more.
pub(super) struct Peer<'a>(pub(super) &'a Host, pub(super) &'a Endpoint);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        match (&self.0.address, self.1) {
            (Address::Tcp(name), Endpoint::Tcp(address)) if *name != address.ip().to_string() => {
                write!(f, " [{}]", address.ip())
            }
            _ => Ok(()),
        }
    }
}
