//! The rows that are under way: a key is in one flight at a time.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::{Sink, Unit};

/// Hashes of the rows that flights touch, each with its flight.
#[derive(Debug, Default)]
pub(super) struct Keys {
    held: HashMap<u64, u64, RandomState>,
    scratch: Vec<u64>,
}

impl Keys {
    /// Claims the unit's keys for a flight. `claimed` receives those that the flight did not hold
    /// yet.
    ///
    /// # Errors
    /// Another flight that holds one of the keys; then none is claimed.
    pub(super) fn claim(
        &mut self,
        flight: u64,
        unit: &Unit,
        sink: &dyn Sink,
        claimed: &mut Vec<u64>,
    ) -> Result<(), u64> {
        self.scratch.clear();
        sink.touches(unit, &mut self.scratch);
        let holder = |hash| self.held.get(hash).filter(|holder| **holder != flight);
        if let Some(holder) = self.scratch.iter().find_map(holder) {
            return Err(*holder);
        }
        for hash in self.scratch.drain(..) {
            if self.held.insert(hash, flight).is_none() {
                claimed.push(hash);
            }
        }
        Ok(())
    }

    pub(super) fn release(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.held.remove(hash);
        }
    }
}
