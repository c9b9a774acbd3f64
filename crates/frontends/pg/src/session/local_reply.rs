//! What a session says itself: to statements about Windrow's own settings, and about what its
//! statements took from sequences.

use windrow_core::Fault;
use windrow_sql::Effect;

use super::local::{self, Reply};
use super::state::Session;
use crate::statements::CachedStatement;

impl Session {
    /// What the session says to a statement. Nothing of it is under way.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn answer(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if cached.effect() == Some(&Effect::Lastval) {
            Box::pin(self.look_for_last()).await;
        }
        self.reply(cached)
    }

    /// True for DEALLOCATE of a statement that the server may not know, or not by that name.
    pub(super) fn has_deallocated(&self, cached: &CachedStatement) -> bool {
        let name = cached.deallocates();
        name.is_some_and(|name| self.statements.get(name.as_bytes()).is_some())
    }

    /// The same, of statements that can be answered at once.
    pub(crate) fn reply(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if let Some(name) = cached.deallocates() {
            self.statements.set(name.as_bytes(), None);
            return Ok(Reply::Done("DEALLOCATE"));
        }
        match cached.effect() {
            Some(Effect::SetWindrow { name, value }) => {
                let Self {
                    own, own_default, ..
                } = self;
                let allowed = self.shared.allowed(&self.who.identity);
                own.set(name, value.as_deref(), own_default, allowed)?;
                let tag = if value.is_some() { "SET" } else { "RESET" };
                Ok(Reply::Done(tag))
            }
            Some(Effect::ShowWindrow { name }) => {
                let (name, value) = self.own.show(name)?;
                Ok(Reply::Text(name, value.into()))
            }
            Some(Effect::Lastval) if self.values.asks_for_lost_last() => Err(local::in_the_spool()),
            Some(Effect::Lastval) => match self.values.last() {
                Some(value) => Ok(Reply::Number("lastval", value)),
                None => Err(local::no_lastval()),
            },
            _ => Ok(Reply::Empty),
        }
    }

    /// Makes sure that the sequence which was used last is still there, where the catalog has
    /// changed since that was known.
    async fn look_for_last(&mut self) {
        let Some(sequence) = self.values.last_sequence() else {
            return;
        };
        let epoch = self.shared.proofs.epoch(&self.who.identity.database);
        if self.epoch == epoch {
            return;
        }
        let Ok(mut loan) = self.shared.databases.pool.take(&self.who).await else {
            return;
        };
        let sql = format!("SELECT FROM pg_catalog.pg_class WHERE oid = {sequence}");
        let rows = loan.wire.simple(&sql).await;
        loan.give_back(&self.who.settings, None, true).await;
        if let Ok(Ok(rows)) = rows {
            self.epoch = epoch;
            if rows.is_empty() {
                self.values.forget_last();
            }
        }
    }
}
