//! A server connection in use by a session, and how it is given back.

use std::fmt;

use tokio::runtime::Id;
use tokio::time::Instant;
use windrow_core::Name;
use windrow_pgwire::wire::{Broken, Wire};

use super::database::Slot;
use super::idle::{ConnectionKind, Parked};
use super::names::Names;
use super::probe::{self, Drawn, Findings};
use super::state::{ConnectionState, emptied, lasts};
use crate::client::Settings;
use crate::senders::Sender;

/// A server connection in use by a session. If it is dropped, it is closed.
pub(crate) struct Loan {
    /// The connection.
    pub(crate) wire: Wire,
    /// The statements prepared on it.
    pub(crate) names: Names,
    kind: ConnectionKind,
    state: ConnectionState,
    generation: u64,
    runtime: Id,
    /// The session whose notifications were sent over it, or another session's before.
    pub(crate) sender: Option<Sender>,
    slot: Slot,
}

/// The kinds of state that a session may have left on its server connection, and how they are found
/// and removed when the connection is given back.
///
/// | | asked | removed |
/// | --- | --- | --- |
/// | `Nothing` | | |
/// | `Values` | values of sequences | by DISCARD SEQUENCES, at once |
/// | `Unknown` | all that PostgreSQL shows of a session | by RESET ALL, DISCARD SEQUENCES, later |
/// | `Unproven` | values of sequences | by DISCARD ALL, at once |
///
/// After `Unknown`, the session keeps the connection if PostgreSQL shows anything but its SETs.
/// Otherwise the rest is removed when the next session takes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Nothing except the session's own SETs.
    Nothing,
    /// Values taken from sequences.
    Values,
    /// Anything that PostgreSQL shows of a session.
    Unknown,
    /// Anything, because unproven code was run.
    Unproven,
}

/// The end of a loan.
#[derive(Debug)]
pub(crate) enum GivenBack {
    /// Other sessions may use the connection. Contains the values taken from sequences, if they
    /// were asked for.
    Free(Drawn),
    /// The session keeps the connection, because of state that other sessions must not see.
    Kept(Box<Loan>, &'static str),
    /// The connection broke.
    Lost,
}

impl Loan {
    pub(super) fn new(parked: Parked, slot: Slot) -> Self {
        Self {
            wire: parked.wire,
            names: parked.names,
            kind: parked.kind,
            state: parked.state,
            generation: parked.generation,
            runtime: parked.runtime,
            sender: parked.sender,
            slot,
        }
    }

    /// Returns true if another session wants the connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.slot.database().is_wanted()
    }

    /// Waits until another session wants the connection. Cancel safe.
    pub(crate) async fn wanted(&self) {
        self.slot.database().wanted().await;
    }

    /// Gives the connection back, as the table of [`Leftover`] says. Nothing may be under way.
    /// `expected`: the settings that the session knows. `sequences`: the ones to ask for, by name
    /// or number.
    ///
    /// **Not cancel safe**: if the future is dropped half-way, the connection is closed, with the
    /// session's state on it.
    pub(crate) async fn give_back(
        mut self,
        expected: &Settings,
        leftover: Leftover,
        sequences: &[String],
    ) -> GivenBack {
        if !self.wire.is_usable() {
            return GivenBack::Lost;
        }
        // A question removes the unnamed statement, as any simple query does. No other session
        // needs it.
        self.names.unnamed = None;
        let found = match leftover {
            Leftover::Nothing => Ok(Findings::default()),
            Leftover::Values => probe::generated(&mut self.wire, sequences).await,
            Leftover::Unknown => {
                probe::all(&mut self.wire, expected, &self.kind.role, sequences).await
            }
            Leftover::Unproven => return self.reset(expected, sequences).await,
        };
        match found {
            Err(_) => GivenBack::Lost,
            Ok(Findings {
                left: Some(why), ..
            }) => GivenBack::Kept(Box::new(self), why),
            Ok(Findings { drawn, .. }) => {
                self.park(expected, leftover != Leftover::Unknown);
                GivenBack::Free(drawn)
            }
        }
    }

    /// Resets the connection as far as possible, and gives it back. Only the names of modules'
    /// settings remain.
    async fn reset(mut self, expected: &Settings, sequences: &[String]) -> GivenBack {
        let Ok(Some(drawn)) = probe::reset(&mut self.wire, sequences).await else {
            return GivenBack::Lost;
        };
        self.names.clear();
        self.state.application_name = Name::clone(&self.state.first_name);
        let lasting = expected.set.iter().filter(|(name, _)| lasts(name));
        let lasting = lasting.map(|(name, _)| (Name::clone(name), emptied(name)));
        let left = Settings {
            set: lasting.collect(),
            ..expected.at_start()
        };
        self.park(&left, true);
        GivenBack::Free(drawn)
    }

    /// Creates the function [`DRAWN`](super::DRAWN) on the connection, unless it exists. Returns
    /// false if that is impossible. `in_transaction`: true if the session has a transaction open,
    /// with which the function may disappear again. Nothing may be under way.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn watch(&mut self, in_transaction: bool) -> Result<bool, Broken> {
        // A simple query removes the unnamed statement.
        self.names.unnamed = None;
        probe::watch(&mut self.wire, in_transaction).await
    }

    /// Returns true if the default isolation level is READ COMMITTED. Nothing may be under way.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn reads_committed(&mut self) -> Result<bool, Broken> {
        // A simple query removes the unnamed statement.
        self.names.unnamed = None;
        probe::reads_committed(&mut self.wire).await
    }

    fn park(self, expected: &Settings, is_clean: bool) {
        let name = self.wire.parameter("application_name").map(Name::from);
        let state = ConnectionState {
            set: expected.set.clone(),
            application_name: name.unwrap_or_else(|| Name::clone(&self.state.application_name)),
            first_name: self.state.first_name,
            is_touched: !is_clean,
        };
        self.slot.database().park(Parked {
            kind: self.kind,
            wire: self.wire,
            names: self.names,
            state,
            generation: self.generation,
            runtime: self.runtime,
            sender: self.sender,
            since: Instant::now(),
        });
        // The slot is released last, so that the session that waits for it finds the connection.
        drop(self.slot);
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("wire", &self.wire)
            .field("kind", &self.kind)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
