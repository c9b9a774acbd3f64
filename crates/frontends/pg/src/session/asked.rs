//! What a session says itself: to statements about Windrow's own settings, and about what its statements took from
//! sequences.

use windrow_core::Fault;
use windrow_sql::Effect;

use super::engine::Session;
use super::local::{self, Reply};
use super::readings::Prepared;

impl Session {
    /// What the session says to a statement. Nothing of it is under way. `argument`: the statement's parameter.
    ///
    /// # Errors
    /// Why only the server can answer it.
    pub(super) async fn answer(
        &mut self,
        prepared: &Prepared,
        argument: Option<&str>,
    ) -> Result<Result<Reply, Fault>, &'static str> {
        match prepared.effect() {
            Some(Effect::Currval(name)) => {
                let name = name.as_deref().or(argument).ok_or("a question of NULL")?;
                Box::pin(self.current(name)).await
            }
            _ => Ok(self.reply(prepared)),
        }
    }

    /// True for DEALLOCATE of a statement that the server may not know, or not by that name.
    pub(super) fn has_deallocated(&self, prepared: &Prepared) -> bool {
        let name = prepared.deallocates.as_deref();
        name.is_some_and(|name| self.statements.get(name.as_bytes()).is_some())
    }

    /// The same, of statements that can be answered at once.
    pub(crate) fn reply(&mut self, prepared: &Prepared) -> Result<Reply, Fault> {
        if let Some(name) = &prepared.deallocates {
            self.statements.set(name.as_bytes(), None);
            return Ok(Reply::Done("DEALLOCATE"));
        }
        match prepared.effect() {
            Some(Effect::Own { name, value }) => {
                local::set(name, value.as_deref(), &mut self.join, self.join_default)
            }
            Some(Effect::ShowOwn { name }) => local::show(name, self.join),
            Some(Effect::Lastval) => match self.values.last() {
                Some(value) => Ok(Reply::Number("lastval", value)),
                None => Err(local::no_lastval()),
            },
            _ => Ok(Reply::Empty),
        }
    }

    /// `currval(name)`.
    async fn current(&mut self, name: &str) -> Result<Result<Reply, Fault>, &'static str> {
        let sequence = self.sequence(name).await?;
        match self.values.current(sequence) {
            Some(value) => Ok(Ok(Reply::Number("currval", value))),
            None if self.values.is_incomplete() => Ok(Err(local::cannot_tell())),
            None => Err("a sequence that was not used"),
        }
    }

    /// The number of a sequence, by the name that it has under the session's settings at this moment. The server is asked
    /// each time: a table that was made anew has another sequence of the name.
    async fn sequence(&mut self, name: &str) -> Result<u32, &'static str> {
        const UNKNOWN: &str = "a sequence that is not found";
        let loan = self.house.pool.take(&self.who).await;
        let mut loan = loan.map_err(|_| UNKNOWN)?;
        let literal = name.replace('\\', "\\\\").replace('\'', "''");
        let sql = format!("SELECT E'{literal}'::pg_catalog.regclass::pg_catalog.oid");
        let rows = loan.wire.simple(&sql).await;
        loan.give_back(&self.who.settings, false, true).await;
        let first = rows.ok().and_then(Result::ok);
        let first = first.and_then(|rows| rows.into_iter().flatten().next().flatten());
        first.and_then(|oid| oid.parse().ok()).ok_or(UNKNOWN)
    }
}
