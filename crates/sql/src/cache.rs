//! Readings, kept by text.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::mem::size_of;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::Draft;
use windrow_core::statement::{Expression, Piece};

use crate::lift::Lifter;
use crate::read::{MAX_TEXT, read};
use crate::reading::{Apart, Reading};

const NOT_LIFTED: &str = "literals that are not lifted";
const FIRST_TIME: &str = "literals that are not lifted, for the first time";

/// Readings by text. A hit costs a hash of the text and a comparison, and allocates nothing.
///
/// Two generations: what is found in the old one moves to the young one; when the young one has half of the limits, it becomes
/// the old one, and what nobody asked for since is dropped.
#[derive(Debug)]
pub struct Cache {
    seed: RandomState,
    young: Generation,
    old: Generation,
    entries: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Generation {
    readings: HashMap<u64, Entry, BuildHasherDefault<Hashed>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    types: Box<[u32]>,
    protocol: Protocol,
    reading: Arc<Reading>,
    bytes: usize,
}

impl Entry {
    fn is(&self, text: &str, types: &[u32], protocol: Protocol) -> bool {
        *self.text == *text && *self.types == *types && self.protocol == protocol
    }
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// As it is prepared: by the extended protocol, or a template.
    Extended,
    /// A text of the simple protocol whose literals are not lifted.
    Simple,
}

/// The keys are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Cache {
    /// A cache that holds at most so many readings, and about so many bytes.
    pub fn new(entries: usize, bytes: usize) -> Self {
        Self {
            seed: RandomState::default(),
            young: Generation::default(),
            old: Generation::default(),
            entries,
            bytes,
        }
    }

    /// The number of readings that are held.
    pub fn len(&self) -> usize {
        self.young.readings.len() + self.old.readings.len()
    }

    /// True if none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how much memory the readings take, in bytes.
    pub fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes
    }

    /// As [`read`]: a text of the extended protocol with the types that its client names.
    pub fn extended(&mut self, text: &str, types: &[u32]) -> Arc<Reading> {
        self.find(text, types, Protocol::Extended).0
    }

    /// A text of the simple protocol. Where the reading is [`Reading::Join`], the literals that were lifted are in `lifter`: they
    /// are the values of the draft's parameters.
    ///
    /// A template that still holds literals is joined from the second time on: it may never come again, and to have it
    /// described would be for nothing.
    pub fn simple(
        &mut self,
        text: &str,
        standard_conforming_strings: bool,
        lifter: &mut Lifter,
    ) -> Arc<Reading> {
        match lifter.lift(text, standard_conforming_strings) {
            Some(lifted) => {
                let (template, types) = (lifted.template, lifted.types);
                let (reading, found) = self.find(template, types, Protocol::Extended);
                match &*reading {
                    Reading::Join(draft) if lifted.leftover && !found => apart(FIRST_TIME, draft),
                    _ => reading,
                }
            }
            None => self.find(text, &[], Protocol::Simple).0,
        }
    }

    /// The reading of a text; also whether it was there.
    fn find(&mut self, text: &str, types: &[u32], protocol: Protocol) -> (Arc<Reading>, bool) {
        let hash = self.hash(text, types, protocol);
        if let Some(entry) = self
            .young
            .readings
            .get(&hash)
            .filter(|entry| entry.is(text, types, protocol))
        {
            return (Arc::clone(&entry.reading), true);
        }
        if let Some(entry) = self
            .old
            .take(hash)
            .filter(|entry| entry.is(text, types, protocol))
        {
            let reading = Arc::clone(&entry.reading);
            self.keep(hash, entry);
            return (reading, true);
        }
        let reading = Arc::new(match protocol {
            Protocol::Extended => read(text, types),
            Protocol::Simple => not_lifted(text),
        });
        if text.len() <= MAX_TEXT {
            self.keep(hash, Entry::new(text, types, protocol, &reading));
        }
        (reading, false)
    }

    fn hash(&self, text: &str, types: &[u32], protocol: Protocol) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write(text.as_bytes());
        types.hash(&mut hasher);
        hasher.write_u8(u8::from(protocol == Protocol::Simple));
        hasher.finish()
    }

    fn keep(&mut self, hash: u64, entry: Entry) {
        if entry.bytes > self.bytes / 2 || self.entries < 2 {
            return;
        }
        let full = self.young.readings.len() >= self.entries / 2
            || self.young.bytes + entry.bytes > self.bytes / 2;
        if full {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.put(hash, entry);
    }
}

impl Generation {
    fn take(&mut self, hash: u64) -> Option<Entry> {
        let entry = self.readings.remove(&hash)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn put(&mut self, hash: u64, entry: Entry) {
        self.bytes += entry.bytes;
        if let Some(before) = self.readings.insert(hash, entry) {
            self.bytes -= before.bytes;
        }
    }
}

impl Entry {
    fn new(text: &str, types: &[u32], protocol: Protocol, reading: &Arc<Reading>) -> Self {
        let read = match &**reading {
            Reading::Join(draft) => weight(draft),
            Reading::Apart(_) => 0,
        };
        Self {
            text: text.into(),
            types: types.into(),
            protocol,
            reading: Arc::clone(reading),
            bytes: size_of::<(u64, Self)>()
                + size_of::<Reading>()
                + text.len()
                + size_of_val(types)
                + read,
        }
    }
}

/// About how many bytes a draft takes.
fn weight(draft: &Draft) -> usize {
    let expression = |expression: &Expression| match expression {
        Expression::Default => 0,
        Expression::Sql(pieces) => size_of_val(&**pieces),
    };
    let named: usize = [&draft.assignments, &draft.keys]
        .into_iter()
        .flat_map(|all| {
            all.iter()
                .map(|(name, value)| 64 + name.len() + expression(value))
        })
        .sum();
    let values: usize = draft
        .values
        .iter()
        .map(|value| size_of::<Expression>() + expression(value))
        .sum();
    let columns = draft
        .columns
        .as_ref()
        .map_or(0, |all| all.iter().map(|name| 32 + name.len()).sum());
    // The texts of all parts together are hardly longer than the text itself.
    size_of::<Draft>()
        + 2 * draft.text.len()
        + size_of_val(&*draft.types)
        + size_of::<Piece>()
        + named
        + values
        + columns
}

fn apart(reason: &'static str, draft: &Arc<Draft>) -> Arc<Reading> {
    let effect = Reading::Join(Arc::clone(draft)).effect();
    Arc::new(Reading::Apart(Apart { reason, effect }))
}

/// A text of the simple protocol whose literals stay in it is not joined: each would be a statement of its own.
fn not_lifted(text: &str) -> Reading {
    match read(text, &[]) {
        Reading::Join(draft) => Reading::Apart(Apart {
            reason: NOT_LIFTED,
            effect: Reading::Join(draft).effect(),
        }),
        apart => apart,
    }
}
