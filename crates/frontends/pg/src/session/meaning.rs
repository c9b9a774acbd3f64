//! What a statement means to a session, and what follows from a message.

use std::sync::Arc;

use windrow_core::{Described, Op, Statement};
use windrow_sql::{Apart, Effect, Reading};

use super::lane::Lane;
use super::segment::{Elsewhere, Local, Meaning};
use crate::statements::{Entry, Prepared, Readings, Statements};

/// What follows from a message.
pub(super) enum Next {
    /// The next one.
    Go,
    /// The segment goes to a server connection.
    Relay(&'static str),
    /// The lane is asked what a statement means, then the message is looked at again.
    Describe(Arc<Prepared>),
    /// What is under way has to end, then the message is looked at again.
    Drain,
    /// The session answers by itself.
    Local(Local),
}

impl From<Elsewhere> for Next {
    fn from(elsewhere: Elsewhere) -> Self {
        Self::Relay(elsewhere.0)
    }
}

/// Why statements go to a server connection.
pub(super) const CHANGED: &str = "a statement whose table was changed";
pub(super) const BEHIND: &str = "statements prepared behind others";

/// A write that asks what was taken from a sequence.
const ASKS: Apart = Apart {
    reason: "what a sequence gave",
    effect: Effect::AsksForGenerated,
};

/// What a message is judged by.
pub(super) struct View<'a> {
    pub(super) join: bool,
    pub(super) utf8: bool,
    pub(super) readings: &'a Readings,
    pub(super) lane: Option<&'a Arc<Lane>>,
    pub(super) fresh: Option<&'a (u64, u64, Described)>,
    pub(super) under_way: bool,
    pub(super) in_segment: bool,
    pub(super) generated: bool,
    pub(super) asks: bool,
}

impl View<'_> {
    /// What a statement means in a session that has these.
    pub(super) fn of(&self, entry: &Entry, statements: &Statements) -> Result<Meaning, Next> {
        let named = entry.prepared.deallocates.as_deref();
        match named.and_then(|name| statements.get(name.as_bytes())) {
            Some(_) => Ok(Meaning::Local),
            None => self.meaning(entry),
        }
    }

    /// What a statement means at this moment.
    pub(super) fn meaning(&self, entry: &Entry) -> Result<Meaning, Next> {
        let apart = match &entry.prepared.reading {
            Reading::Join(_) if !self.join => return Err(Next::Relay("windrow.join is off")),
            Reading::Join(_) if entry.prepared.asks() => &ASKS,
            // What it takes has to be known where it asks.
            Reading::Join(parsed) if self.asks && parsed.op == Op::Insert => {
                return Err(Next::Relay("what a sequence gave"));
            }
            Reading::Join(_) => return self.call(entry).map(Meaning::Call),
            Reading::Apart(apart) => apart,
        };
        match &apart.effect {
            Effect::Own { .. } | Effect::ShowOwn { .. } | Effect::Empty => Ok(Meaning::Local),
            // Once there is a value there always is one, so that the question cannot fail and undo
            // the calls before it.
            Effect::Lastval if self.in_segment && self.join && self.generated => Ok(Meaning::Local),
            Effect::Lastval | Effect::AsksForGenerated | Effect::Currval(_) if self.in_segment => {
                Err(Next::Relay("together with a question for the session"))
            }
            Effect::Lastval if self.join => Ok(Meaning::Local),
            // What is known is put in the question's place there.
            Effect::AsksForGenerated | Effect::Currval(_) if self.under_way => Err(Next::Drain),
            _ => Err(Next::Relay(apart.reason)),
        }
    }

    fn call(&self, entry: &Entry) -> Result<Arc<Statement>, Next> {
        let unknown = || Next::Describe(Arc::clone(&entry.prepared));
        let lane = self.lane.ok_or_else(unknown)?;
        if let Some((in_lane, statement)) = &entry.seen
            && *in_lane == lane.number
            && !statement.is_retired()
        {
            return Ok(Arc::clone(statement));
        }
        let statement = self.described(lane, &entry.prepared)?;
        let fixed = entry.fixed.get();
        let fits =
            |statement: &Statement| fixed.is_none_or(|fixed| fixed.fits(statement.signature()));
        if fits(&statement) {
            return Ok(statement);
        }
        // Others that parse it now are told other types. Here it stays what it was.
        let exact = entry.exact(self.readings, self.utf8);
        if exact.number == entry.prepared.number {
            return Err(Next::Relay(CHANGED));
        }
        let statement = self.described(lane, &exact)?;
        fits(&statement)
            .then_some(statement)
            .ok_or(Next::Relay(CHANGED))
    }

    /// What the lane says of a text.
    fn described(&self, lane: &Lane, prepared: &Arc<Prepared>) -> Result<Arc<Statement>, Next> {
        let number = prepared.number;
        let fresh = self
            .fresh
            .filter(|fresh| (fresh.0, fresh.1) == (lane.number, number));
        let described = fresh.map(|(.., described)| described.clone());
        match described.or_else(|| lane.known(number)) {
            Some(Described::Joined(statement)) => Ok(statement),
            Some(Described::Apart(apart)) => Err(Next::Relay(apart.phrase)),
            None => Err(Next::Describe(Arc::clone(prepared))),
        }
    }

    /// The entry with what it means.
    pub(super) fn seen(&self, mut entry: Entry, meaning: &Meaning) -> Entry {
        if let (Meaning::Call(statement), Some(lane)) = (meaning, self.lane) {
            entry.seen = Some((lane.number, Arc::clone(statement)));
        }
        entry
    }

    /// True where an entry does not say what it means in the lane.
    pub(super) fn is_stale(&self, entry: &Entry) -> bool {
        let number = self.lane.map(|lane| lane.number);
        !entry
            .seen
            .as_ref()
            .is_some_and(|(in_lane, statement)| Some(*in_lane) == number && !statement.is_retired())
    }
}
