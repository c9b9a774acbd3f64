//! Texts that name the session's prepared statements: EXECUTE, also within EXPLAIN and CREATE TABLE
//! AS, PREPARE, and DEALLOCATE, wherever they stand in a text.
//!
//! A session's statements have names of the process at the server, which all sessions share. So the
//! names in such a text are replaced, and put back in the server's errors. A DEALLOCATE must not
//! take a statement away from other sessions: in its place stands a statement without any effect,
//! and the session forgets its own name.
//!
//! In a failed transaction the server prepares nothing. A text that rolls it back and executes a
//! statement that is not on the connection prepares it by itself, for that one time.

use std::ops::Range;

use bytes::BytesMut;
use windrow_sql::{Commits, NameUsage, Step};

use super::expect::What;
use super::renames::{Completion, Edit, Renames};
use super::rewrite;
use super::state::Relay;
use crate::codec::failure;
use crate::pool::PASSING;
use crate::statements::{CachedStatement, PreparedStatement};

/// The statement in place of DEALLOCATE: it leaves nothing behind, is executed wherever DEALLOCATE
/// is, and refused in a failed transaction.
const NO_EFFECT: &str = "UNLISTEN \"windrow\"";

/// A text as the server gets it.
pub(super) struct Renamed {
    pub(super) sql: String,
    pub(super) renames: Renames,
    /// The notices of names that the server would have cut, had it seen them.
    pub(super) notices: BytesMut,
}

impl Relay<'_> {
    /// The text of a statement with the names that its statements have on this connection, which
    /// are prepared there if need be. `None`: the text names none of the session's statements.
    pub(super) fn renamed(&mut self, cached: &CachedStatement, text: &[u8]) -> Option<Renamed> {
        if !cached.names_statements() {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let steps = windrow_sql::steps(text)?;
        let mut renamed = Renamed {
            sql: String::with_capacity(text.len()),
            renames: Renames::default(),
            notices: BytesMut::new(),
        };
        let (mut copied, mut inserted) = (0, 0);
        for (nth, step) in steps.iter().enumerate() {
            let Some(named) = &step.names else { continue };
            if named.usage == NameUsage::DeallocatesAll {
                break;
            }
            let goes_on = steps.iter().take(nth).any(|step| {
                self.status == b'E' && matches!(step.commits, Commits::Undoes | Commits::UndoesPart)
            });
            let nth = nth + inserted;
            let instead = self.instead(step, (nth, goes_on), &mut renamed.renames);
            if instead.is_empty() {
                continue;
            }
            inserted += instead.len() - 1;
            if let Some(whole) = &named.whole {
                failure::cut_name(&mut renamed.notices, whole, &named.name);
            }
            for (place, instead) in instead {
                renamed.sql.push_str(text.get(copied..place.start)?);
                renamed.sql.push_str(&instead);
                copied = place.end;
                renamed.renames.edits.push(Edit {
                    at: text.get(..place.start)?.chars().count(),
                    before: text.get(place)?.chars().count(),
                    after: instead.chars().count(),
                });
            }
        }
        renamed.sql.push_str(text.get(copied..)?);
        (!renamed.renames.edits.is_empty()).then_some(renamed)
    }

    /// Returns the parts of a text to replace, and their replacements, if a statement of the text
    /// names one of the session's: one part, or three if it is prepared by the text. `nth`: the
    /// place of the statement in the text. `goes_on`: a failed transaction is rolled back before.
    fn instead(
        &mut self,
        step: &Step,
        (nth, goes_on): (usize, bool),
        renames: &mut Renames,
    ) -> Vec<(Range<usize>, String)> {
        let Some(named) = &step.names else {
            return Vec::new();
        };
        let statement = self.session.statements.get(named.name.as_bytes());
        let Some(statement) = statement.filter(|_| !renames.is_gone(&named.name)) else {
            return Vec::new();
        };
        if named.usage == NameUsage::Deallocates {
            renames.removes = true;
            let removes = Completion::Deallocates(named.name.clone());
            renames.others.push_back((nth, removes));
            return vec![(step.place.clone(), NO_EFFECT.to_owned())];
        }
        // The server executes no EXECUTE of an EXECUTE.
        if statement.cached.names_statements() {
            return Vec::new();
        }
        // A Parse that fails before a simple query would swallow the query.
        let is_here = self.name_of(statement, named.name.as_bytes()).is_some();
        if !is_here && !self.open && self.status == b'E' {
            let prepares = named.usage == NameUsage::Executes && goes_on;
            let text = prepares.then(|| self.preparation(statement)).flatten();
            let Some(text) = text else {
                return Vec::new();
            };
            rewrite::statement(self.loan.wire.out(), b'C', PASSING.as_bytes());
            self.queue.push(What::Close(None), true);
            renames.others.push_back((nth, Completion::Inserted));
            renames.others.push_back((nth + 2, Completion::Inserted));
            renames.names.push((PASSING.to_owned(), named.name.clone()));
            let (start, end) = (step.place.start, step.place.end);
            return vec![
                (start..start, text),
                (named.place.clone(), format!("\"{PASSING}\"")),
                (end..end, format!("; DEALLOCATE \"{PASSING}\"")),
            ];
        }
        let Some(here) = self.named_here(named.name.as_bytes()) else {
            return Vec::new();
        };
        let instead = format!("\"{here}\"");
        renames.names.push((here, named.name.clone()));
        vec![(named.place.clone(), instead)]
    }

    /// Returns SQL that prepares a statement under the name that is used once. `None`: SQL has no
    /// form for it.
    fn preparation(&self, statement: &PreparedStatement) -> Option<String> {
        let session = &self.session;
        let exact = statement.exact(&session.shared.cache, session.utf8);
        let text = std::str::from_utf8(&exact.text).ok()?.trim_start();
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next()?;
        if !PREPARED.iter().any(|verb| word.eq_ignore_ascii_case(verb)) {
            return None;
        }
        let types: Option<Vec<&str>> = exact.types.iter().map(|oid| type_name(*oid)).collect();
        let types = match types?.join(", ") {
            none if none.is_empty() => none,
            types => format!(" ({types})"),
        };
        Some(format!("PREPARE \"{PASSING}\"{types} AS {text}\n;"))
    }
}

/// The first words of statements that SQL prepares.
const PREPARED: [&str; 6] = ["select", "insert", "update", "delete", "values", "with"];

/// The name of a built-in type that drivers name by its number.
fn type_name(oid: u32) -> Option<&'static str> {
    const NAMES: [(u32, &str); 18] = [
        (16, "bool"),
        (17, "bytea"),
        (20, "int8"),
        (21, "int2"),
        (23, "int4"),
        (25, "text"),
        (114, "json"),
        (700, "float4"),
        (701, "float8"),
        (705, "unknown"),
        (1043, "varchar"),
        (1082, "date"),
        (1083, "time"),
        (1114, "timestamp"),
        (1184, "timestamptz"),
        (1700, "numeric"),
        (2950, "uuid"),
        (3802, "jsonb"),
    ];
    let mut names = NAMES.iter();
    names
        .find(|(known, _)| *known == oid)
        .map(|(_, name)| *name)
}
