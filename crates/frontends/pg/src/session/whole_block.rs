//! Segments that contain a whole transaction block: BEGIN, writes and COMMIT before one Sync.
//!
//! The writes are one unit, like those of a segment without BEGIN. Called by `messages` for a
//! segment that begins a block. If the segment does not end the block, its writes are kept until
//! COMMIT, or all of it is relayed.

use windrow_core::Op;
use windrow_sql::{BlockEffect, block};

use super::keys;
use super::segment::SegmentBlock;
use super::state::Session;
use super::unsent_block;
use crate::codec::message::{Front, Message};

/// Returns true if transaction blocks and texts of several statements may be joined, which neither
/// the spool nor keys support.
pub(super) fn may_join(session: &Session) -> bool {
    let own = &session.own;
    let is_alone = own.join && session.unsent_block.is_none();
    is_alone && !own.spool && own.key.is_none() && !keys::has_own(session)
}

/// Notes that the segment may contain a whole transaction block, if its first message is about
/// BEGIN. Returns false for any other message, and if the segment visibly ends without COMMIT.
pub(super) fn is_expected(session: &mut Session, (tag, total): (u8, usize)) -> bool {
    let segment = &session.segment;
    let is_first = segment.block.is_none() && segment.calls.is_empty() && !segment.did_local;
    let is_expected = is_first
        && opens(session, (tag, total))
        && may_join(session)
        && (unsent_block::is_plain(session) || ends_with_commit(session) != Some(false));
    if is_expected {
        session.segment.block = Some(SegmentBlock::Expected);
    }
    is_expected
}

/// Returns true if the segment holds BEGIN and first writes of a block that may be kept.
pub(super) fn may_keep(session: &Session) -> bool {
    let segment = &session.segment;
    let mut calls = segment.calls.iter();
    segment.block == Some(SegmentBlock::Open)
        && !segment.calls.is_empty()
        && calls.all(|call| call.statement.parsed().op == Op::Insert)
        && segment.script.lastvals.is_empty()
        && unsent_block::is_plain(session)
}

/// Returns true if a message prepares or binds BEGIN without modes.
fn opens(session: &Session, (tag, total): (u8, usize)) -> bool {
    let segment = &session.segment;
    let cached = match Message::read(tag, session.connection.body(segment.bytes, total)) {
        Message::Parse(parse) if may_begin(parse.text) => Some(session.prepared(&parse)),
        Message::Bind(bind) => {
            let statement = segment.statement(bind.statement, &session.statements);
            statement.map(|statement| statement.cached.clone())
        }
        _ => None,
    };
    let block = cached.as_ref().and_then(|cached| cached.block());
    block.is_some_and(windrow_sql::BlockStatement::opens_plainly)
}

/// Returns false for a text that cannot begin with BEGIN, START or a comment.
fn may_begin(text: &[u8]) -> bool {
    let first = text.trim_ascii_start().first();
    first.is_some_and(|first| b"bBsS/-".contains(first))
}

/// Returns true if the last statement bound before the Sync is COMMIT; `None` if the Sync has not
/// arrived.
fn ends_with_commit(session: &Session) -> Option<bool> {
    let connection = &session.connection;
    let mut at = session.segment.bytes;
    let mut parsed = None;
    let mut commits = false;
    loop {
        let Ok(Front::Whole { tag, total }) = connection.front(at) else {
            return None;
        };
        match Message::read(tag, connection.body(at, total)) {
            Message::Sync => return Some(commits),
            Message::Parse(parse) => parsed = Some(parse),
            Message::Bind(bind) => {
                let own = parsed.as_ref().filter(|own| own.name == bind.statement);
                commits = match own {
                    Some(own) => is_commit(own.text),
                    None => has_commit(session, bind.statement),
                };
            }
            _ if tag == b'H' => return Some(false),
            _ => {}
        }
        at += total;
    }
}

/// Returns true for a text that consists of COMMIT.
fn is_commit(text: &[u8]) -> bool {
    let block = std::str::from_utf8(text).ok().and_then(block);
    block.is_some_and(|block| block.effect == BlockEffect::Commits)
}

/// Returns true if the prepared statement of a name is COMMIT.
fn has_commit(session: &Session, name: &[u8]) -> bool {
    let statement = session.statements.get(name);
    let block = statement.and_then(|statement| statement.cached.block());
    block.is_some_and(|block| block.effect == BlockEffect::Commits)
}
