//! Room for answers: what waits for clients to read it, counted in bytes.
//!
//! How long an answer is shows only once the database has given it. So who asks for one that may be
//! long takes the room that it usually needs before the write leaves, and waits for that. What an
//! answer turns out to take is counted in any case, also past the room there is: nothing that was
//! written goes without its answer. Then others wait, and clients that do not read are ended.
//!
//! Small answers have a line of their own and an eighth of the room to themselves: clients that
//! leave large ones unread hold up large ones only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore};

/// Answers up to so many bytes are not worth counting one by one.
pub const SHORT: usize = 4 << 10;

/// From so many bytes on an answer holds up short ones that the database gives with it.
const LONG: usize = 16 << 10;

/// The part of the room that an answer is taken to need of which nothing is known.
const UNKNOWN: usize = 16;

/// How many times over an answer may be in memory before it is known.
const COPIES: usize = 2;

/// The part of the room that one request takes in advance at most.
const AT_ONCE: usize = 4;

/// The part of the room up to which an answer is small.
const SMALL: usize = 64;

/// The part of the room that only small answers get.
const RESERVE: usize = 8;

/// Room for answers, shared by all that hold a clone.
#[derive(Clone, Debug)]
pub struct AnswerRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    total: usize,
    held: AtomicUsize,
    small: Line,
    large: Line,
}

/// Requests that wait for room, served in the order of asking.
#[derive(Debug)]
struct Line {
    /// Bytes up to which the room may be filled by those who wait here.
    limit: usize,
    /// How many are in line.
    waiting: AtomicUsize,
    /// The holder of its only permit is at the front.
    front: Semaphore,
    freed: Notify,
}

/// Room that is held for an answer; it is given back when this is dropped.
#[derive(Debug, Default)]
pub struct AnswerPermit {
    /// `None` where nothing is held.
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

    /// The size of the room, in bytes.
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// Bytes that are held at this moment.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// True while somebody waits for room, or more is held than there is.
    pub fn is_wanted(&self) -> bool {
        let lines = [&self.0.small, &self.0.large];
        lines.into_iter().any(Line::is_waited_in) || self.held() > self.0.total
    }

    /// What is to be taken for an answer of which nothing is known.
    pub fn unknown(&self) -> usize {
        self.0.total / UNKNOWN
    }

    /// Takes bytes at once, where they are free and nobody waits in the same line; as many as
    /// [`AnswerRoom::take`].
    pub fn try_take(&self, bytes: usize) -> Option<AnswerPermit> {
        let bytes = self.at_once(bytes);
        let line = self.line(bytes);
        let is_free = !line.is_waited_in() && self.add(bytes, line.limit);
        is_free.then(|| self.permit(bytes))
    }

    /// Takes bytes as soon as they are free, in the order of asking among small answers and among
    /// large ones; never more at once than a quarter of the room. Cancel safe: a dropped future
    /// takes nothing.
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

    /// Returns the line for so many bytes. An answer of which nothing is known counts as small,
    /// for most are; how much it takes is known before the next of its kind.
    fn line(&self, bytes: usize) -> &Line {
        if bytes <= self.0.total / SMALL || bytes == self.unknown() {
            &self.0.small
        } else {
            &self.0.large
        }
    }

    async fn take_in_line(&self, bytes: usize) {
        let line = self.line(bytes);
        let _waits = Waits::begin(&line.waiting);
        // The semaphore is never closed.
        let _front = line.front.acquire().await;
        while !self.add(bytes, line.limit) {
            // A permit that is given back after this has tried finds the line waited in, and wakes
            // its front.
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
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the bytes of another permit of the same room.
    pub fn merge(&mut self, mut other: Self) {
        if self.bytes == 0 {
            std::mem::swap(self, &mut other);
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Holds so many bytes of the room from here on, whether they are free or not: an answer that
    /// is there takes what it takes.
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

/// Counts who is in line.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long answers of one kind were: the longest, which shorter ones let fade.
#[derive(Debug, Default)]
pub struct UsualAnswer {
    /// With one byte more, so that 0 says that nothing is known.
    seen: AtomicUsize,
}

impl UsualAnswer {
    /// How long the next one is expected to be; `None` before the first.
    pub fn expected(&self) -> Option<usize> {
        self.seen.load(Ordering::Relaxed).checked_sub(1)
    }

    /// True if the next one is expected to be long, or nothing is known of it.
    pub fn is_long(&self) -> bool {
        self.expected().is_none_or(|bytes| bytes >= LONG)
    }

    /// The room that the next one is expected to take until it is there: it is copied out of what
    /// the database sent for a whole batch.
    pub fn room(&self, of: &AnswerRoom) -> usize {
        let expected = self.expected();
        expected.map_or_else(|| of.unknown(), |bytes| bytes.saturating_mul(COPIES))
    }

    /// Takes note of one. Short ones among short ones change nothing: no memory is written that
    /// others read.
    pub fn note(&self, bytes: usize) {
        let (now, seen) = (bytes + 1, self.seen.load(Ordering::Relaxed));
        if now > seen {
            self.seen.store(now, Ordering::Relaxed);
        } else if seen > SHORT {
            // Of several at once one may be lost: it is an estimate.
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
