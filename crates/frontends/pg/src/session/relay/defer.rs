//! `windrow.defer`: in a transaction, what the server will say of certain writes is told to the
//! client before the server has said it. So a loop of inserts over a slow line takes no round trip
//! for each of them, while the server gets the same messages in the same order.
//!
//! Certain is a plain INSERT of one row that gives nothing back, into a table of which it is proven
//! that no trigger or rule drops rows. All else waits for its answer as always, and what was
//! answered early has been executed by then. Where the server refuses such an insert after all, its
//! error is the answer to the next statement, at the latest to COMMIT: with the text that caused
//! it, and the transaction has failed as it always would.
//!
//! What was proven may be true no longer: others have changed the table, and nobody else has
//! noticed. So all that is not answered early, a COMMIT above all, waits until the server has said
//! what was told; where it says something else, the transaction is made to fail.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_calls::Statement;
use windrow_core::{Fault, FaultClass, Op};
use windrow_sql::Reading;

use super::expect::{Told, What};
use super::rewrite;
use super::state::Relay;
use crate::codec::frame::HEADER;
use crate::codec::message::{Kind, Message};
use crate::codec::{answer, failure};
use crate::lanes::Lane;
use crate::session::state::Session;
use crate::statements::{CachedStatement, Unusable, in_lane};

/// Of the text of a refused insert, so many bytes are told.
const TOLD: usize = 1000;

/// An answer that can be given early.
pub(super) struct Early {
    /// What it is about.
    told: Told,
    /// Whole messages.
    answer: BytesMut,
}

impl Relay<'_> {
    /// What can be told of the message at the front of the inbox before the server has said it.
    pub(super) fn early(&mut self, tag: u8, total: usize) -> Option<Early> {
        if !self.session.own.defer {
            return None;
        }
        self.look_at_doubtful();
        if !self.may_tell() {
            return None;
        }
        let mut answer = BytesMut::new();
        if tag == b'S' {
            answer::ready(&mut answer, b'T');
            let told = Told::Sync;
            return Some(Early { told, answer });
        }
        let message = Message::read(tag, self.session.connection.body(0, total));
        let cached = self.certain(&message, &mut answer)?;
        let told = match message {
            Message::Query(text) => Told::Query(cached, beginning(text).into()),
            Message::Describe(Kind::Statement, _) => Told::Types(cached, types_in(&answer)),
            _ => Told::Statement(cached),
        };
        Some(Early { told, answer })
    }

    /// Tells it, where everything that was sent for the message has answers that nobody gets: those
    /// behind the first `before` that are expected.
    pub(super) fn tell_early(&mut self, early: Option<Early>, before: usize) {
        if let Some(Early { told, answer }) = early
            && self.queue.tell(before, &told)
        {
            self.deferred.flushed = false;
            self.session.connection.out.put_slice(&answer);
        }
    }

    /// True where a message has to wait until the server has said what was told. What it keeps to
    /// itself until the segment ends it is asked for.
    pub(super) fn waits_for_early(&mut self, tag: u8, total: usize) -> bool {
        let passes = matches!(tag, b'H' | b'd' | b'X');
        if passes || !self.queue.has_early() || self.early(tag, total).is_some() {
            return false;
        }
        if self.open && !std::mem::replace(&mut self.deferred.flushed, true) {
            answer::message(self.loan.wire.out(), b'H', |_| {});
        }
        true
    }

    /// The server has said something else of a statement than was told. Nothing but what was
    /// answered early has been sent behind it, so the transaction can still be made to fail.
    pub(super) fn was_wrong(&mut self, cached: &Arc<CachedStatement>, text: &[u8]) {
        if let Some(lane) = &self.deferred.lane
            && let Ok(statement) = in_lane(cached, lane, None)
        {
            statement.retire();
        }
        if self.deferred.error.is_some() {
            return;
        }
        let mut error = BytesMut::new();
        failure::fault(&mut error, &changed());
        self.keep_error(error.get(HEADER..).unwrap_or_default(), text);
        rewrite::query(self.loan.wire.out(), b"windrow fails");
        self.loan.names.unnamed = None;
        let cached = self.session.simple_query(b"").cached;
        let before = self.queue.len();
        self.queue.push(What::Query(cached, None), true);
        self.queue.tell(before, &Told::Sync);
    }

    /// True where the client can be told something now: it has all answers before it, in a
    /// transaction that works, with settings and tables that are those of its lane.
    fn may_tell(&self) -> bool {
        let state = &self.server_state;
        self.status == b'T'
            && self.answered == 0
            && self.queue.is_told()
            && self.to_server == 0
            && (self.to_client == 0 || self.muted)
            && self.deferred.error.is_none()
            && self.deferred.lane.is_some()
            && state.changing.is_none()
            && state.unproven.is_none()
            && self.deferred.doubtful.is_empty()
            && !state.moved
            && !state.has_changed_settings()
    }

    /// Writes the answer to a message, where it is certain. Gives the statement that it is of.
    fn certain(&self, message: &Message<'_>, out: &mut BytesMut) -> Option<Arc<CachedStatement>> {
        match message {
            Message::Query(_) => {
                let cached = self.statement_of(message)?;
                self.is_certain(&cached)?;
                answer::command_complete(out, Op::Insert, 1);
                answer::ready(out, b'T');
                Some(cached)
            }
            Message::Parse(_) => {
                let cached = self.statement_of(message)?;
                self.is_certain(&cached)?;
                out.put_slice(answer::PARSE_COMPLETE);
                Some(cached)
            }
            Message::Bind(bind) => {
                let cached = self.statement_of(message)?;
                let statement = self.is_certain(&cached)?;
                let own = cached.own_parameters(&statement).len();
                let fits = bind.portal.is_empty() && bind.count == own;
                out.put_slice(answer::BIND_COMPLETE);
                fits.then_some(cached)
            }
            Message::Describe(Kind::Statement, name) => {
                let statement = self.session.statements.get(name)?;
                let cached = Arc::clone(&statement.cached);
                let types = statement.fixed.get().cloned();
                let described = self.is_certain(&cached)?;
                let types =
                    types.unwrap_or_else(|| cached.signature_of_client(described.signature()));
                answer::parameters(out, &types.parameters);
                out.put_slice(answer::NO_DATA);
                Some(cached)
            }
            Message::Describe(Kind::Portal, b"") => {
                out.put_slice(answer::NO_DATA);
                self.bound_insert()
            }
            Message::Execute(b"", _) => {
                answer::command_complete(out, Op::Insert, 1);
                self.bound_insert()
            }
            _ => None,
        }
    }

    /// The insert that is bound to the unnamed portal.
    fn bound_insert(&self) -> Option<Arc<CachedStatement>> {
        let cached = self.deferred.bound.as_ref()?;
        self.is_certain(cached)?;
        Some(Arc::clone(cached))
    }

    /// What an insert means whose answer is certain.
    fn is_certain(&self, cached: &Arc<CachedStatement>) -> Option<Arc<Statement>> {
        is_plain(cached).then(|| self.proven(cached))?
    }

    /// What a write means of which is proven what it runs. Where nobody knows it yet, its database
    /// is asked meanwhile, for the next time.
    fn proven(&self, cached: &Arc<CachedStatement>) -> Option<Arc<Statement>> {
        cached.parsed()?;
        let lane = self.deferred.lane.as_ref()?;
        match in_lane(cached, lane, None) {
            Ok(statement) => statement.keeps_rows().then_some(statement),
            Err(Unusable::Unknown(cached)) => {
                ask(self.session, lane, cached);
                None
            }
            Err(Unusable::Apart(_) | Unusable::Changed | Unusable::Whole) => None,
        }
    }

    /// Takes note of a statement that may run what is not proven.
    pub(super) fn note_doubtful(&mut self, cached: &Arc<CachedStatement>) {
        let known = |other: &Arc<CachedStatement>| other.is_like(cached);
        if self.session.own.defer && !self.deferred.doubtful.iter().any(known) {
            self.deferred.doubtful.push(Arc::clone(cached));
        }
    }

    /// Strikes out what is proven by now.
    fn look_at_doubtful(&mut self) {
        let mut doubtful = std::mem::take(&mut self.deferred.doubtful);
        doubtful.retain(|cached| self.proven(cached).is_none());
        self.deferred.doubtful = doubtful;
    }

    /// The transaction is over.
    pub(super) fn has_ended(&mut self) {
        self.deferred.doubtful.clear();
    }

    /// Takes note of what is bound to a portal.
    pub(super) fn note_bound(&mut self, portal: &[u8], cached: &Arc<CachedStatement>) {
        if portal.is_empty() {
            self.deferred.bound = Some(Arc::clone(cached));
        }
    }

    /// Takes note of the portal whose execution was sent last.
    pub(super) fn note_executed(&mut self, portal: &[u8]) {
        let bound = self.deferred.bound.as_ref();
        let bound = bound.filter(|_| portal.is_empty());
        if bound.is_some_and(|cached| cached.undoes()) {
            self.queue.note_undoing();
        }
    }

    /// True where the lane has to be found whose database knows the tables.
    pub(super) fn wants_lane(&self) -> bool {
        self.session.own.defer && self.deferred.lane.is_none() && !self.deferred.has_none
    }

    /// Finds it.
    pub(super) async fn find_lane(&mut self) {
        match self.session.lane().await {
            Ok(lane) => self.deferred.lane = Some(lane),
            Err(fault) => {
                tracing::debug!(%fault, "no answer is given early");
                self.deferred.has_none = true;
            }
        }
    }

    /// What was answered early has failed. Its client is told later.
    pub(super) fn keep_error(&mut self, body: &[u8], text: &[u8]) {
        if self.deferred.error.is_none() {
            self.deferred.error = Some(with_text(body, beginning(text)));
        }
    }

    /// Tells the error that was kept, if there is one.
    pub(super) fn say_error(&mut self) -> bool {
        let error = self.deferred.error.take();
        let is_there = error.is_some();
        if let Some(error) = error {
            self.session.connection.out.put_slice(&error);
        }
        is_there
    }

    /// The same, in place of what the server says of a failed transaction.
    pub(super) fn tell_error(&mut self) -> bool {
        let told = self.say_error();
        self.muted |= told;
        told
    }

    /// The server has rolled back. `asked`: its client asked for that, and need not know why it
    /// could not have committed.
    pub(super) fn has_rolled_back(&mut self, asked: bool) {
        if asked {
            self.deferred.error = None;
        } else {
            self.tell_error();
        }
    }
}

impl Session {
    /// The lane of its settings, without a place in it.
    async fn lane(&mut self) -> Result<Arc<Lane>, Fault> {
        if let Some(source) = &self.source {
            return Ok(Arc::clone(&source.lane));
        }
        self.open_lane().await
    }
}

/// What is said where a table was changed and an answer that was given early was wrong for that.
fn changed() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "40001",
        "a table was changed while inserts into it were answered early: what was answered is not true any more",
    )
}

/// The body of the ParameterDescription at the beginning of an answer.
fn types_in(answer: &[u8]) -> Bytes {
    let length = answer
        .get(1..HEADER)
        .and_then(|length| length.try_into().ok());
    let length = length.map_or(0, u32::from_be_bytes);
    let end = usize::try_from(length).map_or(0, |length| length + 1);
    Bytes::copy_from_slice(answer.get(HEADER..end).unwrap_or_default())
}

/// True for a plain INSERT of one row that gives nothing back.
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

/// Asks a lane's database what a statement means. Nobody waits for it: it may have to wait for a
/// lock that the session itself holds.
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

/// The part of a text that is told.
fn beginning(text: &[u8]) -> &[u8] {
    text.get(..TOLD).unwrap_or(text)
}

/// An ErrorResponse with the text that it is about, which is not what its client has just sent: the
/// place in it is one in an internal query.
fn with_text(body: &[u8], text: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    answer::message(&mut out, b'E', |out| {
        let mut fields = body
            .split(|byte| *byte == 0)
            .filter(|field| !field.is_empty());
        let has_internal = fields.clone().any(|field| field.starts_with(b"q"));
        let mut context = Vec::new();
        for field in fields.by_ref() {
            match field.split_first() {
                Some((b'P', place)) if !has_internal => {
                    out.put_u8(b'p');
                    answer::text(out, place);
                }
                Some((b'P', _)) => {}
                Some((b'W', said)) => {
                    context.extend_from_slice(said);
                    context.push(b'\n');
                }
                _ => answer::text(out, field),
            }
        }
        let text = String::from_utf8_lossy(text);
        if !has_internal {
            out.put_u8(b'q');
            answer::text(out, text.as_bytes());
        }
        context.extend_from_slice(b"windrow.defer: a statement that was answered before: ");
        context.extend_from_slice(text.as_bytes());
        out.put_u8(b'W');
        answer::text(out, &context);
        out.put_u8(0);
    });
    out.freeze()
}
