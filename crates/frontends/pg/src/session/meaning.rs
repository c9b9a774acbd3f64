//! The meaning of a statement to a session, and the next step for a message.

use std::sync::Arc;

use windrow_core::{Op, Statement};
use windrow_sql::{Apart, Effect, Reading};

use super::segment::{Elsewhere, Local, Meaning};
use crate::lanes::Lane;
use crate::statements::{
    Answer, CachedStatement, PreparedStatement, PreparedStatements, StatementCache, Unusable,
    in_lane,
};

/// The next step for a message.
pub(super) enum Next {
    /// The next one.
    Go,
    /// The segment goes to a server connection.
    Relay(&'static str),
    /// The lane is asked what a statement means, then the message is looked at again.
    Describe(Arc<CachedStatement>),
    /// The units under way have to end, then the message is looked at again.
    Drain,
    /// The session answers by itself.
    Local(Local),
    /// The statement is read again with its literals in it, because they may not be values.
    Whole,
}

impl From<Elsewhere> for Next {
    fn from(elsewhere: Elsewhere) -> Self {
        Self::Relay(elsewhere.0)
    }
}

impl From<Unusable> for Next {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Unknown(cached) => Self::Describe(cached),
            Unusable::Apart(phrase) => Self::Relay(phrase),
            Unusable::Changed => Self::Relay(CHANGED),
            Unusable::Whole => Self::Whole,
        }
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

/// The state by which a message is judged.
pub(super) struct View<'a> {
    pub(super) join: bool,
    pub(super) utf8: bool,
    pub(super) cache: &'a StatementCache,
    pub(super) lane: Option<&'a Arc<Lane>>,
    /// The lane's answer, if it was asked because of this message.
    pub(super) answer: Option<&'a Answer>,
    pub(super) under_way: bool,
    pub(super) in_segment: bool,
    pub(super) generated: bool,
    pub(super) asks: bool,
}

impl View<'_> {
    /// Returns the meaning of a prepared statement in a session that has these statements.
    pub(super) fn of(
        &self,
        statement: &PreparedStatement,
        all: &PreparedStatements,
    ) -> Result<Meaning, Next> {
        let cached = &statement.cached;
        let named = cached.deallocates();
        if !cached.types.is_empty() && matches!(cached.reading, Reading::Apart(_)) {
            return Err(Next::Relay("a statement with types of parameters"));
        }
        if named.is_some_and(|name| all.get(name.as_bytes()).is_some()) {
            return Ok(Meaning::Local);
        }
        self.judge(cached, |lane| {
            statement.in_lane(lane, self.answer, (self.cache, self.utf8))
        })
    }

    /// Returns the meaning of a simple query.
    pub(super) fn of_query(&self, cached: &Arc<CachedStatement>) -> Result<Meaning, Next> {
        self.judge(cached, |lane| in_lane(cached, lane, self.answer))
    }

    /// Returns the meaning of a statement at this moment. `joined`: its meaning in the lane.
    fn judge(
        &self,
        cached: &Arc<CachedStatement>,
        joined: impl FnOnce(&Lane) -> Result<Arc<Statement>, Unusable>,
    ) -> Result<Meaning, Next> {
        let apart = match &cached.reading {
            Reading::Join(_) if !self.join => return Err(Next::Relay("windrow.join is off")),
            Reading::Join(_) if cached.asks() => &ASKS,
            // What it takes has to be known where it asks.
            Reading::Join(parsed) if self.asks && parsed.op == Op::Insert => {
                return Err(Next::Relay("what a sequence gave"));
            }
            Reading::Join(_) => {
                let unknown = || Next::Describe(Arc::clone(cached.described_as()));
                let statement = joined(self.lane.ok_or_else(unknown)?)?;
                return Ok(Meaning::Call(statement));
            }
            Reading::Apart(apart) => apart,
        };
        match &apart.effect {
            Effect::SetWindrow { .. } | Effect::ShowWindrow { .. } | Effect::Empty => {
                Ok(Meaning::Local)
            }
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
}
