//! Begins a transaction block on the server connection that its client has begun already: sends
//! BEGIN and the kept writes before the next statement of the block, in the same round trip.
//!
//! They are sent by the extended protocol, without a Sync. If they fail, the server skips what
//! follows, so that no statement of the block is ever executed outside of it. The client gets the
//! error as that of its statement, in a transaction that has failed. Nothing after the first query
//! or segment is sent before the server has begun the block.

use bytes::{BufMut, Bytes, BytesMut};
use windrow_core::{Fault, FaultClass, LateWrite, Op, SqlCall};
use windrow_sql::Reading;

use super::ends::Ends;
use super::expect::What;
use super::rewrite;
use super::statements::StatementsHere;
use crate::codec::message::HEADER;
use crate::codec::{answer, failure};
use crate::pool::PASSING;
use crate::session::kept::{KeptStep, LateText, is_of_values, statement_of};
use crate::session::state::UnsentBlock;
use crate::session::unsent_block::prepared;

/// A non-empty name, because statements of a block's beginning are prepared under names of the
/// process.
const NAMED: &[u8] = b"windrow";

/// A text after which the transaction has failed.
const FAILS: &[u8] = b"BEGIN; SELECT 1 OPERATOR(pg_catalog./) 0";

/// A statement after which the server refuses to set a transaction's modes.
const HAS_BEGUN: &[u8] = b"SELECT WHERE false";

/// The beginning of a block on the server connection.
#[derive(Default)]
pub(super) struct BlockStart {
    /// True if the server has refused to begin the block, until it has ended the segment.
    has_failed: bool,
    /// The body of its error, until the client waits for an answer.
    error: Option<Bytes>,
    /// True if writes were sent that were answered before.
    has_kept: bool,
    /// The client's own statements of what was sent, with true if their errors may be reported
    /// late; `None` for a statement that is not a write.
    texts: Vec<Option<(LateText, bool)>>,
    /// True if such an error is kept until the client waits for an answer.
    keeps_late: bool,
}

/// The part of an error about beginning a block that the client gets.
pub(super) enum Refusal {
    /// The server's own message.
    Passes,
    /// Nothing more now.
    Answered,
    /// The body of an ErrorResponse, with the answer to its next statement.
    Late(Bytes),
}

impl BlockStart {
    /// Sends the beginning of a block. `is_apart`: its answer must come before the next message is
    /// sent. Returns false if the next message waits.
    pub(super) fn send(
        &mut self,
        ends: &mut Ends<'_>,
        here: &mut StatementsHere,
        block: &UnsentBlock,
        is_apart: bool,
    ) -> bool {
        let has_kept = !block.kept.is_empty();
        self.has_kept = has_kept;
        self.texts = texts(block);
        self.keeps_late = is_apart && block.kept.has_late();
        if block.has_failed && !has_kept {
            fail(ends);
            return false;
        }
        for cached in &block.opening {
            if let Reading::Apart(apart) = &cached.reading {
                ends.count(apart.reason);
            }
            let statement = prepared(cached);
            let name = match here.name_of(ends, &statement, NAMED) {
                Some(name) => name,
                None => {
                    let fixed = statement.fixed.clone();
                    here.prepare_again(ends, &statement, NAMED, true, fixed)
                }
            };
            execute(ends, name.as_bytes(), &[0; 6]);
        }
        if block.kept.has_only_answered() {
            ends.pass_statement(HAS_BEGUN, &[]);
            execute(ends, PASSING.as_bytes(), &[0; 6]);
        }
        for step in block.kept.steps() {
            match step {
                KeptStep::Write(write) => send_write(ends, here, &write.call),
                KeptStep::Savepoint { sql, .. } => {
                    ends.pass_statement(sql.as_bytes(), &[]);
                    execute(ends, PASSING.as_bytes(), &[0; 6]);
                }
            }
        }
        if !block.has_portal || has_kept || block.kept.has_only_answered() {
            rewrite::close_portal(ends.out());
            ends.queue.push(What::Close(None), true);
        }
        ends.status = b'T';
        if block.has_failed {
            sync(ends, true);
            fail(ends);
            return false;
        }
        ends.is_open = !is_apart;
        if is_apart {
            sync(ends, true);
        }
        !is_apart
    }

    /// Returns true from the server's refusal to begin a block until the end of the segment.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Handles the server's refusal to begin the block: it skips what follows.
    pub(super) fn failed(&mut self, ends: &mut Ends<'_>, body: &[u8]) -> Refusal {
        self.has_failed = true;
        let texts = std::mem::take(&mut self.texts);
        let text = texts.len().checked_sub(ends.queue.beginning());
        let text = text.and_then(|place| texts.get(place)?.as_ref());
        // The statement may be gone, and others with it.
        ends.loan.names.clear_named();
        let is_awaited = ends.queue.is_awaited();
        let has_kept = std::mem::take(&mut self.has_kept);
        let body = match has_kept {
            true => not_stored(body, text.map(|(text, is_late)| (text, *is_late))),
            false => Bytes::copy_from_slice(body),
        };
        match (has_kept, is_awaited) {
            (true, _) if std::mem::take(&mut self.keeps_late) => return Refusal::Late(body),
            (true, true) => {
                let out = &mut ends.session.connection.out;
                answer::message(out, b'E', |out| out.extend_from_slice(&body));
                return Refusal::Answered;
            }
            (false, true) => return Refusal::Passes,
            (_, false) => self.error = Some(body),
        }
        Refusal::Answered
    }

    /// Sends an error that was kept to the client, before the message at the front of the inbox is
    /// handled. Returns true if that is a query, which the error answers.
    pub(super) fn refuses(
        &mut self,
        ends: &mut Ends<'_>,
        here: &mut StatementsHere,
        total: usize,
    ) -> bool {
        let Some(error) = self.error.take() else {
            return false;
        };
        if !ends.queue.skipping {
            here.fail_named(ends, total, &error);
            return true;
        }
        let out = &mut ends.session.connection.out;
        answer::message(out, b'E', |out| out.extend_from_slice(&error));
        false
    }

    /// Lets the server end a segment whose simple query it has skipped.
    pub(super) fn end_query(ends: &mut Ends<'_>) {
        ends.queue.skipping = false;
        sync(ends, false);
    }

    /// Handles the end of a cycle. If the server has refused to begin a block, puts it into a
    /// failed transaction. Returns false if there is no such block.
    pub(super) fn settle(&mut self, ends: &mut Ends<'_>, status: u8) -> bool {
        // If a later statement of the beginning was refused, the transaction has failed already.
        let is_missing = std::mem::take(&mut self.has_failed) && status == b'I';
        if is_missing {
            fail(ends);
        }
        is_missing
    }

    /// Handles an answer to such a text. Returns `None` if it answers another message, and false if
    /// the text did not have its effect.
    pub(super) fn is_about_failing(ends: &mut Ends<'_>, tag: u8, body: &[u8]) -> Option<bool> {
        let front = ends.queue.front()?;
        if !matches!(front.what, What::FailsBlock) || matches!(tag, b'A' | b'N' | b'S') {
            return None;
        }
        if tag != b'Z' {
            return Some(true);
        }
        ends.queue.pop_if(|what| matches!(what, What::FailsBlock));
        Some(body == b"E")
    }
}

/// Returns the client's own statements of the writes among the statements that begin a block.
fn texts(block: &UnsentBlock) -> Vec<Option<(LateText, bool)>> {
    let opening = block.opening.len() + usize::from(block.kept.has_only_answered());
    let opening = std::iter::repeat_n(None, opening);
    let steps = block.kept.steps().iter().map(|step| match step {
        KeptStep::Write(write) => {
            let (text, is_late) = write.text();
            Some((text.clone(), is_late))
        }
        KeptStep::Savepoint { .. } => None,
    });
    opening.chain(steps).collect()
}

/// Sends Bind and Execute of a statement that was answered already. `rest`: the bytes of Bind after
/// the names.
fn execute(ends: &mut Ends<'_>, name: &[u8], rest: &[u8]) {
    rewrite::bind(ends.out(), b"", name, rest);
    ends.queue.push(What::Bind(None), true);
    rewrite::execute(ends.out());
    ends.queue.push(What::Opens, true);
}

/// Sends a kept write.
fn send_write(ends: &mut Ends<'_>, here: &mut StatementsHere, call: &SqlCall) {
    ends.count_in_block();
    ends.session.shared.metrics.relayed_writes.inc();
    let statement = statement_of(&ends.session.shared.cache, call);
    let name = match here.name_of(ends, &statement, NAMED) {
        Some(name) => name,
        None => here.prepare_again(ends, &statement, NAMED, true, statement.fixed.clone()),
    };
    let count = call.statement.parameters().len();
    let mut rest = BytesMut::new();
    let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    rest.put_u16(short(count));
    for place in 0..count {
        rest.put_u16(u16::from(call.formats.is_binary(place)));
    }
    rest.put_u16(short(count));
    rest.put_slice(call.arguments.as_bytes());
    rest.put_u16(0);
    execute(ends, name.as_bytes(), &rest);
}

/// Classes of errors that the same writes could also have met when executed one by one: conflicts,
/// timeouts, cancel requests, a server without memory or about to stop.
const PASSING_CLASSES: [&[u8]; 6] = [b"25", b"40", b"53", b"55", b"57", b"58"];

/// Returns the body of the error of a transaction whose writes cannot be stored as they were
/// answered. `body`: of the server's error; `text`: the client's own statement of the write, and
/// true if its errors may be reported late.
fn not_stored(body: &[u8], text: Option<(&LateText, bool)>) -> Bytes {
    let field = |code: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        fields.find_map(|field| field.strip_prefix(&[code]))
    };
    let code = field(b'C').unwrap_or_default();
    let class = code.get(..2).unwrap_or_default();
    if PASSING_CLASSES.contains(&class) {
        return Bytes::copy_from_slice(body);
    }
    let said = String::from_utf8_lossy(field(b'M').unwrap_or_default());
    let is_own = is_of_values(&String::from_utf8_lossy(code), &said);
    match text {
        Some((text, true)) if is_own => {
            let mut error = BytesMut::new();
            failure::with_text(&mut error, body, text.beginning(), false);
            return error.freeze().slice(HEADER..);
        }
        // A wrong number of rows of an UPDATE or DELETE does not mean that the table has changed.
        Some((text, _)) if is_insert(text) || !said.contains(LateWrite::NOT_ONE_ROW) => {
            text.statement.retire();
        }
        _ => {}
    }
    let text = "rows of this transaction cannot be stored as they were answered; nothing was executed, try the transaction again";
    let fault = Fault::new(FaultClass::Conflict, "40001", text).with_detail(Some(said.as_ref()));
    let mut error = BytesMut::new();
    failure::fault(&mut error, &fault);
    error.freeze().slice(HEADER..)
}

fn is_insert(text: &LateText) -> bool {
    text.statement.parsed().op == Op::Insert
}

fn sync(ends: &mut Ends<'_>, is_muted: bool) {
    rewrite::sync(ends.out());
    ends.queue.push(What::Sync, is_muted);
}

fn fail(ends: &mut Ends<'_>) {
    ends.loan.names.unnamed = None;
    rewrite::query(ends.out(), FAILS);
    ends.queue.push(What::FailsBlock, true);
    ends.status = b'E';
}
