//! The process-wide memory budget: what is accepted and not yet answered is counted here, in bytes.
//!
//! Past the budget nothing else happens than back-pressure: [`Budget::try_take`] says no (HTTP answers 429),
//! [`Budget::take`] waits (a streamed body is read more slowly). Those who wait take all that they can get, so they may
//! hold three quarters of the budget at most: the rest is for those who cannot wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::{Fault, FaultClass};

/// A budget of bytes, shared by all that hold a clone.
#[derive(Clone, Debug)]
pub struct Budget {
    free: Arc<Semaphore>,
    /// What those who wait may still take of it.
    patient: Arc<Semaphore>,
    total: usize,
}

/// Bytes taken from a [`Budget`]; they go back when this is dropped.
#[derive(Debug)]
pub struct Permit {
    bytes: Option<OwnedSemaphorePermit>,
    /// The same bytes, where they were waited for.
    patient: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// A budget of `total` bytes.
    pub fn new(total: usize) -> Self {
        let total = total.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(total)),
            patient: Arc::new(Semaphore::new(patient(total))),
            total,
        }
    }

    /// The size of the budget, in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes that are taken at this moment.
    pub fn held(&self) -> usize {
        self.total.saturating_sub(self.free.available_permits())
    }

    /// Takes bytes at once.
    ///
    /// # Errors
    /// [`FaultClass::Overloaded`] while too few are free, [`FaultClass::TooLarge`] where they never can be.
    pub fn try_take(&self, bytes: usize) -> Result<Permit, Fault> {
        let wanted = self.checked(bytes, self.total)?;
        match self.free.clone().try_acquire_many_owned(wanted) {
            Ok(permit) => Ok(Permit {
                bytes: Some(permit),
                patient: None,
            }),
            Err(_) => Err(self.full()),
        }
    }

    /// Takes bytes as soon as they are free, in the order of asking, out of the three quarters of the budget that can be
    /// waited for. Cancel safe: a dropped future takes nothing.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] where they never can be free.
    pub async fn take(&self, bytes: usize) -> Result<Permit, Fault> {
        let wanted = self.checked(bytes, patient(self.total))?;
        let acquire = |from: &Arc<Semaphore>| from.clone().acquire_many_owned(wanted);
        // Only who has a share of the patient part queues for the whole: the others leave it to those who cannot wait.
        let patient = acquire(&self.patient).await.map_err(|_| self.full())?;
        let bytes = acquire(&self.free).await.map_err(|_| self.full())?;
        Ok(Permit {
            bytes: Some(bytes),
            patient: Some(patient),
        })
    }

    fn checked(&self, bytes: usize, most: usize) -> Result<u32, Fault> {
        let fits = u32::try_from(bytes).ok().filter(|_| bytes <= most);
        fits.ok_or_else(|| {
            Fault::too_large(format!(
                "{bytes} bytes are needed at once; of the memory budget (limits.memory, {} bytes) {} can be given",
                self.total,
                most.min(u32::MAX as usize)
            ))
        })
    }

    fn full(&self) -> Fault {
        Fault::new(
            FaultClass::Overloaded,
            "53200",
            format!(
                "the memory budget (limits.memory) of {} bytes is full; try again later",
                self.total
            ),
        )
    }
}

/// The part of a budget that can be waited for.
fn patient(total: usize) -> usize {
    total - total / 4
}

impl Permit {
    /// A permit for nothing.
    pub fn empty() -> Self {
        Self {
            bytes: None,
            patient: None,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Adds the bytes of another permit of the same budget.
    pub fn merge(&mut self, other: Self) {
        join(&mut self.bytes, other.bytes);
        join(&mut self.patient, other.patient);
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        for held in [&mut self.bytes, &mut self.patient].into_iter().flatten() {
            drop(held.split(held.num_permits().saturating_sub(bytes)));
        }
    }
}

fn join(mine: &mut Option<OwnedSemaphorePermit>, more: Option<OwnedSemaphorePermit>) {
    match (mine, more) {
        (Some(mine), Some(more)) => mine.merge(more),
        (mine @ None, more) => *mine = more,
        (Some(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_held() {
        let budget = Budget::new(100);
        let mut a = budget.try_take(60).unwrap();
        assert_eq!(
            budget.try_take(50).unwrap_err().class,
            FaultClass::Overloaded
        );
        assert_eq!(
            budget.try_take(101).unwrap_err().class,
            FaultClass::TooLarge
        );
        a.merge(budget.try_take(40).unwrap());
        assert_eq!((a.bytes(), budget.held()), (100, 100));
        a.shrink_to(10);
        assert_eq!(budget.held(), 10);
        drop(a);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn waits_for_room() {
        let budget = Budget::new(12);
        let first = budget.take(9).await.unwrap();
        assert_eq!(
            budget.take(10).await.unwrap_err().class,
            FaultClass::TooLarge
        );
        let mut second = std::pin::pin!(budget.take(5));
        tokio::select! {
            biased;
            _ = &mut second => panic!("taken from a full budget"),
            () = std::future::ready(()) => {}
        }
        // Who cannot wait still finds the last quarter, although somebody waits.
        assert_eq!(budget.try_take(3).unwrap().bytes(), 3);
        drop(first);
        assert_eq!(second.await.unwrap().bytes(), 5);
    }
}
