//! From the server to the client.

use std::sync::Arc;

use windrow_calls::Signature;
use windrow_core::Fault;

use super::expect::{Expect, PreparedAs, Told, Undo, What};
use super::renames::{Completion, Renames};
use super::rewrite;
use super::server_state::Look;
use super::state::{Relay, fingerprint};
use crate::codec::{answer, failure};
use crate::pool::Names;
use crate::session::client_connection::HIGH;
use crate::session::local::{aborted, cannot_tell, is_windrow_setting};
use crate::statements::ClientName;

/// A message that is looked at as a whole is no longer than this, in bytes; a longer one passes
/// unseen.
const LOOKED_AT: usize = 64 * 1024;

impl Relay<'_> {
    /// Passes on what the server has sent, as far as the client takes it.
    pub(super) fn deliver(&mut self) {
        while self.session.connection.out.len() < HIGH {
            if self.to_client == 0 {
                self.say_local();
                if !self.begin() {
                    return;
                }
            }
            let received = self.loan.wire.received();
            let piece = self.to_client.min(received.len());
            if piece == 0 {
                return;
            }
            if let (false, Some(bytes)) = (self.muted, received.get(..piece)) {
                self.session.connection.out.extend_from_slice(bytes);
            }
            self.loan.wire.consume(piece);
            self.to_client -= piece;
        }
    }

    /// Says answers of our own that are next.
    fn say_local(&mut self) {
        while let Some(local) = self
            .queue
            .pop_if(|what| matches!(what, What::LocalAnswer(..)))
        {
            if let (false, What::LocalAnswer(message, _)) = (local.muted, local.what) {
                self.session.connection.out.extend_from_slice(&message);
            }
        }
    }

    /// Looks at the next message. False: too little of it is there.
    fn begin(&mut self) -> bool {
        let received = self.loan.wire.received();
        let Some((&[tag, a, b, c, d], behind)) = received.split_first_chunk::<5>() else {
            return false;
        };
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let body = length.saturating_sub(4);
        let is_whole = behind.len() >= body;
        let types = matches!(tag, b't' | b'T') && self.queue.asks_for_types();
        let is_looked_at = is_looked_at(tag) || types;
        if is_looked_at && !is_whole && body <= LOOKED_AT {
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
        if self.is_about_channels(tag) {
            return;
        }
        let is_told = self.is_told(tag);
        self.react(tag, body);
        // What ends the connection is told.
        self.muted |= is_told && !self.queue.has_passed_fatal();
    }

    /// True where the client was told before what this says.
    fn is_told(&mut self, tag: u8) -> bool {
        let is_said = matches!(tag, b'N' | b'A' | b'S');
        !is_said
            && self
                .queue
                .front()
                .is_some_and(|front| front.early.is_some())
    }

    fn react(&mut self, tag: u8, body: &[u8]) {
        match tag {
            b'1' => self.answered_by(|what| matches!(what, What::Parse(..))),
            b'2' => self.answered_by(|what| matches!(what, What::Bind(_))),
            b'3' => self.answered_by(|what| matches!(what, What::Close(_))),
            b't' => {
                self.muted = self.queue.front().is_some_and(|front| front.muted);
                self.parameters = body.into();
            }
            b'T' | b'n' => self.described(tag, body),
            b's' | b'I' => self.answered_by(|what| matches!(what, What::Execute(_))),
            b'C' => self.complete(body),
            b'E' => self.failed(body),
            b'Z' => self.ready(body),
            b'G' => self.queue.begin_copy(),
            b'S' => self.parameter(body),
            b'A' => self.notification(body),
            _ => {}
        }
    }

    /// A statement or portal is described, to its client or to us.
    fn described(&mut self, tag: u8, body: &[u8]) {
        let describes = |what: &What| {
            matches!(
                what,
                What::DescribeStatement | What::DescribePortal | What::Types(_)
            )
        };
        let Some(expect) = self.queue.pop_if(describes) else {
            return;
        };
        self.muted = expect.muted;
        let parameters = std::mem::take(&mut self.parameters);
        if let Some(Told::Types(cached, told)) = &expect.early
            && !parameters.is_empty()
            && **told != *parameters
        {
            return self.was_wrong(cached, &cached.text);
        }
        // One that is too long to be looked at stays unknown.
        let is_known = !parameters.is_empty() && (tag == b'n' || !body.is_empty());
        if let (What::Types(fixed), true) = (expect.what, is_known) {
            fixed.set(&Arc::new(Signature {
                parameters: answer::oids(&parameters).collect(),
                fields: (tag == b'T').then(|| body.into()),
            }));
        }
    }

    fn answered_by(&mut self, is_it: impl FnOnce(&What) -> bool) {
        if let Some(expect) = self.queue.pop_if(is_it) {
            self.muted = expect.muted;
        }
    }

    fn complete(&mut self, body: &[u8]) {
        let tag = body.split_last().map_or(&[][..], |(_, tag)| tag);
        if matches!(tag, b"DISCARD ALL" | b"DEALLOCATE ALL") {
            self.session.statements.clear_named();
            self.loan.names.clear_named();
        }
        if matches!(tag, b"DISCARD ALL" | b"DISCARD SEQUENCES") {
            self.session.values.clear();
        }
        let mut executed = self.queue.pop_if(|what| matches!(what, What::Execute(_)));
        let renames = match &mut executed {
            Some(executed) => executed.renames.as_deref_mut(),
            None => self.queue.renames(),
        };
        let removed = match renames.and_then(Renames::completed) {
            Some(Completion::Deallocates(name)) => Some(name),
            Some(Completion::Inserted) => {
                self.muted = true;
                return;
            }
            None => None,
        };
        let is_muted = executed.as_ref().is_some_and(|executed| executed.muted);
        self.muted |= is_muted;
        let tag = match removed {
            Some(name) => {
                self.session.statements.set(name.as_bytes(), None);
                self.muted = true;
                if !is_muted {
                    answer::complete(&mut self.session.connection.out, "DEALLOCATE");
                }
                b"DEALLOCATE"
            }
            None => tag,
        };
        let complete = executed.as_ref().or_else(|| self.queue.front());
        let undoes = complete.is_some_and(|expect| expect.undoes);
        let told = complete.and_then(|expect| expect.early.clone());
        let cached = match complete.map(|expect| &expect.what) {
            Some(What::Execute(cached)) => cached.clone(),
            Some(What::Query(cached, _)) => Some(Arc::clone(cached)),
            _ => None,
        };
        if let Some(setting) = cached
            .as_deref()
            .filter(|cached| is_windrow_setting(cached))
        {
            // It was checked before it was sent.
            self.session.reply(setting).ok();
        }
        if let Some(told) = told.filter(|_| tag != b"INSERT 0 1")
            && let Some(cached) = told.cached()
        {
            self.was_wrong(cached, told.text());
        }
        if tag == b"ROLLBACK" {
            self.has_rolled_back(undoes);
        }
        self.server_state.completed(tag, cached);
    }

    fn failed(&mut self, body: &[u8]) {
        if [&b"VFATAL\0"[..], b"VPANIC\0"]
            .iter()
            .any(|severity| memchr::memmem::find(body, severity).is_some())
        {
            self.queue.note_fatal();
        }
        self.server_state.failed(self.status);
        self.queue.unconfirmed.failed();
        if let Some(told) = self.queue.front().and_then(|front| front.early.clone()) {
            self.keep_error(body, told.text());
            return self.pass_over();
        }
        if self.tell_error() || self.keep_of_preparing(body) {
            return self.pass_over();
        }
        let instead = self.queue.front().and_then(|expect| match &expect.what {
            What::Query(_, Some(fault)) | What::Fails(Some(fault)) => Some(fault.clone()),
            _ => expect.fault.clone(),
        });
        let instead = instead.or_else(|| self.unknown_sequence(body));
        let out = &mut self.session.connection.out;
        if let Some(fault) = instead {
            self.muted = true;
            match self.status {
                b'E' if !is_told_anyway(&fault) => failure::fault(out, &aborted()),
                _ => failure::fault(out, &fault),
            }
        } else if let Some(What::Bind(Some(name))) = self.queue.front().map(|expect| &expect.what)
            && let Some(place) = Names::find(body)
        {
            self.muted = true;
            rewrite::error(out, body, place, name);
        } else if let Some(renames) = self.queue.renames() {
            self.muted = true;
            renames.translate(body, out);
        }
        self.pass_over();
    }

    /// After an error the server passes over the rest of the segment.
    fn pass_over(&mut self) {
        let front = self.queue.front().map(|expect| &expect.what);
        let simple = front.map(|what| matches!(what, What::Query(..) | What::Function));
        // The server removes the unnamed statement before it reads the text of another one.
        let removes = matches!(front, Some(What::Parse(PreparedAs::Unnamed, Some(_))));
        if simple == Some(false) {
            for passed_over in self.queue.skip_to_sync() {
                self.undo(passed_over);
            }
        }
        if removes {
            self.set_back(Undo {
                name: ClientName::new(),
                before: None,
            });
        }
    }

    /// What is said in place of the server's word that nothing was taken from a sequence, where
    /// that may have been elsewhere.
    fn unknown_sequence(&mut self, body: &[u8]) -> Option<Box<Fault>> {
        // The place in the server's source is the same in all languages.
        let said_by = |routine: &[u8]| memchr::memmem::find(body, routine).is_some();
        let denied = said_by(b"Rcurrval_oid\0") || said_by(b"Rlastval\0");
        let values = &self.session.values;
        let unseen = self.server_state.look == Look::Cannot && !values.is_empty();
        let may_have = denied && (values.is_incomplete() || unseen);
        self.session.asks |= may_have;
        may_have.then(|| Box::new(cannot_tell()))
    }

    /// Undoes what a message did to the session that the server has passed over, or that failed.
    fn undo(&mut self, expect: Expect) {
        let undo = match expect.what {
            What::Parse(place, undo) => {
                match place {
                    PreparedAs::Named(key) => self.loan.names.remove(key),
                    PreparedAs::Unnamed => self.loan.names.unnamed = None,
                    PreparedAs::Passing => {}
                }
                undo
            }
            What::Close(undo) | What::LocalAnswer(_, undo) => undo,
            _ => None,
        };
        if let Some(undo) = undo {
            self.set_back(undo);
        }
    }

    fn set_back(&mut self, undo: Undo) {
        if let Some(Undo { name, before }) = self.queue.undo_under_later(undo) {
            if name.is_empty() {
                self.unfixed = None;
            }
            self.session.statements.set(&name, before);
        }
    }

    fn ready(&mut self, body: &[u8]) {
        let is_end = |what: &What| matches!(what, What::Sync | What::Query(..) | What::Function);
        let ended = self.queue.pop_if(is_end);
        self.muted |= ended.as_ref().is_some_and(|ended| ended.muted);
        self.queue.unconfirmed.confirmed();
        if ended.is_none_or(|expect| expect.early.is_none()) {
            // What was answered early has failed, and nothing else was asked since.
            self.say_error();
        }
        let status = body.first().copied().unwrap_or(b'I');
        if status == b'I' {
            self.has_ended();
            let settings = &mut self.session.who.settings;
            if self.server_state.settle(self.status, settings) {
                self.settings = fingerprint(self.session);
            }
        }
        if status != b'I' || self.status != b'I' {
            // A transaction may take the function with it.
            self.server_state.look = Look::Unknown;
        }
        self.status = status;
    }

    /// Says who has sent it by the number that the sending session was told.
    fn notification(&mut self, body: &[u8]) {
        let Some((process, rest)) = body.split_first_chunk::<4>() else {
            return;
        };
        let process = i32::from_be_bytes(*process);
        if let Some(session) = self.session.shared.senders.session(process) {
            self.muted = true;
            answer::message(&mut self.session.connection.out, b'A', |out| {
                out.extend_from_slice(&session.to_be_bytes());
                out.extend_from_slice(rest);
            });
        }
    }

    fn parameter(&mut self, body: &[u8]) {
        self.loan.wire.note_parameter(body);
        let mut parts = body.split(|byte| *byte == 0);
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            return;
        };
        match name {
            b"search_path" | b"session_authorization" | b"is_superuser" => {
                self.server_state.is_doubted |= !self.server_state.moved;
            }
            b"standard_conforming_strings" => self.session.standard_strings = value == b"on",
            b"client_encoding" => self.session.utf8 = value.eq_ignore_ascii_case(b"UTF8"),
            b"application_name" => {
                let name: windrow_core::Name = String::from_utf8_lossy(value).into();
                self.session.info.set_application_name(name.clone());
                self.session.who.application_name = name;
            }
            _ => {}
        }
    }
}

/// True for what the server says in a failed transaction too: that a message does not fit its
/// statement, and that a name is taken by another one.
fn is_told_anyway(fault: &Fault) -> bool {
    matches!(&*fault.code, "08P01" | "42P05")
}

/// Messages whose bodies matter.
fn is_looked_at(tag: u8) -> bool {
    matches!(tag, b'A' | b'C' | b'E' | b'S' | b'Z')
}
