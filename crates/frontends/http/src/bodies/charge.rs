//! Memory that grows while it is charged to the budget.

use windrow_core::{Budget, Fault, FaultClass, Permit};

/// The step in which bytes are taken, so that small growth does not access the budget.
const STEP_BYTES: usize = 64 << 10;

/// The part of the budget that one request may hold while others wait for memory: a quarter.
const BUDGET_PART: usize = 4;

fn more_than_its_share(wanted: usize, total: usize) -> Fault {
    let message = format!(
        "{wanted} bytes are more than a quarter of the memory budget (limits.memory, {total} bytes), for which others wait; try again later"
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}

/// Bytes that are charged to a budget as they arrive. Never waits: a request that waits while it
/// holds memory might wait for itself.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    permit: Permit,
    used: usize,
}

impl Charge {
    /// Returns an empty charge.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            permit: Permit::empty(),
            used: 0,
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// Those of [`Budget::try_take`], and 429 beyond a quarter of the budget while others need
    /// memory; nothing is added then.
    pub fn add(&mut self, bytes: usize) -> Result<(), Fault> {
        let wanted = self.used.saturating_add(bytes);
        if wanted > self.budget.total() / BUDGET_PART && self.budget.is_waited_for() {
            return Err(more_than_its_share(wanted, self.budget.total()));
        }
        let missing = wanted.saturating_sub(self.permit.bytes());
        if missing > 0 {
            let more = self
                .budget
                .try_take(missing.next_multiple_of(STEP_BYTES))
                .or_else(|_| self.budget.try_take(missing))?;
            self.permit.merge(more);
        }
        self.used = wanted;
        Ok(())
    }

    /// Subtracts bytes.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        self.permit.shrink_to(self.used);
    }

    /// Returns the permit for the bytes.
    pub fn into_permit(mut self) -> Permit {
        self.permit.shrink_to(self.used);
        self.permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_in_grains_and_ends_exact() {
        let budget = Budget::new(100_000);
        let mut charge = Charge::new(budget.clone());
        charge.add(10).unwrap();
        assert_eq!(budget.held(), STEP_BYTES);
        charge.add(80_000).unwrap();
        assert!(charge.add(30_000).is_err());
        charge.remove(30_000);
        let permit = charge.into_permit();
        assert_eq!((permit.bytes(), budget.held()), (50_010, 50_010));
    }
}
