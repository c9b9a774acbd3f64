//! What was read from texts, shared by all sessions: each text is read once, and has a number.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windrow_core::ParsedStatement;
use windrow_sql::{Apart, Effect, Lifter, Names, Reading};

use super::names;

/// The most texts that are kept, the most bytes of all of them, and of one.
const MOST: usize = 16_384;
const BYTES: usize = 64 << 20;
const LONGEST: usize = 16 * 1024;

/// Buffers for lifting literals that are kept between queries: as many as threads may want at once,
/// or nearly.
const LIFTERS: usize = 64;

/// Texts are spread over so many locks.
const SHARDS: usize = 16;

/// A text as it is prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// A number that no other text of this process has.
    pub(crate) number: u64,
    /// The text, as the client sent it.
    pub(crate) text: Box<[u8]>,
    /// The types that the client named; 0: the server decides.
    pub(crate) types: Box<[u32]>,
    /// What it says.
    pub(crate) reading: Reading,
    /// The statement that it names, where it is DEALLOCATE of one.
    pub(crate) deallocates: Option<Box<str>>,
    /// True where it removes all prepared statements.
    pub(crate) clears: bool,
    /// The names in it, once somebody has asked for them.
    names: OnceLock<Option<Arc<Names>>>,
}

impl Prepared {
    fn new(text: &[u8], types: impl Iterator<Item = u32>, utf8: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let types: Box<[u32]> = types.collect();
        let reading = read(text, &types, utf8);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            clears: reading.effect() == Effect::DiscardAll || names::deallocates_all(text),
            reading,
            deallocates: names::deallocate(text).map(String::into_boxed_str),
            text: text.into(),
            types,
            names: OnceLock::new(),
        }
    }

    /// The names in it; `None` where they cannot be told.
    pub(crate) fn names(&self) -> Option<&Arc<Names>> {
        let names = self.names.get_or_init(|| {
            let text = std::str::from_utf8(&self.text).ok()?;
            windrow_sql::names(text).map(Arc::new)
        });
        names.as_ref()
    }

    /// About how much memory it takes, in bytes: what was read from a text is some times as large
    /// as the text.
    fn bytes(&self) -> usize {
        512 + 4 * self.text.len() + size_of_val(&*self.types)
    }

    /// The parsed statement, where the text says that it may be joined.
    pub(crate) fn parsed(&self) -> Option<&Arc<ParsedStatement>> {
        match &self.reading {
            Reading::Join(parsed) => Some(parsed),
            Reading::Apart(_) => None,
        }
    }

    /// The same text, not to be joined.
    fn apart(&self, reason: &'static str) -> Self {
        Self {
            number: self.number,
            text: self.text.clone(),
            types: self.types.clone(),
            reading: Reading::Apart(Apart {
                reason,
                effect: self.reading.effect(),
            }),
            deallocates: None,
            clears: false,
            names: self.names.clone(),
        }
    }

    /// True where the server may have to find out the type of a parameter.
    pub(crate) fn may_infer(&self) -> bool {
        self.text.contains(&b'$') && (self.types.is_empty() || self.types.contains(&0))
    }

    /// True for a write that asks what was taken from a sequence: only the session itself knows
    /// that.
    pub(crate) fn asks(&self) -> bool {
        let functions = self.parsed().map(|parsed| &*parsed.functions);
        let mut functions = functions.unwrap_or_default().iter();
        functions.any(|function| matches!(&*function.table, "lastval" | "currval"))
    }

    /// What it does to a session, where it is not to be joined.
    pub(crate) fn effect(&self) -> Option<&Effect> {
        match &self.reading {
            Reading::Join(_) => None,
            Reading::Apart(apart) => Some(&apart.effect),
        }
    }
}

fn read(text: &[u8], types: &[u32], utf8: bool) -> Reading {
    // In other encodings a quote may be a part of a longer character.
    match std::str::from_utf8(text) {
        Ok(text) if utf8 || text.is_ascii() => windrow_sql::read(text, types),
        _ => Reading::Apart(Apart {
            reason: "not UTF-8",
            effect: Effect::Unknown,
        }),
    }
}

/// A simple query.
#[derive(Debug)]
pub(crate) struct Simple {
    /// What it says: of its text, or of the template that its literals were lifted out of.
    pub(crate) prepared: Arc<Prepared>,
    /// The literals, as a Bind message holds values, where some were lifted.
    pub(crate) values: Option<Box<[u8]>>,
}

/// Readings by text.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    shards: [Mutex<Shard>; SHARDS],
    lifters: Mutex<Vec<Lifter>>,
    hasher: foldhash::fast::RandomState,
}

/// Two generations: when the younger one is full, the elder is forgotten.
#[derive(Debug, Default)]
struct Shard {
    young: Generation,
    old: Generation,
    /// The texts of the young generation, in bytes.
    bytes: usize,
}

/// By the hash of text and types.
type Generation = HashMap<u64, Arc<Prepared>, foldhash::fast::FixedState>;

impl Readings {
    /// What a text says, with the types that the client names for its parameters.
    pub(crate) fn get(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> Arc<Prepared> {
        self.find(text, types, utf8).0
    }

    /// What the text of a simple query says. Literals are lifted out of it where that can be done.
    pub(crate) fn simple(&self, text: &[u8], standard_strings: bool, utf8: bool) -> Simple {
        let whole = || Simple {
            prepared: self.unlifted(text, utf8),
            values: None,
        };
        let sql = match std::str::from_utf8(text) {
            // Each backslash in a text that is not standard earns its client a warning (22P06),
            // which only the server words.
            Ok(_) if !standard_strings && memchr::memchr(b'\\', text).is_some() => return whole(),
            Ok(sql) if utf8 || text.is_ascii() => sql,
            _ => return whole(),
        };
        let mut lifter = lock(&self.lifters).pop().unwrap_or_default();
        let simple = match lifter.lift(sql, standard_strings) {
            Some(lifted) => {
                let types = lifted.types.iter().copied();
                let (prepared, was_there) = self.find(lifted.template.as_bytes(), types, utf8);
                // With literals left in it, it may never come again: to have it described would be
                // for nothing.
                match lifted.leftover && !was_there {
                    true => Simple {
                        prepared: Arc::new(prepared.apart("literals that are not lifted")),
                        values: None,
                    },
                    false => Simple {
                        prepared,
                        values: Some(lifted.values.into()),
                    },
                }
            }
            None => whole(),
        };
        lifter.clear();
        let mut lifters = lock(&self.lifters);
        if lifters.len() < LIFTERS {
            lifters.push(lifter);
        }
        simple
    }

    /// A text whose literals stay in it is not joined: each would be a statement of its own.
    fn unlifted(&self, text: &[u8], utf8: bool) -> Arc<Prepared> {
        let (prepared, _) = self.find(text, std::iter::empty(), utf8);
        match &prepared.reading {
            Reading::Join(_) => Arc::new(prepared.apart("literals that are not lifted")),
            Reading::Apart(_) => prepared,
        }
    }

    /// What a text says, and whether it was known.
    fn find(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> (Arc<Prepared>, bool) {
        if text.len() > LONGEST {
            return (Arc::new(Prepared::new(text, types, utf8)), false);
        }
        let hash = types
            .clone()
            .fold(self.hasher.hash_one((text, utf8)), |hash, oid| {
                self.hasher.hash_one((hash, oid))
            });
        let is_it = |known: &Arc<Prepared>| {
            *known.text == *text
                && known.types.len() == types.len()
                && known.types.iter().copied().eq(types.clone())
        };
        if let Some(known) = self.shard(hash).find(hash).filter(is_it) {
            return (known, true);
        }
        // Read without the lock: a long text takes some time.
        let prepared = Arc::new(Prepared::new(text, types.clone(), utf8));
        let mut shard = self.shard(hash);
        // Somebody else may have been faster; one text has one number.
        if let Some(known) = shard.find(hash).filter(is_it) {
            return (known, true);
        }
        shard.add(hash, Arc::clone(&prepared));
        (prepared, false)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let place = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        let shard = self.shards.get(place).unwrap_or(first);
        lock(shard)
    }
}

impl Shard {
    fn find(&mut self, hash: u64) -> Option<Arc<Prepared>> {
        if let Some(known) = self.young.get(&hash) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&hash)?;
        self.add(hash, Arc::clone(&known));
        Some(known)
    }

    fn add(&mut self, hash: u64, prepared: Arc<Prepared>) {
        let bytes = prepared.bytes();
        if self.young.len() >= MOST / SHARDS / 2 || self.bytes + bytes > BYTES / SHARDS / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(hash, prepared);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked while holding it left whole maps behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
