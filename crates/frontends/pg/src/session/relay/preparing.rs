//! Preparing the session's statements that a simple query names, before the query is sent.
//!
//! A simple query ends whatever extended messages stand before it, and an error among those would
//! swallow it. So what it names is prepared in a cycle of its own, which the query waits for.

use bytes::{BufMut, Bytes};
use windrow_sql::NameUsage;

use super::expect::What;
use super::preparation::{Preparation, Preparing};
use super::state::Relay;
use crate::codec::answer;
use crate::statements::FixedTypes;

impl Relay<'_> {
    /// Prepares the session's statements that a simple query names and that are not here.
    pub(super) fn prepare_named(&mut self, text: &[u8]) -> Preparation {
        if self.preparing.is_some() && !self.queue.is_empty() {
            return Preparation::UnderWay;
        }
        if let Some(preparing) = self.preparing.take() {
            return preparing
                .error
                .map_or(Preparation::Done, Preparation::Failed);
        }
        let missing = self.missing(text);
        if missing.is_empty() || self.open || self.status == b'E' {
            return Preparation::Done;
        }
        if !self.queue.is_empty() {
            return Preparation::UnderWay;
        }
        for name in &missing {
            if let Some(statement) = self.session.statements.get(name).cloned() {
                let fixed = match statement.fixed.get() {
                    Some(_) => FixedTypes::default(),
                    None => statement.fixed.clone(),
                };
                self.prepare_again(&statement, name, true, fixed);
            }
        }
        answer::message(self.loan.wire.out(), b'S', |_| {});
        self.queue.push(What::Sync, true);
        self.preparing = Some(Preparing::default());
        Preparation::UnderWay
    }

    /// The names in a text of the session's statements that are executed and are not here.
    fn missing(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let text = std::str::from_utf8(text).ok();
        let steps = text.and_then(windrow_sql::steps).unwrap_or_default();
        let names = steps.into_iter().filter_map(|step| step.names);
        let names = names
            .filter(|named| matches!(named.usage, NameUsage::Executes | NameUsage::Prepares))
            .map(|named| named.name.as_bytes().to_vec());
        let is_missing = |name: &Vec<u8>| {
            let statement = self.session.statements.get(name);
            statement.is_some_and(|statement| {
                let is_plain = !statement.cached.names_statements();
                is_plain && self.name_of(statement, name).is_none()
            })
        };
        names.filter(is_missing).collect()
    }

    /// Keeps an error of such a preparation: it is the answer to the query. False: it is of
    /// something else.
    pub(super) fn keep_of_preparing(&mut self, body: &[u8]) -> bool {
        let Some(preparing) = &mut self.preparing else {
            return false;
        };
        preparing.error = Some(Bytes::copy_from_slice(body));
        self.muted = true;
        true
    }

    /// Answers a simple query with the error of its preparation.
    pub(super) fn fail_named(&mut self, total: usize, error: &[u8]) {
        self.session.connection.take(total);
        self.remove_unnamed();
        self.unnamed_here = false;
        let out = &mut self.session.connection.out;
        answer::message(out, b'E', |out| out.put_slice(error));
        answer::ready(out, self.status);
    }
}
