//! Writes of a session that are executed once, under a key.

use windrow_core::{Fault, FaultClass, TracedRequest};
use windrow_idempotency::{Extent, KeyedRequest};

use super::pending::{Awaited, Ending, Pending, Script};
use super::relay;
use super::spool::Rows;
use super::state::{End, Session};
use super::traces;
use crate::statements::CachedStatement;

/// Statements that write nothing, and need no key while one is set.
const WITHOUT_KEY: [&str; 10] = [
    "deallocate",
    "discard",
    "listen",
    "reset",
    "select",
    "set",
    "show",
    "table",
    "unlisten",
    "values",
];

impl Session {
    /// Whether what the session has committed without a key is executed under one of the gateway's
    /// own.
    pub(super) fn has_own_keys(&self) -> bool {
        let keys = self.shared.keys.as_ref();
        let identity = &self.who.identity;
        keys.is_some_and(|sql| sql.keys.is_for_all() && sql.identity == *identity)
    }

    /// Begins the write that the session's key is for, or one that is given a key of the gateway's
    /// own; `None`: it goes without.
    ///
    /// # Errors
    /// Another one with the same key is under way.
    pub(super) fn begin_keyed(&mut self) -> Result<Option<KeyedRequest>, Fault> {
        let Some(keys) = &self.shared.keys else {
            return Ok(None);
        };
        let Some(key) = self.own.key.take() else {
            let own = !self.own.spool && self.has_own_keys();
            return Ok(own.then(|| keys.keys.begin_own()).flatten());
        };
        match keys.keys.begin(key) {
            Ok(request) => Ok(Some(request)),
            Err(refused) => Err(refused.fault().clone()),
        }
    }

    /// Has rows committed under a key, once all that the session has under way is answered and the
    /// database has what it has in the spool.
    pub(super) async fn commit_keyed(
        &mut self,
        key: KeyedRequest,
        rows: Rows,
        script: Script,
        ending: Ending,
        taken: usize,
        traced: Option<Box<TracedRequest>>,
    ) -> Result<(), End> {
        self.drain().await?;
        if self.is_ahead()
            && let Err(fault) = Box::pin(self.reach()).await?
        {
            self.segment.clear();
            traces::refused(traced, &fault);
            return relay::refuse(self, &fault).await;
        }
        let Some(permit) = self.memory(rows.unit.bytes()).await else {
            self.segment.clear();
            let fault = Fault::new(
                FaultClass::Overloaded,
                "53200",
                "the row does not fit the memory budget (limits.memory); nothing was written",
            );
            traces::refused(traced, &fault);
            return relay::refuse(self, &fault).await;
        };
        if rows.generates {
            self.values.note_spooled();
        }
        let count = script.calls.len();
        let source = key.source();
        let committing =
            async move { key.commit(source, [rows.unit], permit, Extent::Alone).await };
        let pending = Pending {
            awaited: Some(Awaited::Keyed(tokio::spawn(committing))),
            script,
            ending,
            traced,
            answer: None,
        };
        self.handed_over(pending, count, taken);
        Ok(())
    }

    /// Returns why the statement at the front of the inbox is refused while a key is set.
    pub(super) fn refused_front_for_key(&self) -> Option<Fault> {
        let fault = self.refused_for_key()?;
        (!self.front_is(runs_without_key)).then_some(fault)
    }

    /// Why nothing but a plain insert is executed while a key is set; `None` where none is.
    pub(super) fn refused_for_key(&self) -> Option<Fault> {
        let key = self.own.key.as_ref()?;
        let text = format!(
            "windrow.idempotency_key is set (\"{}\"), and this statement cannot be executed under a key: that is possible for an INSERT of plain values without RETURNING, outside of a transaction, into a table of which Windrow knows how it stores them",
            key.as_str()
        );
        let hint = "RESET windrow.idempotency_key to execute it without one.";
        Some(Fault::new(FaultClass::Unsupported, "0A000", text).with_hint(Some(hint)))
    }
}

/// True for a statement that writes nothing.
fn runs_without_key(cached: &CachedStatement) -> bool {
    let names = cached.names();
    names.is_some_and(|names| {
        let mut verbs = names.verbs.iter();
        verbs.all(|verb| WITHOUT_KEY.contains(&&**verb)) && !names.writes()
    })
}
