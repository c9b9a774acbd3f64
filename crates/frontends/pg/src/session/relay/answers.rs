//! Messages from the server to the client.

use std::sync::Arc;

use windrow_core::{Fault, Formats, Signature};
use windrow_sql::Effect;

use super::Relay;
use super::block_start::{BlockStart, Refusal};
use super::expect::{Answered, Expect, What};
use super::read_aside::ReadAside;
use super::renames::{Completion, Renames};
use super::rewrite;
use super::sequence_question::QuestionReply;
use super::used_sequences::Look;
use crate::codec::{answer, failure};
use crate::pool::Names;
use crate::session::client_connection::HIGH;
use crate::session::local::{self, aborted, cannot_tell, in_the_spool, is_windrow_setting};
use crate::statements::CachedStatement;

/// The longest message that is examined as a whole, in bytes. A longer one is passed on unexamined.
const MAX_SEEN_BYTES: usize = 64 * 1024;

impl Relay<'_> {
    /// Passes on the server's messages, as far as the client reads them.
    pub(super) fn deliver(&mut self) {
        while self.ends.session.connection.out.len() < HIGH {
            if self.to_client == 0 {
                self.say_local();
                if !self.begin() {
                    return;
                }
            }
            let received = self.ends.loan.wire.received();
            let piece = self.to_client.min(received.len());
            if piece == 0 {
                return;
            }
            if let (false, Some(bytes)) = (self.muted, received.get(..piece)) {
                self.ends.session.connection.out.extend_from_slice(bytes);
            }
            self.ends.loan.wire.consume(piece);
            self.to_client -= piece;
        }
    }

    /// Writes Windrow's own answers that are next.
    fn say_local(&mut self) {
        let is_local = |what: &What| matches!(what, What::LocalAnswer(..));
        while let Some(local) = self.ends.queue.pop_if(is_local) {
            if let (false, What::LocalAnswer(message, _)) = (local.muted, local.what) {
                self.ends.session.connection.out.extend_from_slice(&message);
            }
        }
    }

    /// Answers a statement about Windrow's own settings. Nothing is under way.
    pub(super) fn answer_query(&mut self, cached: &Arc<CachedStatement>) {
        let checked = local::check(cached, &self.ends.session.own, self.ends.session.allowed());
        match checked.and_then(|()| self.ends.session.reply(cached)) {
            Ok(reply) => {
                let out = &mut self.ends.session.connection.out;
                reply.say(out, &Formats::Text, true);
                answer::ready(out, self.ends.status);
            }
            Err(fault) => self.here.fail_query(&mut self.ends, fault),
        }
    }

    /// Examines the next message. Returns false if too little of it has arrived.
    fn begin(&mut self) -> bool {
        let received = self.ends.loan.wire.received();
        let Some((&[tag, a, b, c, d], behind)) = received.split_first_chunk::<5>() else {
            return false;
        };
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let body = length.saturating_sub(4);
        let is_whole = behind.len() >= body;
        let types = matches!(tag, b't' | b'T') && self.ends.queue.asks_for_types();
        let values = tag == b'D' && self.ends.queue.has_only_values();
        let is_looked_at = is_looked_at(tag) || types || values;
        if is_looked_at && !is_whole && body <= MAX_SEEN_BYTES {
            return false;
        }
        let body: Box<[u8]> = match is_looked_at && (is_whole || !types) {
            true => behind
                .get(..body.min(behind.len()))
                .unwrap_or_default()
                .into(),
            false => Box::default(),
        };
        self.to_client = length.saturating_add(1);
        self.muted = false;
        self.handle(tag, &body);
        true
    }

    fn handle(&mut self, tag: u8, body: &[u8]) {
        if self.left.is_about_channels(&mut self.ends, tag) {
            self.muted = true;
            return;
        }
        if let Some(reply) = self.question.take(&mut self.ends, tag, body) {
            self.note_values(reply);
            self.muted = true;
            return;
        }
        if let Some(is_as_wanted) = BlockStart::is_about_failing(&mut self.ends, tag, body) {
            // Without a failed transaction nothing more can be executed.
            self.has_ended |= !is_as_wanted;
            self.muted = true;
            return;
        }
        let is_answered = self.is_answered(tag);
        self.react(tag, body);
        // The client gets the message that ends its connection.
        self.muted |= is_answered && !self.ends.queue.has_passed_fatal();
    }

    /// Notes the values taken from sequences: the connection does not know them any more.
    fn note_values(&mut self, reply: QuestionReply) {
        if let QuestionReply::Whole(drawn) = reply {
            let values = &mut self.ends.session.values;
            if !values.note_drawn(&drawn) {
                values.note_unknown();
            }
            self.left.note_values_taken();
        }
    }

    /// Returns true if the client got this answer early.
    fn is_answered(&mut self, tag: u8) -> bool {
        let is_said = matches!(tag, b'N' | b'A' | b'S');
        let front = self.ends.queue.front();
        !is_said && front.is_some_and(|front| front.early.is_some())
    }

    fn react(&mut self, tag: u8, body: &[u8]) {
        match tag {
            b'1' => self.answered_by(|what| matches!(what, What::Parse(..))),
            b'2' => self.answered_by(|what| matches!(what, What::Bind(_))),
            b'3' => self.answered_by(|what| matches!(what, What::Close(_))),
            b't' => {
                self.muted = self.ends.queue.front().is_some_and(|front| front.muted);
                self.parameters = body.into();
            }
            b'T' | b'n' => self.described(tag, body),
            b's' | b'I' => self.answered_by(|what| matches!(what, What::Execute(_))),
            b'C' => self.complete(body),
            b'E' => self.failed(body),
            b'Z' => self.ready(body),
            b'G' => self.ends.queue.begin_copy(),
            b'S' => self.parameter(body),
            b'A' => self.notification(body),
            _ => {}
        }
    }

    /// Notes the description of a statement or portal, for its client or for Windrow.
    fn described(&mut self, tag: u8, body: &[u8]) {
        let describes = |what: &What| {
            matches!(
                what,
                What::DescribeStatement | What::DescribePortal | What::Types(_)
            )
        };
        let Some(expect) = self.ends.queue.pop_if(describes) else {
            return;
        };
        self.muted = expect.muted;
        let parameters = std::mem::take(&mut self.parameters);
        if let Some(Answered::Types(cached, reported)) = &expect.early
            && !parameters.is_empty()
            && **reported != *parameters
        {
            return self
                .deferred
                .was_wrong(&mut self.ends, cached, &cached.text);
        }
        // A description that is too long to be examined stays unknown.
        let is_known = !parameters.is_empty() && (tag == b'n' || !body.is_empty());
        if let (What::Types(fixed), true) = (expect.what, is_known) {
            fixed.set(&Arc::new(Signature {
                parameters: answer::oids(&parameters).collect(),
                fields: (tag == b'T').then(|| body.into()),
            }));
        }
    }

    fn answered_by(&mut self, is_it: impl FnOnce(&What) -> bool) {
        if let Some(expect) = self.ends.queue.pop_if(is_it) {
            self.muted = expect.muted;
        }
    }

    fn complete(&mut self, body: &[u8]) {
        let tag = body.split_last().map_or(&[][..], |(_, tag)| tag);
        if matches!(tag, b"DISCARD ALL" | b"DEALLOCATE ALL") {
            self.ends.session.statements.clear_named();
            self.ends.loan.names.clear_named();
        }
        if matches!(tag, b"DISCARD ALL" | b"DISCARD SEQUENCES") {
            self.ends.session.values.clear();
        }
        if tag == b"DISCARD ALL" {
            self.ends.session.reset_own();
        }
        let queue = &mut self.ends.queue;
        let is_execute = |what: &What| matches!(what, What::Execute(_) | What::Opens);
        let mut executed = queue.pop_if(is_execute);
        let renames = match &mut executed {
            Some(executed) => executed.renames.as_deref_mut(),
            None => queue.renames(),
        };
        let completion = renames.and_then(Renames::completed);
        if completion == Some(Completion::Inserted) {
            self.muted = true;
            return;
        }
        let is_muted = executed.as_ref().is_some_and(|executed| executed.muted);
        self.muted |= is_muted;
        let tag = match completion {
            Some(Completion::Deallocates(name)) => {
                let session = &mut *self.ends.session;
                session.statements.set(name.as_bytes(), None);
                self.muted = true;
                if !is_muted {
                    answer::complete(&mut session.connection.out, "DEALLOCATE");
                }
                b"DEALLOCATE"
            }
            _ => tag,
        };
        self.completed(tag, executed.as_ref());
    }

    /// Notes a statement that is complete. `executed`: its Execute, if it was one.
    fn completed(&mut self, tag: &[u8], executed: Option<&Expect>) {
        let complete = executed.or_else(|| self.ends.queue.front());
        let undoes = complete.is_some_and(|expect| expect.undoes);
        let early = complete.and_then(|expect| expect.early.clone());
        let cached = match complete.map(|expect| &expect.what) {
            Some(What::Execute(cached)) => cached.clone(),
            Some(What::Query(cached, _)) => Some(Arc::clone(cached)),
            _ => None,
        };
        let runs = complete.and_then(|expect| match &expect.what {
            What::Query(cached, _) => Some(cached),
            _ => expect.runs.as_ref(),
        });
        let undoes_part = runs.is_none_or(|cached| cached.may_undo_part());
        let setting = cached.as_deref();
        if setting.is_some_and(|cached| cached.effect() == Some(&Effect::ResetAll)) {
            self.ends.session.reset_own();
        }
        if let Some(setting) = setting.filter(|cached| is_windrow_setting(cached)) {
            // It was checked before it was sent.
            self.ends.session.reply(setting).ok();
        }
        if let Some(early) = early.filter(|_| tag != b"INSERT 0 1")
            && let Some(cached) = early.cached()
        {
            self.deferred
                .was_wrong(&mut self.ends, cached, early.text());
        }
        if tag == b"ROLLBACK" {
            match undoes {
                true => self.deferred.forget_error(),
                false => self.muted |= self.deferred.say_error(self.ends.session),
            }
        }
        self.left.completed(tag, cached, undoes_part);
    }

    fn failed(&mut self, body: &[u8]) {
        if ends_connection(body) && self.left.can_lose_connection(&self.ends) {
            self.has_ended = true;
            self.muted = true;
            return;
        }
        if ends_connection(body) {
            // The client gets the error unchanged, and no other answer.
            self.ends.queue.note_fatal();
            self.deferred.say_error(self.ends.session);
            return;
        }
        self.left.settings.failed();
        self.ends.queue.unconfirmed.failed();
        if memchr::memmem::find(body, b"\0C26000\0").is_some() {
            self.ends.loan.names.note_gone(body);
        }
        if self.ends.queue.is_beginning() {
            return self.failed_to_begin(body);
        }
        let front = self.ends.queue.front();
        if let Some(early) = front.and_then(|front| front.early.clone()) {
            self.deferred.keep_error(body, early.text());
            return self.here.pass_over(&mut self.ends);
        }
        if self.deferred.say_error(self.ends.session) || self.here.keep_of_preparing(body) {
            self.muted = true;
            return self.here.pass_over(&mut self.ends);
        }
        ReadAside::failed(&mut self.ends);
        let instead = self
            .ends
            .queue
            .front()
            .and_then(|expect| match &expect.what {
                What::Query(_, Some(fault)) | What::Fails(Some(fault)) => Some(fault.clone()),
                _ => expect.fault.clone(),
            });
        let instead = instead.or_else(|| self.unknown_sequence(body));
        let out = &mut self.ends.session.connection.out;
        if let Some(fault) = instead {
            self.muted = true;
            match self.ends.status {
                b'E' if !is_said_anyway(&fault) => failure::fault(out, &aborted()),
                _ => failure::fault(out, &fault),
            }
        } else if let Some(What::Bind(Some(name))) =
            self.ends.queue.front().map(|expect| &expect.what)
            && let Some(place) = Names::find(body)
        {
            self.muted = true;
            rewrite::error(out, body, place, name);
        } else if let Some(renames) = self.ends.queue.renames() {
            self.muted = true;
            renames.translate(body, out);
        }
        self.here.pass_over(&mut self.ends);
    }

    /// Passes on the error of a server that has refused to begin a block.
    fn failed_to_begin(&mut self, body: &[u8]) {
        match self.block_start.failed(&mut self.ends, body) {
            Refusal::Passes => self.muted = false,
            Refusal::Answered => self.muted = true,
            Refusal::Late(body) => {
                self.deferred.keep_whole_error(&body);
                self.muted = true;
            }
        }
        let has_query = self.ends.queue.ends_with_query();
        self.here.pass_over(&mut self.ends);
        if has_query {
            BlockStart::end_query(&mut self.ends);
        }
    }

    /// Returns the error that replaces the server's if it says that no value was taken from a
    /// sequence, but one may have been taken elsewhere.
    fn unknown_sequence(&mut self, body: &[u8]) -> Option<Box<Fault>> {
        // The position in the server's source is the same in all languages.
        let said_by = |routine: &[u8]| memchr::memmem::find(body, routine).is_some();
        let denied = said_by(b"Rcurrval_oid\0") || said_by(b"Rlastval\0");
        // A question in a statement that is executed by its name was not replaced.
        let front = self.ends.queue.front();
        let is_named = front.is_some_and(|front| match &front.what {
            What::Query(cached, _) => cached.executes().next().is_some(),
            What::Execute(_) => {
                let runs = front.runs.as_deref();
                runs.is_none_or(|cached| cached.executes().next().is_some())
            }
            _ => false,
        });
        if denied && is_named && self.ends.session.values.asks_for_lost() {
            return Some(Box::new(in_the_spool()));
        }
        let values = &self.ends.session.values;
        let unseen = (is_named || self.left.look == Look::Cannot) && !values.is_empty();
        let may_have = denied && (values.is_incomplete() || unseen);
        self.ends.session.asks |= may_have;
        may_have.then(|| Box::new(cannot_tell()))
    }

    fn ready(&mut self, body: &[u8]) {
        let is_end = |what: &What| matches!(what, What::Sync | What::Query(..) | What::Function);
        let ended = self.ends.queue.pop_if(is_end);
        self.muted |= ended.as_ref().is_some_and(|ended| ended.muted);
        self.ends.queue.unconfirmed.confirmed();
        if ended.is_none_or(|expect| expect.early.is_none() && !expect.muted) {
            // A statement that was answered early has failed, and no other message was sent since.
            self.deferred.say_error(self.ends.session);
        }
        let mut status = body.first().copied().unwrap_or(b'I');
        if self.block_start.settle(&mut self.ends, status) {
            status = b'E';
            if !std::mem::replace(&mut self.muted, true) {
                answer::ready(&mut self.ends.session.connection.out, status);
            }
        }
        if let Some(told) = self.aside.ended(&mut self.ends)
            && !std::mem::replace(&mut self.muted, true)
        {
            answer::ready(&mut self.ends.session.connection.out, told);
        }
        if status == b'I' {
            self.deferred.has_ended();
        }
        let settings = &mut self.ends.session.who.settings;
        if self.left.ready((self.ends.status, status), settings) {
            self.here.note_settings(self.ends.session);
            self.ends.session.reads_committed = None;
        }
        self.ends.status = status;
    }

    /// Replaces the server process's number by that of the sending session.
    fn notification(&mut self, body: &[u8]) {
        let Some((process, rest)) = body.split_first_chunk::<4>() else {
            return;
        };
        let process = i32::from_be_bytes(*process);
        if let Some(session) = self.ends.session.shared.senders.session(process) {
            self.muted = true;
            answer::message(&mut self.ends.session.connection.out, b'A', |out| {
                out.extend_from_slice(&session.to_be_bytes());
                out.extend_from_slice(rest);
            });
        }
    }

    fn parameter(&mut self, body: &[u8]) {
        self.ends.loan.wire.note_parameter(body);
        let mut parts = body.split(|byte| *byte == 0);
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            return;
        };
        match name {
            b"search_path" | b"session_authorization" | b"is_superuser" => {
                self.left.note_reported();
            }
            b"standard_conforming_strings" => self.ends.session.standard_strings = value == b"on",
            b"client_encoding" => self.ends.session.utf8 = value.eq_ignore_ascii_case(b"UTF8"),
            b"application_name" => {
                let name: windrow_core::Name = String::from_utf8_lossy(value).into();
                self.ends.session.info.set_application_name(name.clone());
                self.ends.session.who.application_name = name;
            }
            _ => {}
        }
    }
}

/// Returns true for an error that the server also reports in a failed transaction: a message does
/// not match its statement, or a name is taken.
fn is_said_anyway(fault: &Fault) -> bool {
    matches!(&*fault.code, "08P01" | "42P05")
}

/// Returns true for an error after which the server closes the connection.
fn ends_connection(error: &[u8]) -> bool {
    let mut fields = error.split(|byte| *byte == 0);
    fields.any(|field| matches!(field, b"VFATAL" | b"VPANIC"))
}

/// Returns true for messages whose bodies must be examined.
fn is_looked_at(tag: u8) -> bool {
    matches!(tag, b'A' | b'C' | b'E' | b'S' | b'Z')
}
