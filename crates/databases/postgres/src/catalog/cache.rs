//! The tables that were read, shared by all connections of a sink.

use std::time::Duration;

use tokio::time::Instant;

use windrow_database::described::{Described, Descriptions};

use super::table::{Facts, Table};

/// How long a description is used before it is read again. Changes are noticed at once
/// ([`crate::calls::Check`]); this is for tables whose writes are sent apart, where nothing is
/// looked at behind them.
const FRESH: Duration = Duration::from_secs(30);

/// Descriptions by name.
pub(crate) type Catalog = Descriptions<Table>;

impl Described for Table {
    type Facts = Facts;

    fn new(version: u64, facts: Facts) -> Self {
        Self {
            version,
            read_at: Instant::now(),
            facts,
        }
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH
    }
}
