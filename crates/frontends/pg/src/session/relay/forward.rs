//! From the client to the server.

use windrow_sql::Commits;

use super::expect::What;
use super::portals::Bound;
use super::rewrite;
use super::sequences::named;
use super::state::{Relay, TO_SERVER};
use super::statements::{Here, other_rows};
use crate::codec::answer;
use crate::codec::frame::{Front, HEADER, Violation};
use crate::codec::message::{Bind, Kind, Message};
use crate::pool::PASSING;
use crate::session::local;
use crate::session::state::End;

impl Relay<'_> {
    /// Passes on what the client has sent, as far as the server takes it.
    pub(super) fn forward(&mut self) -> Result<(), End> {
        loop {
            if self.to_server > 0 {
                if !self.pass_piece() {
                    return Ok(());
                }
                continue;
            }
            if self.is_busy() {
                return Ok(());
            }
            match self.session.connection.front(0) {
                Ok(Front::Whole { tag, total }) => {
                    let waits = self.has_to_reach()
                        || self.needs_look()
                        || self.has_to_judge_first()
                        || self.waits_for_early(tag, total)
                        || self.waits_for_lane(tag, total);
                    if waits || !self.message(tag, total) {
                        return Ok(());
                    }
                }
                // COPY data may be of any length.
                Ok(Front::Part {
                    header: Some((b'd', total)),
                }) => self.to_server = total,
                Ok(Front::Part { .. }) => return Ok(()),
                Err(violation) if !self.queue.is_owed() => self.violated(violation)?,
                // What was asked before is answered first.
                Err(_) => return Ok(()),
            }
        }
    }

    /// Deals with what is no message, or too long a one: that one is passed over, and what it
    /// belongs to fails.
    fn violated(&mut self, violation: Violation) -> Result<(), End> {
        let Violation::TooLong { tag, length, .. } = violation else {
            return Err(violation.into());
        };
        self.session.connection.discard(HEADER + length);
        if self.queue.skipping {
            return Ok(());
        }
        let fault = violation.fault();
        match tag {
            b'P' => {
                self.open = true;
                self.fail_unnamed(fault);
            }
            b'B' | b'D' | b'E' | b'C' => {
                self.open = true;
                self.fail(fault);
            }
            _ => self.fail_query(fault),
        }
        Ok(())
    }

    /// True where the front of the inbox is a part of a message.
    pub(super) fn needs_more(&self) -> bool {
        matches!(self.session.connection.front(0), Ok(Front::Part { .. }))
    }

    /// A long message of which a part is there, and for which memory has to be taken.
    pub(super) fn uncharged(&self) -> Option<(u8, usize)> {
        match self.session.connection.front(0) {
            Ok(Front::Part {
                header: Some((tag, total)),
            }) if tag != b'd' && self.session.connection.needs_charge(total) => Some((tag, total)),
            _ => None,
        }
    }

    /// Passes on a piece of a message that was begun. False: nothing more is there.
    fn pass_piece(&mut self) -> bool {
        let connection = &mut self.session.connection;
        let piece = self.to_server.min(connection.inbox.len());
        if piece == 0 || self.loan.wire.out().len() >= TO_SERVER {
            return false;
        }
        if let Some(bytes) = connection.inbox.get(..piece) {
            self.loan.wire.out().extend_from_slice(bytes);
        }
        connection.take(piece);
        self.to_server -= piece;
        true
    }

    /// Deals with a whole message. False: it has to wait for the answers before it.
    fn message(&mut self, tag: u8, total: usize) -> bool {
        if tag == b'X' {
            self.session.connection.ended = true;
            self.session.connection.inbox.clear();
            return false;
        }
        self.has_begun = true;
        if self.queue.skipping && tag != b'S' {
            // What was answered early has failed, and the client waits for more of it.
            self.say_error();
            self.awaited = None;
            self.session.connection.take(total);
            return true;
        }
        if matches!(tag, b'Q' | b'P' | b'B' | b'F')
            && let Some(fault) = self.session.refused_front_for_key()
        {
            self.refuse_front(tag, total, fault);
            return true;
        }
        match tag {
            b'Q' => return self.query(total),
            b'S' => self.sync(total),
            b'F' => {
                self.call_by_number(total);
                self.open = false;
                self.count("a function call");
                self.raw(total);
                self.queue.unconfirmed.sent(Commits::AtSync);
                self.queue.push(What::Function, false);
            }
            b'd' => self.raw(total),
            // One with a body is an error of the segment, as for any message that cannot be read.
            b'H' if total == HEADER => self.raw(total),
            b'c' | b'f' => {
                self.raw(total);
                self.queue.copying = false;
                self.queue.push(What::CopyEnd, false);
            }
            _ if self.has_to_wait(tag, total) || self.has_to_prepare(tag, total) => return false,
            _ => self.extended(tag, total),
        }
        true
    }

    /// True if a message begins a write that is joined once the connection is given back. Replicas
    /// follow what is joined: whether they get a write must not depend on how fast the answers
    /// before it come.
    fn waits_for_lane(&self, tag: u8, total: usize) -> bool {
        let state = &self.server_state;
        let goes_on = state.pinned.is_some() || state.for_good || state.listens;
        let is_open = self.open || self.queue.skipping || self.queue.copying;
        if !self.is_followed || !self.has_begun || goes_on || is_open {
            return false;
        }
        if !self.session.own.join || self.session.asks {
            return false;
        }
        let message = Message::read(tag, self.session.connection.body(0, total));
        let statement = self.statement_of(&message);
        let is_joined = statement.is_some_and(|cached| cached.parsed().is_some() && !cached.asks());
        is_joined && (!self.queue.is_empty() || self.status == b'I')
    }

    /// True where a message names a statement, and it is not known yet whether there is one of that
    /// name: a segment before it may fail, or all statements be removed.
    fn has_to_wait(&self, tag: u8, total: usize) -> bool {
        if !self.queue.is_unsettled() {
            return false;
        }
        let name = match Message::read(tag, self.session.connection.body(0, total)) {
            Message::Parse(parse) if parse.name.is_empty() => return false,
            Message::Parse(parse) => parse.name,
            Message::Bind(bind) => bind.statement,
            Message::Describe(Kind::Statement, name) | Message::Close(Kind::Statement, name) => {
                name
            }
            _ => return false,
        };
        !name.is_empty() || !self.unnamed_here
    }

    fn sync(&mut self, total: usize) {
        let (early, before) = (self.early(b'S', total), self.queue.len());
        self.ask_for_types();
        self.awaited = None;
        self.raw(total);
        self.open = false;
        self.unnamed_here = false;
        self.answered = 0;
        // While it takes COPY data the server passes over Sync.
        if !self.queue.copying {
            self.queue.skipping = false;
            self.queue.push(What::Sync, early.is_some());
            self.tell_early(early, before);
        }
    }

    /// Deals with Parse, Bind, Describe, Execute or Close.
    fn extended(&mut self, tag: u8, total: usize) {
        self.open = true;
        let (early, before) = (self.early(tag, total), self.queue.len());
        // Its bytes are looked at while the session changes.
        let bytes = self.session.connection.split(total);
        let muted = self.answered > 0 || early.is_some();
        self.answered = self.answered.saturating_sub(1);
        match Message::read(tag, bytes.get(HEADER..).unwrap_or_default()) {
            Message::Parse(parse) => self.parse(&parse, muted),
            Message::Bind(bind) => self.bind(&bind, &bytes, muted),
            Message::Describe(Kind::Statement, name) => self.describe(name, &bytes, muted),
            Message::Describe(Kind::Portal, _) => self.pass(&bytes, What::DescribePortal, muted),
            Message::Execute(portal, _) => {
                let set = self.setting_of(portal);
                let clears = set.as_ref().is_some_and(|set| set.clears());
                self.ask_for_types();
                self.pass(&bytes, What::Execute(set), muted);
                self.note_executed(portal);
                let bound = self.portals.bound(portal);
                for commits in bound.commits {
                    self.queue.unconfirmed.sent(commits);
                }
                let removes = bound
                    .renames
                    .as_ref()
                    .is_some_and(|renames| renames.removes);
                if let Some(renames) = bound.renames {
                    self.queue.note_renames(renames);
                }
                if clears || removes {
                    // What comes next may name a statement, and waits for this one's answer.
                    answer::message(self.loan.wire.out(), b'H', |_| {});
                }
            }
            Message::Close(Kind::Statement, name) => self.close(name, &bytes, muted),
            Message::Close(Kind::Portal, _) => self.pass(&bytes, What::Close(None), muted),
            // The server says what is wrong with it.
            _ => self.pass(&bytes, What::Fails(None), false),
        }
        self.tell_early(early, before);
    }

    fn bind(&mut self, bind: &Bind<'_>, bytes: &[u8], muted: bool) {
        if let Some(fault) = self.misfit(bind) {
            return self.fail(fault);
        }
        let (cached, name) = match self.prepared_here(bind.statement) {
            Here::As(cached, name) => (cached, name),
            Here::Nowhere => {
                self.portals.forget(bind.portal);
                return self.pass(bytes, What::Bind(None), muted);
            }
            Here::Changed => return self.fail(other_rows()),
        };
        if self.asks_for_spooled(&cached) {
            return self.fail(local::in_the_spool());
        }
        if bind.statement.is_empty() {
            // What it executes may change what the text means.
            match cached.may_infer() {
                true => self.ask_for_types(),
                false => self.unfixed = None,
            }
        }
        self.note_bound(bind.portal, &cached);
        let named = named(&cached, &cached.text);
        let fits = self.wanted(bind).is_none();
        let mut instead = self.answerable(&cached, &cached.text).filter(|_| fits);
        self.note(&cached, named, Some(bind.portal));
        let commits = self.commits_of(&cached);
        let mut name = name.into_bytes();
        let mut renames = None;
        if fits
            && instead.is_none()
            && let Some(renamed) = self.renamed(&cached, &cached.text)
        {
            instead = Some(renamed.sql);
            renames = Some(Box::new(renamed.renames));
        }
        self.portals.bind(bind.portal, Bound { commits, renames });
        if let Some(sql) = instead {
            self.pass_statement(sql.as_bytes(), &cached.types);
            name = PASSING.as_bytes().to_vec();
        }
        let names = HEADER + bind.portal.len() + bind.statement.len() + 2;
        let rest = bytes.get(names..).unwrap_or_default();
        rewrite::bind(self.loan.wire.out(), bind.portal, &name, rest);
        let is_renamed = !bind.statement.is_empty() || name == PASSING.as_bytes();
        let named = is_renamed.then(|| bind.statement.into());
        self.queue.push(What::Bind(named), muted);
    }
}
