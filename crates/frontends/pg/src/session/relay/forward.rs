//! Messages from the client to the server.

use std::sync::Arc;

use bytes::Bytes;
use windrow_sql::{Commits, Reading, Sequences};

use super::Relay;
use super::defer::Early;
use super::ends::TO_SERVER;
use super::expect::What;
use super::portals::Bound;
use super::renamed::Preparation;
use super::sequences::{asks_for_spooled, named_in};
use super::statements::{Here, other_rows};
use super::{rewrite, unknown};
use crate::codec::message::{Bind, Front, HEADER, Kind, Message, Violation};
use crate::pool::PASSING;
use crate::session::keys;
use crate::session::local::{self, is_windrow_setting};
use crate::session::state::End;
use crate::statements::CachedStatement;

impl Relay<'_> {
    /// Passes on the client's messages, as far as the server accepts them.
    pub(super) fn forward(&mut self) -> Result<(), End> {
        loop {
            if self.to_server > 0 {
                if !self.pass_piece() {
                    return Ok(());
                }
                continue;
            }
            if self.ends.is_busy() {
                return Ok(());
            }
            if self.answers_block() {
                continue;
            }
            match self.ends.session.connection.front(0) {
                Ok(Front::Whole { tag, total }) => {
                    let waits = self.ends.queue.ends_with_values()
                        || self.waits_for_block()
                        || self.aside.is_awaited(&self.ends)
                        || self.aside.asks(&self.ends, &self.left)
                        || self.has_to_reach()
                        || self.left.needs_look(&self.ends)
                        || self.left.has_to_judge_first(&self.ends)
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
                Err(violation) if !self.ends.queue.is_owed() => self.violated(violation)?,
                // Earlier messages are answered first.
                Err(_) => return Ok(()),
            }
        }
    }

    /// Handles invalid bytes, or a too long message: it is skipped, and its query or segment fails.
    fn violated(&mut self, violation: Violation) -> Result<(), End> {
        let Violation::TooLong { tag, length, .. } = violation else {
            return Err(violation.into());
        };
        self.ends.session.connection.discard(HEADER + length);
        if self.ends.queue.skipping {
            return Ok(());
        }
        let fault = violation.fault();
        self.begin_block(tag, 0);
        match tag {
            b'P' => {
                self.ends.is_open = true;
                self.here.fail_unnamed(&mut self.ends, fault);
            }
            b'B' | b'D' | b'E' | b'C' => {
                self.ends.is_open = true;
                self.ends.fail(fault);
            }
            _ => self.here.fail_query(&mut self.ends, fault),
        }
        Ok(())
    }

    /// Passes on a piece of an incomplete message. Returns false if no more bytes have arrived.
    fn pass_piece(&mut self) -> bool {
        let connection = &mut self.ends.session.connection;
        let piece = self.to_server.min(connection.inbox.len());
        if piece == 0 || self.ends.loan.wire.out().len() >= TO_SERVER {
            return false;
        }
        if let Some(bytes) = connection.inbox.get(..piece) {
            self.ends.loan.wire.out().extend_from_slice(bytes);
        }
        connection.take(piece);
        self.to_server -= piece;
        true
    }

    /// Handles a complete message. Returns false if it has to wait for earlier answers.
    fn message(&mut self, tag: u8, total: usize) -> bool {
        if tag == b'X' {
            self.ends.session.connection.ended = true;
            self.ends.session.connection.inbox.clear();
            return false;
        }
        self.has_begun = true;
        self.ends.note_length(tag, total);
        let is_aside = self.aside.takes(&self.ends, &self.left, (tag, total));
        if !is_aside && !self.begin_block(tag, total) {
            return false;
        }
        let (ends, here) = (&mut self.ends, &mut self.here);
        if self.block_start.refuses(ends, here, total) {
            return true;
        }
        if self.ends.queue.skipping && tag != b'S' {
            // A statement that was answered early has failed, and the client waits for more.
            self.deferred.say_error(self.ends.session);
            self.here.note_skipped();
            self.ends.session.connection.take(total);
            return true;
        }
        if matches!(tag, b'Q' | b'P' | b'B' | b'F')
            && let Some(fault) = keys::refused_front(self.ends.session)
            && !self.ends.session.front_is(CachedStatement::only_ends)
        {
            self.here.refuse(&mut self.ends, tag, total, fault);
            return true;
        }
        match tag {
            b'Q' => return self.query(total),
            b'S' => self.sync(total),
            b'F' => {
                self.left.call_by_number(&self.ends, total);
                self.ends.is_open = false;
                self.ends.count("a function call");
                self.ends.raw(total);
                self.ends.queue.unconfirmed.sent(Commits::AtSync);
                self.ends.queue.push(What::Function, false);
            }
            b'd' => self.ends.raw(total),
            // A Flush with a body is an error of the segment, like any unreadable message.
            b'H' if total == HEADER => self.ends.raw(total),
            b'c' | b'f' => {
                self.ends.raw(total);
                self.ends.queue.copying = false;
                self.ends.queue.push(What::CopyEnd, false);
            }
            _ if self.has_to_wait(tag, total) => return false,
            _ if self.here.has_to_prepare(&mut self.ends, tag, total) => return false,
            _ => self.extended(tag, total),
        }
        true
    }

    /// Returns true if a message begins a write that is joined once the connection is given back.
    /// Only joined writes reach replicas and are executed under keys. Neither may depend on how
    /// fast earlier answers arrive.
    fn waits_for_lane(&self, tag: u8, total: usize) -> bool {
        let is_open = self.ends.is_open || self.ends.queue.skipping || self.ends.queue.copying;
        let has_to_join = self.is_followed || self.ends.session.own.key.is_some();
        let is_unsent = self.ends.session.unsent_block.is_some();
        if !has_to_join || is_unsent || !self.has_begun || self.left.is_kept() || is_open {
            return false;
        }
        if !self.ends.session.own.join || self.ends.session.asks {
            return false;
        }
        let message = self.ends.message(tag, total);
        let statement = self.ends.statement_of(&message);
        let is_joined = statement.is_some_and(|cached| cached.parsed().is_some() && !cached.asks());
        is_joined && (!self.ends.queue.is_empty() || self.ends.status == b'I')
    }

    /// Returns true if a message uses a statement's name, and it is not known yet if that name
    /// exists: an earlier segment may fail, or all statements may be removed.
    fn has_to_wait(&self, tag: u8, total: usize) -> bool {
        if !self.ends.queue.is_unsettled() {
            return false;
        }
        let name = match self.ends.message(tag, total) {
            Message::Parse(parse) if parse.name.is_empty() => return false,
            Message::Parse(parse) => parse.name,
            Message::Bind(bind) => bind.statement,
            Message::Describe(Kind::Statement, name) | Message::Close(Kind::Statement, name) => {
                name
            }
            _ => return false,
        };
        !name.is_empty() || !self.here.is_unnamed_new
    }

    fn sync(&mut self, total: usize) {
        let (early, before) = (self.early(b'S', total), self.ends.queue.len());
        self.here.ask_for_types(&mut self.ends);
        self.here.note_sync();
        self.ends.raw(total);
        self.ends.is_open = false;
        self.answered = 0;
        // While it expects COPY data, the server skips Sync.
        if !self.ends.queue.copying {
            self.ends.queue.skipping = false;
            self.ends.queue.push(What::Sync, early.is_some());
            self.deferred.answer(&mut self.ends, early, before);
            let settings = self.here.settings;
            self.question.follow(&mut self.ends, &self.left, settings);
        }
    }

    /// Returns the answer to the message at the front of the inbox, if it is certain before the
    /// server has sent it.
    fn early(&mut self, tag: u8, total: usize) -> Option<Early> {
        if !self.ends.session.own.late {
            return None;
        }
        let is_as_in_lane = self.left.is_as_in_lane();
        let may_answer = self.deferred.may_answer(&self.ends, is_as_in_lane)
            && self.answered == 0
            && self.to_server == 0
            && (self.to_client == 0 || self.muted);
        may_answer
            .then(|| self.deferred.early(&self.ends, tag, total))
            .flatten()
    }

    /// Returns true if a message has to wait until the server has sent the answers that the client
    /// got early.
    fn waits_for_early(&mut self, tag: u8, total: usize) -> bool {
        let passes = matches!(tag, b'H' | b'd' | b'X');
        if passes || !self.ends.queue.has_early() || self.early(tag, total).is_some() {
            return false;
        }
        self.deferred.flush(&mut self.ends);
        true
    }

    /// Handles Parse, Bind, Describe, Execute or Close.
    fn extended(&mut self, tag: u8, total: usize) {
        self.ends.is_open = true;
        let (early, before) = (self.early(tag, total), self.ends.queue.len());
        // Its bytes are read while the session changes.
        let bytes = self.ends.session.connection.split(total);
        let muted = self.answered > 0 || early.is_some();
        self.answered = self.answered.saturating_sub(1);
        match Message::read(tag, bytes.get(HEADER..).unwrap_or_default()) {
            Message::Parse(parse) => self.here.parse(&mut self.ends, &parse, muted),
            Message::Bind(bind) => self.bind(&bind, &bytes, muted),
            Message::Describe(Kind::Statement, name) => {
                self.here.describe(&mut self.ends, name, &bytes, muted);
            }
            Message::Describe(Kind::Portal, _) => {
                self.ends.pass(&bytes, What::DescribePortal, muted);
            }
            Message::Execute(portal, _) => self.execute(portal, &bytes, muted),
            Message::Close(Kind::Statement, name) => {
                self.here.close(&mut self.ends, name, &bytes, muted);
            }
            Message::Close(Kind::Portal, _) => self.ends.pass(&bytes, What::Close(None), muted),
            // The server reports what is wrong with it.
            _ => self.ends.pass(&bytes, What::Fails(None), false),
        }
        self.deferred.answer(&mut self.ends, early, before);
    }

    fn execute(&mut self, portal: &[u8], bytes: &[u8], muted: bool) {
        let set = self.left.settings.bound(portal);
        let clears = set.as_ref().is_some_and(|set| set.clears());
        self.here.ask_for_types(&mut self.ends);
        self.ends.pass(bytes, What::Execute(set), muted);
        if self.deferred.undoes(portal) {
            self.ends.queue.note_undoing();
        }
        let bound = self.portals.bound(portal);
        for commits in bound.commits {
            self.ends.queue.unconfirmed.sent(commits);
        }
        self.question.note(bound.cached.as_deref());
        self.ends.queue.note_running(bound.cached);
        let renames = bound.renames;
        let removes = renames.as_ref().is_some_and(|renames| renames.removes);
        if let Some(renames) = renames {
            self.ends.queue.note_renames(renames);
        }
        if clears || removes {
            // The next message may name a statement, and waits for this one's answer.
            self.ends.flush();
        }
    }

    fn bind(&mut self, bind: &Bind<'_>, bytes: &[u8], muted: bool) {
        let ends = &mut self.ends;
        if let Some(fault) = self.here.misfit(ends, bind) {
            return ends.fail(fault);
        }
        let (cached, name) = match self.here.prepared_here(ends, bind.statement) {
            Here::As(cached, name) => (cached, name),
            Here::Nowhere => {
                self.portals.forget(bind.portal);
                return unknown::bind(ends, bind, bytes, muted);
            }
            Here::Changed => return ends.fail(other_rows()),
        };
        if asks_for_spooled(ends, &cached) {
            return ends.fail(local::in_the_spool());
        }
        if bind.statement.is_empty() {
            self.here.note_unnamed_bound(ends, &cached);
        }
        self.deferred.note_bound(bind.portal, &cached);
        let named = named_in(&cached, &cached.text);
        let fits = ends.wanted(bind).is_none();
        let mut instead = self.left.answerable(ends, &cached, &cached.text);
        instead = instead.filter(|_| fits);
        self.note(&cached, named, Some(bind.portal));
        let commits = self.left.commits(&self.ends, &cached);
        let (mut name, mut renames) = (name.into_bytes(), None);
        let ends = &mut self.ends;
        let text = instead.as_deref().map_or(&*cached.text, str::as_bytes);
        if fits && let Some(renamed) = self.here.renamed(ends, &cached, text) {
            instead = Some(renamed.sql);
            renames = Some(Box::new(renamed.renames));
        }
        let bound = Bound {
            cached: Some(Arc::clone(&cached)),
            commits,
            renames,
        };
        self.portals.bind(bind.portal, bound);
        if let Some(sql) = instead {
            ends.pass_statement(sql.as_bytes(), &cached.types);
            name = PASSING.as_bytes().to_vec();
        }
        let rest = rewrite::behind_names(bind, bytes);
        rewrite::bind(ends.out(), bind.portal, &name, rest);
        let is_renamed = !bind.statement.is_empty() || name == PASSING.as_bytes();
        let named = is_renamed.then(|| bind.statement.into());
        ends.queue.push(What::Bind(named), muted);
    }

    /// Handles a simple query. Returns false if it has to wait for earlier answers.
    fn query(&mut self, total: usize) -> bool {
        let body = self.ends.session.connection.body(0, total);
        let Some((0, text)) = body.split_last() else {
            self.ends.raw(total);
            self.ends.queue.push(What::Fails(None), false);
            return true;
        };
        let cached = self.ends.session.simple_query(text).cached.of_sent();
        if is_windrow_setting(&cached) {
            if !self.ends.queue.is_empty() {
                return false;
            }
            if self.ends.status != b'E' {
                self.ends.session.connection.take(total);
                self.answer_query(&cached);
                return true;
            }
        }
        if asks_for_spooled(&mut self.ends, &cached) {
            self.ends.session.connection.take(total);
            let fault = local::in_the_spool();
            self.here.fail_query(&mut self.ends, fault);
            return true;
        }
        let body = self.ends.session.connection.body(0, total);
        let text = body.split_last().map_or(body, |(_, text)| text);
        let named = named_in(&cached, text);
        let instead = self.left.answerable(&self.ends, &cached, text);
        if cached.names_statements() {
            if self.ends.queue.is_unsettled() {
                return false;
            }
            let text = text.to_vec();
            match self.here.prepare_named(&mut self.ends, &text) {
                Preparation::Done => {}
                Preparation::UnderWay => return false,
                Preparation::Failed(error) => {
                    self.here.fail_named(&mut self.ends, total, &error);
                    return true;
                }
            }
        }
        let (early, before) = (self.early(b'Q', total), self.ends.queue.len());
        self.note(&cached, named, None);
        for commits in self.left.commits(&self.ends, &cached) {
            self.ends.queue.unconfirmed.sent(commits);
        }
        self.ends.is_open = false;
        self.here.note_query(&mut self.ends);
        let (mut instead, mut renames, mut notices) = (instead, None, Bytes::new());
        if cached.names_statements() {
            let body = self.ends.session.connection.body(0, total);
            let text = body.split_last().map_or(body, |(_, text)| text);
            let text = instead.as_deref().map_or(text, str::as_bytes).to_vec();
            if let Some(renamed) = self.here.renamed(&mut self.ends, &cached, &text) {
                instead = Some(renamed.sql);
                renames = Some(Box::new(renamed.renames));
                notices = renamed.notices.freeze();
            }
        }
        let undoes = cached.undoes();
        self.question.note(Some(&cached));
        match instead {
            Some(sql) => {
                self.ends.session.connection.take(total);
                rewrite::query(self.ends.out(), sql.as_bytes());
            }
            None => self.ends.raw(total),
        }
        if !notices.is_empty() {
            self.ends
                .queue
                .push(What::LocalAnswer(notices, None), false);
        }
        self.ends
            .queue
            .push(What::Query(cached, None), early.is_some());
        if let Some(renames) = renames {
            self.ends.queue.note_renames(renames);
        }
        if undoes {
            self.ends.queue.note_undoing();
        }
        self.deferred.answer(&mut self.ends, early, before);
        let settings = self.here.settings;
        self.question.follow(&mut self.ends, &self.left, settings);
        true
    }

    /// Counts a statement, and notes what it may leave behind, with the statements that its text
    /// executes. `named`: the sequences from which it takes values by name. `portal`: the one that
    /// it is bound to.
    fn note(
        &mut self,
        cached: &Arc<CachedStatement>,
        named: Option<Sequences>,
        portal: Option<&[u8]>,
    ) {
        let reason = match (&cached.reading, self.left.pinned()) {
            (Reading::Apart(apart), _) => apart.reason,
            (Reading::Join(_), Some(pinned)) => self.ends.note_pinned(pinned),
            (Reading::Join(_), None) if self.ends.status != b'I' => self.ends.block_reason(),
            (Reading::Join(_), None) => self.reason,
        };
        self.ends.count(reason);
        if cached.parsed().is_some() || cached.names().is_none_or(|names| names.writes_rows()) {
            self.ends.session.shared.metrics.relayed_writes.inc();
        }
        self.here.note_text(cached);
        if let Some(named) = named {
            self.left.sequences.note_named(named);
        }
        self.left.note(&mut self.ends, cached, portal);
        let is_unjudged = self.left.note_executed(&mut self.ends, cached);
        if self.ends.session.own.late && (is_unjudged || self.left.is_unjudged(cached)) {
            self.deferred.note_doubtful(cached);
        }
    }
}
