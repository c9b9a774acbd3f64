//! Texts that name the session's prepared statements: EXECUTE, also within EXPLAIN and CREATE TABLE
//! AS, PREPARE, and DEALLOCATE, wherever they stand in a text.
//!
//! A session's statements have names of the process at the server, which all sessions share. So the
//! names in such a text are replaced, and put back in the server's errors. A DEALLOCATE must not
//! remove a statement that other sessions use: a statement without any effect replaces it, and the
//! session drops its own name.
//!
//! A simple query ends the extended messages before it, and after an error in them the server would
//! skip the query. So a statement that it executes is prepared in a cycle of its own, which the
//! query waits for. In a failed transaction the server prepares nothing: a text that rolls it back
//! prepares the statement itself, for a single use.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_sql::{Commits, NameUsage, Step};

use super::ends::Ends;
use super::expect::What;
use super::renames::{Completion, Edit, Renames};
use super::rewrite;
use super::statements::{Preparing, StatementsHere};
use crate::codec::{answer, failure};
use crate::pool::{Names, PASSING};
use crate::statements::{CachedStatement, FixedTypes, PreparedStatement};

/// The length of a text from which on no more statements are inserted into it, in bytes.
const MAX_GROWN_TEXT: usize = 16 << 20;

/// The statement in place of DEALLOCATE. It leaves nothing behind, is executed wherever DEALLOCATE
/// is, and is refused in a failed transaction.
const NO_EFFECT: &str = "UNLISTEN \"windrow\"";

/// The progress of the preparation that a simple query needs.
pub(super) enum Preparation {
    /// The query can be sent.
    Done,
    UnderWay,
    /// The server's error: the body of its ErrorResponse.
    Failed(Bytes),
}

/// A text as the server gets it.
pub(super) struct Renamed {
    pub(super) sql: String,
    pub(super) renames: Renames,
    /// The notices about names that the server would have truncated.
    pub(super) notices: BytesMut,
}

impl StatementsHere {
    /// Returns the text of a statement with the names that its statements have on this connection,
    /// and prepares them if needed. `None` if the text names none of the session's statements.
    pub(super) fn renamed(
        &mut self,
        ends: &mut Ends<'_>,
        cached: &CachedStatement,
        text: &[u8],
    ) -> Option<Renamed> {
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
        let (mut copied, mut characters, mut inserted) = (0, 0, 0);
        let mut is_undone = false;
        for (nth, step) in steps.iter().enumerate() {
            let is_long = renamed.sql.len() > MAX_GROWN_TEXT;
            let goes_on = ends.status == b'E' && is_undone && !is_long;
            is_undone |= matches!(step.commits, Commits::Undoes | Commits::UndoesPart);
            let Some(named) = &step.names else { continue };
            if named.usage == NameUsage::DeallocatesAll {
                break;
            }
            let nth = nth + inserted;
            let instead = self.instead(ends, step, (nth, goes_on), &mut renamed.renames);
            if instead.is_empty() {
                continue;
            }
            inserted += instead.len() - 1;
            if let Some(whole) = &named.whole {
                failure::cut_name(&mut renamed.notices, whole, &named.name);
            }
            for (place, instead) in instead {
                let between = text.get(copied..place.start)?;
                renamed.sql.push_str(between);
                renamed.sql.push_str(&instead);
                copied = place.end;
                let at = characters + between.chars().count();
                let before = text.get(place)?.chars().count();
                characters = at + before;
                renamed.renames.edits.push(Edit {
                    at,
                    before,
                    after: instead.chars().count(),
                });
            }
        }
        renamed.sql.push_str(text.get(copied..)?);
        (!renamed.renames.edits.is_empty()).then_some(renamed)
    }

    /// Returns the parts of a text to replace, and their replacements, if a statement of the text
    /// names one of the session's: one part, or three if the text prepares it. `nth`: the position
    /// of the statement in the text. `goes_on`: true if a failed transaction is rolled back before.
    fn instead(
        &mut self,
        ends: &mut Ends<'_>,
        step: &Step,
        (nth, goes_on): (usize, bool),
        renames: &mut Renames,
    ) -> Vec<(Range<usize>, String)> {
        let Some(named) = &step.names else {
            return Vec::new();
        };
        let statement = ends.session.statements.get(named.name.as_bytes());
        let Some(statement) = statement.filter(|_| !renames.is_gone(&named.name)) else {
            let Some(here) = Names::of_client(named.name.as_bytes()) else {
                return Vec::new();
            };
            let instead = format!("\"{here}\"");
            renames.note_name(here, &named.name);
            return vec![(named.place.clone(), instead)];
        };
        if named.usage == NameUsage::Deallocates {
            renames.note_removal(nth, &named.name);
            return vec![(step.place.clone(), NO_EFFECT.to_owned())];
        }
        // The server does not execute an EXECUTE of an EXECUTE.
        if statement.cached.names_statements() {
            return Vec::new();
        }
        // After a Parse that fails, the server would skip the simple query.
        let is_here = self
            .name_of(ends, statement, named.name.as_bytes())
            .is_some();
        if !is_here && !ends.is_open && ends.status == b'E' {
            let prepares = named.usage == NameUsage::Executes && goes_on;
            let text = prepares.then(|| preparation(ends, statement)).flatten();
            let Some(text) = text else {
                return Vec::new();
            };
            ends.close_statement(PASSING.as_bytes());
            renames.others.push_back((nth, Completion::Inserted));
            renames.others.push_back((nth + 2, Completion::Inserted));
            renames.note_name(PASSING.to_owned(), &named.name);
            let (start, end) = (step.place.start, step.place.end);
            return vec![
                (start..start, text),
                (named.place.clone(), format!("\"{PASSING}\"")),
                (end..end, format!("; DEALLOCATE \"{PASSING}\"")),
            ];
        }
        let Some(here) = self.named_here(ends, named.name.as_bytes()) else {
            return Vec::new();
        };
        let instead = format!("\"{here}\"");
        renames.note_name(here, &named.name);
        vec![(named.place.clone(), instead)]
    }

    /// Prepares the session's statements that a simple query names and that are not prepared here.
    pub(super) fn prepare_named(&mut self, ends: &mut Ends<'_>, text: &[u8]) -> Preparation {
        if self.preparing.is_some() && !ends.queue.is_empty() {
            return Preparation::UnderWay;
        }
        if let Some(preparing) = self.preparing.take() {
            return preparing
                .error
                .map_or(Preparation::Done, Preparation::Failed);
        }
        let missing = self.missing(ends, text);
        if missing.is_empty() || ends.is_open || ends.status == b'E' {
            return Preparation::Done;
        }
        if !ends.queue.is_empty() {
            return Preparation::UnderWay;
        }
        for name in &missing {
            if let Some(statement) = ends.session.statements.get(name).cloned() {
                let fixed = match statement.fixed.get() {
                    Some(_) => FixedTypes::default(),
                    None => statement.fixed.clone(),
                };
                self.prepare_again(ends, &statement, name, true, fixed);
            }
        }
        rewrite::sync(ends.out());
        ends.queue.push(What::Sync, true);
        self.preparing = Some(Preparing::default());
        Preparation::UnderWay
    }

    /// Returns the names in a text of the session's statements that are executed and are not here,
    /// each once.
    fn missing(&self, ends: &Ends<'_>, text: &[u8]) -> BTreeSet<Vec<u8>> {
        let text = std::str::from_utf8(text).ok();
        let steps = text.and_then(windrow_sql::steps).unwrap_or_default();
        let names = steps.into_iter().filter_map(|step| step.names);
        let names = names
            .filter(|named| matches!(named.usage, NameUsage::Executes | NameUsage::Prepares))
            .map(|named| named.name.as_bytes().to_vec());
        let is_missing = |name: &Vec<u8>| {
            let statement = ends.session.statements.get(name);
            statement.is_some_and(|statement| {
                let is_plain = !statement.cached.names_statements();
                is_plain && self.name_of(ends, statement, name).is_none()
            })
        };
        names.filter(is_missing).collect()
    }

    /// Keeps an error of such a preparation, which answers the query. Returns false if the error
    /// answers another message.
    pub(super) fn keep_of_preparing(&mut self, body: &[u8]) -> bool {
        let Some(preparing) = &mut self.preparing else {
            return false;
        };
        preparing.error = Some(Bytes::copy_from_slice(body));
        true
    }

    /// Answers the simple query at the front of the inbox with the error of its preparation.
    pub(super) fn fail_named(&mut self, ends: &mut Ends<'_>, total: usize, error: &[u8]) {
        ends.session.connection.take(total);
        self.note_query(ends);
        let out = &mut ends.session.connection.out;
        answer::message(out, b'E', |out| out.put_slice(error));
        answer::ready(out, ends.status);
    }
}

/// Returns SQL that prepares a statement under the name for a single use; `None` if SQL has no form
/// for it.
fn preparation(ends: &Ends<'_>, statement: &PreparedStatement) -> Option<String> {
    let session = &*ends.session;
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

/// The first words of statements that SQL can prepare.
const PREPARED: [&str; 6] = ["select", "insert", "update", "delete", "values", "with"];

/// Returns the name of a built-in type that drivers specify by its OID.
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
