//! Everybody's way to the server.

use std::net::SocketAddr;

use windrow_testkit::pgclient::Address;

/// Everybody's way to the server.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) pg: Address,
    pub(super) http: SocketAddr,
}
