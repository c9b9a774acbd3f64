//! The state that the connections of a primary share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;

use crate::check::Source;
use crate::copy;
use crate::follow::Tables;
use crate::replica::Replica;

/// The moment at which a client is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitFor {
    /// Once the primary has committed.
    #[default]
    Primary,
    /// Once a majority of primary and replicas has the rows.
    Quorum,
    /// Once all replicas have the rows.
    All,
}

impl WaitFor {
    /// Returns the number of replicas to wait for.
    fn replicas(self, replicas: usize) -> usize {
        match self {
            Self::Primary => 0,
            Self::Quorum => replicas.div_ceil(2),
            Self::All => replicas,
        }
    }
}

/// The state that executors share.
pub(crate) struct Shared {
    pub(crate) source: Source,
    pub(crate) tables: Tables,
    pub(crate) replicas: Vec<Arc<Replica>>,
    wait_for: WaitFor,
    tickets: AtomicU64,
    /// Cancelled once no client should wait for replicas any more.
    pub(crate) ending: CancellationToken,
    untold: Counter,
}

impl Shared {
    pub(crate) fn new(
        source: Source,
        replicas: Vec<Arc<Replica>>,
        wait_for: WaitFor,
        untold: Counter,
    ) -> Self {
        Self {
            untold,
            tables: Tables::new(Arc::clone(&source.inventory)),
            source,
            replicas,
            wait_for,
            tickets: AtomicU64::new(copy::NOBODY + 1),
            ending: CancellationToken::new(),
        }
    }

    /// Returns the number of a new batch.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts statements that have changed rows whose keys replicas did not get.
    pub(crate) fn untold(&self, statements: u64) {
        if statements > 0 && self.untold.inc_by(statements) == 0 {
            tracing::warn!(
                "a statement of an SQL client has changed rows without naming them by their primary key: replicas do not get these; windrow replica check shows and mends them, and windrow_replica_untold_total counts such statements"
            );
        }
    }

    /// Returns the number of these statements since the start.
    pub(crate) fn all_untold(&self) -> u64 {
        self.untold.get()
    }

    /// Returns the number of replicas that a client waits for.
    pub(crate) fn wanted(&self, replicas: usize) -> usize {
        self.wait_for.replicas(replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_counts_the_primary() {
        let quorum: Vec<usize> = (1..=4).map(|n| WaitFor::Quorum.replicas(n)).collect();
        assert_eq!(quorum, [1, 1, 2, 2]);
        assert_eq!(WaitFor::All.replicas(3), 3);
        assert_eq!(WaitFor::Primary.replicas(3), 0);
    }
}
