//! The text of a statement, and everything known about it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_core::{Arguments, Described, Formats, Origin, ParsedStatement, Signature, Statement};
use windrow_sql::{
    Apart, BlockStatement, Commits, Effect, MAX_SCANNED, NameUsage, Names, Property, Reading,
    StatementName, Step,
};

use crate::lanes::Lane;

/// The time for which the answer that a statement cannot be joined counts.
const APART: Duration = Duration::from_secs(10);

/// The most bytes that lanes' answers about one text count as, however many there are: otherwise
/// they would displace all other texts.
const MAX_COUNTED_BYTES: usize = 64 * 1024;

/// The text of a statement as prepared: its content, and its meaning in each lane.
#[derive(Debug)]
pub(crate) struct CachedStatement {
    /// A number that no other text of this process has.
    pub(crate) number: u64,
    /// The key in the cache; `None` if it is not there.
    pub(super) hash: Option<u64>,
    /// The text, as the client sent it.
    pub(crate) text: Arc<[u8]>,
    /// The types that the client named; 0 if the server decides.
    pub(crate) types: Box<[u32]>,
    /// The result of reading the text.
    pub(crate) reading: Reading,
    /// Literals that were lifted out of the text.
    pub(super) lifted: Option<Box<LiftedText>>,
    /// True if the text has another meaning each time that it is parsed, as with a time such as
    /// `'now'`. Then the statement that one client has prepared is never used for another.
    pub(crate) may_freeze: bool,
    /// The names in the text, once they were asked for.
    names: OnceLock<Option<Arc<Names>>>,
    /// The statements of the text one by one, once a session has asked for them.
    steps: OnceLock<Option<Box<[Step]>>>,
    /// The statement about a transaction block that is all of the text, once a session has asked
    /// for it.
    block: OnceLock<Option<Box<BlockStatement>>>,
    /// The meaning in each lane that has described it, by the lane's number.
    lanes: Mutex<HashMap<u64, InLane, foldhash::fast::FixedState>>,
}

/// Literals that were lifted out of a text that a client prepares.
#[derive(Debug)]
pub(crate) struct LiftedText {
    /// The text without its literals and comments, which lanes describe.
    pub(super) template: Arc<CachedStatement>,
    /// The number of the client's own parameters. The parameters of the literals come after them.
    pub(super) own: usize,
    /// The literals, in the form of a Bind message's values.
    pub(super) literals: Arguments,
    /// The number of the literals.
    pub(super) count: usize,
}

/// The meaning of a statement in a lane.
#[derive(Debug)]
struct InLane {
    lane: Weak<Lane>,
    described: Described,
    /// For a joined statement, the last time at which its types were known to be current; for
    /// others, the time of the description.
    since: Instant,
}

impl CachedStatement {
    /// Reads a text.
    pub(super) fn new(text: &[u8], types: impl Iterator<Item = u32>, utf8: bool) -> Self {
        let types: Box<[u32]> = types.collect();
        Self {
            number: next_number(),
            hash: None,
            lifted: None,
            may_freeze: std::str::from_utf8(text).map_or(true, windrow_sql::may_freeze),
            reading: read(text, &types, utf8),
            text: text.into(),
            types,
            names: OnceLock::new(),
            steps: OnceLock::new(),
            block: OnceLock::new(),
            lanes: Mutex::default(),
        }
    }

    /// Makes the entry of a text whose literals were lifted out.
    pub(super) fn lifted(
        text: &[u8],
        types: impl Iterator<Item = u32>,
        lifted: LiftedText,
    ) -> Self {
        Self {
            number: next_number(),
            hash: None,
            reading: lifted.reading(),
            may_freeze: lifted.template.may_freeze,
            lifted: Some(Box::new(lifted)),
            text: text.into(),
            types: types.collect(),
            names: OnceLock::new(),
            steps: OnceLock::new(),
            block: OnceLock::new(),
            lanes: Mutex::default(),
        }
    }

    /// Returns true for this text with these types of parameters. No types mean the same as a 0 for
    /// each parameter, and the cache finds the entry by both.
    pub(super) fn is_of(&self, text: &[u8], mut types: impl ExactSizeIterator<Item = u32>) -> bool {
        *self.text == *text
            && match self.types.is_empty() {
                true => types.all(|oid| oid == 0),
                false => self.types.len() == types.len() && self.types.iter().copied().eq(types),
            }
    }

    /// Returns the same text, not to be joined.
    pub(super) fn apart(&self, reason: &'static str) -> Self {
        Self {
            number: self.number,
            hash: None,
            lifted: None,
            text: Arc::clone(&self.text),
            types: self.types.clone(),
            reading: Reading::Apart(Apart {
                reason,
                effect: self.reading.effect(),
            }),
            may_freeze: self.may_freeze,
            names: self.names.clone(),
            steps: self.steps.clone(),
            block: self.block.clone(),
            lanes: Mutex::default(),
        }
    }

    /// Returns what was read of a text that is sent once, without the text itself if that is long:
    /// nothing but its names is read later.
    pub(crate) fn of_sent(self: Arc<Self>) -> Arc<Self> {
        if self.text.len() <= MAX_SCANNED {
            return self;
        }
        let (_, _, _) = (self.names(), self.steps(), self.block());
        Arc::new(Self {
            number: self.number,
            hash: None,
            lifted: None,
            text: Arc::default(),
            types: self.types.clone(),
            reading: self.reading.clone(),
            may_freeze: self.may_freeze,
            names: self.names.clone(),
            steps: self.steps.clone(),
            block: self.block.clone(),
            lanes: Mutex::default(),
        })
    }

    /// Returns true if both are of the same text with the same types.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let alike = self.text == other.text && self.types == other.types;
        self.number == other.number || alike && !self.may_freeze
    }

    /// Returns roughly the memory that it takes, in bytes: the parsed form is several times as
    /// large as the text.
    pub(super) fn bytes(&self) -> usize {
        let lanes = self.lanes.lock();
        let in_lanes = lanes.values().map(|known| bytes(&known.described));
        let in_lanes = in_lanes.sum::<usize>().min(MAX_COUNTED_BYTES);
        let literals = self.lifted.as_ref().map_or(0, |lifted| lifted.bytes());
        512 + 4 * self.text.len() + size_of_val(&*self.types) + literals + in_lanes
    }

    /// Returns the meaning in a lane, if that is known.
    pub(super) fn in_lane(&self, lane: &Lane) -> Option<Described> {
        let lanes = self.lanes.lock();
        let InLane {
            described, since, ..
        } = lanes.get(&lane.number)?;
        let holds = match described {
            Described::Joined(statement) => !statement.is_retired(),
            Described::Apart(_) => since.elapsed() < APART,
        };
        holds.then(|| described.clone())
    }

    /// Notes its meaning in a lane. Returns the bytes that this takes.
    pub(super) fn note(&self, lane: &Arc<Lane>, described: &Described, since: Instant) -> usize {
        let known = InLane {
            lane: Arc::downgrade(lane),
            described: described.clone(),
            since,
        };
        let mut lanes = self.lanes.lock();
        lanes.retain(|_, known| known.lane.strong_count() > 0);
        lanes.insert(lane.number, known);
        bytes(described)
    }

    /// Returns true if a statement is its meaning in a lane, by an answer since `asked`.
    pub(super) fn holds_since(
        &self,
        lane: &Lane,
        statement: &Arc<Statement>,
        asked: Instant,
    ) -> bool {
        let lanes = self.lanes.lock();
        let known = lanes.get(&lane.number);
        known.is_some_and(|known| known.is(statement) && known.since >= asked)
    }

    /// Notes that a statement is still its meaning in a lane, by an answer of this moment.
    pub(super) fn renew(&self, lane: &Lane, statement: &Arc<Statement>, since: Instant) {
        let mut lanes = self.lanes.lock();
        let known = lanes.get_mut(&lane.number);
        if let Some(known) = known.filter(|known| known.is(statement)) {
            known.since = since;
        }
    }
}

impl InLane {
    fn is(&self, statement: &Arc<Statement>) -> bool {
        matches!(&self.described, Described::Joined(known) if Arc::ptr_eq(known, statement))
    }
}

impl CachedStatement {
    /// Returns the names in the text; `None` if they are not certain.
    pub(crate) fn names(&self) -> Option<&Arc<Names>> {
        let names = self.names.get_or_init(|| {
            let text = std::str::from_utf8(&self.text).ok()?;
            windrow_sql::names(text).map(Arc::new)
        });
        names.as_ref()
    }

    /// Returns the statements of the text one by one; `None` if it cannot be split with certainty.
    pub(crate) fn steps(&self) -> Option<&[Step]> {
        let steps = self.steps.get_or_init(|| {
            let text = std::str::from_utf8(&self.text).ok()?;
            windrow_sql::steps(text).map(Vec::into_boxed_slice)
        });
        steps.as_deref()
    }

    /// Returns the statement about a transaction block that is all of the text.
    pub(crate) fn block(&self) -> Option<&BlockStatement> {
        let block = self.block.get_or_init(|| {
            let is_relayed = self.parsed().is_none();
            let text = std::str::from_utf8(&self.text).ok()?;
            is_relayed.then(|| windrow_sql::block(text).map(Box::new))?
        });
        block.as_deref()
    }

    /// Returns the prepared statements that the text names, in order.
    fn statement_names(&self) -> impl Iterator<Item = &StatementName> {
        let apart = self.parsed().is_none();
        let steps = apart.then(|| self.steps()).flatten().unwrap_or_default();
        steps.iter().filter_map(|step| step.names.as_ref())
    }

    /// Returns true if the text names prepared statements.
    pub(crate) fn names_statements(&self) -> bool {
        self.statement_names().next().is_some()
    }

    /// Returns the names of the prepared statements that the text executes.
    pub(crate) fn executes(&self) -> impl Iterator<Item = &str> {
        let names = self.statement_names();
        let executed = names.filter(|named| named.usage == NameUsage::Executes);
        executed.map(|named| &*named.name)
    }

    /// Returns true if the text may remove all prepared statements.
    pub(crate) fn clears(&self) -> bool {
        let mut names = self.statement_names();
        self.effect() == Some(&Effect::DiscardAll)
            || names.any(|named| named.usage == NameUsage::DeallocatesAll)
    }

    /// Returns true if a name in the text may be one that SQL prepares.
    pub(crate) fn prepares(&self) -> bool {
        let unclear = self.parsed().is_none() && self.steps().is_none();
        let mut names = self.statement_names();
        unclear || names.any(|named| named.usage == NameUsage::Prepares)
    }

    /// Returns true if the text begins by rolling back the transaction, or a part of it.
    pub(crate) fn undoes(&self) -> bool {
        let first = self.steps().and_then(|steps| steps.first());
        first.is_some_and(|step| matches!(step.commits, Commits::Undoes | Commits::UndoesPart))
    }

    /// Returns true if the text only ends transactions: even with a key set, a client can end one
    /// that it has begun without.
    pub(crate) fn only_ends(&self) -> bool {
        let names = self.names();
        names.is_some_and(|names| !names.verbs.is_empty() && names.all_are(&[Property::Ends]))
    }

    /// Returns true if the text may roll back to a savepoint.
    pub(crate) fn may_undo_part(&self) -> bool {
        let steps = self.steps();
        let is_part = |step: &Step| step.commits == Commits::UndoesPart;
        steps.is_none_or(|steps| steps.iter().any(is_part))
    }

    /// Returns the prepared statement that the text removes, if it does nothing else.
    pub(crate) fn deallocates(&self) -> Option<&str> {
        let named = self.statement_names().next()?;
        let alone = self.steps().is_some_and(|steps| steps.len() == 1);
        // The server sends a notice about a name that it truncates.
        let is_plain = named.usage == NameUsage::Deallocates && named.whole.is_none();
        (alone && is_plain).then_some(&named.name)
    }

    /// Returns the parsed statement, if the text may be joined.
    pub(crate) fn parsed(&self) -> Option<&Arc<ParsedStatement>> {
        match &self.reading {
            Reading::Join(parsed) => Some(parsed),
            Reading::Apart(_) => None,
        }
    }

    /// Returns the effect on a session, if the statement is not to be joined.
    pub(crate) fn effect(&self) -> Option<&Effect> {
        match &self.reading {
            Reading::Join(_) => None,
            Reading::Apart(apart) => Some(&apart.effect),
        }
    }

    /// Returns true if the server may have to infer the type of a parameter.
    pub(crate) fn may_infer(&self) -> bool {
        self.text.contains(&b'$') && (self.types.is_empty() || self.types.contains(&0))
    }

    /// Returns true for a write that asks for a value taken from a sequence, which only the session
    /// itself knows.
    pub(crate) fn asks(&self) -> bool {
        let functions = self.parsed().map(|parsed| &*parsed.functions);
        let mut functions = functions.unwrap_or_default().iter();
        functions.any(|function| matches!(&*function.table, "lastval" | "currval"))
    }
}

impl LiftedText {
    pub(super) fn reading(&self) -> Reading {
        self.template.reading.clone()
    }

    /// Returns roughly the memory of the literals, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.literals.as_bytes().len()
    }

    /// Returns true if all literals may be values of a statement.
    fn fits(&self, statement: &Statement) -> bool {
        let mut literals = (self.own..).zip(&self.literals);
        literals.all(|(place, literal)| statement.takes_literal(place, literal))
    }
}

impl CachedStatement {
    /// Returns true if literals or comments were lifted out of the text.
    pub(super) fn is_lifted(&self) -> bool {
        self.lifted.is_some()
    }

    /// Returns the text that lanes describe: the template, if there is one.
    pub(crate) fn described_as(self: &Arc<Self>) -> &Arc<Self> {
        self.lifted.as_ref().map_or(self, |lifted| &lifted.template)
    }

    /// Returns true if a lane's statement is one of this text, with its literals.
    pub(super) fn may_be(&self, statement: &Statement) -> bool {
        self.lifted
            .as_ref()
            .is_none_or(|lifted| lifted.fits(statement))
    }

    /// Returns the signature that clients see.
    pub(crate) fn signature_of_client(&self, signature: &Arc<Signature>) -> Arc<Signature> {
        match &self.lifted {
            Some(lifted) => signature.of_client(lifted.own),
            None => Arc::clone(signature),
        }
    }

    /// Returns the types of the parameters that clients give values to.
    pub(crate) fn own_parameters<'s>(&self, statement: &'s Statement) -> &'s [u32] {
        let all = statement.parameters();
        match &self.lifted {
            Some(lifted) => all.get(..lifted.own).unwrap_or(all),
            None => all,
        }
    }

    /// Returns the values of a call: the client's own, and the literals after them.
    pub(crate) fn arguments(&self, values: &[u8], count: usize) -> Option<Arguments> {
        match &self.lifted {
            Some(lifted) => {
                let all = [values, lifted.literals.as_bytes()].concat();
                Arguments::of(all, count + lifted.count)
            }
            None => Arguments::of(values, count),
        }
    }

    /// Returns the formats of a call's values, given those of the client's own.
    pub(crate) fn formats(&self, own: Formats) -> Formats {
        match &self.lifted {
            Some(lifted) if own != Formats::Text => {
                let places = 0..lifted.own + lifted.count;
                Formats::of(places.map(|place| place < lifted.own && own.is_binary(place)))
            }
            _ => own,
        }
    }

    /// Returns the client's own text, if literals were lifted out of it.
    pub(crate) fn origin(&self) -> Option<Box<Origin>> {
        let lifted = self.lifted.as_ref()?;
        Some(Box::new(Origin {
            text: Arc::clone(&self.text),
            own: Some(lifted.own),
        }))
    }
}

/// Returns a number that no other text of this process has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn read(text: &[u8], types: &[u32], utf8: bool) -> Reading {
    // In other encodings a quote may be part of a longer character.
    match std::str::from_utf8(text) {
        Ok(text) if utf8 || text.is_ascii() => windrow_sql::read(text, types),
        _ => Reading::Apart(Apart {
            reason: "not UTF-8",
            effect: Effect::Other,
        }),
    }
}

/// Returns roughly the memory of a description, in bytes.
fn bytes(described: &Described) -> usize {
    match described {
        Described::Joined(statement) => {
            let fields = statement.fields().map_or(0, <[u8]>::len);
            let names = size_of_val(&*statement.shape().columns);
            512 + fields + names + size_of_val(statement.parameters())
        }
        Described::Apart(apart) => 256 + apart.object.len(),
    }
}
