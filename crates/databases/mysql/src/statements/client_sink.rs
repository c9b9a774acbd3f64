//! The sink of one lane of MySQL clients: one login, one set of session settings.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{
    Apart, Described, Describer, Executor, Fault, ParsedStatement, Profile, REFUSED, Sink,
    Standing, Statement, TableName, Unit,
};
use windrow_database::Options;
use windrow_database::question::{QuestionConnection, QuestionTurn};
use windrow_mysqlwire::{LaneLogin, Reply, Target};

use super::client_catalog::ClientCatalog;
use super::client_connection::ClientConnection;
use super::lane_interrupt::LaneInterrupt;
use super::lane_session::{LaneSession, LaneTarget, LostConnection};
use super::meaning::{ClientMeaning, meaning};
use super::table_look::{Looked, TableLook, look};
use crate::fault::{Scope, refusal_of};
use crate::sink::{PROFILE, ServerProduct};

/// Maximum number of attempts to read a table if connections end before the answer.
const ATTEMPTS: u32 = 3;

/// Executes the statements of MySQL clients, as one user, under one set of session settings.
pub struct ClientSink {
    target: Arc<LaneTarget>,
    catalog: Arc<ClientCatalog>,
    /// The connection for describing.
    describing: QuestionConnection<LaneSession>,
    product: ServerProduct,
}

impl ClientSink {
    /// Makes a sink that connects when it is used. `target`: the server. `login`: the user, its
    /// credential and the settings of its sessions. Of `options`, the timeouts are used.
    pub fn new(target: Target, login: LaneLogin, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            target: Arc::new(LaneTarget {
                target,
                login,
                options: options.clone(),
            }),
            catalog: Arc::new(ClientCatalog::default()),
            describing: QuestionConnection::new(|session| Box::pin(session.close())),
            product: ServerProduct::default(),
        })
    }

    /// Closes the connection for describing, unless it is in use.
    pub fn rest(&self) {
        self.describing.rest();
    }

    /// Returns how the statements on each table are joined, as far as they were described. Sends
    /// nothing to the database.
    pub fn standings(&self) -> Vec<Standing> {
        self.catalog.standings()
    }

    /// Returns a table's description.
    ///
    /// # Errors
    /// Outside: those of [`Describer::describe`]. Inside: the reason that keeps the table's
    /// statements from being joined.
    pub(super) async fn table(
        &self,
        name: &TableName,
    ) -> Result<Result<Arc<TableLook>, Apart>, Fault> {
        if let Some(table) = self.catalog.trusted_table(name) {
            return Ok(Ok(table));
        }
        let login = &self.target.login;
        let looked = self.ask(|mut session| async move {
            let looked = look(&mut session, login, name).await;
            (session, looked)
        });
        Ok(match looked.await? {
            Looked::Table(table) => Ok(self.catalog.put_table(*table)),
            Looked::Locked => Err(Apart::of("a locked table")),
            // The user may not select from the table.
            Looked::Refused(1142 | 1143) => {
                let hidden = Apart::of("a definition that cannot be seen");
                let hidden = hidden.by(format!("table {name}"));
                Err(hidden.advised("grant SELECT on the table"))
            }
            Looked::Refused(_) => {
                self.catalog.retire_table(name);
                Err(Apart::of(REFUSED))
            }
        })
    }

    /// Asks questions on the connection for describing; again on another one if the connection ends
    /// before the answer.
    async fn ask<T, F>(&self, question: impl Fn(LaneSession) -> F) -> Result<T, Fault>
    where
        F: Future<Output = (LaneSession, Result<T, Fault>)>,
    {
        let mut attempts = 0;
        loop {
            let mut turn = self.describing.turn().await;
            let session = self.take(&mut turn).await?;
            let (session, answer) = question(session).await;
            attempts += 1;
            if session.is_usable() {
                turn.put_back(session);
                return answer;
            }
            if attempts == ATTEMPTS {
                return answer;
            }
        }
    }

    /// Takes the connection for describing, or opens one.
    async fn take(&self, turn: &mut QuestionTurn<'_, LaneSession>) -> Result<LaneSession, Fault> {
        if let Some(mut session) = turn.take()
            && session.is_quiet().await
        {
            return Ok(session);
        }
        self.target.open(Purpose::Batches).await
    }

    /// Returns true if the server can prepare a text. A name that the server reserves is refused
    /// where it stands without quotes, and would be accepted in a text that quotes it.
    async fn accepts(&self, text: &str) -> Result<bool, Fault> {
        let asked = self.ask(|mut session| async move {
            let accepted = accepts(&mut session, text).await;
            (session, accepted)
        });
        asked.await
    }

    async fn find(&self, parsed: &ParsedStatement) -> Result<Result<ClientMeaning, Apart>, Fault> {
        let table = self.table(&parsed.table).await?;
        let sql_mode = self.target.login.variable("sql_mode");
        let mut found = table.and_then(|table| meaning(parsed, &table, sql_mode));
        if found.is_ok() && !self.accepts(&parsed.text).await? {
            found = Err(Apart::of(REFUSED));
        }
        self.catalog.stand(parsed, found.as_ref());
        Ok(found)
    }
}

async fn accepts(session: &mut LaneSession, text: &str) -> Result<bool, Fault> {
    let prepared = session.prepare(text).await;
    match prepared.map_err(LostConnection::unavailable)? {
        Reply::Error(error) => match refusal_of(&error) {
            refusal if refusal.scope == Scope::Statement => Ok(false),
            refusal => Err(refusal.fault),
        },
        Reply::Prepared(statement) => {
            let closed = session.close_statement(statement.id).await;
            closed.map(|()| true).map_err(LostConnection::unavailable)
        }
        Reply::Ok(_) | Reply::Rows(..) => Ok(true),
    }
}

#[async_trait]
impl Sink for ClientSink {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn system(&self) -> &'static str {
        self.product.name()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let session = self.target.open(purpose).await?;
        self.product.note(session.is_mariadb);
        let interrupt = LaneInterrupt::of(&self.target, &session);
        let catalog = Arc::clone(&self.catalog);
        let lock_wait = self.target.options.lock_wait;
        let connection = ClientConnection::new(session, interrupt, catalog, (purpose, lock_wait));
        Ok(Box::new(connection))
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let mut scratch = Vec::new();
        for call in unit.writes().iter().filter_map(|write| write.call()) {
            let statement = &call.statement;
            statement.touches(&call.arguments, &call.formats, &mut scratch, hashes);
        }
    }
}

#[async_trait]
impl Describer for ClientSink {
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        Ok(match self.find(parsed).await? {
            Ok(meaning) => Described::Joined(self.catalog.statement(parsed, meaning)),
            Err(apart) => Described::Apart(Arc::new(apart)),
        })
    }

    async fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        self.is_current(statement).await
    }

    async fn is_current(&self, statement: &Statement) -> Result<bool, Fault> {
        // A table that has changed retires its statements.
        if self.find(statement.parsed()).await?.is_err() {
            statement.retire();
        }
        Ok(!statement.is_retired())
    }
}
