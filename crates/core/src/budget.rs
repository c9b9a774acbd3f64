//! The process-wide memory budget: what is accepted and not yet answered is counted here, in bytes.
//!
//! Past the budget nothing else happens than back-pressure: [`Budget::try_take`] says no (HTTP answers 429),
//! [`Budget::take`] waits (a streamed body is read more slowly).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::{Fault, FaultClass};

/// A budget of bytes, shared by all that hold a clone.
#[derive(Clone, Debug)]
pub struct Budget {
    free: Arc<Semaphore>,
    total: usize,
}

/// Bytes taken from a [`Budget`]; they go back when this is dropped.
#[derive(Debug)]
pub struct Permit {
    bytes: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// A budget of `total` bytes.
    pub fn new(total: usize) -> Self {
        let total = total.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(total)),
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
        let wanted = self.grains(bytes)?;
        match self.free.clone().try_acquire_many_owned(wanted) {
            Ok(permit) => Ok(Permit {
                bytes: Some(permit),
            }),
            Err(_) => Err(self.full()),
        }
    }

    /// Takes bytes as soon as they are free, in the order of asking. Cancel safe: a dropped future takes nothing.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] where they never can be free.
    pub async fn take(&self, bytes: usize) -> Result<Permit, Fault> {
        let wanted = self.grains(bytes)?;
        let permit = self
            .free
            .clone()
            .acquire_many_owned(wanted)
            .await
            .map_err(|_| self.full())?;
        Ok(Permit {
            bytes: Some(permit),
        })
    }

    fn grains(&self, bytes: usize) -> Result<u32, Fault> {
        u32::try_from(bytes).ok().filter(|_| bytes <= self.total).ok_or_else(|| {
            Fault::too_large(format!(
                "{bytes} bytes are needed at once; the memory budget (limits.memory) is {} bytes",
                self.total
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

impl Permit {
    /// A permit for nothing.
    pub fn empty() -> Self {
        Self { bytes: None }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Adds the bytes of another permit of the same budget.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.bytes, other.bytes) {
            (Some(mine), Some(more)) => mine.merge(more),
            (mine @ None, more) => *mine = more,
            (Some(_), None) => {}
        }
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes().saturating_sub(bytes);
        if let Some(mine) = &mut self.bytes {
            drop(mine.split(surplus));
        }
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
        let budget = Budget::new(10);
        let first = budget.take(10).await.unwrap();
        let mut second = std::pin::pin!(budget.take(5));
        tokio::select! {
            biased;
            _ = &mut second => panic!("taken from a full budget"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        assert_eq!(second.await.unwrap().bytes(), 5);
    }
}
