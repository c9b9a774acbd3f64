//! Simple queries, and what is noted of every statement.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::smallvec;
use windrow_calls::Formats;
use windrow_sql::{Commits, Reading, Sequences};

use super::expect::What;
use super::portals::Committing;
use super::preparation::Preparation;
use super::rewrite;
use super::sequences::named;
use super::state::Relay;
use crate::codec::answer;
use crate::session::local::{self, is_windrow_setting};
use crate::statements::CachedStatement;

/// Statements that change a setting and are bound at the same time: past it what they do is found
/// out afterwards.
const SETTING_PORTALS: usize = 16;

impl Relay<'_> {
    /// Deals with a simple query. False: it has to wait for the answers before it.
    pub(super) fn query(&mut self, total: usize) -> bool {
        let body = self.session.connection.body(0, total);
        let Some((0, text)) = body.split_last() else {
            self.raw(total);
            self.queue.push(What::Fails(None), false);
            return true;
        };
        let cached = self.session.simple_query(text).cached;
        if is_windrow_setting(&cached) {
            if !self.queue.is_empty() {
                return false;
            }
            if self.status != b'E' {
                self.session.connection.take(total);
                self.answer_query(&cached);
                return true;
            }
        }
        if self.asks_for_spooled(&cached) {
            self.session.connection.take(total);
            self.fail_spooled_query();
            return true;
        }
        let body = self.session.connection.body(0, total);
        let text = body.split_last().map_or(body, |(_, text)| text);
        let named = named(&cached, text);
        let instead = self.answerable(&cached, text);
        if cached.names_statements() {
            if self.queue.is_unsettled() {
                return false;
            }
            let text = text.to_vec();
            match self.prepare_named(&text) {
                Preparation::Done => {}
                Preparation::UnderWay => return false,
                Preparation::Failed(error) => {
                    self.fail_named(total, &error);
                    return true;
                }
            }
        }
        let (early, before) = (self.early(b'Q', total), self.queue.len());
        self.note(&cached, named, None);
        for commits in self.commits_of(&cached) {
            self.queue.unconfirmed.sent(commits);
        }
        self.unnamed_here = false;
        self.open = false;
        self.remove_unnamed();
        let (mut instead, mut renames, mut notices) = (instead, None, Bytes::new());
        if instead.is_none() && cached.names_statements() {
            let body = self.session.connection.body(0, total);
            let text = body.split_last().map_or(body, |(_, text)| text).to_vec();
            if let Some(renamed) = self.renamed(&cached, &text) {
                instead = Some(renamed.sql);
                renames = Some(Box::new(renamed.renames));
                notices = renamed.notices.freeze();
            }
        }
        let undoes = cached.undoes();
        match instead {
            Some(sql) => {
                self.session.connection.take(total);
                rewrite::query(self.loan.wire.out(), sql.as_bytes());
            }
            None => self.raw(total),
        }
        if !notices.is_empty() {
            self.queue.push(What::LocalAnswer(notices, None), false);
        }
        self.queue.push(What::Query(cached, None), early.is_some());
        if let Some(renames) = renames {
            self.queue.note_renames(renames);
        }
        if undoes {
            self.queue.note_undoing();
        }
        self.tell_early(early, before);
        true
    }

    /// Answers a question to the session itself. Nothing is under way.
    fn answer_query(&mut self, cached: &Arc<CachedStatement>) {
        let checked = local::check(cached, &self.session.own, self.session.allowed());
        match checked.and_then(|()| self.session.reply(cached)) {
            Ok(reply) => {
                let out = &mut self.session.connection.out;
                reply.say(out, &Formats::Text, true);
                answer::ready(out, self.status);
            }
            Err(fault) => self.fail_query(fault),
        }
    }

    /// Takes note of what a statement leaves behind, and counts it.
    /// Sequences that it takes from by their names: `named`.
    pub(super) fn note(
        &mut self,
        cached: &Arc<CachedStatement>,
        named: Option<Sequences>,
        portal: Option<&[u8]>,
    ) {
        let reason = match &cached.reading {
            Reading::Apart(apart) => apart.reason,
            Reading::Join(_) if self.server_state.pinned.is_some() => {
                "the session keeps a server connection"
            }
            Reading::Join(_) if self.status != b'I' => "in a transaction",
            Reading::Join(_) => self.reason,
        };
        self.count(reason);
        if cached.parsed().is_some() || cached.names().is_none_or(|names| names.writes_rows()) {
            self.session.shared.metrics.relayed_writes.inc();
        }
        let is_setting = self.server_state.note(cached) || cached.clears();
        self.sql_prepares |= cached.prepares();
        if let Some(named) = named {
            self.server_state.sequences.note_named(named);
        }
        self.suspect(cached);
        let Some(portal) = portal else { return };
        let bound = &mut self.server_state.set_portals;
        bound.retain(|(name, _)| **name != *portal);
        if is_setting {
            if self.server_state.set_portals.len() < SETTING_PORTALS {
                let bound = (portal.into(), Arc::clone(cached));
                self.server_state.set_portals.push(bound);
            } else {
                self.server_state.unknown = true;
            }
        }
    }

    /// Returns the effects on the transaction of a statement, in the order of its text.
    pub(super) fn commits_of(&self, cached: &Arc<CachedStatement>) -> Committing {
        if cached.parsed().is_some() {
            return smallvec![Commits::AtSync];
        }
        if self.only_reads(cached) {
            return Committing::new();
        }
        match cached.steps() {
            Some(steps) => steps.iter().map(|step| step.commits).collect(),
            None => smallvec![Commits::Anytime],
        }
    }

    pub(super) fn setting_of(&self, portal: &[u8]) -> Option<Arc<CachedStatement>> {
        let bound = self.server_state.set_portals.iter();
        let mut bound = bound.filter(|(name, _)| **name == *portal);
        bound.next().map(|(_, cached)| Arc::clone(cached))
    }
}
