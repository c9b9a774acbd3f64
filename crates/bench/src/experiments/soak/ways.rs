//! Everybody's way to the server.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use windrow_testkit::pgclient::Address;
use windrow_testkit::process::Windrow;

/// Everybody's way to the server.
#[derive(Clone, Debug)]
pub(in crate::experiments) struct Ways {
    pub(in crate::experiments) pg: Address,
    pub(in crate::experiments) http: SocketAddr,
}

impl Ways {
    /// Returns the ways to a running Windrow before the database at `url`.
    pub(in crate::experiments) fn to(windrow: &Windrow, url: &str) -> Result<Self> {
        let listens = windrow.pg_address().context("it does not listen")?;
        Ok(Self {
            pg: Address::of(url)?.at(listens),
            http: windrow.address(),
        })
    }
}
