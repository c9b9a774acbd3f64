//! The state of a replica, for operators.

use std::sync::Arc;
use std::time::Duration;

/// The activity of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// The replica was not reached yet.
    Starting,
    /// Keys of the log are being applied.
    Applying,
    /// The replica has all that is in its log.
    Level,
    /// Nothing can be applied, and it is tried again.
    Waiting(Box<str>),
    /// Nothing will be applied before the next start.
    Stopped(Box<str>),
}

impl ReplicaState {
    /// Returns the word that operators read.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Applying => "applying",
            Self::Level => "level",
            Self::Waiting(_) => "waiting",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Returns the reason why nothing is applied.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Waiting(why) | Self::Stopped(why) => Some(why),
            _ => None,
        }
    }
}

/// The state of a replica.
#[derive(Clone, Debug)]
pub struct ReplicaStatus {
    /// The name of the replica.
    pub name: Box<str>,
    /// The name of its database, as its makers write it.
    pub database: &'static str,
    /// The current activity.
    pub state: ReplicaState,
    /// The time for which the activity has lasted; while the replica is away, for any reasons.
    pub for_now: Duration,
    /// True while existing rows are copied to it.
    pub copying: bool,
    /// The position in its log before which all is applied that this gateway applies.
    pub applied: u64,
    /// Entries of its log that this gateway has not applied.
    pub entries: u64,
    /// The number of keys in these entries.
    pub rows: u64,
    /// The age of the oldest of these entries.
    pub age: Duration,
    /// The number of other gateways with the same log that have not applied all of their entries.
    pub others: usize,
    /// The number of rows that it has refused since the start.
    pub rejected: u64,
    /// The reason why its log accepts nothing before the next start.
    pub failed: Option<Arc<str>>,
    /// The reason why its log accepts nothing at this moment.
    pub log_away: Option<Arc<str>>,
}
