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
    /// Nothing is applied before the next start.
    Stopped(Box<str>),
}

impl ReplicaState {
    /// The word that operators read.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Applying => "applying",
            Self::Level => "level",
            Self::Waiting(_) => "waiting",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Why nothing is applied.
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
    /// For how long it has been doing that; while it is away, whatever the reasons were.
    pub for_now: Duration,
    /// True while it is still given what was there before it.
    pub copying: bool,
    /// The position in its log before which all is applied that this gateway applies.
    pub applied: u64,
    /// Entries of its log that this gateway has not applied.
    pub entries: u64,
    /// Keys in them.
    pub rows: u64,
    /// The age of the oldest of them.
    pub age: Duration,
    /// Other gateways with the same log that have not applied all of theirs.
    pub others: usize,
    /// Rows that it has refused since the start.
    pub rejected: u64,
    /// Why its log takes nothing more before the next start.
    pub failed: Option<Arc<str>>,
    /// Why its log takes nothing at this moment.
    pub log_away: Option<Arc<str>>,
}
