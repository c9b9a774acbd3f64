//! The meaning of a statement to a session, and the next step for a message.

use std::sync::Arc;

use windrow_core::{Op, Statement};
use windrow_sql::{Apart, BlockEffect, Effect, Reading};

use super::segment::{IN_BLOCK, Local, Meaning, Portal, RelayReason, Segment, SegmentBlock};
use super::{block_reasons, unsent_block};
use crate::codec::message::{Bind, Kind, Message, Parse};
use crate::lanes::Lane;
use crate::statements::{
    Answer, CachedStatement, NotJoined, PreparedStatement, PreparedStatements, PreparedText,
    StatementCache, in_lane,
};

/// The next step for a message.
pub(super) enum Next {
    /// Continue with the next message.
    Go,
    /// The segment goes to a server connection.
    Relay(&'static str),
    /// Ask the lane for the meaning of a statement, then examine the message again.
    Describe(Arc<CachedStatement>),
    /// Wait until the units under way have ended, then examine the message again.
    Drain,
    /// The session answers by itself.
    Local(Local),
    /// Read the statement again with its literals in it, because they may not be values.
    Whole,
}

impl From<RelayReason> for Next {
    fn from(elsewhere: RelayReason) -> Self {
        Self::Relay(elsewhere.0)
    }
}

impl From<NotJoined> for Next {
    fn from(unusable: NotJoined) -> Self {
        match unusable {
            NotJoined::Unknown(cached) => Self::Describe(cached),
            NotJoined::Apart(phrase) => Self::Relay(phrase),
            NotJoined::Changed => Self::Relay(CHANGED),
            NotJoined::Whole => Self::Whole,
        }
    }
}

/// The reasons why statements go to a server connection.
pub(super) const CHANGED: &str = "a statement whose table was changed";
pub(super) const BEHIND: &str = "statements prepared behind others";

/// The reason of a write that asks which value was taken from a sequence.
const ASKS: Apart = Apart {
    reason: "what a sequence gave",
    effect: Effect::AsksForGenerated,
};

/// The state by which the meaning of a message is decided.
pub(super) struct View<'a> {
    pub(super) join: bool,
    pub(super) utf8: bool,
    pub(super) standard_strings: bool,
    pub(super) cache: &'a StatementCache,
    pub(super) lane: Option<&'a Arc<Lane>>,
    /// The lane's answer, if it was asked because of this message.
    pub(super) answer: Option<&'a Answer>,
    pub(super) under_way: bool,
    pub(super) in_segment: bool,
    /// True in a transaction block that the server does not know yet.
    pub(super) in_block: bool,
    /// True if errors of writes in a transaction may be reported late.
    pub(super) late: bool,
    /// True if no server has to know that a statement is removed.
    pub(super) may_answer: bool,
    /// The transaction block of the segment.
    pub(super) block: Option<SegmentBlock>,
    pub(super) generated: bool,
    pub(super) asks: bool,
}

impl View<'_> {
    /// Adds a message of the extended protocol to the segment, and returns the next step.
    ///
    /// # Errors
    /// The segment cannot accept the message: the step that comes first, or instead.
    pub(super) fn take(
        &self,
        message: &Message<'_>,
        segment: &mut Segment,
        statements: &mut PreparedStatements,
    ) -> Result<Next, Next> {
        let closes_portal = matches!(message, Message::Close(Kind::Portal, _));
        if self.block == Some(SegmentBlock::Committed) && !closes_portal {
            return Err(IN_BLOCK.into());
        }
        match *message {
            Message::Parse(ref parse) => self.parse(parse, segment, statements)?,
            Message::Bind(ref bind) => self.bind(bind, segment, statements)?,
            // Within a transaction, the server decides if its rows still match its text.
            Message::Describe(Kind::Statement, name) if self.in_block && !segment.defines(name) => {
                return Err(Next::Relay(block_reasons::DESCRIBED.phrase));
            }
            Message::Describe(Kind::Statement, name) => {
                let statement = segment.statement(name, statements);
                let statement = statement.ok_or(Next::Relay("an unknown statement"))?;
                let meaning = self.of(statement, statements)?;
                let cached = Arc::clone(&statement.cached);
                segment.describe_statement(&cached, &meaning);
            }
            Message::Describe(Kind::Portal, name) => segment.describe_portal(name)?,
            Message::Execute(name, rows) => return self.execute(name, rows, segment),
            // The server skips it if the call before it fails.
            Message::Close(Kind::Statement, [_, ..]) if self.in_segment => {
                return Err(Next::Relay(BEHIND));
            }
            Message::Close(kind, name) => segment.close(kind, name, statements)?,
            _ => return Err(Next::Relay("a malformed message")),
        }
        Ok(Next::Go)
    }

    fn parse(
        &self,
        parse: &Parse<'_>,
        segment: &mut Segment,
        statements: &PreparedStatements,
    ) -> Result<(), Next> {
        let is_named = !parse.name.is_empty();
        if is_named && self.in_segment {
            return Err(Next::Relay(BEHIND));
        }
        let is_known = segment.statement(parse.name, statements).is_some();
        if is_named && (is_known || statements.is_full()) {
            return Err(Next::Relay("a statement of a name that is taken"));
        }
        let prepared = PreparedText {
            text: parse.text,
            standard_strings: self.standard_strings,
            utf8: self.utf8,
            is_named,
        };
        let cached = self.cache.prepared(prepared, parse.type_oids());
        let mut statement = PreparedStatement::new(cached);
        let mut meaning = self.of(&statement, statements);
        if let Err(Next::Whole) = meaning {
            let whole = self.cache.whole(parse.text, parse.type_oids(), self.utf8);
            statement = PreparedStatement::new(whole);
            meaning = self.of(&statement, statements);
        }
        match (&meaning?, self.lane) {
            (Meaning::Call(joined), Some(lane)) => statement.note(lane, joined),
            (Meaning::Local, _) if self.is_of_block(&statement.cached) => {
                statement = unsent_block::prepared(&statement.cached);
            }
            _ => {}
        }
        segment.parse(parse.name, statement, statements);
        Ok(())
    }

    fn bind(
        &self,
        bind: &Bind<'_>,
        segment: &mut Segment,
        statements: &mut PreparedStatements,
    ) -> Result<(), Next> {
        let statement = segment.statement(bind.statement, statements);
        let statement = statement.ok_or(Next::Relay("an unknown statement"))?;
        let meaning = self.of(statement, statements)?;
        let cached = Arc::clone(&statement.cached);
        let fixed = &statement.fixed;
        let fresh = fixed.get().is_none().then(|| fixed.clone());
        if let (Meaning::Call(joined), Some(lane)) = (&meaning, self.lane)
            && statement.noted(lane).is_none()
            && let Some(statement) = segment.statement_mut(bind.statement, statements)
        {
            statement.note(lane, joined);
        }
        Ok(segment.bind(bind, (&cached, fresh), meaning)?)
    }

    fn execute(&self, name: &[u8], rows: i32, segment: &mut Segment) -> Result<Next, Next> {
        let (did_call, did_local) = (self.in_segment, segment.did_local);
        match segment.portal(name)? {
            Portal::Call(call) => {
                if did_local {
                    return Err(Next::Relay("together with a question for the session"));
                }
                let limited = rows > 0
                    && call
                        .as_ref()
                        .is_some_and(|(call, ..)| call.statement.fields().is_some());
                if limited {
                    return Err(Next::Relay("a row limit"));
                }
                let call = call.take().ok_or(Next::Relay("a portal that was used"))?;
                segment.execute(name, call);
                Ok(Next::Go)
            }
            Portal::Local(local) if self.block.is_some() => {
                let cached = Arc::clone(&local.cached);
                let block = cached.block().ok_or(IN_BLOCK)?;
                segment.use_up(name);
                segment.execute_block(block)?;
                Ok(Next::Go)
            }
            Portal::Local(local) if did_call && local.is_lastval() => {
                let binary = local.results.is_binary(0);
                segment.use_up(name);
                segment.ask(binary);
                Ok(Next::Go)
            }
            Portal::Local(..) if did_call => {
                Err(Next::Relay("together with a question for the session"))
            }
            Portal::Local(..) if self.under_way => Err(Next::Drain),
            Portal::Local(local) if local.cached.deallocates().is_some() => {
                let cached = Arc::clone(&local.cached);
                segment.use_up(name);
                // Like all that defines statements: nothing changes before the Sync.
                segment.deallocate(cached.deallocates().unwrap_or_default().as_bytes());
                Ok(Next::Go)
            }
            Portal::Local(local) => {
                let local = local.clone();
                segment.use_up(name);
                Ok(Next::Local(local))
            }
        }
    }

    /// Returns the meaning of a prepared statement in a session with these statements.
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
        let is_own = named.is_some_and(|name| all.get(name.as_bytes()).is_some());
        if (is_own && self.may_answer) || self.is_of_block(cached) {
            return Ok(Meaning::Local);
        }
        self.judge(cached, |lane| {
            statement.in_lane(lane, self.answer, (self.cache, self.utf8))
        })
    }

    /// Returns true for BEGIN without modes and for COMMIT, in a segment that may contain a whole
    /// transaction block.
    fn is_of_block(&self, cached: &CachedStatement) -> bool {
        let block = self.block.and_then(|_| cached.block());
        block.is_some_and(|block| block.opens_plainly() || block.effect == BlockEffect::Commits)
    }

    /// Returns the meaning of a simple query.
    pub(super) fn of_query(&self, cached: &Arc<CachedStatement>) -> Result<Meaning, Next> {
        self.judge(cached, |lane| in_lane(cached, lane, self.answer))
    }

    /// Returns the meaning of a statement at this moment. `joined`: its meaning in the lane.
    fn judge(
        &self,
        cached: &Arc<CachedStatement>,
        joined: impl FnOnce(&Lane) -> Result<Arc<Statement>, NotJoined>,
    ) -> Result<Meaning, Next> {
        let apart = match &cached.reading {
            Reading::Join(_) if !self.join => return Err(Next::Relay("windrow.join is off")),
            Reading::Join(_) if cached.asks() => &ASKS,
            Reading::Join(parsed) if self.in_block && !self.late && parsed.op != Op::Insert => {
                let why = match parsed.op {
                    Op::Delete => &block_reasons::DELETE,
                    _ => &block_reasons::UPDATE,
                };
                return Err(Next::Relay(why.phrase));
            }
            // The value taken must be known where the client asks for it.
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
            // The server reports what a failed transaction refuses, and undoes what is rolled back.
            _ if self.in_block => Err(Next::Relay(apart.reason)),
            Effect::SetWindrow { .. } | Effect::ShowWindrow { .. } | Effect::Empty => {
                Ok(Meaning::Local)
            }
            // Once a value was taken there always is one, so that the question cannot fail and undo
            // the calls before it.
            Effect::Lastval if self.in_segment && self.join && self.generated => Ok(Meaning::Local),
            Effect::Lastval | Effect::AsksForGenerated | Effect::Currval(_) if self.in_segment => {
                Err(Next::Relay("together with a question for the session"))
            }
            Effect::Lastval if self.join => Ok(Meaning::Local),
            // The known value replaces the question there.
            Effect::AsksForGenerated | Effect::Currval(_) if self.under_way => Err(Next::Drain),
            _ => Err(Next::Relay(apart.reason)),
        }
    }
}
