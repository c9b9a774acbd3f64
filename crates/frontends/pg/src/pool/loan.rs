//! A server connection that a session has, and what becomes of it afterwards.

use std::fmt;

use tokio::time::Instant;
use windrow_core::Name;
use windrow_pgwire::wire::{Broken, Wire};

use super::database::Slot;
use super::idle::{Kind, Parked};
use super::names::Names;
use super::probe::{self, Drawn, Found};
use super::state::{State, emptied, lasts};
use crate::client::Settings;
use crate::senders::Sender;

/// A server connection that a session has for a while. Dropped, it is closed.
pub(crate) struct Loan {
    /// The connection.
    pub(crate) wire: Wire,
    /// Statements that are prepared on it.
    pub(crate) names: Names,
    kind: Kind,
    state: State,
    generation: u64,
    /// That its session, or another one before, has sent notifications over it.
    pub(crate) sender: Option<Sender>,
    slot: Slot,
}

/// What became of a loan.
#[derive(Debug)]
pub(crate) enum GivenBack {
    /// Nothing of the session is left on it but what sequences gave, as far as that was asked.
    Free(Drawn),
    /// Something is left on it that only this session may see, and why: the session keeps it.
    Kept(Box<Loan>, &'static str),
    /// It broke.
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
            sender: parked.sender,
            slot,
        }
    }

    /// Waits until somebody else wants the connection. Cancel safe.
    pub(crate) async fn wanted(&self) {
        self.slot.database().wanted().await;
    }

    /// Gives the connection back, with nothing under way. `expected`: the settings that the session
    /// knows of. `drawn_from`: values may have been taken from sequences, of which these are
    /// asked for, by name or number. `clean`: nothing else can have been left behind,
    /// and no transaction is open. Without either there is no round trip, with them there is one.
    ///
    /// **Not cancel safe**: dropped half-way, the connection is closed, with whatever the session
    /// had on it.
    pub(crate) async fn give_back(
        mut self,
        expected: &Settings,
        drawn_from: Option<&[String]>,
        clean: bool,
    ) -> GivenBack {
        if !self.wire.is_usable() {
            return GivenBack::Lost;
        }
        // A question takes the unnamed statement away, as any simple query does; nobody else wants
        // it.
        self.names.unnamed = None;
        let found = match (clean, drawn_from) {
            (true, None) => Ok(Found::default()),
            (true, Some(sequences)) => probe::generated(&mut self.wire, sequences).await,
            (false, sequences) => {
                let (role, sequences) = (&self.kind.role, sequences.unwrap_or_default());
                probe::all(&mut self.wire, expected, role, sequences).await
            }
        };
        match found {
            Err(_) => GivenBack::Lost,
            Ok(Found {
                left: Some(why), ..
            }) => GivenBack::Kept(Box::new(self), why),
            Ok(Found { drawn, .. }) => {
                self.park(expected, clean);
                GivenBack::Free(drawn)
            }
        }
    }

    /// Makes the function [`DRAWN`](super::DRAWN) there, if it is not there yet. False: that cannot
    /// be done. `in_transaction`: the session has one open, with which the function may go again.
    /// Nothing is under way.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn watch(&mut self, in_transaction: bool) -> Result<bool, Broken> {
        // A simple query takes the unnamed statement away.
        self.names.unnamed = None;
        probe::watch(&mut self.wire, in_transaction).await
    }

    /// Makes the connection as new as a reset can, and gives it back: what was left behind on it is
    /// gone, but that settings of modules were ever set. Gives what sequences gave there.
    /// `expected`: the settings that the session knows of; `drawn_from`: the sequences to ask
    /// for.
    ///
    /// **Not cancel safe**, as [`Loan::give_back`].
    pub(crate) async fn reset(mut self, expected: &Settings, drawn_from: &[String]) -> GivenBack {
        if !self.wire.is_usable() {
            return GivenBack::Lost;
        }
        let Ok(Some(drawn)) = probe::reset(&mut self.wire, drawn_from).await else {
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

    fn park(self, expected: &Settings, clean: bool) {
        let name = self.wire.parameter("application_name").map(Name::from);
        let state = State {
            set: expected.set.clone(),
            application_name: name.unwrap_or_else(|| Name::clone(&self.state.application_name)),
            first_name: self.state.first_name,
            touched: !clean,
        };
        self.slot.database().park(Parked {
            kind: self.kind,
            wire: self.wire,
            names: self.names,
            state,
            generation: self.generation,
            sender: self.sender,
            since: Instant::now(),
        });
        // The slot goes last: whoever waits for it finds the connection.
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
