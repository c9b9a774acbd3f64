//! The session's prepared statements on the server connection, under names that all sessions share.
//!
//! A statement is prepared there when other parts of the relay need it.

use std::hash::BuildHasher;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_core::{Fault, FaultClass};

use super::ends::Ends;
use super::expect::{PreparedAs, Undo, What};
use super::{rewrite, unknown};
use crate::codec::answer;
use crate::codec::message::{Bind, Kind, Message, Parse};
use crate::pool::{Names, StatementKey};
use crate::session::local;
use crate::session::state::Session;
use crate::statements::{
    CachedStatement, ClientName, FixedTypes, PreparedStatement, PreparedStatements, too_many,
};

/// The session's statements on its server connection.
pub(super) struct StatementsHere {
    /// A fingerprint of the session's settings, under which its statements are prepared.
    pub(super) settings: u64,
    /// True if the unnamed statement was parsed since the last Sync.
    pub(super) is_unnamed_new: bool,
    /// The types of an unnamed statement whose client may use it in a later segment: they are asked
    /// for at Sync.
    pub(super) unfixed: Option<FixedTypes>,
    /// The types of a statement that is being prepared again, which the next message waits for.
    awaited: Option<AwaitedTypes>,
    /// True if SQL may have prepared statements on the server connection.
    pub(super) sql_prepares: bool,
    /// The preparation of statements that are named in the simple query at the front of the inbox.
    pub(super) preparing: Option<Preparing>,
}

/// A preparation, for a simple query, that was sent.
#[derive(Default)]
pub(super) struct Preparing {
    /// The body of the server's error.
    pub(super) error: Option<Bytes>,
}

/// The types of a statement that is being prepared again.
struct AwaitedTypes {
    fixed: FixedTypes,
    /// True if the statement is prepared with the types that its client named, false for the types
    /// that were reported to the client.
    is_own: bool,
}

impl StatementsHere {
    /// Returns the state of a session that has just got a connection.
    pub(super) fn new(session: &Session) -> Self {
        Self {
            settings: fingerprint(session),
            is_unnamed_new: false,
            unfixed: None,
            awaited: None,
            sql_prepares: false,
            preparing: None,
        }
    }

    pub(super) fn parse(&mut self, ends: &mut Ends<'_>, parse: &Parse<'_>, muted: bool) {
        let session = &mut *ends.session;
        let cached = session.prepared(parse);
        if let Some(fault) = refused_name(parse.name, &session.statements) {
            // The server checks the name only after it has parsed the text.
            ends.pass_statement(&cached.text, &cached.types);
            return ends.fail(fault);
        }
        if let Err(fault) = local::check(&cached, &session.own, session.allowed()) {
            return match parse.name {
                [] => self.fail_unnamed(ends, fault),
                _ => ends.fail(fault),
            };
        }
        if self.sql_prepares && !parse.name.is_empty() {
            self.check_name(ends, &cached, parse.name);
        }
        let session = &mut *ends.session;
        let statement = PreparedStatement::new(cached);
        let (cached, fixed) = (Arc::clone(&statement.cached), statement.fixed.clone());
        let before = session.statements.set(parse.name, Some(statement));
        let undo = Some(Undo {
            name: parse.name.into(),
            before,
        });
        self.is_unnamed_new |= parse.name.is_empty();
        self.prepare(ends, parse.name, &cached, fixed, undo, muted);
    }

    /// Removes the unnamed statement, as any simple query does.
    pub(super) fn remove_unnamed(&mut self, ends: &mut Ends<'_>) {
        ends.session.statements.set(b"", None);
        ends.loan.names.unnamed = None;
        self.unfixed = None;
    }

    /// Notes a simple query: it removes the unnamed statement.
    pub(super) fn note_query(&mut self, ends: &mut Ends<'_>) {
        self.is_unnamed_new = false;
        self.remove_unnamed(ends);
    }

    /// Notes a Sync.
    pub(super) fn note_sync(&mut self) {
        self.awaited = None;
        self.is_unnamed_new = false;
    }

    /// Notes that the server passes over a message of the client.
    pub(super) fn note_skipped(&mut self) {
        self.awaited = None;
    }

    /// Notes that the text of a statement may prepare statements by SQL.
    pub(super) fn note_text(&mut self, cached: &CachedStatement) {
        self.sql_prepares |= cached.prepares();
    }

    /// Notes that the session's settings have changed.
    pub(super) fn note_settings(&mut self, session: &Session) {
        self.settings = fingerprint(session);
    }

    /// Returns true while types are waited for.
    pub(super) fn is_waiting(&self) -> bool {
        self.awaited.is_some()
    }

    /// Notes a Bind of the unnamed statement. Asks for its types if its execution may change the
    /// meaning of the text.
    pub(super) fn note_unnamed_bound(&mut self, ends: &mut Ends<'_>, cached: &CachedStatement) {
        match cached.may_infer() {
            true => self.ask_for_types(ends),
            false => self.unfixed = None,
        }
    }

    /// Lets the server report if SQL has prepared another statement under this name. The server
    /// checks the name after it has parsed the text.
    fn check_name(&mut self, ends: &mut Ends<'_>, cached: &CachedStatement, name: &[u8]) {
        ends.pass_statement(&cached.text, &cached.types);
        unknown::check(ends, name);
    }

    /// Prepares a text at the server for the client's statement of a name. `fixed`: the place for
    /// the types that the server reports. `undo`: the statement before, if the client asked for
    /// this one.
    fn prepare(
        &mut self,
        ends: &mut Ends<'_>,
        name: &[u8],
        cached: &CachedStatement,
        fixed: FixedTypes,
        undo: Option<Undo>,
        muted: bool,
    ) {
        let key = (cached.number, self.settings);
        let sql = local::substitute(cached, &ends.session.own);
        // A DEALLOCATE is prepared unchanged: its name counts once it is bound.
        let renamed = self.renamed(ends, cached, &cached.text);
        let renamed = renamed.filter(|renamed| !renamed.renames.removes);
        let own = sql
            .as_deref()
            .or(renamed.as_ref().map(|renamed| &*renamed.sql));
        let sql = own.map_or(&*cached.text, str::as_bytes);
        if name.is_empty() {
            rewrite::parse(ends.out(), b"", sql, &cached.types);
            ends.loan.names.unnamed = Some((key, fixed.clone()));
            self.unfixed = fixed.get().is_none().then_some(fixed);
            ends.queue
                .push(What::Parse(PreparedAs::Unnamed, undo), muted);
            if let Some(renamed) = renamed {
                ends.queue.note_renames(Box::new(renamed.renames));
            }
            return;
        }
        // The statement may exist, for a table that has changed since, or because a message was
        // skipped.
        let name = Names::name(key);
        ends.close_statement(name.as_bytes());
        rewrite::parse(ends.out(), name.as_bytes(), sql, &cached.types);
        let oldest = ends.loan.names.add(key, fixed.clone());
        ends.queue
            .push(What::Parse(PreparedAs::Named(key), undo), muted);
        if let Some(renamed) = renamed {
            ends.queue.note_renames(Box::new(renamed.renames));
        }
        ask(ends, name.as_bytes(), fixed);
        if let Some(oldest) = oldest {
            ends.close_statement(Names::name(oldest).as_bytes());
        }
    }

    /// Asks, at Sync, for the types of the unnamed statement, if it was not used yet, or was used
    /// before its types were known.
    pub(super) fn ask_for_types(&mut self, ends: &mut Ends<'_>) {
        let unfixed = self.unfixed.take();
        if let Some(fixed) = unfixed.filter(|_| !ends.queue.skipping && !ends.queue.copying) {
            ask(ends, b"", fixed);
        }
    }

    /// Returns true while a statement is prepared here that was prepared elsewhere, and whose
    /// result columns may have changed: this takes a round trip.
    pub(super) fn has_to_prepare(&mut self, ends: &mut Ends<'_>, tag: u8, total: usize) -> bool {
        let was_own = match &self.awaited {
            Some(awaited) if awaited.fixed.get().is_none() => return !ends.queue.is_empty(),
            Some(awaited) => Some(awaited.is_own),
            None => None,
        };
        let name: ClientName = match ends.message(tag, total) {
            Message::Bind(bind) if self.misfit(ends, &bind).is_some() => return false,
            Message::Bind(bind) => bind.statement.into(),
            Message::Describe(Kind::Statement, name) => name.into(),
            _ => return false,
        };
        let Some(statement) = ends.session.statements.get(&name) else {
            return false;
        };
        let Some(fixed) = statement.fixed.get() else {
            return false;
        };
        // A statement without result columns is described without the server.
        let is_inferred = tag == b'B' && fixed.parameters != statement.cached.types;
        let is_checked = is_inferred || fixed.fields.is_some();
        let is_known = statement.cached.names_statements() || self.has(ends, statement, &name);
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
        let statement = statement.clone();
        self.prepare_again(ends, &statement, &name, is_own, fixed.clone());
        ends.flush();
        self.awaited = Some(AwaitedTypes { fixed, is_own });
        true
    }

    /// Returns the server's error for a Bind with another number of values. In a failed
    /// transaction, a statement that is not prepared here cannot be prepared, so the server could
    /// not report it.
    pub(super) fn misfit(&self, ends: &Ends<'_>, bind: &Bind<'_>) -> Option<Fault> {
        let (count, wanted) = (bind.count, ends.wanted(bind)?);
        let statement = ends.session.statements.get(bind.statement)?;
        if ends.status != b'E' || self.has(ends, statement, bind.statement) {
            return None;
        }
        let name = String::from_utf8_lossy(bind.statement);
        let text = format!(
            "bind message supplies {count} parameters, but prepared statement \"{name}\" requires {wanted}"
        );
        Some(Fault::new(FaultClass::Invalid, "08P01", text))
    }

    /// Returns true if a statement is here, with the types that were reported to its client.
    fn has(&self, ends: &Ends<'_>, statement: &PreparedStatement, name: &[u8]) -> bool {
        self.key_of(ends, statement, name).is_some()
    }

    /// Returns the name that a statement has here, with the types that were reported to its client.
    pub(super) fn name_of(
        &self,
        ends: &Ends<'_>,
        statement: &PreparedStatement,
        name: &[u8],
    ) -> Option<String> {
        let key = self.key_of(ends, statement, name)?;
        Some(match name {
            [] => String::new(),
            _ => Names::name(key),
        })
    }

    fn key_of(
        &self,
        ends: &Ends<'_>,
        statement: &PreparedStatement,
        name: &[u8],
    ) -> Option<StatementKey> {
        if statement.cached.names_statements() {
            // The text at the server depends on the session.
            return None;
        }
        let session = &ends.session;
        let exact = statement.exact(&session.shared.cache, session.utf8);
        let keys = [statement.cached.number, exact.number].map(|number| (number, self.settings));
        let names = &ends.loan.names;
        if name.is_empty() {
            let (key, fixed) = names.unnamed.as_ref()?;
            return (keys.contains(key) && fixed.fits(&statement.fixed)).then_some(*key);
        }
        keys.into_iter().find(|key| {
            let fixed = names.fixed_types(*key);
            fixed.is_some_and(|fixed| fixed.fits(&statement.fixed))
        })
    }

    /// Prepares a statement that was prepared elsewhere, with the types that its client named, or
    /// with those that were reported to it. `fixed`: the place for the types that the server
    /// reports. Returns its name here.
    pub(super) fn prepare_again(
        &mut self,
        ends: &mut Ends<'_>,
        statement: &PreparedStatement,
        name: &[u8],
        is_own: bool,
        fixed: FixedTypes,
    ) -> String {
        let session = &ends.session;
        let prepared = match is_own {
            true => Arc::clone(&statement.cached),
            false => statement.exact(&session.shared.cache, session.utf8),
        };
        let key = (prepared.number, self.settings);
        self.prepare(ends, name, &prepared, fixed, None, true);
        if name.is_empty() {
            if let Some(unfixed) = self.unfixed.take() {
                ask(ends, b"", unfixed);
            }
            return String::new();
        }
        Names::name(key)
    }

    /// Makes sure that the session's statement of a name is prepared here.
    pub(super) fn prepared_here(&mut self, ends: &mut Ends<'_>, name: &[u8]) -> Here {
        let Some(statement) = ends.session.statements.get(name).cloned() else {
            if name.is_empty() {
                // An existing unnamed statement belongs to another session.
                ends.loan.names.unnamed = None;
                ends.close_statement(b"");
            }
            return Here::Nowhere;
        };
        let awaited = self.awaited.take();
        match self.name_of(ends, &statement, name) {
            Some(here) => Here::As(statement.cached, here),
            None if awaited.is_some() => Here::Changed,
            None => {
                let fixed = match statement.fixed.get() {
                    Some(_) => FixedTypes::default(),
                    None => statement.fixed.clone(),
                };
                let here = self.prepare_again(ends, &statement, name, true, fixed);
                Here::As(statement.cached, here)
            }
        }
    }

    /// Returns the name that the session's statement has here, even if its result columns have
    /// changed.
    pub(super) fn named_here(&mut self, ends: &mut Ends<'_>, name: &[u8]) -> Option<String> {
        match self.prepared_here(ends, name) {
            Here::As(_, here) => Some(here),
            Here::Changed | Here::Nowhere => None,
        }
    }

    /// Describes a statement of the session.
    pub(super) fn describe(&mut self, ends: &mut Ends<'_>, name: &[u8], bytes: &[u8], muted: bool) {
        let statement = ends.session.statements.get(name);
        let fixed = statement.and_then(|statement| statement.fixed.get().cloned());
        if let Some(fixed) = fixed.as_ref().filter(|fixed| fixed.fields.is_none()) {
            // The server describes any statement that it has without checking its tables, in a
            // failed transaction as well.
            return ends.say_parameters(&fixed.parameters, answer::NO_DATA, muted);
        }
        match self.prepared_here(ends, name) {
            Here::As(_, here) => rewrite::statement(ends.out(), b'D', here.as_bytes()),
            Here::Nowhere => return unknown::describe(ends, name, bytes, muted),
            Here::Changed => {
                let parameters = fixed.as_ref().map_or(&[][..], |fixed| &fixed.parameters);
                ends.say_parameters(parameters, &[], muted);
                return ends.fail(other_rows());
            }
        }
        ends.queue.push(What::DescribeStatement, muted);
    }

    /// Closes a statement of the session.
    pub(super) fn close(&mut self, ends: &mut Ends<'_>, name: &[u8], bytes: &[u8], muted: bool) {
        let before = ends.session.statements.set(name, None);
        let is_there = before.is_some();
        let undo = Undo {
            name: name.into(),
            before,
        };
        if name.is_empty() {
            ends.loan.names.unnamed = None;
            self.unfixed = None;
            return ends.pass(bytes, What::Close(Some(undo)), muted);
        }
        if !is_there {
            return unknown::close(ends, name, bytes, muted);
        }
        // It stays prepared for others.
        let closed = Bytes::from_static(answer::CLOSE_COMPLETE);
        ends.queue
            .push(What::LocalAnswer(closed, Some(undo)), muted);
    }
}

/// Asks for the types of the statement of a name.
fn ask(ends: &mut Ends<'_>, name: &[u8], fixed: FixedTypes) {
    rewrite::statement(ends.out(), b'D', name);
    ends.queue.push(What::Types(fixed), true);
}

/// Returns a number for the settings under which statements are prepared.
fn fingerprint(session: &Session) -> u64 {
    let set = &session.who.settings.set;
    match set.is_empty() {
        true => 0,
        false => foldhash::fast::FixedState::default().hash_one(set),
    }
}

/// Returns the reason why a statement cannot be prepared under a name.
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

/// The place of a session's statement on the server connection.
pub(super) enum Here {
    /// The statement is prepared under this name.
    As(Arc<CachedStatement>, String),
    /// The result columns of the statement have changed since they were reported to its client.
    Changed,
    /// The session has no such statement.
    Nowhere,
}

/// Returns the server's error for a statement whose result columns have changed since it was
/// parsed. Drivers recognize it by the position in the server's source, and prepare the statement
/// again.
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
