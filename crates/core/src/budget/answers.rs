//! The budget for answers: counts the bytes of answers that clients have not read yet.
//!
//! The length of an answer is known only when the database has returned it. So a request whose
//! answer may be long first waits for as many bytes as such answers usually need. The true length
//! is counted afterwards even if it exceeds the budget, because every write is answered. Then other
//! requests wait, and connections of clients that do not read are closed.
//!
//! Small answers have a queue of their own and an eighth of the budget for themselves, so that
//! unread large answers delay only large ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore};

/// Bytes of the largest answer that is not counted individually.
pub const SHORT: usize = 4 << 10;

/// Bytes from which an answer delays short ones that the database returns with it.
const LONG: usize = 16 << 10;

/// Divisor of the budget: the size assumed for an answer of unknown length.
const UNKNOWN: usize = 16;

/// The number of copies of an answer in memory before its length is known.
const COPIES: usize = 2;

/// Divisor of the budget: the largest part that a request takes in advance.
const AT_ONCE: usize = 4;

/// Divisor of the budget: the largest size of a small answer.
const SMALL: usize = 64;

/// Divisor of the budget: the part reserved for small answers.
const RESERVE: usize = 8;

/// The budget for answers, shared by all clones.
#[derive(Clone, Debug)]
pub struct AnswerRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    total: usize,
    held: AtomicUsize,
    small: Line,
    large: Line,
}

/// A queue of requests that wait for bytes, served in the order of the calls.
#[derive(Debug)]
struct Line {
    /// The number of held bytes up to which requests of this queue may take more.
    limit: usize,
    /// The number of waiting requests.
    waiting: AtomicUsize,
    /// A semaphore with one permit, whose holder is the first of the queue.
    front: Semaphore,
    freed: Notify,
}

/// Bytes held for an answer. Dropping the permit returns them.
#[derive(Debug, Default)]
pub struct AnswerPermit {
    /// The budget to which the bytes return; `None` if the permit holds nothing.
    home: Option<AnswerRoom>,
    bytes: usize,
}

impl AnswerRoom {
    pub(super) fn new(total: usize) -> Self {
        Self(Arc::new(Room {
            total,
            held: AtomicUsize::new(0),
            small: Line::new(total),
            large: Line::new(total - total / RESERVE),
        }))
    }

    /// Returns the size of the budget in bytes.
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// Returns the number of bytes that are held.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Returns true while a request waits for bytes, or more bytes are held than the budget has.
    pub fn is_wanted(&self) -> bool {
        let lines = [&self.0.small, &self.0.large];
        lines.into_iter().any(Line::is_waited_in) || self.held() > self.0.total
    }

    /// Returns the bytes to take for an answer of unknown length.
    pub fn unknown(&self) -> usize {
        self.0.total / UNKNOWN
    }

    /// Takes as many bytes as [`AnswerRoom::take`] if they are free and no request waits in the
    /// same queue.
    pub fn try_take(&self, bytes: usize) -> Option<AnswerPermit> {
        let bytes = self.at_once(bytes);
        let line = self.line(bytes);
        let is_free = !line.is_waited_in() && self.add(bytes, line.limit);
        is_free.then(|| self.permit(bytes))
    }

    /// Waits for bytes, in the order of the calls among small answers and among large ones. Takes
    /// at most a quarter of the budget. Cancel safe: a dropped future takes nothing.
    pub async fn take(&self, bytes: usize) -> AnswerPermit {
        if let Some(taken) = self.try_take(bytes) {
            return taken;
        }
        let bytes = self.at_once(bytes);
        Box::pin(self.take_in_line(bytes)).await;
        self.permit(bytes)
    }

    fn at_once(&self, bytes: usize) -> usize {
        bytes.min(self.0.total / AT_ONCE)
    }

    fn permit(&self, bytes: usize) -> AnswerPermit {
        AnswerPermit {
            home: Some(self.clone()),
            bytes,
        }
    }

    /// Returns the queue for so many bytes. An answer of unknown length counts as small, because
    /// most are; its true length is known before the next answer of its kind.
    fn line(&self, bytes: usize) -> &Line {
        if bytes <= self.0.total / SMALL || bytes == self.unknown() {
            &self.0.small
        } else {
            &self.0.large
        }
    }

    async fn take_in_line(&self, bytes: usize) {
        let line = self.line(bytes);
        let _waits = AnswerWaits::begin(&line.waiting);
        // The semaphore is never closed.
        let _front = line.front.acquire().await;
        while !self.add(bytes, line.limit) {
            // A permit returned after this attempt sees a waiting request and wakes the first one.
            line.freed.notified().await;
        }
    }

    fn add(&self, bytes: usize, limit: usize) -> bool {
        let more = |held: usize| {
            let all = held.saturating_add(bytes);
            (all <= limit || held == 0).then_some(all)
        };
        self.0
            .held
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, more)
            .is_ok()
    }

    fn give(&self, bytes: usize) {
        self.0.held.fetch_sub(bytes, Ordering::SeqCst);
        for line in [&self.0.small, &self.0.large] {
            if line.is_waited_in() {
                line.freed.notify_one();
            }
        }
    }
}

impl Line {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: AtomicUsize::new(0),
            front: Semaphore::new(1),
            freed: Notify::new(),
        }
    }

    fn is_waited_in(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

impl AnswerPermit {
    /// Returns the number of bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the bytes of another permit of the same budget.
    pub fn merge(&mut self, mut other: Self) {
        if self.bytes == 0 {
            std::mem::swap(self, &mut other);
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Changes the number of held bytes, whether they are free or not, because the answer exists.
    pub fn resize(&mut self, room: &AnswerRoom, bytes: usize) {
        let home = self.home.get_or_insert_with(|| room.clone());
        if bytes > self.bytes {
            home.0.held.fetch_add(bytes - self.bytes, Ordering::SeqCst);
        } else if bytes < self.bytes {
            home.give(self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        if let Some(home) = &self.home
            && self.bytes > 0
        {
            home.give(self.bytes);
        }
    }
}

/// Counts a waiting request until it is dropped.
struct AnswerWaits<'a>(&'a AtomicUsize);

impl<'a> AnswerWaits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for AnswerWaits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The usual length of answers of one kind: the longest so far, reduced slowly by shorter ones.
#[derive(Debug, Default)]
pub struct UsualAnswer {
    /// The length plus one; 0 if no answer was seen.
    seen: AtomicUsize,
}

impl UsualAnswer {
    /// Returns the expected length of the next answer; `None` before the first one.
    pub fn expected(&self) -> Option<usize> {
        self.seen.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns true if the next answer is expected to be long, or none was seen.
    pub fn is_long(&self) -> bool {
        self.expected().is_none_or(|bytes| bytes >= LONG)
    }

    /// Returns the memory that the next answer is expected to need. It exists twice for a moment,
    /// because it is copied out of the database's answer to a whole batch.
    pub fn room(&self, of: &AnswerRoom) -> usize {
        let expected = self.expected();
        expected.map_or_else(|| of.unknown(), |bytes| bytes.saturating_mul(COPIES))
    }

    /// Records the length of an answer. A short one after short ones writes no shared memory.
    pub fn note(&self, bytes: usize) {
        let (now, seen) = (bytes + 1, self.seen.load(Ordering::Relaxed));
        if now > seen {
            self.seen.store(now, Ordering::Relaxed);
        } else if seen > SHORT {
            // A concurrent update may be lost, which is fine for an estimate.
            let faded = seen - (seen - now).div_ceil(16);
            self.seen.store(faded, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_waits_in_the_order_of_asking() {
        let room = AnswerRoom::new(800);
        let held: Vec<_> = [room.take(200).await, room.take(200).await].into();
        let mut over = AnswerPermit::default();
        over.resize(&room, 470);
        assert_eq!((room.held(), room.is_wanted()), (870, true));
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let waiting: Vec<_> = [160, 40, 100]
            .into_iter()
            .map(|bytes| {
                let (room, order) = (room.clone(), Arc::clone(&order));
                tokio::spawn(async move {
                    let permit = room.take(bytes).await;
                    order.lock().unwrap().push(bytes);
                    permit
                })
            })
            .collect();
        tokio::task::yield_now().await;
        over.resize(&room, 400);
        tokio::task::yield_now().await;
        assert_eq!(room.held(), 800);
        drop(held);
        let mut taken = Vec::new();
        for waiting in waiting {
            taken.push(waiting.await.unwrap());
        }
        assert_eq!(*order.lock().unwrap(), [160, 40, 100]);
        assert_eq!((room.held(), room.is_wanted()), (700, false));
        drop((taken, over));
        assert_eq!(room.held(), 0);
    }

    #[tokio::test]
    async fn small_answers_do_not_wait_behind_large_ones() {
        let room = AnswerRoom::new(800);
        let mut unread = AnswerPermit::default();
        unread.resize(&room, 700);
        assert!(room.try_take(100).is_none());
        let waits = {
            let room = room.clone();
            tokio::spawn(async move { room.take(100).await.bytes() })
        };
        tokio::task::yield_now().await;
        let small = room.try_take(800 / SMALL).unwrap();
        // The first of its kind.
        let unknown = room.try_take(room.unknown()).unwrap();
        assert!(room.try_take(room.unknown()).is_none(), "past the room");
        assert!(!waits.is_finished());
        drop((small, unknown));
        unread.resize(&room, 0);
        assert_eq!(waits.await.unwrap(), 100);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_holds_up_nobody() {
        let room = AnswerRoom::new(100);
        let mut held = AnswerPermit::default();
        held.resize(&room, 100);
        let waits = |bytes| {
            let room = room.clone();
            tokio::spawn(async move { room.take(bytes).await.bytes() })
        };
        let (first, second) = (waits(25), waits(10));
        tokio::task::yield_now().await;
        first.abort();
        assert!(first.await.is_err());
        held.resize(&room, 0);
        assert_eq!(second.await.unwrap(), 10);
        assert_eq!(room.held(), 0);
    }

    #[tokio::test]
    async fn more_than_there_is_does_not_wait_for_ever() {
        let room = AnswerRoom::new(100);
        assert_eq!(room.take(1000).await.bytes(), 25);
        assert_eq!(AnswerRoom::new(0).take(1000).await.bytes(), 0);
    }

    #[tokio::test]
    async fn merged_ones_are_counted_once() {
        let room = AnswerRoom::new(100);
        let mut one = AnswerPermit::default();
        one.merge(room.take(20).await);
        one.merge(room.take(5).await);
        one.merge(AnswerPermit::default());
        assert_eq!((one.bytes(), room.held()), (25, 25));
        drop(one);
        assert_eq!(room.held(), 0);
    }

    /// Whatever threads do at once: nothing is lost, and nobody waits for ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn room_is_neither_lost_nor_waited_for_in_vain() {
        let room = AnswerRoom::new(1000);
        let tasks: Vec<_> = (0..16_usize)
            .map(|task| {
                let room = room.clone();
                tokio::spawn(async move {
                    for turn in 0..500 {
                        let bytes = 1 + (task * 131 + turn * 17) % 250;
                        let mut permit = AnswerPermit::default();
                        if turn % 7 == 0 {
                            // One that is given up, wherever it is by then.
                            tokio::select! {
                                biased;
                                taken = room.take(bytes) => permit = taken,
                                () = tokio::task::yield_now() => {}
                            }
                        } else {
                            permit = room.take(bytes).await;
                        }
                        tokio::task::yield_now().await;
                        permit.resize(&room, bytes * (turn % 3));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!((room.held(), room.is_wanted()), (0, false));
    }

    #[test]
    fn the_longest_answer_is_expected_until_it_has_faded() {
        let usual = UsualAnswer::default();
        assert_eq!((usual.expected(), usual.is_long()), (None, true));
        usual.note(0);
        assert_eq!((usual.expected(), usual.is_long()), (Some(0), false));
        usual.note(1_000_000);
        assert!(usual.is_long());
        usual.note(10);
        let expected = usual.expected().unwrap();
        assert!((900_000..1_000_000).contains(&expected), "{expected}");
        (0..1000).for_each(|_| usual.note(10));
        assert!(usual.expected().unwrap() <= SHORT && !usual.is_long());
    }
}
