//! What is free. Taking and giving back is one atomic operation each, as long as nobody waits.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// For how long a refusal shows that memory is wanted, in milliseconds.
const LATELY: u64 = 10_000;

/// The two pools of a budget, and the line of those who wait.
#[derive(Debug)]
pub(super) struct Pools {
    pub(super) total: usize,
    pub(super) whole: Pool,
    /// What those who wait may still take of it.
    patient: Pool,
    /// How many are in line.
    waiting: AtomicUsize,
    /// When somebody was refused last, in milliseconds after the beginning; 0: nobody was.
    refused: AtomicU64,
    born: Instant,
    /// Whoever has its only permit is at the front, and collects.
    line: Semaphore,
}

/// Bytes that are free. One at a time may collect from it.
#[derive(Debug)]
pub(super) struct Pool {
    free: AtomicUsize,
    /// True while somebody collects. What is given back goes there first, so that those who take
    /// at once do not keep out for ever who wants more at once than they do.
    collected: AtomicBool,
    front: Mutex<Front>,
}

/// Whoever collects.
#[derive(Debug, Default)]
struct Front {
    missing: usize,
    got: usize,
    waker: Option<Waker>,
}

impl Pools {
    pub(super) fn new(total: usize, patient: usize) -> Self {
        Self {
            total,
            whole: Pool::new(total),
            patient: Pool::new(patient),
            waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            born: Instant::now(),
            line: Semaphore::new(1),
        }
    }

    /// Takes bytes of the part that can be waited for, if they are free and nobody waits.
    pub(super) fn try_take_patiently(&self, bytes: usize) -> bool {
        if self.waiting.load(Ordering::Relaxed) > 0 || !self.patient.try_take(bytes) {
            return false;
        }
        let taken = self.whole.try_take(bytes);
        if !taken {
            self.patient.give(bytes);
        }
        taken
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(super) fn note_refusal(&self) {
        self.refused.store(self.now(), Ordering::Relaxed);
    }

    pub(super) fn refused_lately(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        refused > 0 && self.now().saturating_sub(refused) <= LATELY
    }

    fn now(&self) -> u64 {
        let passed = self.born.elapsed().as_millis();
        u64::try_from(passed).unwrap_or(u64::MAX).max(1)
    }

    /// Takes bytes in the order of asking. Cancel safe.
    pub(super) async fn take_in_line(&self, bytes: usize) {
        let _waits = Waits::begin(&self.waiting);
        // The semaphore is never closed; and without its permit two would collect, which is wrong
        // but not harmful.
        let _front = self.line.acquire().await;
        // Only who has a share of the patient part collects from the whole: others leave it to
        // those who cannot wait.
        let share = Collected::from(&self.patient, bytes).await;
        Collected::from(&self.whole, bytes).await.keep();
        share.keep();
    }

    /// Gives bytes back, of which so many were waited for.
    pub(super) fn give(&self, bytes: usize, patient: usize) {
        if bytes > 0 {
            self.whole.give(bytes);
        }
        if patient > 0 {
            self.patient.give(patient);
        }
    }
}

impl Pool {
    fn new(free: usize) -> Self {
        Self {
            free: AtomicUsize::new(free),
            collected: AtomicBool::new(false),
            front: Mutex::default(),
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    pub(super) fn try_take(&self, bytes: usize) -> bool {
        let rest = |free: usize| free.checked_sub(bytes);
        self.free
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, rest)
            .is_ok()
    }

    /// Either this finds that somebody collects, or who begins to collect finds these bytes: both
    /// write first and read then, in one order for all.
    fn give(&self, bytes: usize) {
        if self.collected.load(Ordering::SeqCst) {
            let mut front = self.front();
            let taken = front.take(bytes);
            self.free.fetch_add(bytes - taken, Ordering::SeqCst);
            return;
        }
        self.free.fetch_add(bytes, Ordering::SeqCst);
        if self.collected.load(Ordering::SeqCst) {
            self.feed(&mut self.front());
        }
    }

    /// Gives what is free to who collects.
    fn feed(&self, front: &mut Front) {
        let missing = front.missing;
        if missing == 0 {
            return;
        }
        let rest = |free: usize| Some(free.saturating_sub(missing));
        let before = self
            .free
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
        let (Ok(free) | Err(free)) = before;
        front.take(free.min(missing));
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Front {
    /// Takes what it needs of so many bytes; tells how many.
    fn take(&mut self, bytes: usize) -> usize {
        let taken = bytes.min(self.missing);
        self.missing -= taken;
        self.got += taken;
        if self.missing == 0
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
        taken
    }
}

/// Bytes that are being collected, or are; they go back if this is dropped before they are kept.
struct Collected<'a> {
    pool: &'a Pool,
    kept: bool,
}

impl<'a> Collected<'a> {
    async fn from(pool: &'a Pool, bytes: usize) -> Self {
        pool.front().missing = bytes;
        let collected = Self { pool, kept: false };
        pool.collected.store(true, Ordering::SeqCst);
        pool.feed(&mut pool.front());
        poll_fn(|cx| {
            let mut front = pool.front();
            if front.missing == 0 {
                return Poll::Ready(());
            }
            front.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        pool.collected.store(false, Ordering::SeqCst);
        collected
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Collected<'_> {
    fn drop(&mut self) {
        let front = std::mem::take(&mut *self.pool.front());
        self.pool.collected.store(false, Ordering::SeqCst);
        if !self.kept {
            self.pool.give(front.got);
        }
    }
}

/// Counts who is in line.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
