//! The prepared statements of a session.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use windrow_core::{Described, Fault, REFUSED, Signature, Statement};

use super::cache::{Answer, StatementCache};
use super::cached::CachedStatement;
use crate::lanes::Lane;

/// A name given by a client.
pub(crate) type ClientName = SmallVec<[u8; 16]>;

/// The longest name that the server distinguishes, in bytes.
const MAX_NAME: usize = 63;

/// The most named statements of one session.
const MAX_STATEMENTS: usize = 10_000;

/// Returns the part of a client's name that the server distinguishes: the first 63 bytes.
pub(crate) fn name_key(name: &[u8]) -> &[u8] {
    name.get(..MAX_NAME).unwrap_or(name)
}

/// A prepared statement of a session.
#[derive(Clone, Debug)]
pub(crate) struct PreparedStatement {
    /// The text that was prepared.
    pub(crate) cached: Arc<CachedStatement>,
    /// The statement's types, once they are fixed.
    pub(crate) fixed: FixedTypes,
    /// The meaning in the lane that it was used in last, by the lane's number.
    in_lane: Option<(u64, Arc<Statement>)>,
}

/// The reason why a statement cannot be joined.
pub(crate) enum NotJoined {
    /// The lane must be asked for the meaning of this.
    Unknown(Arc<CachedStatement>),
    /// The statement is not joined, for this reason.
    Apart(&'static str),
    /// The statement's types have changed since they were reported to its client.
    Changed,
    /// The literals of its text may not be values of parameters.
    Whole,
}

impl PreparedStatement {
    /// Returns a statement of which only the text is known.
    pub(crate) fn new(cached: Arc<CachedStatement>) -> Self {
        Self {
            cached,
            fixed: FixedTypes::default(),
            in_lane: None,
        }
    }

    /// Returns the same text with the types that were reported for its parameters, with which it is
    /// prepared again elsewhere.
    pub(crate) fn exact(&self, cache: &StatementCache, utf8: bool) -> Arc<CachedStatement> {
        match self.fixed.get() {
            // Parsing its text again might give another time.
            Some(fixed) if fixed.parameters != self.cached.types && !self.cached.may_freeze => {
                let types = fixed.parameters.iter().copied();
                cache.get(&self.cached.text, types, utf8)
            }
            _ => Arc::clone(&self.cached),
        }
    }

    /// Fixes its types: from now on the client relies on its current meaning in its lane.
    pub(crate) fn fix(&self) {
        if let Some(statement) = self.statement() {
            self.fixed
                .set(&self.cached.signature_of_client(statement.signature()));
        }
    }

    /// Returns the meaning in the lane that the statement was used in last.
    pub(crate) fn statement(&self) -> Option<&Arc<Statement>> {
        self.in_lane.as_ref().map(|(_, statement)| statement)
    }

    /// Notes its meaning in a lane, so that it is not looked up again.
    pub(crate) fn note(&mut self, lane: &Lane, statement: &Arc<Statement>) {
        self.in_lane = Some((lane.number, Arc::clone(statement)));
    }

    /// Returns the noted meaning in a lane.
    pub(crate) fn noted(&self, lane: &Lane) -> Option<&Arc<Statement>> {
        let (in_lane, statement) = self.in_lane.as_ref()?;
        (*in_lane == lane.number && !statement.is_retired()).then_some(statement)
    }

    /// Returns the meaning in a lane, with the types that were reported to its client. `answer`:
    /// the lane's answer because of it.
    ///
    /// # Errors
    /// Why it cannot be joined.
    pub(crate) fn in_lane(
        &self,
        lane: &Lane,
        answer: Option<&Answer>,
        (cache, utf8): (&StatementCache, bool),
    ) -> Result<Arc<Statement>, NotJoined> {
        if let Some(statement) = self.noted(lane) {
            return Ok(Arc::clone(statement));
        }
        let statement = in_lane(&self.cached, lane, answer)?;
        let fixed = self.fixed.get();
        let fits = |statement: &Statement| {
            let reported = self.cached.signature_of_client(statement.signature());
            fixed.is_none_or(|fixed| fixed.fits(&reported))
        };
        if fits(&statement) {
            return Ok(statement);
        }
        // Sessions that parse it now get other types. Here it keeps its own.
        let exact = self.exact(cache, utf8);
        if exact.number == self.cached.number || self.cached.is_lifted() {
            return Err(NotJoined::Changed);
        }
        let statement = in_lane(&exact, lane, answer)?;
        fits(&statement)
            .then_some(statement)
            .ok_or(NotJoined::Changed)
    }
}

/// Returns the meaning of a text in a lane. `answer`: the lane's answer because of it.
///
/// # Errors
/// Why it cannot be joined.
pub(crate) fn in_lane(
    cached: &Arc<CachedStatement>,
    lane: &Lane,
    answer: Option<&Answer>,
) -> Result<Arc<Statement>, NotJoined> {
    let answer = answer.and_then(|answer| answer.to(lane, cached));
    let described = cached.described_as();
    match answer.cloned().or_else(|| described.in_lane(lane)) {
        Some(Described::Joined(statement)) if cached.may_be(&statement) => Ok(statement),
        Some(Described::Joined(_)) => Err(NotJoined::Whole),
        // A function may accept a literal without a type, but not a parameter without one.
        Some(Described::Apart(apart)) if cached.is_lifted() && apart.phrase == REFUSED => {
            Err(NotJoined::Whole)
        }
        Some(Described::Apart(apart)) => Err(NotJoined::Apart(apart.phrase)),
        None => Err(NotJoined::Unknown(Arc::clone(described))),
    }
}

/// The types of a client's statement, as the server reported them when it was parsed; empty until
/// they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct FixedTypes(Arc<OnceLock<Arc<Signature>>>);

impl FixedTypes {
    pub(crate) fn get(&self) -> Option<&Arc<Signature>> {
        self.0.get()
    }

    /// Fixes the types. Types that were reported stay.
    pub(crate) fn set(&self, signature: &Arc<Signature>) {
        self.0.get_or_init(|| Arc::clone(signature));
    }

    /// Returns true if both belong to the same statement.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns true if both are equal, or clients would read them in the same way.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        let alike = || Some(self.get()?.fits(other.get()?));
        self.is(other) || alike().unwrap_or_default()
    }
}

/// A session's statements, by the names that its client gave them.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    named: HashMap<Box<[u8]>, PreparedStatement, foldhash::fast::RandomState>,
    unnamed: Option<PreparedStatement>,
    /// The number of times that the unnamed statement was defined or removed.
    changes: u64,
}

impl PreparedStatements {
    /// Returns the statement of a name; the empty name is the unnamed one.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&PreparedStatement> {
        if name.is_empty() {
            self.unnamed.as_ref()
        } else {
            self.named.get(name_key(name))
        }
    }

    /// Returns the statement of a name mutably.
    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut PreparedStatement> {
        if name.is_empty() {
            self.unnamed.as_mut()
        } else {
            self.named.get_mut(name_key(name))
        }
    }

    /// Defines or removes a statement. Returns the earlier one.
    pub(crate) fn set(
        &mut self,
        name: &[u8],
        statement: Option<PreparedStatement>,
    ) -> Option<PreparedStatement> {
        match (name.is_empty(), statement) {
            (true, statement) => {
                self.changes += 1;
                std::mem::replace(&mut self.unnamed, statement)
            }
            (false, Some(statement)) => self.named.insert(name_key(name).into(), statement),
            (false, None) => self.named.remove(name_key(name)),
        }
    }

    /// Returns a number that changes whenever the unnamed statement is defined or removed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns true if there is no capacity for another statement.
    pub(crate) fn is_full(&self) -> bool {
        self.named.len() >= MAX_STATEMENTS
    }

    /// Removes all named statements.
    pub(crate) fn clear_named(&mut self) {
        self.named = HashMap::default();
    }
}

/// Returns the error of a client that prepares too many statements.
pub(crate) fn too_many() -> Fault {
    let text = format!("a session can have {MAX_STATEMENTS} prepared statements at most");
    Fault::too_large(text).with_hint(Some(
        "Close or DEALLOCATE those that are not used any more.",
    ))
}
