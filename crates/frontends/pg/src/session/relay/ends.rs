//! The two ends of a relay, a client's session and its server connection, and the answers that are
//! expected between them.
//!
//! All parts of a relay send messages through this. No decision about a message is made here.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;
use windrow_core::{Apart, Doubt, Fault, FaultClass};
use windrow_sql::MAX_SCANNED;

use super::expect::{PreparedAs, Queue, What};
use super::rewrite;
use crate::charge::FREE_BYTES;
use crate::codec::answer;
use crate::codec::message::{Bind, Front, Message};
use crate::pool::{Loan, PASSING};
use crate::session::state::{End, Session};
use crate::session::unsent_block::IN_BLOCK;
use crate::session_info::{Interrupt, StatementWay};
use crate::statements::CachedStatement;

/// The bytes to be sent to the server beyond which the client is read more slowly.
pub(super) const TO_SERVER: usize = 64 * 1024;

/// The number of messages without an answer beyond which the client is read more slowly.
const MAX_OUTSTANDING: usize = 4096;

/// A session, its server connection, and the answers that are expected.
pub(super) struct Ends<'s> {
    pub(super) session: &'s mut Session,
    pub(super) loan: Box<Loan>,
    pub(super) queue: Queue,
    /// The status of the transaction by the last ReadyForQuery, or by a block's beginning sent
    /// since: `I`, `T` or `E`.
    pub(super) status: u8,
    /// The reason why the block is not joined, until a write of the block was counted.
    pub(super) block_doubt: Option<&'static Doubt>,
    /// True if messages were passed on since the last Sync.
    pub(super) is_open: bool,
    /// Bytes that are kept of the last long message until it is answered.
    pub(super) kept_of_long: usize,
}

impl<'s> Ends<'s> {
    pub(super) fn new(session: &'s mut Session, loan: Box<Loan>) -> Self {
        Self {
            session,
            loan,
            queue: Queue::default(),
            status: b'I',
            block_doubt: None,
            is_open: false,
            kept_of_long: 0,
        }
    }

    /// Returns the buffer of messages to the server.
    pub(super) fn out(&mut self) -> &mut BytesMut {
        self.loan.wire.out()
    }

    /// Returns true if nothing more is taken from the client for the moment.
    pub(super) fn is_busy(&mut self) -> bool {
        self.out().len() >= TO_SERVER || self.queue.len() >= MAX_OUTSTANDING
    }

    /// Returns true if nothing is under way, and no message is incomplete.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.queue.is_empty()
            && !self.is_open
            && self.loan.wire.out().is_empty()
            && self.loan.wire.received().is_empty()
    }

    /// Returns the name of the session's database.
    pub(super) fn database(&self) -> windrow_core::Name {
        self.session.who.identity.database.clone()
    }

    /// Returns the complete message at the front of the client's inbox: its tag and length.
    pub(super) fn front(&self) -> Option<(u8, usize)> {
        match self.session.connection.front(0) {
            Ok(Front::Whole { tag, total }) => Some((tag, total)),
            _ => None,
        }
    }

    /// Returns true if a part of a message is at the front of the inbox.
    pub(super) fn needs_more(&self) -> bool {
        matches!(self.session.connection.front(0), Ok(Front::Part { .. }))
    }

    /// Returns the length of an incomplete message for which memory must be taken.
    pub(super) fn uncharged(&self) -> Option<usize> {
        match self.session.connection.front(0) {
            Ok(Front::Part {
                header: Some((tag, total)),
            }) if tag != b'd' && self.session.connection.needs_charge(total) => Some(total),
            _ => None,
        }
    }

    /// Notes the length of a message that is about to be sent.
    pub(super) fn note_length(&mut self, tag: u8, total: usize) {
        if total > FREE_BYTES {
            self.kept_of_long = match tag {
                // The text may have to be prepared again, on another connection.
                b'P' => total,
                b'Q' => total.min(MAX_SCANNED),
                _ => 0,
            };
        }
    }

    /// Gives back the memory of a long message that was sent.
    pub(super) fn release_sent(&mut self) {
        if self.out().is_empty() {
            let messages = &self.session.shared.long_messages;
            let connection = &mut self.session.connection;
            connection.was_sent(messages, self.kept_of_long);
        }
    }

    /// Reads the message of a tag and length at the front of the client's inbox.
    pub(super) fn message(&self, tag: u8, total: usize) -> Message<'_> {
        Message::read(tag, self.session.connection.body(0, total))
    }

    /// Returns the statement that a message of the client brings or uses, if there is one.
    pub(super) fn statement_of(&self, message: &Message<'_>) -> Option<Arc<CachedStatement>> {
        let session = &*self.session;
        match message {
            Message::Query(text) => Some(session.simple_query(text).cached),
            Message::Parse(parse) => Some(session.prepared(parse)),
            Message::Bind(bind) => {
                let statement = session.statements.get(bind.statement)?;
                Some(Arc::clone(&statement.cached))
            }
            _ => None,
        }
    }

    /// Returns the session's statements that a text executes by their names, each once.
    pub(super) fn executed_by(
        &self,
        cached: &CachedStatement,
    ) -> SmallVec<[Arc<CachedStatement>; 1]> {
        let statement = |name: &str| self.session.statements.get(name.as_bytes());
        let names: BTreeSet<&str> = cached.executes().collect();
        let executed = names.into_iter().filter_map(statement);
        executed.map(|one| Arc::clone(&one.cached)).collect()
    }

    /// Returns the number of parameters of a statement, if a Bind has another number of values.
    pub(super) fn wanted(&self, bind: &Bind<'_>) -> Option<usize> {
        let statement = self.session.statements.get(bind.statement)?;
        let wanted = statement.fixed.get()?.parameters.len();
        (bind.count != wanted).then_some(wanted)
    }

    /// Passes on a complete message from the front of the inbox unchanged.
    pub(super) fn raw(&mut self, total: usize) {
        let (connection, out) = (&mut self.session.connection, self.loan.wire.out());
        if out.is_empty() && total > FREE_BYTES {
            // Not copied, because a long message would be in memory twice.
            *out = connection.split(total);
            return;
        }
        if let Some(bytes) = connection.inbox.get(..total) {
            out.extend_from_slice(bytes);
        }
        connection.take(total);
    }

    /// Passes on bytes for which an answer is expected.
    pub(super) fn pass(&mut self, bytes: &[u8], what: What, is_muted: bool) {
        self.out().extend_from_slice(bytes);
        self.queue.push(what, is_muted);
    }

    /// Sends a message that fails, and replaces the server's error by this one.
    pub(super) fn fail(&mut self, fault: Fault) {
        rewrite::failing(self.out());
        let fails = What::Fails(Some(Box::new(fault)));
        self.queue.push(fails, false);
    }

    /// Asks the server for the answers that it holds back until the segment ends.
    pub(super) fn flush(&mut self) {
        answer::message(self.out(), b'H', |_| {});
    }

    /// Closes a statement of the server connection, without an answer to the client.
    pub(super) fn close_statement(&mut self, name: &[u8]) {
        rewrite::statement(self.out(), b'C', name);
        self.queue.push(What::Close(None), true);
    }

    /// Prepares a text under the name for a single use.
    pub(super) fn pass_statement(&mut self, sql: &[u8], types: &[u32]) {
        self.close_statement(PASSING.as_bytes());
        rewrite::parse(self.out(), PASSING.as_bytes(), sql, types);
        self.queue
            .push(What::Parse(PreparedAs::Passing, None), true);
    }

    /// Writes ParameterDescription, and the messages after it.
    pub(super) fn say_parameters(&mut self, types: &[u32], behind: &[u8], is_muted: bool) {
        let mut said = BytesMut::new();
        answer::parameters(&mut said, types);
        said.put_slice(behind);
        let said = What::LocalAnswer(said.freeze(), None);
        self.queue.push(said, is_muted);
    }

    /// Counts a write of a block.
    pub(super) fn count_in_block(&mut self) {
        let reason = self.block_reason();
        self.count(reason);
    }

    /// Returns the reason to count for the next write of a block: the first write counts for the
    /// block's reason, which is noted with its advice.
    pub(super) fn block_reason(&mut self) -> &'static str {
        let Some(doubt) = self.block_doubt.take() else {
            return IN_BLOCK;
        };
        let apart = Apart::of(doubt.phrase).advised(doubt.advice);
        self.session.shared.bypass.note(&self.database(), &apart);
        doubt.phrase
    }

    /// Returns the reason to count for a write of a session that keeps its connection, and notes
    /// why it does.
    pub(super) fn note_pinned(&self, pinned: &Apart) -> &'static str {
        self.session.shared.bypass.note(&self.database(), pinned);
        pinned.phrase
    }

    /// Counts a relayed statement by its reason.
    pub(super) fn count(&self, reason: &'static str) {
        let statements = &self.session.info.statements;
        statements.add(StatementWay::Relayed, 1);
        self.session.shared.bypass.count(reason);
    }

    /// Reserves the server connection for questions of Windrow's own. Nothing may be under way, and
    /// no cancel request may reach them.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn begin_questions(&mut self) -> Result<(), End> {
        let info = Arc::clone(&self.session.info);
        info.set_interrupt(Interrupt::Nothing).await;
        match self.loan.wire.settle() {
            true => Ok(()),
            false => Err(End::Fatal(lost())),
        }
    }

    /// Returns the server connection to the session.
    pub(super) async fn end_questions(&mut self) {
        self.loan.wire.take_over();
        self.let_cancel().await;
    }

    /// Lets a cancel request of the client reach the server connection.
    pub(super) async fn let_cancel(&mut self) {
        let key = self.loan.wire.cancel_key();
        let info = Arc::clone(&self.session.info);
        info.set_interrupt(Interrupt::Server(key)).await;
    }
}

/// Returns the error of a session whose server connection was closed while nothing could be
/// committed.
pub(super) fn closed() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection: the server closed the connection of this session",
    )
}

/// Returns the error of a session whose server connection was lost while something could be
/// committed.
pub(super) fn unconfirmed() -> Fault {
    Fault::unknown(
        "terminating connection: the server connection of this session was lost before the server confirmed what was sent; whether it was committed cannot be known",
    )
    .with_hint(Some("Look whether it was written before you send it again."))
}

/// Returns the error of a session whose server connection is lost during a question of Windrow's
/// own.
pub(super) fn lost() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection: the server connection of this session is lost, and with it what the session had set up there",
    )
}
