//! The session's statements at the server: prepared there under names that all sessions share, as they are needed.

use std::sync::Arc;

use windrow_core::{Fault, FaultClass};

use super::expect::{Place, Undo, What};
use super::{Relay, rewrite};
use crate::codec::answer;
use crate::codec::message::Parse;
use crate::pool::Names;
use crate::session::{Entry, Prepared, local};

impl Relay<'_> {
    pub(super) fn parse(&mut self, parse: &Parse<'_>, muted: bool) {
        let session = &mut *self.session;
        let known = session.statements.get(parse.name).is_some();
        if !parse.name.is_empty() && known {
            let name = String::from_utf8_lossy(parse.name);
            let text = format!("prepared statement \"{name}\" already exists");
            return self.fail(Fault::new(FaultClass::Invalid, "42P05", text));
        }
        if !parse.name.is_empty() && session.statements.is_full() {
            return self.fail(crate::session::too_many_statements());
        }
        let readings = &session.house.readings;
        let prepared = readings.get(parse.text, parse.type_oids(), session.utf8);
        if let Err(fault) = local::check(&prepared) {
            return self.fail(fault);
        }
        let key = (prepared.number, self.settings);
        let before = session
            .statements
            .set(parse.name, Some(Entry::new(Arc::clone(&prepared))));
        let undo = Some(Undo {
            name: parse.name.into(),
            before,
        });
        self.unnamed_here |= parse.name.is_empty();
        let place = match parse.name {
            [] => Place::Unnamed,
            _ => Place::Named(key),
        };
        self.prepare(place, key, &prepared, undo, muted);
    }

    /// Prepares a text at the server. `undo`: how the session was, where its client asked for it.
    pub(super) fn prepare(
        &mut self,
        place: Place,
        key: (u64, u64),
        prepared: &Prepared,
        undo: Option<Undo>,
        muted: bool,
    ) {
        let sql = local::substitute(prepared, self.session.join);
        let sql = sql.as_deref().map_or(&*prepared.text, str::as_bytes);
        let out = self.loan.wire.out();
        match place {
            Place::Named(_) => {
                // It may be there from before, under a table that has changed since, or because a message was passed over.
                let name = Names::name(key);
                rewrite::statement(out, b'C', name.as_bytes());
                self.queue.push(What::Close(None), true);
                rewrite::parse(out, name.as_bytes(), sql, &prepared.types);
                let oldest = self.loan.names.add(key);
                self.queue.push(What::Parse(place, undo), muted);
                if let Some(oldest) = oldest {
                    let name = Names::name(oldest);
                    rewrite::statement(self.loan.wire.out(), b'C', name.as_bytes());
                    self.queue.push(What::Close(None), true);
                }
            }
            Place::Unnamed | Place::Passing => {
                rewrite::parse(out, b"", sql, &prepared.types);
                self.loan.names.unnamed = Some(key);
                self.queue.push(What::Parse(Place::Unnamed, undo), muted);
            }
        }
    }

    /// Makes sure that the session's statement of a name is prepared here, and gives the name that it has here. `None`: the
    /// session has no such statement.
    pub(super) fn prepared_here(&mut self, name: &[u8]) -> Option<(Arc<Prepared>, String)> {
        let entry = self.session.statements.get(name);
        let prepared = entry.map(|entry| Arc::clone(&entry.prepared));
        let Some(prepared) = prepared else {
            if name.is_empty() && self.loan.names.unnamed.take().is_some() {
                // What is there belongs to somebody else.
                rewrite::statement(self.loan.wire.out(), b'C', b"");
                self.queue.push(What::Close(None), true);
            }
            return None;
        };
        let key = (prepared.number, self.settings);
        if name.is_empty() {
            if self.loan.names.unnamed != Some(key) {
                self.prepare(Place::Unnamed, key, &prepared, None, true);
            }
            return Some((prepared, String::new()));
        }
        if !self.loan.names.has(key) {
            self.prepare(Place::Named(key), key, &prepared, None, true);
        }
        Some((prepared, Names::name(key)))
    }

    pub(super) fn with_statement(&mut self, tag: u8, name: &[u8], bytes: &[u8]) {
        match self.prepared_here(name) {
            Some((_, here)) => rewrite::statement(self.loan.wire.out(), tag, here.as_bytes()),
            None => self.loan.wire.out().extend_from_slice(bytes),
        }
    }

    pub(super) fn close(&mut self, name: &[u8], bytes: &[u8], muted: bool) {
        let before = self.session.statements.set(name, None);
        let undo = before.map(|before| Undo {
            name: name.into(),
            before: Some(before),
        });
        if name.is_empty() || undo.is_none() {
            if name.is_empty() {
                self.loan.names.unnamed = None;
            }
            return self.pass(bytes, What::Close(undo), muted);
        }
        // It stays prepared for others.
        self.queue
            .push(What::Own(answer::CLOSE_COMPLETE, undo), muted);
    }
}
