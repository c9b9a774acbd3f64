//! Trims entries that were applied some time ago.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use windrow_spool::Position;

use crate::partition::Partition;

/// The interval at which the database's position is noted, so that trimming costs little.
const LOOK: Duration = Duration::from_secs(1);

/// Trims the entries of a partition once they have been applied for a while. Never ends. Cancel
/// safe: the next start trims the rest.
///
/// Entries are not trimmed at once, because a database that loses its last commits in a crash
/// (PostgreSQL with `synchronous_commit = off`) returns to an earlier position, and must find the
/// entries there. The time counts up to the database's last confirmation of its position: while it
/// is away, nothing is trimmed.
pub(crate) async fn run(partition: &Partition, keep: Duration) {
    let mut reached = partition.watch();
    let mut noted = TrimQueue::default();
    let mut trimmed = None;
    loop {
        if let Some((position, came, heard)) = reached.position() {
            noted.note(came, position);
            if let Some(upto) = noted.older(heard, keep)
                && trimmed < Some(upto)
            {
                trim(partition, upto).await;
                trimmed = Some(upto);
            }
        }
        match noted.is_empty() {
            true => reached.changed().await,
            false => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn trim(partition: &Partition, upto: u64) {
    if let Err(fault) = partition.log.trim(Position(upto)).await {
        // The next call tries again.
        let partition = partition.log.partition();
        tracing::warn!(partition, %fault, "what was applied stays in the spool for now");
    }
}

/// Positions that the database has reached, with their times.
#[derive(Debug, Default)]
struct TrimQueue {
    waiting: VecDeque<(Instant, u64)>,
    last: Option<u64>,
}

impl TrimQueue {
    fn note(&mut self, at: Instant, position: u64) {
        if self.last == Some(position) {
            return;
        }
        if self.last > Some(position) {
            // The database has gone back: later positions no longer count as applied.
            self.waiting.clear();
        }
        self.last = Some(position);
        self.waiting.push_back((at, position));
    }

    /// Returns the last position that was reached this long ago.
    fn older(&mut self, now: Instant, keep: Duration) -> Option<u64> {
        let mut found = None;
        while let Some((at, position)) = self.waiting.front().copied() {
            if now.saturating_duration_since(at) < keep {
                break;
            }
            found = Some(position);
            self.waiting.pop_front();
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_reached_long_ago_is_given_up() {
        let (start, keep) = (Instant::now(), Duration::from_secs(10));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut noted = TrimQueue::default();
        noted.note(at(0), 5);
        noted.note(at(1), 5);
        noted.note(at(2), 8);
        assert_eq!(noted.older(at(9), keep), None);
        assert_eq!(noted.older(at(11), keep), Some(5));
        // The database has lost commits that it had reported.
        noted.note(at(11), 6);
        assert_eq!(noted.older(at(15), keep), None);
        assert_eq!(noted.older(at(21), keep), Some(6));
        assert!(noted.is_empty());
    }
}
