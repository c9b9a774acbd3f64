//! The servers of an experiment: real databases of its own, and Windrow before them.

pub mod cluster;
mod driver;
pub mod forward;
pub mod gate;
mod line;
mod store;

use anyhow::{Context, Result};
use windrow_testkit::pgclient::Address;
use windrow_testkit::process::{self, Windrow};

pub use driver::{Driver, Param, PgDriver};
pub use store::{Kind, Store, Table};

/// Starts `windrow serve` on a database.
///
/// # Errors
/// The program is not built, or does not start.
pub fn windrow(url: &str, arguments: &[&str]) -> Result<Windrow> {
    let mut all = vec!["--to", url];
    all.extend_from_slice(arguments);
    Windrow::serve(&process::binary()?, &all)
}

/// Returns the address of SQL clients of Windrow, which stands before the database at `url` and
/// speaks its protocol.
///
/// # Errors
/// Windrow does not listen for them.
pub fn sql_address(windrow: &Windrow, url: &str) -> Result<Address> {
    let socket = match url.starts_with("mysql") {
        true => windrow.mysql_address(),
        false => windrow.pg_address(),
    };
    Ok(Address::of(url)?.at(socket.context("windrow does not listen for SQL clients")?))
}
