//! The texts of all sessions: each is parsed once, and has a number.
//!
//! A text, with its meaning in all lanes, is dropped once half of the cache's capacity was used
//! since its own last use.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use windrow_core::{Described, Fault, ParsedStatement, Statement};
use windrow_sql::Lifter;

use super::cached::CachedStatement;
use crate::lanes::Lane;

/// The most texts that are kept, the most bytes of all of them, and of one.
const MAX_TEXTS: usize = 16_384;
const MAX_BYTES: usize = 64 << 20;
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The most buffers for lifting literals that are kept between queries: about as many as threads
/// need at once.
const MAX_LIFTERS: usize = 64;

/// The number of locks over which texts are distributed.
const SHARDS: usize = 16;

/// The lane's answer about a statement. The session that has asked uses it even if it is not kept,
/// so that a statement that is dropped or retired at once is not asked for again and again.
#[derive(Debug)]
pub(crate) struct Answer {
    lane: u64,
    /// The statement that it is about.
    pub(crate) cached: Arc<CachedStatement>,
    described: Described,
}

impl Answer {
    /// Returns the answer, if it answers this question.
    pub(super) fn to(&self, lane: &Lane, cached: &Arc<CachedStatement>) -> Option<&Described> {
        let is_to = self.lane == lane.number && self.cached.is_like(cached.described_as());
        is_to.then_some(&self.described)
    }

    /// Returns the reason why the statement cannot be joined, if that is the answer.
    pub(crate) fn apart(&self) -> Option<&windrow_core::Apart> {
        match &self.described {
            Described::Joined(_) => None,
            Described::Apart(apart) => Some(apart),
        }
    }
}

/// The statements, by their texts.
#[derive(Debug, Default)]
pub(crate) struct StatementCache {
    shards: [Mutex<Shard>; SHARDS],
    lifters: Mutex<Vec<Lifter>>,
    hasher: foldhash::fast::RandomState,
}

/// Two generations: when the younger one is full, the elder is dropped.
#[derive(Debug, Default)]
struct Shard {
    young: Generation,
    old: Generation,
    /// Bytes of the young generation.
    bytes: usize,
}

/// By the hash of text and types.
type Generation = HashMap<u64, Arc<CachedStatement>, foldhash::fast::FixedState>;

impl StatementCache {
    /// Returns the statement of a text, with the types that the client names for its parameters.
    pub(crate) fn get(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> Arc<CachedStatement> {
        self.find(text, types, utf8).0
    }

    /// Lends the buffers for lifting.
    pub(super) fn with_lifter<T>(&self, run: impl FnOnce(&mut Lifter) -> T) -> T {
        let mut lifter = self.lifters.lock().pop().unwrap_or_default();
        let result = run(&mut lifter);
        lifter.clear();
        let mut lifters = self.lifters.lock();
        if lifters.len() < MAX_LIFTERS {
            lifters.push(lifter);
        }
        result
    }

    /// Returns the entry of a text, if it exists.
    pub(super) fn known(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> Option<Arc<CachedStatement>> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let hash = self.hash(text, types.clone(), utf8);
        let known = self.shard(hash).find(hash);
        known.filter(|known| known.is_of(text, types))
    }

    /// Keeps a text that was parsed, in place of its entry.
    pub(super) fn keep(&self, mut cached: CachedStatement, utf8: bool) -> Arc<CachedStatement> {
        if cached.text.len() > MAX_TEXT_BYTES || cached.may_freeze {
            return Arc::new(cached);
        }
        let hash = self.hash(&cached.text, cached.types.iter().copied(), utf8);
        cached.hash = Some(hash);
        let cached = Arc::new(cached);
        self.shard(hash).add(hash, Arc::clone(&cached));
        cached
    }

    /// Adds another key for a kept text: other types with the same meaning.
    pub(super) fn find_also(
        &self,
        cached: &Arc<CachedStatement>,
        types: impl Iterator<Item = u32>,
        utf8: bool,
    ) {
        if cached.hash.is_some() {
            let hash = self.hash(&cached.text, types, utf8);
            self.shard(hash).add(hash, Arc::clone(cached));
        }
    }

    /// Returns the statement of a text, and true if it existed.
    pub(super) fn find(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> (Arc<CachedStatement>, bool) {
        if text.len() > MAX_TEXT_BYTES {
            return (Arc::new(CachedStatement::new(text, types, utf8)), false);
        }
        let hash = self.hash(text, types.clone(), utf8);
        let is_it = |known: &Arc<CachedStatement>| known.is_of(text, types.clone());
        if let Some(known) = self.shard(hash).find(hash).filter(is_it) {
            return (known, true);
        }
        // Parsed without the lock, because a long text takes some time.
        let mut cached = CachedStatement::new(text, types.clone(), utf8);
        if cached.may_freeze {
            return (Arc::new(cached), false);
        }
        cached.hash = Some(hash);
        let cached = Arc::new(cached);
        let mut shard = self.shard(hash);
        // Another session may have been faster; a text has only one number.
        if let Some(known) = shard.find(hash).filter(is_it) {
            return (known, true);
        }
        shard.add(hash, Arc::clone(&cached));
        (cached, false)
    }

    fn hash(&self, text: &[u8], types: impl Iterator<Item = u32>, utf8: bool) -> u64 {
        let text = self.hasher.hash_one((text, utf8));
        types.fold(text, |hash, oid| self.hasher.hash_one((hash, oid)))
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let place = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        let shard = self.shards.get(place).unwrap_or(first);
        shard.lock()
    }
}

impl StatementCache {
    /// Returns the lane's answer about a statement: the known one, or the one that its database
    /// gives now. Cancel safe.
    ///
    /// # Errors
    /// Those of [`windrow_core::Describer::describe`].
    pub(crate) async fn describe(
        &self,
        lane: &Arc<Lane>,
        cached: &Arc<CachedStatement>,
        parsed: &Arc<ParsedStatement>,
    ) -> Result<Answer, Fault> {
        let described = match cached.in_lane(lane) {
            Some(described) => described,
            None => Box::pin(self.ask(lane, cached, parsed)).await?,
        };
        Ok(Answer {
            lane: lane.number,
            cached: Arc::clone(cached),
            described,
        })
    }

    async fn ask(
        &self,
        lane: &Arc<Lane>,
        cached: &CachedStatement,
        parsed: &Arc<ParsedStatement>,
    ) -> Result<Described, Fault> {
        let _turn = lane.asking.lock().await;
        if let Some(described) = cached.in_lane(lane) {
            return Ok(described);
        }
        let asked = Instant::now();
        let described = lane.ports.describer.describe(parsed).await?;
        let since = match &described {
            Described::Joined(_) => asked,
            Described::Apart(_) => Instant::now(),
        };
        let bytes = cached.note(lane, &described, since);
        if let Some(hash) = cached.hash {
            self.shard(hash).grow(bytes);
        }
        Ok(described)
    }

    /// Returns true if a statement's types are those that the lane's database has reported at some
    /// time after `asked`. Sessions that ask at the same time share an answer. Cancel safe.
    ///
    /// # Errors
    /// Those of [`windrow_core::Describer::holds`].
    pub(crate) async fn holds(
        &self,
        lane: &Lane,
        (cached, statement): (&CachedStatement, &Arc<Statement>),
        asked: Instant,
    ) -> Result<bool, Fault> {
        let _turn = lane.asking.lock().await;
        if statement.is_retired() || cached.holds_since(lane, statement, asked) {
            return Ok(!statement.is_retired());
        }
        let begun = Instant::now();
        let holds = lane.ports.describer.holds(statement).await?;
        if holds {
            cached.renew(lane, statement, begun);
        }
        Ok(holds)
    }
}

impl Shard {
    fn find(&mut self, hash: u64) -> Option<Arc<CachedStatement>> {
        if let Some(known) = self.young.get(&hash) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&hash)?;
        self.add(hash, Arc::clone(&known));
        Some(known)
    }

    fn add(&mut self, hash: u64, cached: Arc<CachedStatement>) {
        self.grow(cached.bytes());
        self.young.insert(hash, cached);
    }

    /// Makes space for more bytes: a full generation becomes the elder one.
    fn grow(&mut self, bytes: usize) {
        if self.young.len() >= MAX_TEXTS / SHARDS / 2 || self.bytes + bytes > MAX_BYTES / SHARDS / 2
        {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use windrow_core::{Budget, Describer, Intake, LanePorts};

    use super::*;

    const TEXT: &[u8] = b"insert into t values ($1)";

    /// Counts how often it is asked.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    #[async_trait]
    impl Describer for Counted {
        async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let statement = Statement::new(Arc::clone(parsed), Arc::default(), Arc::new(()));
            Ok(Described::Joined(Arc::new(statement)))
        }

        async fn holds(&self, _: &Statement) -> Result<bool, Fault> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(true)
        }

        async fn is_current(&self, _: &Statement) -> Result<bool, Fault> {
            Ok(true)
        }
    }

    fn lane(describer: &Arc<Counted>) -> Arc<Lane> {
        let (intake, _) = Intake::channel(Budget::new(1 << 20), 1);
        let describer = Arc::clone(describer) as _;
        Lane::new(LanePorts { intake, describer })
    }

    fn get(cache: &StatementCache, text: &[u8]) -> Arc<CachedStatement> {
        cache.get(text, [23].into_iter(), true)
    }

    async fn describe(
        cache: &StatementCache,
        lane: &Arc<Lane>,
        cached: &Arc<CachedStatement>,
    ) -> Answer {
        let parsed = cached.parsed().unwrap();
        cache.describe(lane, cached, parsed).await.unwrap()
    }

    #[tokio::test]
    async fn a_lane_is_asked_once_and_what_it_says_is_known_to_it_alone() {
        let (cache, describer) = (StatementCache::default(), Arc::new(Counted::default()));
        let asked = || describer.0.load(Ordering::Relaxed);
        let (one, other) = (lane(&describer), lane(&describer));
        let cached = get(&cache, TEXT);
        let (first, again) = tokio::join!(
            describe(&cache, &one, &cached),
            describe(&cache, &one, &cached)
        );
        let known = |answer: &Answer| match &answer.described {
            Described::Joined(statement) => statement.id(),
            Described::Apart(_) => unreachable!(),
        };
        assert_eq!((known(&first), asked()), (known(&again), 1));
        assert!(get(&cache, TEXT).in_lane(&other).is_none());
        assert_ne!(
            known(&describe(&cache, &other, &cached).await),
            known(&first)
        );
        let Described::Joined(statement) = &first.described else {
            unreachable!()
        };
        let before = Instant::now();
        for _ in 0..2 {
            let holds = cache.holds(&one, (&cached, statement), before).await;
            assert_eq!((holds, asked()), (Ok(true), 3));
        }
        statement.retire();
        assert!(cached.in_lane(&one).is_none());
        assert_ne!(known(&describe(&cache, &one, &cached).await), known(&first));
        let bytes = cached.bytes();
        drop((one, other));
        describe(&cache, &lane(&describer), &cached).await;
        assert!(
            cached.bytes() < bytes,
            "lanes that have ended are forgotten"
        );
    }

    #[tokio::test]
    async fn an_answer_is_to_its_text_and_lane_even_where_that_is_not_kept() {
        let (cache, describer) = (StatementCache::default(), Arc::new(Counted::default()));
        let (one, other) = (lane(&describer), lane(&describer));
        let long = format!(
            "insert into t values ($1, '{}')",
            "x".repeat(MAX_TEXT_BYTES)
        );
        let (first, second) = (get(&cache, long.as_bytes()), get(&cache, long.as_bytes()));
        assert_ne!(first.number, second.number);
        let answer = describe(&cache, &one, &first).await;
        assert!(answer.to(&one, &second).is_some());
        assert!(answer.to(&other, &second).is_none());
        assert!(answer.to(&one, &get(&cache, TEXT)).is_none());
    }

    #[test]
    fn what_was_used_last_is_kept() {
        let cache = StatementCache::default();
        let (used, unused) = (get(&cache, TEXT), get(&cache, b"select 1"));
        for number in 0..2 * MAX_TEXTS {
            get(&cache, format!("select {number} from t").as_bytes());
            get(&cache, TEXT);
        }
        assert_eq!(get(&cache, TEXT).number, used.number);
        assert_ne!(get(&cache, b"select 1").number, unused.number);
    }
}
