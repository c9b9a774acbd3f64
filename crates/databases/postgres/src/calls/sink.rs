//! The sink of one lane: one role, one set of session settings.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{
    Apart, Described, Describer, Executor, Fault, ParsedStatement, Profile, Sink, Standing,
    Statement, Unit,
};
use windrow_database::Options;

use super::bound_call::touches;
use super::describe;
use super::meaning::{Meaning, meaning};
use crate::dialect::{Dialect, POSTGRES};
use crate::fault::with_error;
use crate::ladder::connection::{Connection, Shared};
use crate::ladder::patience::Patience;
use crate::server::ping;
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// How long a connection for describing is kept when nothing is asked.
const IDLE: Duration = Duration::from_secs(60);

/// Executes SQL calls ([`Unit::calls`]) in one database, as one role, under one set of session
/// settings.
pub struct StatementSink {
    /// Which database it turned out to be.
    found: OnceLock<&'static Dialect>,
    target: Target,
    startup: Vec<(String, String)>,
    set: Vec<String>,
    options: Options,
    shared: Arc<Shared>,
    desk: Arc<Mutex<Desk>>,
}

/// The connection for describing.
#[derive(Debug)]
struct Desk {
    wire: Option<Wire>,
    used: Instant,
    /// Somebody looks after its closing.
    watched: bool,
}

impl StatementSink {
    /// A sink that connects when it is asked to. `target`: the server, the role and what lets it
    /// in. `startup`: run-time parameters of the startup packet (`client_encoding`, `TimeZone`,
    /// `search_path`, `options` ...). `set`: statements that each new connection runs, in their
    /// order. Of `options` the waiting times are used.
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
            shared: Arc::new(Shared::trusting(&options.trusted_functions)),
            desk: Arc::new(Mutex::new(Desk {
                wire: None,
                used: Instant::now(),
                watched: false,
            })),
        })
    }

    /// Closes the connection for describing, unless something is asked at this moment.
    pub fn rest(&self) {
        if let Ok(mut desk) = self.desk.try_lock()
            && let Some(wire) = desk.wire.take()
        {
            tokio::spawn(wire.terminate());
        }
    }

    /// A session of the lane. `brief`: locks held by others are waited for a short time only.
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

    /// What each new session runs first. `brief`: locks held by others are waited for a short time
    /// only.
    fn session_sql(&self, brief: bool) -> String {
        let mut sql = self.set.join(";\n");
        if brief {
            // 0 would switch it off.
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

    /// What it is, or what most are before anybody has looked.
    fn dialect(&self) -> &'static Dialect {
        self.found.get().copied().unwrap_or(&POSTGRES)
    }

    /// The connection for describing. It is taken out: if its user is dropped half-way, so is the
    /// connection.
    async fn at(&self, desk: &mut Desk) -> Result<Wire, Fault> {
        if let Some(mut wire) = desk.wire.take()
            && wire.is_alive()
        {
            return Ok(wire);
        }
        Ok(self.wire(true).await?.0)
    }

    /// Leaves it for the next one.
    fn leave(&self, mut desk: MutexGuard<'_, Desk>, wire: Wire) {
        desk.wire = Some(wire);
        desk.used = Instant::now();
        self.watch(&mut desk);
    }

    /// Closes the connection for describing some time after its last use.
    fn watch(&self, desk: &mut Desk) {
        if std::mem::replace(&mut desk.watched, true) {
            return;
        }
        let desk = Arc::downgrade(&self.desk);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(desk) = desk.upgrade() else { return };
                let mut desk = desk.lock().await;
                if desk.used.elapsed() >= IDLE {
                    desk.watched = false;
                    if let Some(wire) = desk.wire.take() {
                        wire.terminate().await;
                    }
                    return;
                }
            }
        });
    }
}

/// Sent to the server by itself, for a reason that says all by its phrase.
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
        let patience = Patience::settle(&mut wire, purpose, lock_wait, known).await?;
        let restore = patience.session(&self.session_sql(false), purpose, lock_wait);
        let how = (purpose, patience);
        let connection =
            Connection::new((wire, dialect), self.shared.clone(), how, false, lock_wait);
        Ok(Box::new(connection.restoring(restore)))
    }

    async fn ping(&self) -> Result<(), Fault> {
        ping(self.wire(true)).await
    }

    fn standings(&self) -> Vec<Standing> {
        self.shared.call_catalog.standings()
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.shared.allowed.statement()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let mut scratch = Vec::new();
        for call in unit.calls() {
            touches(call, &mut scratch, hashes);
        }
    }
}

#[async_trait]
impl Describer for StatementSink {
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        if let Some(reason) = self.dialect().apart {
            return Ok(apart(reason));
        }
        let mut desk = self.desk.lock().await;
        let mut wire = self.at(&mut desk).await?;
        if let Some(reason) = self.dialect().apart {
            return Ok(apart(reason));
        }
        let asked = describe::ask(&mut wire, parsed, &parsed.types).await;
        let asked = asked.map_err(|broken| broken.unavailable())?;
        self.leave(desk, wire);
        let sight = match asked {
            Ok(sight) => sight,
            Err(error) if error.code == "55P03" => return Ok(apart("a locked table")),
            Err(error) => {
                let fault = Fault::from(error);
                return match fault.class.may_retry() {
                    true => Err(fault),
                    false => Ok(apart("the server refuses it")),
                };
            }
        };
        let call_catalog = &self.shared.call_catalog;
        let put = |oid, facts| call_catalog.put(oid, facts);
        let found = meaning(parsed, &sight, &self.shared.trusted, put);
        call_catalog.stand(parsed, found.as_ref());
        let meaning = match found {
            Ok(meaning) => Arc::new(meaning),
            Err(apart) => return Ok(Described::Apart(Arc::new(apart))),
        };
        let statement = Arc::new(Statement::new(
            parsed.clone(),
            meaning.signature.clone(),
            Box::new(meaning.clone()),
        ));
        call_catalog.note(&meaning.table, &statement);
        Ok(Described::Joined(statement))
    }

    async fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        let mut desk = self.desk.lock().await;
        let mut wire = self.at(&mut desk).await?;
        let asked = describe::types_now(&mut wire, statement.parsed()).await;
        let asked = asked.map_err(|broken| broken.unavailable())?;
        self.leave(desk, wire);
        let holds = asked.is_ok_and(|now| now == **statement.signature());
        if !holds {
            statement.retire();
            if let Some(meaning) = statement.facts().downcast_ref::<Arc<Meaning>>() {
                self.shared.call_catalog.retire(&meaning.table);
            }
        }
        Ok(holds)
    }
}
