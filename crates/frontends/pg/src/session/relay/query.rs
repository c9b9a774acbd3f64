//! Simple queries, and what is noted of every statement.

use std::sync::Arc;

use windrow_core::statement::Formats;
use windrow_sql::{Reading, Sequences};

use super::expect::What;
use super::rewrite;
use super::sequences::named;
use super::state::Relay;
use crate::codec::answer;
use crate::session::local::is_own;
use crate::statements::{Prepared, names};

/// Statements that change a setting and are bound at the same time: past it what they do is found
/// out afterwards.
const SETTING_PORTALS: usize = 16;

impl Relay<'_> {
    /// Deals with a simple query. False: it has to wait for the answers before it.
    pub(super) fn query(&mut self, total: usize) -> bool {
        let body = self.session.line.body(0, total);
        let Some((0, text)) = body.split_last() else {
            self.raw(total);
            self.queue.push(What::Fails(None), false);
            return true;
        };
        let prepared = self.session.readings_of_query(text).prepared;
        if is_own(&prepared) {
            if !self.queue.is_empty() {
                return false;
            }
            if self.status != b'E' {
                self.session.line.take(total);
                self.answer_query(&prepared);
                return true;
            }
        }
        let named = named(&prepared, text);
        let instead = self.answerable(&prepared, text, named.as_ref());
        let names_one = prepared.deallocates.is_some() || names::executed(&prepared.text).is_some();
        if names_one && self.queue.is_unsettled() {
            return false;
        }
        self.note(&prepared, named, None);
        self.unnamed_here = false;
        self.open = false;
        self.session.statements.set(b"", None);
        self.loan.names.unnamed = None;
        let instead = instead
            .or_else(|| self.deallocated(&prepared))
            .or_else(|| self.executed(&prepared));
        match instead {
            Some(sql) => {
                self.session.line.take(total);
                rewrite::query(self.loan.wire.out(), sql.as_bytes());
            }
            None => self.raw(total),
        }
        self.queue.push(What::Query(prepared, None), false);
        true
    }

    /// Answers a question to the session itself. Nothing is under way.
    fn answer_query(&mut self, prepared: &Arc<Prepared>) {
        match self.session.reply(prepared) {
            Ok(reply) => {
                let out = &mut self.session.line.out;
                reply.say(out, &Formats::Text, true);
                answer::ready(out, self.status);
            }
            Err(fault) => {
                // The transaction has to fail as well.
                rewrite::query(self.loan.wire.out(), b"windrow fails");
                let what = What::Query(Arc::clone(prepared), Some(Box::new(fault)));
                self.queue.push(what, false);
            }
        }
    }

    /// Takes note of what a statement leaves behind, and counts it.
    /// Sequences that it takes from by their names: `named`.
    pub(super) fn note(
        &mut self,
        prepared: &Arc<Prepared>,
        named: Option<Sequences>,
        portal: Option<&[u8]>,
    ) {
        let reason = match &prepared.reading {
            Reading::Apart(apart) => apart.reason,
            Reading::Join(_) if self.residue.pinned.is_some() => {
                "the session keeps a server connection"
            }
            Reading::Join(_) if self.status != b'I' => "in a transaction",
            Reading::Join(_) => self.reason,
        };
        self.count(reason);
        let is_setting = self.residue.note(prepared) || prepared.clears;
        self.note_taken(prepared, named);
        self.suspect(prepared);
        let Some(portal) = portal else { return };
        let bound = &mut self.residue.set_portals;
        bound.retain(|(name, _)| **name != *portal);
        if is_setting {
            if self.residue.set_portals.len() < SETTING_PORTALS {
                let bound = (portal.into(), Arc::clone(prepared));
                self.residue.set_portals.push(bound);
            } else {
                self.residue.unknown = true;
            }
        }
    }

    pub(super) fn setting_of(&self, portal: &[u8]) -> Option<Arc<Prepared>> {
        let bound = self.residue.set_portals.iter();
        let mut bound = bound.filter(|(name, _)| **name == *portal);
        bound.next().map(|(_, prepared)| Arc::clone(prepared))
    }
}
