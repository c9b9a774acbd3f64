//! A segment: the extended messages since the last Sync, as far as they can be joined.
//!
//! It changes nothing in the session before its Sync: until then, all of it can still be sent to a
//! server connection instead, so its bytes stay in the inbox.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BufMut;
use smallvec::SmallVec;
use windrow_core::{Formats, SqlCall, Statement};
use windrow_sql::{BlockEffect, BlockStatement, Effect};

use super::call_answer::{CallAnswer, LateTypes};
use super::local;
use super::pending::{ChangeBehind, LastvalAnswer, Script};
use crate::codec::answer;
use crate::codec::message::{Bind, Kind};
use crate::statements::{
    CachedStatement, ClientName, FixedTypes, PreparedStatement, PreparedStatements, name_key,
};

/// The most names of statements and portals in one segment that is joined, because they are
/// searched linearly.
const MAX_NAMES: usize = 64;

/// The messages since the last Sync.
#[derive(Default)]
pub(crate) struct Segment {
    /// The bytes of the inbox that belong to the segment.
    pub(crate) bytes: usize,
    /// The number of its messages that have answers of their own, and the number of those that were
    /// answered because of a Flush.
    pub(crate) messages: usize,
    pub(crate) answered: usize,
    /// The answer.
    pub(crate) script: Script,
    /// The calls to be executed.
    pub(crate) calls: SmallVec<[SqlCall; 1]>,
    /// True if a message of it only concerns the session.
    pub(crate) did_local: bool,
    /// The transaction block in it; `None` if it may have none.
    pub(crate) block: Option<SegmentBlock>,
    /// The time at which its first statement was parsed.
    pub(crate) parsed_at: Option<Instant>,
    /// True once the answer has an error: everything up to the Sync is skipped.
    pub(crate) failed: bool,
    /// The statements that it defines or removes.
    defined: SmallVec<[(ClientName, Option<PreparedStatement>); 1]>,
    portals: SmallVec<[(ClientName, Portal); 1]>,
}

/// The transaction block of a segment, which begins and ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentBlock {
    /// BEGIN was prepared or bound.
    Expected,
    /// BEGIN was executed.
    Open,
    /// COMMIT was executed.
    Committed,
}

/// A bound portal.
pub(crate) enum Portal {
    /// A portal of a statement that can be joined: the call, the position of BindComplete in the
    /// script, and its types if they are only known after its execution. `None` once a portal of
    /// either kind was executed: only the server can say what a second execution means.
    Call(Option<(SqlCall, usize, Option<LateTypes>)>),
    /// A portal of a statement that the session itself answers.
    Local(Local),
}

/// A statement that the session itself answers.
#[derive(Clone)]
pub(crate) struct Local {
    pub(crate) cached: Arc<CachedStatement>,
    /// The formats of its result.
    pub(crate) results: Formats,
}

impl Local {
    /// Returns true for `SELECT lastval()`.
    pub(crate) fn is_lastval(&self) -> bool {
        self.cached.effect() == Some(&Effect::Lastval)
    }
}

/// The meaning of a statement to a session.
#[derive(Clone)]
pub(crate) enum Meaning {
    /// The statement can be joined.
    Call(Arc<Statement>),
    /// The session answers it.
    Local,
}

/// The reason for which the statements of a transaction block are relayed.
pub(crate) const IN_BLOCK: RelayReason = RelayReason("a transaction block");

const UNFIT: RelayReason = RelayReason("not as the statement wants it");

/// The reason for which a segment cannot be joined and goes to a server connection.
pub(crate) struct RelayReason(pub(crate) &'static str);

impl Segment {
    /// Clears the segment.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the statement of a name, as defined after the segment's messages so far.
    pub(crate) fn statement<'a>(
        &'a self,
        name: &[u8],
        statements: &'a PreparedStatements,
    ) -> Option<&'a PreparedStatement> {
        let mut defined = self.defined.iter();
        match defined.find(|(defined, _)| **defined == *name_key(name)) {
            Some((_, statement)) => statement.as_ref(),
            None => statements.get(name),
        }
    }

    /// Returns true if the segment defines, or removes, the statement of a name.
    pub(crate) fn defines(&self, name: &[u8]) -> bool {
        let mut defined = self.defined.iter();
        defined.any(|(defined, _)| **defined == *name_key(name))
    }

    /// Returns the statement of a name mutably.
    pub(crate) fn statement_mut<'a>(
        &'a mut self,
        name: &[u8],
        statements: &'a mut PreparedStatements,
    ) -> Option<&'a mut PreparedStatement> {
        let mut defined = self.defined.iter_mut();
        match defined.find(|(defined, _)| **defined == *name_key(name)) {
            Some((_, statement)) => statement.as_mut(),
            None => statements.get_mut(name),
        }
    }

    /// Applies its definitions to the session.
    pub(crate) fn define(&mut self, statements: &mut PreparedStatements) {
        self.fix();
        for (name, statement) in self.defined.drain(..) {
            statements.set(&name, statement);
        }
    }

    /// Fixes the types of the statements that it defines.
    pub(crate) fn fix(&self) {
        self.unfixed().iter().for_each(PreparedStatement::fix);
    }

    /// Returns the statements that it defines and whose types are not fixed yet. The types of
    /// executed ones are known afterwards.
    pub(crate) fn unfixed(&self) -> SmallVec<[PreparedStatement; 1]> {
        let statements = self
            .defined
            .iter()
            .filter_map(|(_, statement)| statement.as_ref());
        let unfixed = |statement: &&PreparedStatement| {
            let mut said = self.script.calls.iter();
            let is_used = |said: &CallAnswer| {
                let fresh = said.fresh.as_ref();
                fresh.is_some_and(|fresh| fresh.fixed.is(&statement.fixed))
            };
            statement.fixed.get().is_none() && statement.statement().is_some() && !said.any(is_used)
        };
        statements.filter(unfixed).cloned().collect()
    }

    /// Returns true if it has too many names of statements and portals to search them linearly.
    pub(crate) fn is_crowded(&self) -> bool {
        self.defined.len() + self.portals.len() > MAX_NAMES
    }

    /// Adds a Parse.
    pub(crate) fn parse(
        &mut self,
        name: &[u8],
        statement: PreparedStatement,
        statements: &PreparedStatements,
    ) {
        self.note_behind(name, statements);
        self.put(name, Some(statement));
        self.answer(answer::PARSE_COMPLETE);
    }

    /// Adds a Bind.
    pub(crate) fn bind(
        &mut self,
        bind: &Bind<'_>,
        (cached, fresh): (&Arc<CachedStatement>, Option<FixedTypes>),
        meaning: Meaning,
    ) -> Result<(), RelayReason> {
        let portal = match meaning {
            Meaning::Call(statement) => {
                let call = call(bind, cached, statement, fresh.is_some())?;
                let fresh = fresh.map(|fixed| LateTypes {
                    fixed,
                    signature: cached.signature_of_client(call.statement.signature()),
                });
                Portal::Call(Some((call, self.script.text.len(), fresh)))
            }
            Meaning::Local => {
                let columns = local::columns(cached);
                let results = bind.results(columns).ok_or(UNFIT)?;
                if bind.count != 0 {
                    return Err(UNFIT);
                }
                Portal::Local(Local {
                    cached: Arc::clone(cached),
                    results,
                })
            }
        };
        let mut there = self.portals.iter_mut();
        let there = there.find(|(name, _)| **name == *name_key(bind.portal));
        match there {
            Some((_, Portal::Call(Some(_)))) => {
                return Err(RelayReason("a portal that is not executed"));
            }
            Some((_, place)) if bind.portal.is_empty() => *place = portal,
            Some(_) => return Err(RelayReason("a portal of a name that is taken")),
            None => self.portals.push((name_key(bind.portal).into(), portal)),
        }
        self.answer(answer::BIND_COMPLETE);
        Ok(())
    }

    /// Returns the portal of a name.
    pub(crate) fn portal(&mut self, name: &[u8]) -> Result<&mut Portal, RelayReason> {
        let portals = self.portals.iter_mut();
        let mut found = portals.filter(|(portal, _)| **portal == *name_key(name));
        let (_, portal) = found.next().ok_or(RelayReason("an unknown portal"))?;
        Ok(portal)
    }

    /// Notes that a portal was executed.
    pub(crate) fn use_up(&mut self, name: &[u8]) {
        if let Ok(portal) = self.portal(name) {
            *portal = Portal::Call(None);
        }
    }

    /// Returns true if values were bound and not executed: only the server knows whether they are
    /// valid.
    pub(crate) fn has_open_portal(&self) -> bool {
        let mut portals = self.portals.iter();
        !self.failed && portals.any(|(_, portal)| matches!(portal, Portal::Call(Some(_))))
    }

    /// Adds Describe of a statement.
    pub(crate) fn describe_statement(&mut self, cached: &CachedStatement, meaning: &Meaning) {
        let text = &mut self.script.text;
        match meaning {
            Meaning::Call(statement) => {
                answer::parameters(text, cached.own_parameters(statement));
                answer::fields(text, statement.fields(), &Formats::Text);
            }
            Meaning::Local => {
                answer::parameters(text, &[]);
                answer::fields(text, local::fields(cached).as_deref(), &Formats::Text);
            }
        }
        self.messages += 1;
    }

    /// Adds Describe of a portal.
    pub(crate) fn describe_portal(&mut self, name: &[u8]) -> Result<(), RelayReason> {
        let mut text = std::mem::take(&mut self.script.text);
        match self.portal(name)? {
            Portal::Call(None) => return Err(RelayReason("a portal that was used")),
            Portal::Call(Some((call, ..))) => {
                answer::fields(&mut text, call.statement.fields(), &call.results);
            }
            Portal::Local(local) => {
                let fields = local::fields(&local.cached);
                answer::fields(&mut text, fields.as_deref(), &local.results);
            }
        }
        self.script.text = text;
        self.messages += 1;
        Ok(())
    }

    /// Adds an Execute of a call.
    pub(crate) fn execute(
        &mut self,
        portal: &[u8],
        (call, bound, fresh): (SqlCall, usize, Option<LateTypes>),
    ) {
        self.script.calls.push(CallAnswer {
            bound,
            done: self.script.text.len(),
            op: call.statement.parsed().op,
            fresh,
            portal: (!portal.is_empty()).then(|| portal.into()),
            query: None,
        });
        self.calls.push(call);
        self.messages += 1;
    }

    /// Adds an Execute of `SELECT lastval()` after calls.
    pub(crate) fn ask(&mut self, binary: bool) {
        let (at, after) = (self.script.text.len(), self.script.calls.len());
        self.script
            .lastvals
            .push(LastvalAnswer { at, after, binary });
        self.messages += 1;
    }

    /// Adds an Execute of DEALLOCATE of one of the session's statements.
    pub(crate) fn deallocate(&mut self, name: &[u8]) {
        self.put(name, None);
        answer::complete(&mut self.script.text, "DEALLOCATE");
        self.messages += 1;
        self.did_local = true;
    }

    /// Adds an Execute of BEGIN before all calls, or of COMMIT after all calls.
    pub(crate) fn execute_block(&mut self, block: &BlockStatement) -> Result<(), RelayReason> {
        let is_first = self.calls.is_empty() && !self.did_local;
        let next = match (block.effect, self.block) {
            (BlockEffect::Opens, Some(SegmentBlock::Expected)) if is_first => SegmentBlock::Open,
            (BlockEffect::Commits, Some(SegmentBlock::Open)) if !is_first => {
                self.script.commit = NonZeroUsize::new(self.script.text.len());
                SegmentBlock::Committed
            }
            _ => return Err(IN_BLOCK),
        };
        if self.has_open_portal() {
            return Err(RelayReason("a portal that is not executed"));
        }
        self.block = Some(next);
        answer::complete(&mut self.script.text, block.tag);
        self.messages += 1;
        Ok(())
    }

    /// Adds a Close.
    pub(crate) fn close(
        &mut self,
        kind: Kind,
        name: &[u8],
        statements: &PreparedStatements,
    ) -> Result<(), RelayReason> {
        match kind {
            Kind::Statement => {
                self.note_behind(name, statements);
                self.put(name, None);
            }
            Kind::Portal => {
                if let Ok(Portal::Call(Some(_))) = self.portal(name) {
                    return Err(RelayReason("a portal that is not executed"));
                }
                self.portals
                    .retain(|(portal, _)| **portal != *name_key(name));
            }
        }
        self.answer(answer::CLOSE_COMPLETE);
        Ok(())
    }

    /// Keeps the current unnamed statement, before it is changed after calls.
    fn note_behind(&mut self, name: &[u8], statements: &PreparedStatements) {
        if name.is_empty() && !self.calls.is_empty() {
            let before = self.statement(name, statements).cloned();
            let behind = self.script.behind.get_or_insert_default();
            behind.push(ChangeBehind {
                after: self.calls.len(),
                before,
            });
        }
    }

    /// Returns true if the segment does not use an unnamed statement of an earlier one.
    pub(crate) fn has_no_unnamed(&self) -> bool {
        !self.defined.iter().any(|(name, _)| name.is_empty())
    }

    fn put(&mut self, name: &[u8], statement: Option<PreparedStatement>) {
        let mut defined = self.defined.iter_mut();
        match defined.find(|(defined, _)| **defined == *name_key(name)) {
            Some((_, place)) => *place = statement,
            None => self.defined.push((name_key(name).into(), statement)),
        }
    }

    fn answer(&mut self, message: &[u8]) {
        self.script.text.put_slice(message);
        self.messages += 1;
    }
}

fn call(
    bind: &Bind<'_>,
    cached: &CachedStatement,
    statement: Arc<Statement>,
    fresh: bool,
) -> Result<SqlCall, RelayReason> {
    if bind.count != cached.own_parameters(&statement).len() {
        return Err(UNFIT);
    }
    let columns = statement.fields().map_or(0, answer::columns);
    let (Some(formats), Some(results)) = (bind.formats(), bind.results(columns)) else {
        return Err(UNFIT);
    };
    let Some(arguments) = cached.arguments(bind.values, bind.count) else {
        return Err(UNFIT);
    };
    Ok(SqlCall {
        statement,
        arguments,
        formats: cached.formats(formats),
        results,
        fresh,
        origin: cached.origin(),
    })
}
