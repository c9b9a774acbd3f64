//! The tables that were read, shared by all connections of a sink.

use std::time::Duration;

use windrow_database::described::{self, Descriptions};

use super::table::Facts;

/// How long a description is used before it is read again. Changes are noticed at once
/// ([`super::check::Check`]); this is for tables whose writes are sent apart, where nothing is
/// looked at behind them.
const FRESH: Duration = Duration::from_secs(30);

/// Descriptions by name.
pub(crate) type Catalog = Descriptions<Facts>;

impl described::Facts for Facts {
    fn fresh_for(&self) -> Duration {
        FRESH
    }
}
