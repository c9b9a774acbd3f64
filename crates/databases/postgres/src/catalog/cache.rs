//! Descriptions of tables, shared by all connections of a sink.

use std::time::Duration;

use windrow_database::described::{self, Descriptions};

use super::table::Facts;

/// The time for which a description is used before it is read again. Changes are noticed at once
/// ([`super::check::Check`]); this limit is for tables with isolated writes, after which no check
/// runs.
const FRESH: Duration = Duration::from_secs(30);

/// Descriptions by name.
pub(crate) type Catalog = Descriptions<Facts>;

impl described::Facts for Facts {
    fn fresh_for(&self) -> Duration {
        FRESH
    }
}
