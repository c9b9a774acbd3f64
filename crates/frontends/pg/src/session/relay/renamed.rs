//! Texts that name the session's prepared statements: EXECUTE, also within EXPLAIN and CREATE TABLE
//! AS, PREPARE, and DEALLOCATE, wherever they stand in a text.
//!
//! A session's statements have names of the process at the server, which all sessions share. So the
//! names in such a text are replaced, and put back in the server's errors. A DEALLOCATE must not
//! take a statement away from other sessions: in its place stands a statement without any effect,
//! and the session forgets its own name.

use bytes::BytesMut;
use windrow_sql::{NameUsage, Step};

use super::renames::{Edit, Renames};
use super::state::Relay;
use crate::codec::failure;
use crate::statements::CachedStatement;

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
        let mut copied = 0;
        for (nth, step) in steps.iter().enumerate() {
            let Some(named) = &step.names else { continue };
            if named.usage == NameUsage::DeallocatesAll {
                break;
            }
            let Some((place, instead)) = self.instead(step, nth, &mut renamed.renames) else {
                continue;
            };
            if let Some(whole) = &named.whole {
                failure::cut_name(&mut renamed.notices, whole, &named.name);
            }
            renamed.sql.push_str(text.get(copied..place.start)?);
            renamed.sql.push_str(&instead);
            copied = place.end;
            renamed.renames.edits.push(Edit {
                at: text.get(..place.start)?.chars().count(),
                before: text.get(place)?.chars().count(),
                after: instead.chars().count(),
            });
        }
        renamed.sql.push_str(text.get(copied..)?);
        (!renamed.renames.edits.is_empty()).then_some(renamed)
    }

    /// Returns the part of a text to replace, and its replacement, if a statement of the text names
    /// one of the session's.
    fn instead(
        &mut self,
        step: &Step,
        nth: usize,
        renames: &mut Renames,
    ) -> Option<(std::ops::Range<usize>, String)> {
        let named = step.names.as_ref()?;
        let is_gone = renames.removed.iter().any(|(_, name)| *name == named.name);
        let statement = self.session.statements.get(named.name.as_bytes())?;
        if is_gone {
            return None;
        }
        if named.usage == NameUsage::Deallocates {
            renames.removes = true;
            renames.removed.push_back((nth, named.name.clone()));
            return Some((step.place.clone(), NO_EFFECT.to_owned()));
        }
        // The server executes no EXECUTE of an EXECUTE.
        if statement.cached.names_statements() {
            return None;
        }
        // A Parse that fails before a simple query would swallow the query.
        let is_here = self.name_of(statement, named.name.as_bytes()).is_some();
        if !is_here && !self.open && self.status == b'E' {
            return None;
        }
        let here = self.named_here(named.name.as_bytes())?;
        let instead = format!("\"{here}\"");
        renames.names.push((here, named.name.clone()));
        Some((named.place.clone(), instead))
    }
}
