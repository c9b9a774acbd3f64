//! The session's statements at the server: prepared there under names that all sessions share, as
//! they are needed.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_core::{Fault, FaultClass};

use super::expect::{PreparedAs, Undo, What};
use super::rewrite;
use super::state::{Awaited, Relay};
use crate::codec::answer;
use crate::codec::message::{Bind, Kind, Message, Parse};
use crate::pool::{Names, PASSING, StatementKey};
use crate::session::local;
use crate::statements::{
    CachedStatement, ClientName, FixedTypes, PreparedStatement, PreparedStatements, too_many,
};

impl Relay<'_> {
    /// What is known of the statement that a message of the client brings or uses, if there is one.
    pub(super) fn statement_of(&self, message: &Message<'_>) -> Option<Arc<CachedStatement>> {
        let session = &*self.session;
        match message {
            Message::Query(text) => Some(session.simple_query(text).cached),
            Message::Parse(parse) => Some(session.prepared(parse)),
            Message::Bind(bind) => {
                let statement = session.statements.get(bind.statement)?;
                Some(Arc::clone(&statement.cached))
            }
            _ => None,
        }
    }

    pub(super) fn parse(&mut self, parse: &Parse<'_>, muted: bool) {
        let session = &mut *self.session;
        let cached = session.prepared(parse);
        if let Some(fault) = refused_name(parse.name, &session.statements) {
            // The server looks at the name once it has understood the text.
            self.pass_statement(&cached.text, &cached.types);
            return self.fail(fault);
        }
        if let Err(fault) = local::check(&cached, &session.own, session.allowed()) {
            return match parse.name {
                [] => self.fail_unnamed(fault),
                _ => self.fail(fault),
            };
        }
        if self.sql_prepares && !parse.name.is_empty() {
            self.check_name(&cached, parse.name);
        }
        let session = &mut *self.session;
        let statement = PreparedStatement::new(cached);
        let (cached, fixed) = (Arc::clone(&statement.cached), statement.fixed.clone());
        let before = session.statements.set(parse.name, Some(statement));
        let undo = Some(Undo {
            name: parse.name.into(),
            before,
        });
        self.unnamed_here |= parse.name.is_empty();
        let key = (cached.number, self.settings);
        let place = match parse.name {
            [] => PreparedAs::Unnamed,
            _ => PreparedAs::Named(key),
        };
        self.prepare(place, key, &cached, fixed, undo, muted);
    }

    /// Sends a Parse of the unnamed statement that fails with this error: as any such Parse it
    /// removes the statement that is there.
    pub(super) fn fail_unnamed(&mut self, fault: Fault) {
        let undo = Undo {
            name: ClientName::new(),
            before: self.session.statements.set(b"", None),
        };
        self.unnamed_here = true;
        rewrite::parse(self.loan.wire.out(), b"", b"windrow fails", &[]);
        let parse = What::Parse(PreparedAs::Unnamed, Some(undo));
        self.queue.push(parse, false);
        self.queue.note_fault(fault);
    }

    /// Lets the server say that SQL has prepared another statement under this name. The server
    /// looks at the name once it has understood the text.
    fn check_name(&mut self, cached: &CachedStatement, name: &[u8]) {
        self.pass_statement(&cached.text, &cached.types);
        rewrite::parse(self.loan.wire.out(), name, b"", &[]);
        let passing = What::Parse(PreparedAs::Passing, None);
        self.queue.push(passing, true);
        rewrite::statement(self.loan.wire.out(), b'C', name);
        self.queue.push(What::Close(None), true);
    }

    /// Prepares a text under a name that is used once.
    pub(super) fn pass_statement(&mut self, sql: &[u8], types: &[u32]) {
        let out = self.loan.wire.out();
        rewrite::statement(out, b'C', PASSING.as_bytes());
        rewrite::parse(out, PASSING.as_bytes(), sql, types);
        self.queue.push(What::Close(None), true);
        self.queue
            .push(What::Parse(PreparedAs::Passing, None), true);
    }

    /// Prepares a text at the server. `fixed`: where the types are noted that it gets. `undo`: how
    /// the session was, where its client asked for it.
    fn prepare(
        &mut self,
        place: PreparedAs,
        key: StatementKey,
        cached: &CachedStatement,
        fixed: FixedTypes,
        undo: Option<Undo>,
        muted: bool,
    ) {
        let sql = local::substitute(cached, &self.session.own);
        // A DEALLOCATE is prepared as it is: its name counts once it is bound.
        let renamed = self.renamed(cached, &cached.text);
        let renamed = renamed.filter(|renamed| !renamed.renames.removes);
        let own = sql
            .as_deref()
            .or(renamed.as_ref().map(|renamed| &*renamed.sql));
        let sql = own.map_or(&*cached.text, str::as_bytes);
        let out = self.loan.wire.out();
        match place {
            PreparedAs::Named(_) => {
                // It may be there from before, under a table that has changed since, or because a
                // message was passed over.
                let name = Names::name(key);
                rewrite::statement(out, b'C', name.as_bytes());
                self.queue.push(What::Close(None), true);
                rewrite::parse(out, name.as_bytes(), sql, &cached.types);
                let oldest = self.loan.names.add(key, fixed.clone());
                self.queue.push(What::Parse(place, undo), muted);
                if let Some(renamed) = renamed {
                    self.queue.note_renames(Box::new(renamed.renames));
                }
                self.ask(name.as_bytes(), fixed);
                if let Some(oldest) = oldest {
                    let name = Names::name(oldest);
                    rewrite::statement(self.loan.wire.out(), b'C', name.as_bytes());
                    self.queue.push(What::Close(None), true);
                }
            }
            PreparedAs::Unnamed | PreparedAs::Passing => {
                rewrite::parse(out, b"", sql, &cached.types);
                self.loan.names.unnamed = Some((key, fixed.clone()));
                self.unfixed = fixed.get().is_none().then_some(fixed);
                self.queue
                    .push(What::Parse(PreparedAs::Unnamed, undo), muted);
                if let Some(renamed) = renamed {
                    self.queue.note_renames(Box::new(renamed.renames));
                }
            }
        }
    }

    /// Asks which types the statement of a name was given.
    fn ask(&mut self, name: &[u8], fixed: FixedTypes) {
        rewrite::statement(self.loan.wire.out(), b'D', name);
        self.queue.push(What::Types(fixed), true);
    }

    /// At Sync: what the types of the unnamed statement are, where it was not used yet, or was used
    /// without anybody knowing them.
    pub(super) fn ask_for_types(&mut self) {
        let unfixed = self.unfixed.take();
        if let Some(fixed) = unfixed.filter(|_| !self.queue.skipping && !self.queue.copying) {
            self.ask(b"", fixed);
        }
    }

    /// True while a statement is prepared here that was prepared elsewhere, and whose rows may be
    /// others by now: a round trip.
    pub(super) fn has_to_prepare(&mut self, tag: u8, total: usize) -> bool {
        let was_own = match &self.awaited {
            Some(awaited) if awaited.fixed.get().is_none() => return !self.queue.is_empty(),
            Some(awaited) => Some(awaited.is_own),
            None => None,
        };
        let name: ClientName = match Message::read(tag, self.session.connection.body(0, total)) {
            Message::Bind(bind) if self.misfit(&bind).is_some() => return false,
            Message::Bind(bind) => bind.statement.into(),
            Message::Describe(Kind::Statement, name) => name.into(),
            _ => return false,
        };
        let Some(statement) = self.session.statements.get(&name) else {
            return false;
        };
        let Some(fixed) = statement.fixed.get() else {
            return false;
        };
        // Without rows a statement is described without the server.
        let is_inferred = tag == b'B' && fixed.parameters != statement.cached.types;
        let is_checked = is_inferred || fixed.fields.is_some();
        let is_known =
            statement.cached.names_statements() || self.name_of(statement, &name).is_some();
        if !is_checked || is_known {
            return false;
        }
        let is_own = match was_own {
            None => true,
            // A table has changed since: the types that the client knows stay.
            Some(true) if fixed.parameters != statement.cached.types => false,
            Some(_) => return false,
        };
        let fixed = FixedTypes::default();
        self.prepare_again(&statement.clone(), &name, is_own, fixed.clone());
        answer::message(self.loan.wire.out(), b'H', |_| {});
        self.awaited = Some(Awaited { fixed, is_own });
        true
    }

    /// The parameters that a statement has, where a Bind brings another number of values.
    pub(super) fn wanted(&self, bind: &Bind<'_>) -> Option<usize> {
        let statement = self.session.statements.get(bind.statement)?;
        let wanted = statement.fixed.get()?.parameters.len();
        (bind.count != wanted).then_some(wanted)
    }

    /// What the server says of such a Bind. In a failed transaction a statement that is not here
    /// cannot be prepared again, so that the server could say it.
    pub(super) fn misfit(&self, bind: &Bind<'_>) -> Option<Fault> {
        let (count, wanted) = (bind.count, self.wanted(bind)?);
        let statement = self.session.statements.get(bind.statement)?;
        if self.status != b'E' || self.name_of(statement, bind.statement).is_some() {
            return None;
        }
        let name = String::from_utf8_lossy(bind.statement);
        let text = format!(
            "bind message supplies {count} parameters, but prepared statement \"{name}\" requires {wanted}"
        );
        Some(Fault::new(FaultClass::Invalid, "08P01", text))
    }

    /// The name that a statement has here, with the types that its client was told.
    pub(super) fn name_of(&self, statement: &PreparedStatement, name: &[u8]) -> Option<String> {
        if statement.cached.names_statements() {
            // The text at the server depends on the session.
            return None;
        }
        let session = &self.session;
        let exact = statement.exact(&session.shared.cache, session.utf8);
        let keys = [statement.cached.number, exact.number].map(|number| (number, self.settings));
        let names = &self.loan.names;
        if name.is_empty() {
            let (key, fixed) = names.unnamed.as_ref()?;
            return (keys.contains(key) && fixed.fits(&statement.fixed)).then(String::new);
        }
        let mut fitting = keys.into_iter().filter(|key| {
            names
                .fixed_types(*key)
                .is_some_and(|fixed| fixed.fits(&statement.fixed))
        });
        fitting.next().map(Names::name)
    }

    /// Prepares a statement that was prepared elsewhere: with the types that its client named, or
    /// with those that it was told. `fixed`: where the types are noted that the statement gets.
    pub(super) fn prepare_again(
        &mut self,
        statement: &PreparedStatement,
        name: &[u8],
        is_own: bool,
        fixed: FixedTypes,
    ) -> String {
        let session = &self.session;
        let prepared = match is_own {
            true => Arc::clone(&statement.cached),
            false => statement.exact(&session.shared.cache, session.utf8),
        };
        let key = (prepared.number, self.settings);
        let place = match name {
            [] => PreparedAs::Unnamed,
            _ => PreparedAs::Named(key),
        };
        self.prepare(place, key, &prepared, fixed, None, true);
        if let (PreparedAs::Unnamed, Some(unfixed)) = (place, self.unfixed.take()) {
            self.ask(b"", unfixed);
        }
        match name {
            [] => String::new(),
            _ => Names::name(key),
        }
    }

    /// Makes sure that the session's statement of a name is prepared here.
    pub(super) fn prepared_here(&mut self, name: &[u8]) -> Here {
        let Some(statement) = self.session.statements.get(name).cloned() else {
            if name.is_empty() {
                // What may be there belongs to another session.
                self.loan.names.unnamed = None;
                rewrite::statement(self.loan.wire.out(), b'C', b"");
                self.queue.push(What::Close(None), true);
            }
            return Here::Nowhere;
        };
        let awaited = self.awaited.take();
        match self.name_of(&statement, name) {
            Some(here) => Here::As(statement.cached, here),
            None if awaited.is_some() => Here::Changed,
            None => {
                let fixed = match statement.fixed.get() {
                    Some(_) => FixedTypes::default(),
                    None => statement.fixed.clone(),
                };
                let here = self.prepare_again(&statement, name, true, fixed);
                Here::As(statement.cached, here)
            }
        }
    }

    /// The name that the session's statement has here, whatever rows it gives by now.
    pub(super) fn named_here(&mut self, name: &[u8]) -> Option<String> {
        match self.prepared_here(name) {
            Here::As(_, here) => Some(here),
            Here::Changed | Here::Nowhere => None,
        }
    }

    pub(super) fn describe(&mut self, name: &[u8], bytes: &[u8], muted: bool) {
        let statement = self.session.statements.get(name);
        let fixed = statement.and_then(|statement| statement.fixed.get().cloned());
        if let Some(fixed) = fixed.as_ref().filter(|fixed| fixed.fields.is_none()) {
            // The server says it of any statement that it has, without a look at its tables, in a
            // failed transaction as well.
            return self.say_parameters(&fixed.parameters, answer::NO_DATA, muted);
        }
        match self.prepared_here(name) {
            Here::As(_, here) => rewrite::statement(self.loan.wire.out(), b'D', here.as_bytes()),
            Here::Nowhere => self.loan.wire.out().extend_from_slice(bytes),
            Here::Changed => {
                let parameters = fixed.as_ref().map_or(&[][..], |fixed| &fixed.parameters);
                self.say_parameters(parameters, &[], muted);
                return self.fail(other_rows());
            }
        }
        self.queue.push(What::DescribeStatement, muted);
    }

    /// ParameterDescription, and what stands behind it.
    fn say_parameters(&mut self, types: &[u32], behind: &[u8], muted: bool) {
        let mut said = BytesMut::new();
        answer::parameters(&mut said, types);
        said.put_slice(behind);
        let said = What::LocalAnswer(said.freeze(), None);
        self.queue.push(said, muted);
    }

    pub(super) fn close(&mut self, name: &[u8], bytes: &[u8], muted: bool) {
        let before = self.session.statements.set(name, None);
        let is_there = before.is_some();
        let undo = Undo {
            name: name.into(),
            before,
        };
        if name.is_empty() {
            self.loan.names.unnamed = None;
            self.unfixed = None;
            return self.pass(bytes, What::Close(Some(undo)), muted);
        }
        if !is_there {
            return self.pass(bytes, What::Close(None), muted);
        }
        // It stays prepared for others.
        let closed = Bytes::from_static(answer::CLOSE_COMPLETE);
        self.queue
            .push(What::LocalAnswer(closed, Some(undo)), muted);
    }
}

/// Why a statement cannot be prepared under a name.
fn refused_name(name: &[u8], statements: &PreparedStatements) -> Option<Fault> {
    if name.is_empty() {
        return None;
    }
    if statements.get(name).is_none() {
        return statements.is_full().then(too_many);
    }
    let name = String::from_utf8_lossy(name);
    let text = format!("prepared statement \"{name}\" already exists");
    Some(Fault::new(FaultClass::Invalid, "42P05", text))
}

/// Where a session's statement is on the server connection.
pub(super) enum Here {
    /// It is there, under this name.
    As(Arc<CachedStatement>, String),
    /// It gives other rows by now than its client was told.
    Changed,
    /// The session has no such statement.
    Nowhere,
}

/// What the server says of a statement that gives other rows than when it was parsed. Drivers know
/// it by the place in the server's source, and prepare the statement anew.
pub(super) fn other_rows() -> Fault {
    const WORDS: &str = "cached plan must not change result type";
    let fields = [
        (b'S', "ERROR"),
        (b'V', "ERROR"),
        (b'C', "0A000"),
        (b'M', WORDS),
        (b'F', "plancache.c"),
        (b'R', "RevalidateCachedQuery"),
    ];
    let mut said = BytesMut::new();
    answer::message(&mut said, b'E', |out| {
        for (field, value) in fields {
            out.put_u8(field);
            answer::text(out, value.as_bytes());
        }
        out.put_u8(0);
    });
    Fault::new(FaultClass::Unsupported, "0A000", WORDS).with_verbatim(&*said)
}
