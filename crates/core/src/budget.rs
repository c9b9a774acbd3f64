//! The memory budget of the process: counts the bytes of all requests that are accepted and not yet
//! answered.
//!
//! If the budget is full, [`Budget::try_take`] fails (HTTP answers 429), and [`Budget::take`] waits
//! (a streamed body is read more slowly). Waiting requests take all memory that becomes free, so
//! together they may hold at most three quarters; the rest is for requests that cannot wait.
//!
//! Answers that clients have not read yet are counted separately ([`Budget::answers`]), so that a
//! client that does not read delays no writes.

mod answers;
mod pool;

use std::sync::Arc;

pub use self::answers::{AnswerPermit, AnswerRoom, SHORT, UsualAnswer};
use self::pool::Pools;
use crate::fault::{Fault, FaultClass};

/// A budget of bytes, shared by all clones.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Pools>, AnswerRoom);

/// Bytes taken from a [`Budget`]. Dropping the permit returns them.
#[derive(Debug)]
pub struct Permit {
    /// The budget to which the bytes return; `None` if the permit holds nothing.
    home: Option<Arc<Pools>>,
    bytes: usize,
    /// The part of the bytes that were taken by [`Budget::take`].
    patient: usize,
}

impl Budget {
    /// Returns a budget of `total` bytes, and in addition a quarter of that for answers.
    pub fn new(total: usize) -> Self {
        let answers = AnswerRoom::new(total / 4);
        Self(Arc::new(Pools::new(total, patient(total))), answers)
    }

    /// Returns the budget for answers that clients have not read yet.
    pub fn answers(&self) -> &AnswerRoom {
        &self.1
    }

    /// Returns the size of the budget in bytes.
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// Returns the number of bytes that are taken.
    pub fn held(&self) -> usize {
        self.0.total.saturating_sub(self.0.whole.free())
    }

    /// Returns true while a request waits for bytes.
    pub fn is_waited_for(&self) -> bool {
        self.0.is_waited_for()
    }

    /// Returns true while a request waits for bytes, and for ten seconds after [`Budget::try_take`]
    /// has failed.
    pub fn is_wanted(&self) -> bool {
        self.0.is_waited_for() || self.0.refused_lately()
    }

    /// Takes bytes without waiting.
    ///
    /// # Errors
    /// [`FaultClass::Overloaded`] if too few are free, [`FaultClass::TooLarge`] if the budget is
    /// smaller.
    pub fn try_take(&self, bytes: usize) -> Result<Permit, Fault> {
        self.check(bytes, self.total())?;
        if self.0.whole.try_take(bytes) {
            Ok(self.permit(bytes, 0))
        } else {
            Err(self.full())
        }
    }

    /// Waits for bytes, in the order of the calls, out of the three quarters for waiting requests.
    /// Cancel safe: a dropped future takes nothing.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] if that part of the budget is smaller.
    pub async fn take(&self, bytes: usize) -> Result<Permit, Fault> {
        self.check(bytes, patient(self.total()))?;
        if !self.0.try_take_patiently(bytes) {
            Box::pin(self.0.take_in_line(bytes)).await;
        }
        Ok(self.permit(bytes, bytes))
    }

    fn permit(&self, bytes: usize, patient: usize) -> Permit {
        Permit {
            home: Some(Arc::clone(&self.0)),
            bytes,
            patient,
        }
    }

    fn check(&self, bytes: usize, most: usize) -> Result<(), Fault> {
        if bytes <= most {
            return Ok(());
        }
        Err(Fault::too_large(format!(
            "{bytes} bytes are needed at once; of the memory budget (limits.memory, {} bytes) {most} can be given",
            self.total(),
        )))
    }

    fn full(&self) -> Fault {
        self.0.note_refusal();
        Fault::new(
            FaultClass::Overloaded,
            "53200",
            format!(
                "the memory budget (limits.memory) of {} bytes is full; try again later",
                self.total()
            ),
        )
    }
}

/// Returns the bytes of a budget for which requests may wait.
fn patient(total: usize) -> usize {
    total - total / 4
}

impl Default for Permit {
    fn default() -> Self {
        Self::empty()
    }
}

impl Permit {
    /// Returns a permit that holds no bytes.
    pub fn empty() -> Self {
        Self {
            home: None,
            bytes: 0,
            patient: 0,
        }
    }

    /// Returns the number of bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the bytes of another permit of the same budget.
    pub fn merge(&mut self, mut other: Self) {
        if self.home.is_none() {
            *self = other;
            return;
        }
        // Dropping `other` must not return the bytes that were moved.
        self.bytes += std::mem::take(&mut other.bytes);
        self.patient += std::mem::take(&mut other.patient);
    }

    /// Moves `bytes` into a new permit, or all bytes if the permit holds fewer.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let (bytes, patient) = (self.bytes.min(bytes), self.patient.min(bytes));
        self.bytes -= bytes;
        self.patient -= patient;
        Self {
            home: self.home.clone(),
            bytes,
            patient,
        }
    }

    /// Returns all but `bytes` to the budget.
    pub fn shrink_to(&mut self, bytes: usize) {
        let kept = (self.bytes.min(bytes), self.patient.min(bytes));
        if let Some(home) = &self.home {
            home.give(self.bytes - kept.0, self.patient - kept.1);
        }
        (self.bytes, self.patient) = kept;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.give(self.bytes, self.patient);
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
    async fn what_is_handed_over_is_counted_once() {
        let budget = Budget::new(100);
        let mut whole = budget.take(50).await.unwrap();
        let part = whole.split(30);
        assert_eq!((whole.bytes(), part.bytes(), budget.held()), (20, 30, 50));
        drop(whole);
        assert_eq!(budget.held(), 30);
        let mut part = part;
        assert_eq!(part.split(80).bytes(), 30);
        assert_eq!((part.bytes(), budget.held()), (0, 0));
        assert_eq!(budget.take(75).await.unwrap().bytes(), 75);
    }

    #[tokio::test(start_paused = true)]
    async fn is_wanted_while_somebody_goes_without() {
        let budget = Budget::new(100);
        let held = budget.take(75).await.unwrap();
        assert!(!budget.is_wanted());
        assert!(budget.try_take(50).is_err());
        assert!(budget.is_wanted());
        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        assert!(!budget.is_wanted());
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.take(50).await.unwrap().bytes() }
        });
        tokio::task::yield_now().await;
        assert!(budget.is_wanted());
        drop(held);
        assert_eq!(waiting.await.unwrap(), 50);
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
        // A caller that cannot wait still finds the last quarter, although another one waits.
        assert_eq!(budget.try_take(3).unwrap().bytes(), 3);
        drop(first);
        assert_eq!(second.await.unwrap().bytes(), 5);
    }

    /// Many small ones that cannot wait do not keep a large one out for ever that does.
    #[tokio::test]
    async fn who_waits_collects_what_becomes_free() {
        let budget = Budget::new(100);
        let mut small: Vec<_> = (0..10).map(|_| budget.try_take(10).unwrap()).collect();
        let taker = budget.clone();
        let large = tokio::spawn(async move { taker.take(60).await.unwrap().bytes() });
        tokio::task::yield_now().await;
        for _ in 0..6 {
            small.pop();
            assert!(budget.try_take(1).is_err(), "it goes to who waits");
        }
        assert_eq!(large.await.unwrap(), 60);
        drop(small);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_gives_back_what_it_has_collected() {
        let budget = Budget::new(100);
        let (held, part) = (budget.try_take(70).unwrap(), budget.try_take(30).unwrap());
        let waits = |bytes| {
            let budget = budget.clone();
            tokio::spawn(async move { budget.take(bytes).await.unwrap() })
        };
        let (first, second) = (waits(50), waits(20));
        tokio::task::yield_now().await;
        drop(part);
        assert_eq!(budget.held(), 100);
        first.abort();
        assert!(first.await.is_err());
        assert_eq!(second.await.unwrap().bytes(), 20);
        drop(held);
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.take(75).await.unwrap().bytes(), 75);
    }

    #[tokio::test]
    async fn those_who_wait_hold_three_quarters_at_most_and_keep_their_order() {
        let budget = Budget::new(100);
        let mut first = budget.take(75).await.unwrap();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let waiting: Vec<_> = [50, 1, 20]
            .into_iter()
            .map(|bytes| {
                let (budget, order) = (budget.clone(), Arc::clone(&order));
                tokio::spawn(async move {
                    let permit = budget.take(bytes).await.unwrap();
                    order.lock().unwrap().push(bytes);
                    permit
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(budget.held(), 75);
        assert_eq!(budget.try_take(25).unwrap().bytes(), 25);
        first.shrink_to(0);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [50, 1, 20]);
        assert_eq!(budget.held(), 0);
    }

    /// Whatever threads do at once: bytes are neither lost nor given twice, and nobody waits for
    /// ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn bytes_are_neither_lost_nor_given_twice() {
        let budget = Budget::new(1000);
        let tasks: Vec<_> = (0..16_usize)
            .map(|task| {
                let budget = budget.clone();
                tokio::spawn(async move {
                    for turn in 0..500 {
                        let bytes = 1 + (task * 131 + turn * 17) % 300;
                        if task % 4 == 0 {
                            drop(budget.try_take(bytes));
                            tokio::task::yield_now().await;
                            continue;
                        }
                        let taking = budget.take(bytes);
                        if turn % 7 == 0 {
                            // One that is given up, wherever it is by then.
                            tokio::select! {
                                biased;
                                permit = taking => drop(permit),
                                () = tokio::task::yield_now() => {}
                            }
                        } else {
                            let mut permit = taking.await.unwrap();
                            assert!(budget.held() <= 1000);
                            tokio::task::yield_now().await;
                            permit.shrink_to(bytes / 2);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.take(750).await.unwrap().bytes(), 750);
    }
}
