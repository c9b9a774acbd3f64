//! The sink of one lane of SQL clients: one role, one set of session settings.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::retry::Retry;
use windrow_core::sink::Purpose;
use windrow_core::{
    Apart, Described, Describer, Executor, Fault, FaultClass, ParsedStatement, Profile, REFUSED,
    Sink, Standing, Statement, Unit,
};
use windrow_database::Options;
use windrow_database::question::{QuestionConnection, QuestionTurn};

use crate::calls::bound_call::worth_joining;
use crate::calls::describe::{self, Description};
use crate::calls::late_write;
use crate::calls::meaning::meaning;
use crate::calls::preview;
use crate::dialect::{Dialect, POSTGRES};
use crate::executor::codes::LOCK_NOT_AVAILABLE;
use crate::executor::connection::{Connection, Shared};
use crate::executor::timeouts::Timeouts;
use crate::fault::with_error;
use crate::lane_catalog::LaneCatalog;
use crate::server::ping;
use windrow_pgwire::Target;
use windrow_pgwire::wire::{Broken, ServerError, Wire};

/// Maximum number of attempts to ask a question if connections end before the answer. A question
/// changes nothing, so it can be asked again.
const ATTEMPTS: u32 = 3;

/// Executes SQL calls in one database, as one role, under one set of session settings.
pub struct StatementSink {
    /// The dialect of the database, once a connection has found it.
    found: OnceLock<&'static Dialect>,
    target: Target,
    startup: Vec<(String, String)>,
    set: Vec<String>,
    options: Options,
    shared: Arc<Shared>,
    /// The connection for describing.
    describing: QuestionConnection<Wire>,
}

impl StatementSink {
    /// Makes a sink that connects when it is used. `target`: the server, the role and its
    /// credentials. `startup`: run-time parameters of the startup packet (`client_encoding`,
    /// `TimeZone`, `search_path`, `options` ...). `set`: statements that each new connection runs,
    /// in their order. Of `options`, the timeouts and the trusted functions are used.
    pub fn new(
        target: Target,
        startup: Vec<(String, String)>,
        set: Vec<String>,
        options: &Options,
    ) -> Arc<Self> {
        Arc::new(Self {
            found: OnceLock::new(),
            target,
            startup,
            set,
            options: options.clone(),
            shared: Arc::new(Shared::new(LaneCatalog::new(options))),
            describing: QuestionConnection::new(|wire| Box::pin(wire.terminate())),
        })
    }

    /// Closes the connection for describing, unless it is in use.
    pub fn rest(&self) {
        self.describing.rest();
    }

    /// Asks the database for a sign of life, within a few seconds. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`].
    pub async fn ping(&self) -> Result<(), Fault> {
        ping(self.wire(true)).await
    }

    /// Returns what the calls on each table share, for the tables that were used lately. Sends
    /// nothing to the database.
    pub fn standings(&self) -> Vec<Standing> {
        self.shared.catalog.standings()
    }

    /// Opens a session of the lane. `brief`: the session waits for locks of others only for a short
    /// time.
    async fn wire(&self, brief: bool) -> Result<(Wire, &'static Dialect), Fault> {
        let settings: Vec<(&str, String)> = self
            .startup
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let mut wire = Wire::connect(&self.target, &settings, self.options.connect_timeout).await?;
        let dialect = Dialect::recognize(&mut wire, self.found.get().copied()).await?;
        let dialect = *self.found.get_or_init(|| dialect);
        let sql = self.session_sql(brief);
        if sql.is_empty() {
            return Ok((wire, dialect));
        }
        match wire.simple(&sql).await {
            Ok(Ok(_)) => Ok((wire, dialect)),
            Ok(Err(error)) => {
                let body = error.body.clone();
                let fault = Fault::from(error);
                Err(with_error(fault, &[], &body))
            }
            Err(broken) => Err(broken.unavailable()),
        }
    }

    /// Returns the SQL that each new session runs first. `brief`: the session waits for locks of
    /// others only for a short time.
    fn session_sql(&self, brief: bool) -> String {
        let mut sql = self.set.join(";\n");
        if brief {
            // 0 would disable the timeout.
            let millis = self
                .options
                .lock_wait
                .as_millis()
                .clamp(1, i32::MAX as u128);
            sql.push_str(if sql.is_empty() { "" } else { ";\n" });
            sql.push_str(&format!("SET lock_timeout = {millis}"));
        }
        sql
    }

    /// Returns the dialect that a connection has found, or PostgreSQL if there was no connection
    /// yet.
    fn dialect(&self) -> &'static Dialect {
        self.found.get().copied().unwrap_or(&POSTGRES)
    }

    /// Takes the connection for describing, or opens one.
    async fn take(&self, turn: &mut QuestionTurn<'_, Wire>) -> Result<Wire, Fault> {
        if let Some(mut wire) = turn.take()
            && wire.is_alive()
        {
            return Ok(wire);
        }
        Ok(self.wire(true).await?.0)
    }
}

impl StatementSink {
    /// Asks a question on the connection for describing; again on another one if the connection
    /// ends before the answer.
    async fn ask<T, F>(&self, question: impl Fn(Wire) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<(Wire, T), Broken>>,
    {
        let mut attempts = 0;
        loop {
            let mut turn = self.describing.turn().await;
            let wire = self.take(&mut turn).await?;
            match question(wire).await {
                Ok((wire, answer)) => {
                    turn.put_back(wire);
                    return Ok(answer);
                }
                Err(broken) => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Err(broken.unavailable());
                    }
                }
            }
        }
    }

    /// Asks for the types of a statement whose table is known. Returns `None` if the table has to
    /// be read.
    async fn describe_first(
        &self,
        parsed: &Arc<ParsedStatement>,
        known: Option<Description>,
    ) -> Result<Option<Described>, Fault> {
        let Some(known) = known else {
            return Ok(None);
        };
        let types = {
            let mut turn = self.describing.turn().await;
            let mut wire = self.take(&mut turn).await?;
            let Ok(types) = describe::types_now(&mut wire, parsed).await else {
                return Ok(None);
            };
            turn.put_back(wire);
            types
        };
        let Ok(types) = types else {
            return Ok(None);
        };
        let statement = self.described(parsed, &known.with(&types)).ok();
        Ok(statement.map(Described::Joined))
    }

    /// Asks the server what a statement means.
    ///
    /// # Errors
    /// Outside: those of [`Describer::describe`]. Inside: another session has locked the table.
    async fn look(
        &self,
        parsed: &Arc<ParsedStatement>,
    ) -> Result<Result<Described, Locked>, Fault> {
        if let Some(reason) = self.dialect().apart {
            return Ok(Ok(apart(reason)));
        }
        let known = self.shared.catalog.calls.first_description(parsed);
        if let Some(joined) = self.describe_first(parsed, known).await? {
            return Ok(Ok(joined));
        }
        let asked = self.ask(|mut wire| async move {
            // The first connection has found the dialect.
            let asked = match self.dialect().apart {
                Some(reason) => Err(reason),
                None => Ok(describe::ask(&mut wire, parsed, &parsed.types).await?),
            };
            Ok((wire, asked))
        });
        let asked = match asked.await? {
            Ok(asked) => asked,
            Err(reason) => return Ok(Ok(apart(reason))),
        };
        let description = match asked {
            Ok(description) => description,
            Err(error) if error.code == LOCK_NOT_AVAILABLE => return Ok(Err(Locked)),
            Err(error) => return refused(error).map(|()| Ok(apart(REFUSED))),
        };
        Ok(Ok(match self.described(parsed, &description) {
            Ok(statement) => {
                self.shared.catalog.calls.note_table(parsed, &description);
                Described::Joined(statement)
            }
            Err(apart) => Described::Apart(Arc::new(apart)),
        }))
    }

    /// Makes the statement of a description.
    ///
    /// # Errors
    /// The reason that keeps the statement from being joined.
    fn described(
        &self,
        parsed: &Arc<ParsedStatement>,
        description: &Description,
    ) -> Result<Arc<Statement>, Apart> {
        let catalog = &self.shared.catalog.calls;
        let put = |oid, facts| catalog.put(oid, facts);
        let trusted = &self.shared.catalog.trusted;
        let mut found = meaning(parsed, description, trusted, put).and_then(worth_joining);
        if let Ok(meaning) = &mut found {
            preview::add(meaning, description, trusted, catalog);
            late_write::add(meaning, description, trusted, catalog);
        }
        catalog.stand(parsed, found.as_ref());
        let meaning = Arc::new(found?);
        let signature = meaning.signature.clone();
        let statement = Statement::new(parsed.clone(), signature, meaning.clone());
        let statement = Arc::new(statement);
        catalog.note(&statement, &meaning);
        Ok(statement)
    }
}

/// Reports that another session has locked the table of a statement, so that the server cannot
/// describe it.
struct Locked;

/// Returns the error of a question about a table that another session has locked.
fn locked() -> Fault {
    let text = "another session has locked the table, so it is not known whether it was changed";
    Fault::new(FaultClass::Conflict, LOCK_NOT_AVAILABLE, text)
}

/// Reads the error of a question about a statement. `Ok`: the server refuses the statement.
///
/// # Errors
/// The error is not about the statement: the server could not answer. Then the earlier meaning
/// still counts.
fn refused(error: ServerError) -> Result<(), Fault> {
    let fault = Fault::from(error);
    // A table that is dropped while it is read gives an internal error.
    let is_internal = fault.code.starts_with("XX");
    match fault.retry() {
        Retry::Never if !is_internal => Ok(()),
        _ => Err(fault),
    }
}

/// Returns the description of a statement that is sent to the server by itself, for the reason in
/// the phrase.
fn apart(phrase: &'static str) -> Described {
    Described::Apart(Arc::new(Apart::of(phrase)))
}

#[async_trait]
impl Sink for StatementSink {
    fn profile(&self) -> &Profile {
        &self.dialect().profile
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let (mut wire, dialect) = self.wire(false).await?;
        let (lock_wait, known) = (self.options.lock_wait, &self.shared.allowed);
        let timeouts = Timeouts::read(&mut wire, purpose, lock_wait, known).await?;
        let restore = timeouts.session(&self.session_sql(false), purpose, lock_wait);
        let how = (purpose, timeouts);
        let connection = Connection::new((wire, dialect), self.shared.clone(), how, lock_wait);
        Ok(Box::new(connection.restoring(restore)))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.shared.allowed.statement()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.shared.catalog.touches(unit, hashes);
    }
}

#[async_trait]
impl Describer for StatementSink {
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        let described = self.look(parsed).await?;
        Ok(described.unwrap_or_else(|Locked| apart("a locked table")))
    }

    async fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        let parsed = statement.parsed();
        let asked = self.ask(|mut wire| async move {
            let types = describe::types_now(&mut wire, parsed).await?;
            Ok((wire, types))
        });
        let holds = match asked.await? {
            Ok(now) => now == **statement.signature(),
            Err(error) => refused(error).map(|()| false)?,
        };
        if !holds {
            statement.retire();
            let catalog = &self.shared.catalog.calls;
            if let Some(meaning) = catalog.meaning(statement) {
                catalog.retire(&meaning.table);
            }
        }
        Ok(holds)
    }

    async fn is_current(&self, statement: &Statement) -> Result<bool, Fault> {
        let catalog = &self.shared.catalog.calls;
        let described = self.look(statement.parsed()).await?;
        let described = described.map_err(|Locked| locked())?;
        let known = catalog.meaning(statement);
        let now = match &described {
            Described::Joined(now) => catalog.meaning(now),
            Described::Apart(_) => None,
        };
        let is_current = known
            .zip(now)
            .is_some_and(|(known, now)| known.is_like(&now));
        if !is_current {
            statement.retire();
        }
        Ok(is_current && !statement.is_retired())
    }
}

#[cfg(test)]
mod tests {
    use windrow_pgwire::wire::Words;

    use super::*;

    #[test]
    fn only_errors_about_a_statement_refuse_it() {
        let is_refused = |code: &str| {
            let words = Words {
                code: code.to_owned(),
                ..Words::default()
            };
            refused(ServerError::from(words)).is_ok()
        };
        for code in [
            "42P01", "42703", "42501", "22P02", "0A000", "3F000", "23514",
        ] {
            assert!(is_refused(code), "{code}");
        }
        for code in [
            "08006", "40P01", "53300", "53200", "55P03", "57014", "57P01", "57P02", "57P03",
            "58030", "XX000", "XX001",
        ] {
            assert!(!is_refused(code), "{code}");
        }
    }
}
