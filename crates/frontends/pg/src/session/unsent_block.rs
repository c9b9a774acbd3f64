//! A transaction block that its client has begun and the server does not know yet.
//!
//! BEGIN by itself is answered here, and so is the end of a block in which nothing was executed.
//! Certain writes are kept (`keep`), together with savepoints. Any other statement of the block is
//! relayed, preceded by BEGIN and the kept writes in the same round trip (`relay/block_start.rs`).
//! So a block without such a statement holds no connection. Only statements are answered here to
//! which the server could give no other answer.

use std::iter;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use windrow_core::Signature;
use windrow_sql::{BlockEffect, BlockStatement, Commits};

use super::pending::Script;
use super::state::{End, Session, UnsentBlock};
use super::{block_reasons, local};
use crate::codec::answer;
use crate::codec::message::{Bind, Front, HEADER, Kind, Message, Parse};
use crate::statements::{CachedStatement, ClientName, PreparedStatement, name_key};

/// The most statements that may open a block: BEGIN, and SET TRANSACTION after it.
const MAX_OPENING: usize = 4;

/// The most messages of a segment that is answered here: Parse, Bind, two of Describe, Execute,
/// Close, Sync.
const MAX_MESSAGES: usize = 7;

/// The longest segment or query that is answered here, in bytes.
const MAX_BYTES: usize = 8 * 1024;

/// The reasons why the statements of a block are relayed.
pub(super) const IN_BLOCK: &str = "in a transaction";

/// A query or segment that consists of one statement about a transaction block.
pub(super) struct LoneStatement {
    cached: Arc<CachedStatement>,
    effect: BlockEffect,
    /// The bytes of the query or segment.
    total: usize,
    /// The statement that the segment defines.
    defined: Option<(ClientName, PreparedStatement)>,
    /// Answers to the messages before Execute, and after it.
    before: BytesMut,
    after: BytesMut,
    /// True for a simple query.
    is_query: bool,
    /// True if the statement stays bound to the unnamed portal.
    has_portal: bool,
}

/// The answer to a statement about a block.
pub(super) enum BlockAnswer {
    /// The answer to a statement about a block.
    Given,
    /// The statement commits the kept writes of the block.
    Commits(Box<LoneStatement>),
    /// The message is something else.
    None,
}

impl LoneStatement {
    /// Returns the answers to the messages before Execute.
    pub(super) fn before(&self) -> Script {
        Script {
            text: self.before.clone(),
            ..Script::default()
        }
    }

    /// Returns the rest of the answer, without ReadyForQuery.
    pub(super) fn end(&self) -> BytesMut {
        let mut end = BytesMut::new();
        let tag = self.cached.block().map_or("", |block| block.tag);
        answer::complete(&mut end, tag);
        end.put_slice(&self.after);
        end
    }
}

/// Returns true if certain writes of the session's block may be kept.
pub(super) fn may_keep(session: &Session) -> bool {
    let block = session.unsent_block.as_ref();
    block.is_some_and(|block| block.keeps)
}

/// Opens a block whose BEGIN, without modes, is in the session's segment.
pub(super) fn open(session: &mut Session) {
    let begin = session.shared.cache.get(b"BEGIN", iter::empty(), true);
    session.unsent_block = Some(Box::new(UnsentBlock::opened(begin, true, false)));
}

/// Returns true if a session may keep writes of a block that it begins now. The conditions cannot
/// change before the server knows the block.
pub(super) fn is_plain(session: &Session) -> bool {
    block_reasons::of_session(session).is_none()
}

/// Returns the status of the session's transaction while no server connection knows it.
pub(super) fn status(session: &Session) -> u8 {
    match &session.unsent_block {
        None => b'I',
        Some(block) if block.has_failed => b'E',
        Some(_) => b'T',
    }
}

/// Handles the next message of a session whose block the server does not know yet. Returns false if
/// the message has not arrived.
///
/// # Errors
/// The reason why the session ends.
pub(super) async fn step(session: &mut Session) -> Result<bool, End> {
    match session.connection.front(0) {
        Ok(Front::Whole { tag: b'X', .. }) => {
            session.connection.ended = true;
            return Ok(false);
        }
        Ok(Front::Part {
            header: Some((b'd', _)),
        }) => session.relay(IN_BLOCK).await?,
        Ok(Front::Part {
            header: Some((_, total)),
        }) if session.connection.needs_charge(total) => {
            let shared = Arc::clone(&session.shared);
            let memory = (&shared.long_messages, &shared.budget);
            let charged = session.connection.charge(memory, total).await;
            charged.map_err(End::Fatal)?;
        }
        Ok(Front::Part { .. }) => return Ok(false),
        Ok(Front::Whole { .. }) if has_failed(session) && session.front_is(is_refused) => {
            session.refuse(&local::aborted()).await?;
        }
        Ok(Front::Whole { .. }) | Err(_) => session.relay(IN_BLOCK).await?,
    }
    Ok(true)
}

/// Returns true if the session's block has failed before a server knew it.
pub(super) fn has_failed(session: &Session) -> bool {
    let block = session.unsent_block.as_ref();
    block.is_some_and(|block| block.has_failed)
}

/// Returns true for a text that begins by ending a block.
pub(super) fn ends_block(cached: &CachedStatement) -> bool {
    let first = cached.steps().and_then(|steps| steps.first());
    first.is_some_and(|step| step.commits == Commits::Block)
}

/// Returns true for a text that begins by rolling back a block.
pub(super) fn undoes_block(cached: &CachedStatement) -> bool {
    let first = cached.steps().and_then(|steps| steps.first());
    first.is_some_and(|step| step.commits == Commits::Undoes)
}

/// Returns true for a text that a failed transaction refuses, whatever the server knows.
fn is_refused(cached: &CachedStatement) -> bool {
    let first = cached.steps().and_then(|steps| steps.first());
    first.is_some_and(|step| {
        matches!(
            step.commits,
            Commits::AtSync | Commits::AtOnce | Commits::Nothing | Commits::Opens
        )
    })
}

/// Answers a Sync or Flush before the first statement of the block, which no server needs to see.
/// Returns false for any other message.
fn answers_sync(session: &mut Session) -> bool {
    let Ok(Front::Whole { tag, total: HEADER }) = session.connection.front(0) else {
        return false;
    };
    if session.unsent_block.is_none() || !matches!(tag, b'S' | b'H') {
        return false;
    }
    session.connection.take(HEADER);
    if tag == b'S' {
        let status = status(session);
        answer::ready(&mut session.connection.out, status);
    }
    true
}

/// Answers the query or segment at the front of the inbox, if it only opens a block, ends one that
/// the server does not know, or sets a savepoint in one whose writes are kept. All earlier messages
/// are answered. `may_define`: true if the names of all prepared statements are known.
pub(super) fn answer(session: &mut Session, may_define: bool) -> BlockAnswer {
    if answers_sync(session) {
        return BlockAnswer::Given;
    }
    // A key has its own rules for the first statement of a transaction.
    if session.own.key.is_some() {
        return BlockAnswer::None;
    }
    let Some(lone) = lone_statement(session) else {
        return BlockAnswer::None;
    };
    let defined = lone.defined.as_ref();
    if !may_define && defined.is_some_and(|(name, _)| !name.is_empty()) {
        return BlockAnswer::None;
    }
    let has_kept = session.unsent_block.as_ref();
    let has_kept = has_kept.is_some_and(|block| !block.has_failed && block.kept.has_writes());
    if lone.effect == BlockEffect::Commits && has_kept {
        return BlockAnswer::Commits(Box::new(lone));
    }
    let Some(tag) = take_effect(session, &lone) else {
        return BlockAnswer::None;
    };
    let status = status(session);
    let out = &mut session.connection.out;
    out.put_slice(&lone.before);
    answer::complete(out, tag);
    out.put_slice(&lone.after);
    answer::ready(out, status);
    take_in(session, lone);
    BlockAnswer::Given
}

/// Applies a statement to the session's block. Returns the tag of its CommandComplete; `None` if
/// only the server can answer it.
fn take_effect(session: &mut Session, lone: &LoneStatement) -> Option<&'static str> {
    let block = lone.cached.block()?;
    let keeps = match session.unsent_block {
        None => block.opens_usual() && is_plain(session),
        Some(_) => may_keep(session),
    };
    // Messages that a client sends without waiting are relayed unchanged, which costs no round
    // trip.
    let is_last = session.connection.inbox.len() == lone.total;
    let opens = is_last || keeps && has_one_behind(session, lone.total);
    let cache = &session.shared.cache;
    match (lone.effect, &mut session.unsent_block) {
        (BlockEffect::Opens, unsent @ None) if opens => {
            let begin = cache.get(block.words.as_bytes(), iter::empty(), true);
            let opened = UnsentBlock::opened(begin, keeps, lone.has_portal);
            *unsent = Some(Box::new(opened));
        }
        (BlockEffect::SetsModes, Some(unsent))
            if is_last
                && !unsent.has_failed
                && unsent.kept.is_empty()
                && !unsent.kept.has_only_answered()
                && unsent.opening.len() < MAX_OPENING =>
        {
            let opening = cache.get(block.words.as_bytes(), iter::empty(), true);
            unsent.opening.push(opening);
            unsent.has_portal = lone.has_portal;
            unsent.keeps = false;
        }
        (BlockEffect::Commits | BlockEffect::RollsBack, Some(unsent)) => {
            let tag = if unsent.has_failed {
                "ROLLBACK"
            } else {
                block.tag
            };
            session.unsent_block = None;
            return Some(tag);
        }
        (_, Some(unsent)) if keeps => {
            take_savepoint(unsent, block).then_some(())?;
        }
        _ => return None,
    }
    Some(block.tag)
}

/// Returns true if the inbox contains no more than one query or segment after this many bytes:
/// drivers send BEGIN together with the first statement of the block.
fn has_one_behind(session: &Session, mut at: usize) -> bool {
    let connection = &session.connection;
    while let Ok(Front::Whole { tag, total }) = connection.front(at) {
        at += total;
        if matches!(tag, b'Q' | b'S') {
            return at == connection.inbox.len();
        }
    }
    true
}

/// Applies a statement about a savepoint to the kept writes of a block. Returns false if only the
/// server can answer it.
fn take_savepoint(block: &mut UnsentBlock, statement: &BlockStatement) -> bool {
    let name = &statement.savepoint;
    match statement.effect {
        BlockEffect::Saves if !block.has_failed => block.kept.save(name, &statement.words),
        BlockEffect::Releases if !block.has_failed => block.kept.release(name),
        BlockEffect::RollsBackTo => {
            let is_there = block.kept.roll_back_to(name);
            block.has_failed &= !is_there;
            is_there
        }
        _ => false,
    }
}

/// Removes an answered statement from the inbox, and applies its definitions.
pub(super) fn take_in(session: &mut Session, lone: LoneStatement) {
    if lone.is_query {
        // A simple query removes the unnamed statement.
        session.statements.set(b"", None);
    }
    if let Some((name, statement)) = lone.defined {
        session.statements.set(&name, Some(statement));
    }
    session.connection.take(lone.total);
}

/// Returns a prepared statement about blocks, which has neither parameters nor result columns.
pub(super) fn prepared(cached: &Arc<CachedStatement>) -> PreparedStatement {
    let statement = PreparedStatement::new(Arc::clone(cached));
    statement.fixed.set(&Arc::new(Signature {
        parameters: Box::default(),
        fields: None,
    }));
    statement
}

/// Reads the query or segment at the front of the inbox; `None` if it is incomplete or does
/// something else.
fn lone_statement(session: &Session) -> Option<LoneStatement> {
    let connection = &session.connection;
    let mut segment = OpenSegment::default();
    let mut at = 0;
    for _ in 0..MAX_MESSAGES {
        let Ok(Front::Whole { tag, total }) = connection.front(at) else {
            return None;
        };
        at += total;
        if at > MAX_BYTES {
            return None;
        }
        let message = Message::read(tag, connection.body(at - total, total));
        if let (Message::Query(text), true) = (&message, at == total) {
            let cached = session.simple_query(text).cached;
            return segment.ends(cached, at, true);
        }
        match message {
            Message::Sync if total == HEADER => {
                let cached = segment.executed.take()?;
                return segment.ends(cached, at, false);
            }
            other => segment.take(session, &other)?,
        }
    }
    None
}

/// A segment that was partly read, and so far consists of one statement about blocks.
#[derive(Default)]
struct OpenSegment {
    defined: Option<(ClientName, PreparedStatement)>,
    /// The statement that is bound to the unnamed portal.
    bound: Option<Arc<CachedStatement>>,
    executed: Option<Arc<CachedStatement>>,
    before: BytesMut,
    after: BytesMut,
}

impl OpenSegment {
    /// Adds a message; `None` if it does something else.
    fn take(&mut self, session: &Session, message: &Message<'_>) -> Option<()> {
        let is_executed = self.executed.is_some();
        match message {
            Message::Parse(parse) if self.defined.is_none() && !is_executed => {
                self.define(session, parse)?;
                self.before.put_slice(answer::PARSE_COMPLETE);
            }
            Message::Bind(bind) if self.bound.is_none() && !is_executed => {
                self.bind(session, bind)?;
                self.before.put_slice(answer::BIND_COMPLETE);
            }
            Message::Describe(Kind::Statement, name) if !is_executed => {
                self.statement(session, name)?;
                answer::parameters(&mut self.before, &[]);
                self.before.put_slice(answer::NO_DATA);
            }
            Message::Describe(Kind::Portal, b"") if !is_executed => {
                self.bound.as_ref()?;
                self.before.put_slice(answer::NO_DATA);
            }
            Message::Execute(b"", _) if !is_executed => self.executed = Some(self.bound.clone()?),
            Message::Close(Kind::Portal, b"") if is_executed && self.after.is_empty() => {
                self.after.put_slice(answer::CLOSE_COMPLETE);
            }
            _ => return None,
        }
        Some(())
    }

    fn define(&mut self, session: &Session, parse: &Parse<'_>) -> Option<()> {
        let statements = &session.statements;
        let is_free = parse.name.is_empty() || statements.get(parse.name).is_none();
        let is_named = !parse.name.is_empty();
        if !is_free || (is_named && statements.is_full()) || !parse.types.is_empty() {
            return None;
        }
        let cached = session.prepared(parse);
        cached.block()?;
        self.defined = Some((parse.name.into(), prepared(&cached)));
        Some(())
    }

    fn bind(&mut self, session: &Session, bind: &Bind<'_>) -> Option<()> {
        let is_plain = bind.portal.is_empty() && bind.count == 0 && bind.formats().is_some();
        let cached = self.statement(session, bind.statement)?;
        is_plain.then(|| self.bound = Some(cached))
    }

    /// Returns the statement about blocks that has a name.
    fn statement(&self, session: &Session, name: &[u8]) -> Option<Arc<CachedStatement>> {
        let key = name_key(name);
        let own = self
            .defined
            .as_ref()
            .filter(|(own, _)| name_key(own) == key);
        let statement = match own {
            Some((_, statement)) => statement,
            None => session.statements.get(name)?,
        };
        statement.cached.block()?;
        Some(Arc::clone(&statement.cached))
    }

    /// Returns the complete query or segment once its end was read.
    fn ends(
        self,
        cached: Arc<CachedStatement>,
        total: usize,
        is_query: bool,
    ) -> Option<LoneStatement> {
        let effect = cached.block()?.effect;
        let has_portal = !is_query && self.after.is_empty();
        Some(LoneStatement {
            cached,
            effect,
            total,
            defined: self.defined,
            before: self.before,
            after: self.after,
            is_query,
            has_portal,
        })
    }
}
