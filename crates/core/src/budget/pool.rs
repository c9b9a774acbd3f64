//! The free bytes of a budget. Taking and returning bytes is one atomic operation each while no
//! request waits.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Milliseconds after a refusal during which memory counts as wanted.
const LATELY: u64 = 10_000;

/// The two pools of a budget, and the queue of waiting requests.
#[derive(Debug)]
pub(super) struct Pools {
    pub(super) total: usize,
    pub(super) whole: Pool,
    /// The bytes that waiting requests may still take.
    patient: Pool,
    /// The number of waiting requests.
    waiting: AtomicUsize,
    /// The time of the last refusal, in milliseconds since the budget was created; 0 if there was
    /// none.
    refused: AtomicU64,
    born: Instant,
    /// A semaphore with one permit, whose holder is the first of the queue and collects bytes.
    line: Semaphore,
}

/// Free bytes. One request at a time may collect from a pool.
#[derive(Debug)]
pub(super) struct Pool {
    free: AtomicUsize,
    /// True while a request collects. Returned bytes go to it first, so that small requests that do
    /// not wait cannot keep out a large one forever.
    collected: AtomicBool,
    front: Mutex<Front>,
}

/// The request that collects bytes.
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

    /// Takes bytes of the part for waiting requests, if they are free and no request waits.
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

    /// Waits for bytes, in the order of the calls. Cancel safe.
    pub(super) async fn take_in_line(&self, bytes: usize) {
        let _waits = Waits::begin(&self.waiting);
        // The semaphore is never closed. Without its permit two requests would collect at once,
        // which would do no harm.
        let _front = self.line.acquire().await;
        // Collect from the whole budget only with a share of the part for waiting requests. The
        // rest is for requests that cannot wait.
        let share = Collected::from(&self.patient, bytes).await;
        Collected::from(&self.whole, bytes).await.keep();
        share.keep();
    }

    /// Returns bytes, of which `patient` were taken by waiting requests.
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

    /// Returns bytes to the pool. Either this call sees that a request collects, or a request that
    /// begins to collect sees these bytes: both write first and then read, sequentially consistent.
    fn give(&self, bytes: usize) {
        if self.collected.load(Ordering::SeqCst) {
            let mut front = self.front.lock();
            let taken = front.take(bytes);
            self.free.fetch_add(bytes - taken, Ordering::SeqCst);
            return;
        }
        self.free.fetch_add(bytes, Ordering::SeqCst);
        if self.collected.load(Ordering::SeqCst) {
            self.feed(&mut self.front.lock());
        }
    }

    /// Gives free bytes to the collecting request.
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
}

impl Front {
    /// Takes the bytes that the request still needs. Returns their number.
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

/// Collected bytes. They return to the pool if the value is dropped before they are kept.
struct Collected<'a> {
    pool: &'a Pool,
    kept: bool,
}

impl<'a> Collected<'a> {
    async fn from(pool: &'a Pool, bytes: usize) -> Self {
        pool.front.lock().missing = bytes;
        let collected = Self { pool, kept: false };
        pool.collected.store(true, Ordering::SeqCst);
        pool.feed(&mut pool.front.lock());
        poll_fn(|cx| {
            let mut front = pool.front.lock();
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
        let front = std::mem::take(&mut *self.pool.front.lock());
        self.pool.collected.store(false, Ordering::SeqCst);
        if !self.kept {
            self.pool.give(front.got);
        }
    }
}

/// Counts a waiting request until it is dropped.
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
