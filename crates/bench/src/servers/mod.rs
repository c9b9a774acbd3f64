//! The servers of an experiment: real databases of its own, and Windrow before them.

pub mod cluster;
pub mod forward;
pub mod pg;
mod store;

use anyhow::Result;
use windrow_testkit::process::{self, Windrow};

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
