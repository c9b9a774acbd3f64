//! Idle server connections.

use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::Instant;
use windrow_core::Name;
use windrow_pgwire::target::Credential;
use windrow_pgwire::wire::Wire;

use super::names::Names;
use super::state::ConnectionState;
use super::who::Who;
use crate::senders::Sender;

/// The properties of a connection that cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionKind {
    pub(super) role: Name,
    pub(super) startup: std::sync::Arc<[(Name, Name)]>,
    pub(super) credential: Credential,
    /// [`crate::client::Settings::version`]
    pub(super) version: u64,
}

impl ConnectionKind {
    pub(super) fn of(who: &Who) -> Self {
        Self {
            role: Name::clone(&who.identity.role),
            startup: who.settings.startup.clone(),
            credential: who.credential.clone(),
            version: who.settings.version,
        }
    }
}

/// An idle connection, and its known state.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) kind: ConnectionKind,
    pub(super) wire: Wire,
    pub(super) names: Names,
    pub(super) state: ConnectionState,
    /// The generation of the pool's connections to which it belongs.
    pub(super) generation: u64,
    /// The runtime that opened it, and that wakes its tasks.
    pub(super) runtime: Id,
    /// The session whose notifications were sent over it.
    pub(super) sender: Option<Sender>,
    pub(super) since: Instant,
}

/// All idle connections of a database, in the order in which they were given back.
#[derive(Debug, Default)]
pub(super) struct Idle(Vec<Parked>);

impl Idle {
    pub(super) fn put(&mut self, parked: Parked) {
        self.0.push(parked);
    }

    /// Takes a connection of the kind: preferably one in the requested state, then one of the
    /// caller's thread, and of those the one used last, so that the others may become superfluous.
    pub(super) fn take(&mut self, kind: &ConnectionKind, who: &Who) -> Option<Parked> {
        let fits = |parked: &Parked| {
            let way = || {
                let state = &parked.state;
                state.bridge(&who.settings.set, &who.application_name)
            };
            let way = (parked.kind == *kind).then(way)??;
            Some(way.is_empty())
        };
        let here = Handle::try_current().ok().map(|handle| handle.id());
        let mut best = None;
        for (at, parked) in self.0.iter().enumerate().rev() {
            let Some(is_ready) = fits(parked) else {
                continue;
            };
            let rank = (is_ready, here == Some(parked.runtime));
            if best.is_none_or(|(best, _)| rank > best) {
                best = Some((rank, at));
            }
            if rank == (true, true) {
                break;
            }
        }
        best.map(|(_, at)| self.0.remove(at))
    }

    /// Takes the connections beyond `most`, oldest first.
    pub(super) fn beyond(&mut self, most: usize) -> Vec<Parked> {
        let count = self.0.len().saturating_sub(most);
        self.0.drain(..count).collect()
    }

    /// Takes the connections that were not used for this long, and those that are unusable.
    pub(super) fn superfluous(&mut self, age: Duration) -> Vec<Parked> {
        let gone = |parked: &mut Parked| parked.since.elapsed() >= age || !parked.wire.is_alive();
        self.0.extract_if(.., gone).collect()
    }

    /// Takes all of them.
    pub(super) fn all(&mut self) -> Vec<Parked> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Parked> {
        self.0.iter()
    }
}
