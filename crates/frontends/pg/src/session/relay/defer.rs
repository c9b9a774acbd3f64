//! Early answers (`windrow.transactions = 'late'`): in a transaction on a server connection, the
//! client gets the answer to certain writes before the server has sent it. So a loop of inserts
//! over a slow network needs no round trip for each, while the server gets the same messages in the
//! same order.
//!
//! Certain is a plain INSERT of one row without RETURNING, into a table of which it is proven that
//! no trigger or rule drops rows. All other statements, above all COMMIT, wait until the server has
//! sent the answers that the client already has. If the server refuses such an insert after all,
//! its error, with its text, answers the next statement, at the latest COMMIT. If the server sends
//! another answer (another session has changed the table), the transaction is made to fail.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_core::{Fault, FaultClass, Op, Statement};
use windrow_sql::Reading;

use super::ends::Ends;
use super::expect::{Answered, What};
use super::rewrite;
use crate::codec::message::{HEADER, Kind, Message};
use crate::codec::{answer, failure};
use crate::lanes::Lane;
use crate::own::Own;
use crate::session::kept::beginning;
use crate::session::state::Session;
use crate::statements::{CachedStatement, NotJoined, in_lane};

/// An answer that can be sent early.
pub(super) struct Early {
    about: Answered,
    /// Complete messages.
    answer: BytesMut,
}

/// Answers that are sent before the server has sent them.
#[derive(Default)]
pub(super) struct Deferred {
    /// The first error of a statement that was answered early, as its client will get it.
    error: Option<Bytes>,
    /// True if the server was asked for all answers that it holds back.
    is_flushed: bool,
    /// The statement that is bound to the unnamed portal.
    bound: Option<Arc<CachedStatement>>,
    /// Statements of the transaction that may run unproven code, and so change tables.
    doubtful: Vec<Arc<CachedStatement>>,
    /// The lane that knows the tables.
    lane: Option<Arc<Lane>>,
    /// True if there is no lane, which was logged.
    has_none: bool,
}

impl Deferred {
    /// Returns true if an answer could be sent early now. `is_as_in_lane`: statements mean the same
    /// here as in the session's lane.
    pub(super) fn may_answer(&mut self, ends: &Ends<'_>, is_as_in_lane: bool) -> bool {
        self.strike_out_proven(ends);
        ends.status == b'T'
            && ends.queue.is_answered()
            && !ends.queue.is_beginning()
            && self.error.is_none()
            && self.lane.is_some()
            && self.doubtful.is_empty()
            && is_as_in_lane
    }

    /// Returns the answer to the message at the front of the inbox, if it is certain before the
    /// server has sent it.
    pub(super) fn early(&self, ends: &Ends<'_>, tag: u8, total: usize) -> Option<Early> {
        let mut answer = BytesMut::new();
        if tag == b'S' {
            answer::ready(&mut answer, b'T');
            let about = Answered::Sync;
            return Some(Early { about, answer });
        }
        let message = ends.message(tag, total);
        let cached = self.certain(ends, &message, &mut answer)?;
        let about = match message {
            Message::Query(text) => Answered::Query(cached, beginning(text).into()),
            Message::Describe(Kind::Statement, _) => Answered::Types(cached, types_in(&answer)),
            _ => Answered::Statement(cached),
        };
        Some(Early { about, answer })
    }

    /// Sends an early answer, if the client does not get the server's answers to anything that was
    /// sent for its message, after the first `before` expected ones.
    pub(super) fn answer(&mut self, ends: &mut Ends<'_>, early: Option<Early>, before: usize) {
        if let Some(Early { about, answer }) = early
            && ends.queue.answer_early(before, &about)
        {
            self.is_flushed = false;
            ends.session.connection.out.put_slice(&answer);
        }
    }

    /// Asks the server, once, for the answers that it holds back until the segment ends.
    pub(super) fn flush(&mut self, ends: &mut Ends<'_>) {
        if ends.is_open && !std::mem::replace(&mut self.is_flushed, true) {
            ends.flush();
        }
    }

    /// Makes the transaction fail, because the server's answer to a statement differs from the
    /// early one. Only messages that were answered early have been sent after it.
    pub(super) fn was_wrong(
        &mut self,
        ends: &mut Ends<'_>,
        cached: &Arc<CachedStatement>,
        text: &[u8],
    ) {
        if let Some(lane) = &self.lane
            && let Ok(statement) = in_lane(cached, lane, None)
        {
            statement.retire();
        }
        if self.error.is_some() {
            return;
        }
        let mut error = BytesMut::new();
        failure::fault(&mut error, &changed());
        self.keep_error(error.get(HEADER..).unwrap_or_default(), text);
        rewrite::query(ends.out(), b"windrow fails");
        ends.loan.names.unnamed = None;
        let cached = ends.session.simple_query(b"").cached;
        let before = ends.queue.len();
        ends.queue.push(What::Query(cached, None), true);
        ends.queue.answer_early(before, &Answered::Sync);
    }

    /// Writes the answer to a message, if it is certain. Returns its statement.
    fn certain(
        &self,
        ends: &Ends<'_>,
        message: &Message<'_>,
        out: &mut BytesMut,
    ) -> Option<Arc<CachedStatement>> {
        match message {
            Message::Query(_) => {
                let cached = ends.statement_of(message)?;
                self.certain_meaning(ends, &cached)?;
                answer::command_complete(out, Op::Insert, 1);
                answer::ready(out, b'T');
                Some(cached)
            }
            Message::Parse(_) => {
                let cached = ends.statement_of(message)?;
                self.certain_meaning(ends, &cached)?;
                out.put_slice(answer::PARSE_COMPLETE);
                Some(cached)
            }
            Message::Bind(bind) => {
                let cached = ends.statement_of(message)?;
                let statement = self.certain_meaning(ends, &cached)?;
                let own = cached.own_parameters(&statement).len();
                let fits = bind.portal.is_empty() && bind.count == own;
                out.put_slice(answer::BIND_COMPLETE);
                fits.then_some(cached)
            }
            Message::Describe(Kind::Statement, name) => {
                let statement = ends.session.statements.get(name)?;
                let cached = Arc::clone(&statement.cached);
                let types = statement.fixed.get().cloned();
                let described = self.certain_meaning(ends, &cached)?;
                let types =
                    types.unwrap_or_else(|| cached.signature_of_client(described.signature()));
                answer::parameters(out, &types.parameters);
                out.put_slice(answer::NO_DATA);
                Some(cached)
            }
            Message::Describe(Kind::Portal, b"") => {
                out.put_slice(answer::NO_DATA);
                self.bound_insert(ends)
            }
            Message::Execute(b"", _) => {
                answer::command_complete(out, Op::Insert, 1);
                self.bound_insert(ends)
            }
            _ => None,
        }
    }

    /// Returns the insert that is bound to the unnamed portal.
    fn bound_insert(&self, ends: &Ends<'_>) -> Option<Arc<CachedStatement>> {
        let cached = self.bound.as_ref()?;
        self.certain_meaning(ends, cached)?;
        Some(Arc::clone(cached))
    }

    /// Returns the meaning of an insert whose answer is certain.
    fn certain_meaning(
        &self,
        ends: &Ends<'_>,
        cached: &Arc<CachedStatement>,
    ) -> Option<Arc<Statement>> {
        is_plain(cached).then(|| self.proven(ends, cached))?
    }

    /// Returns the meaning of a write whose code is proven. If that is not known yet, asks its
    /// database meanwhile, for the next time.
    fn proven(&self, ends: &Ends<'_>, cached: &Arc<CachedStatement>) -> Option<Arc<Statement>> {
        cached.parsed()?;
        let lane = self.lane.as_ref()?;
        match in_lane(cached, lane, None) {
            Ok(statement) => statement.keeps_rows().then_some(statement),
            Err(NotJoined::Unknown(cached)) => {
                ask(ends.session, lane, cached);
                None
            }
            Err(NotJoined::Apart(_) | NotJoined::Changed | NotJoined::Whole) => None,
        }
    }

    /// Notes a statement that may run unproven code.
    pub(super) fn note_doubtful(&mut self, cached: &Arc<CachedStatement>) {
        let known = |other: &Arc<CachedStatement>| other.is_like(cached);
        if !self.doubtful.iter().any(known) {
            self.doubtful.push(Arc::clone(cached));
        }
    }

    fn strike_out_proven(&mut self, ends: &Ends<'_>) {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        doubtful.retain(|cached| self.proven(ends, cached).is_none());
        self.doubtful = doubtful;
    }

    /// Notes that the transaction is over.
    pub(super) fn has_ended(&mut self) {
        self.doubtful.clear();
    }

    /// Notes a statement that is bound to a portal.
    pub(super) fn note_bound(&mut self, portal: &[u8], cached: &Arc<CachedStatement>) {
        if portal.is_empty() {
            self.bound = Some(Arc::clone(cached));
        }
    }

    /// Returns true if the execution of a portal rolls back.
    pub(super) fn undoes(&self, portal: &[u8]) -> bool {
        let bound = self.bound.as_ref().filter(|_| portal.is_empty());
        bound.is_some_and(|cached| cached.undoes())
    }

    /// Returns true if the lane must be found whose database knows the tables.
    pub(super) fn wants_lane(&self, own: &Own) -> bool {
        own.late && self.lane.is_none() && !self.has_none
    }

    /// Finds that lane.
    pub(super) async fn find_lane(&mut self, session: &mut Session) {
        let lane = match &session.source {
            Some(source) => Ok(Arc::clone(&source.lane)),
            None => session.open_lane().await,
        };
        match lane {
            Ok(lane) => self.lane = Some(lane),
            Err(fault) => {
                tracing::debug!(%fault, "no answer is given early");
                self.has_none = true;
            }
        }
    }

    /// Keeps the error of a statement that was answered early, to be sent later.
    pub(super) fn keep_error(&mut self, body: &[u8], text: &[u8]) {
        if self.error.is_none() {
            let mut error = BytesMut::new();
            failure::with_text(&mut error, body, beginning(text), true);
            self.error = Some(error.freeze());
        }
    }

    /// Keeps the body of an ErrorResponse, to be sent later.
    pub(super) fn keep_whole_error(&mut self, body: &[u8]) {
        if self.error.is_none() {
            let mut error = BytesMut::new();
            answer::message(&mut error, b'E', |out| out.extend_from_slice(body));
            self.error = Some(error.freeze());
        }
    }

    /// Sends the error that was kept, if there is one; returns true then.
    pub(super) fn say_error(&mut self, session: &mut Session) -> bool {
        let error = self.error.take();
        let is_there = error.is_some();
        if let Some(error) = error {
            session.connection.out.put_slice(&error);
        }
        is_there
    }

    /// Drops the error that was kept, because the client has rolled back.
    pub(super) fn forget_error(&mut self) {
        self.error = None;
    }
}

/// Returns the error of a transaction in which an early answer was wrong because its table was
/// changed.
fn changed() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "40001",
        "a table was changed while inserts into it were answered early: what was answered is not true any more",
    )
}

/// Returns the body of the ParameterDescription at the beginning of an answer.
fn types_in(answer: &[u8]) -> Bytes {
    let length = answer
        .get(1..HEADER)
        .and_then(|length| length.try_into().ok());
    let length = length.map_or(0, u32::from_be_bytes);
    let end = usize::try_from(length).map_or(0, |length| length + 1);
    Bytes::copy_from_slice(answer.get(HEADER..end).unwrap_or_default())
}

/// Returns true for a plain INSERT of one row without RETURNING.
fn is_plain(cached: &CachedStatement) -> bool {
    let Reading::Join(parsed) = &cached.reading else {
        return false;
    };
    parsed.op == Op::Insert
        && parsed.set_based
        && parsed.conflict.is_none()
        && parsed.returning.is_none()
        && !cached.asks()
}

/// Asks a lane's database for the meaning of a statement, in a separate task, because it may have
/// to wait for a lock that the session itself holds.
fn ask(session: &Session, lane: &Arc<Lane>, cached: Arc<CachedStatement>) {
    let (shared, lane) = (Arc::clone(&session.shared), Arc::clone(lane));
    tokio::spawn(async move {
        let Some(parsed) = cached.parsed() else {
            return;
        };
        let answer = shared.cache.describe(&lane, &cached, parsed).await;
        if let Err(fault) = answer {
            tracing::debug!(%fault, "a lane does not answer");
        }
    });
}
