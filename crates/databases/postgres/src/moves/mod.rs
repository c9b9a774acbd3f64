//! PostgreSQL as the holder of pending rows.
//!
//! | module | what it does |
//! | --- | --- |
//! | `facts` | the facts about a table |
//! | `text` | the statements of a move |
//! | `letter_text` | the statement that writes dead letters |
//! | `mover` | the transactions |
//! | `pick` | locking rows, and reading them if they move to another database |
//! | `letters` | writing dead letters |
//! | `unreadable` | texts that have no form in UTF-8 |
//! | `survey` | counting the rows that would be moved |
//! | `open` | looking up and creating destinations |
//! | `news` | LISTEN |
//! | `spare` | keeping the connection between two steps |
//!
//! A picked row is identified by its place in the table (`ctid`): no other session can change the
//! place while the row is locked. If rows are in several tables (partitions, inheritance) they are
//! identified by their key.

mod facts;
mod letter_text;
mod letters;
mod mover;
mod news;
mod open;
mod pick;
mod spare;
mod survey;
mod text;
mod unreadable;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_bookkeeping::create;
use windrow_core::moves::{Mover, Moves, NameLimit, News, TableFacts};
use windrow_core::{Fault, FaultClass, MovePlan, TableName};
use windrow_database::moved::no_source;
use windrow_pgwire::wire::Wire;

use self::facts::Facts;
use self::spare::{Spare, Visit};
use super::catalog::schema;
use super::dialect::{COCKROACH, POSTGRES};
use super::own_tables::PgOwnSession;
use super::server::Server;
use super::talk::{Ask, talk, text as word_of, word};

/// The maximum length of a name. The server cuts longer names off (`NAMEDATALEN` without the zero
/// byte at the end), so that two could become one.
const NAME_BYTES: usize = 63;

/// Reads the server's start time. Copies of a server (a standby that was promoted, a copy of its
/// files) share its number, but not this.
const SINCE: &str = "SELECT extract(epoch FROM pg_postmaster_start_time())::text";

/// Reads the server's number (its system identifier), which only copies of the server share. The
/// number survives a failover, as the rows do.
const SERVER: &str = "SELECT system_identifier::text FROM pg_control_system()";

/// Sets the form of intervals that are written for another database. Other databases read every
/// style, but only this one is never misread.
const SPELLING: &str = "SET intervalstyle = 'postgres'";

/// Reads the database's number.
const DATABASE: &str = "SELECT oid::text FROM pg_database WHERE datname = current_database()";

/// A database that speaks PostgreSQL's protocol, as a queue.
pub(super) struct PgMoves {
    server: Arc<Server>,
    spare: Spare,
}

impl PgMoves {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            spare: Spare::default(),
        }
    }

    async fn wire(&self) -> Result<Wire, Fault> {
        let (wire, dialect) = self.server.wire().await?;
        if *dialect == COCKROACH {
            return Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                "rows cannot be moved out of CockroachDB; it can be the destination of a move",
            ));
        }
        Ok(wire)
    }

    /// Returns the connection of the previous step, or a new one.
    async fn visit(&self) -> Result<Visit, Fault> {
        if let Some(visit) = self.spare.take() {
            return Ok(visit);
        }
        let wire = self.wire().await?;
        Ok(Visit { wire, known: None })
    }

    /// Returns a table's facts, as the previous step has read them, or reads them now.
    async fn described(&self, visit: &mut Visit, table: &TableName) -> Result<Facts, Fault> {
        if let Some((_, facts)) = visit.known.take_if(|(name, _)| name == table) {
            return Ok(facts);
        }
        let facts = facts::read(&mut visit.wire, table).await?;
        facts.ok_or_else(|| no_source(table))
    }
}

/// Returns a text that identifies the database. If the role may not read the server's number, the
/// server's address takes its place.
async fn database(wire: &mut Wire) -> Result<String, Fault> {
    let (mut database, mut server) = (String::new(), String::new());
    let asks = [Ask::of(DATABASE), Ask::of(SERVER)];
    let answered = talk(wire, &asks, false, &mut |at, row| {
        let word = word_of(&row, 0).unwrap_or_default();
        *(if at == 0 { &mut database } else { &mut server }) = word;
    })
    .await;
    match answered {
        Ok(()) => {}
        Err(failed) if failed.at == 1 && failed.fault.class == FaultClass::Denied => {
            wire.peer().clone_into(&mut server);
        }
        Err(failed) => return Err(failed.fault),
    }
    Ok(format!("{server}/{database}"))
}

#[async_trait]
impl Moves for PgMoves {
    async fn place(&self) -> Result<String, Fault> {
        let mut visit = self.visit().await?;
        let database = database(&mut visit.wire).await?;
        let since = word(&mut visit.wire, Ask::of(SINCE)).await?;
        let since = since.unwrap_or_default();
        self.spare.leave(visit);
        Ok(format!("{database}/{since}"))
    }

    async fn name_limit(&self) -> Result<NameLimit, Fault> {
        Ok(NameLimit::Bytes(NAME_BYTES))
    }

    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault> {
        let mut visit = self.visit().await?;
        let database = database(&mut visit.wire).await?;
        let facts = facts::read(&mut visit.wire, table).await?;
        visit.known = facts.clone().map(|facts| (table.clone(), facts));
        self.spare.leave(visit);
        Ok(facts.map(|facts| TableFacts {
            identity: format!("{database}/{}", facts.oid),
            ..facts.table
        }))
    }

    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
        let mut visit = self.visit().await?;
        let facts = self.described(&mut visit, &plan.source).await?;
        let texts = text::Texts::new(plan, &facts, None);
        let found = survey::survey(&mut visit.wire, &texts, most).await?;
        self.spare.leave(visit);
        Ok(found)
    }

    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault> {
        let Visit { wire, known } = self.visit().await?;
        let mut session = PgOwnSession {
            wire,
            dialect: &POSTGRES,
        };
        for table in plan.own_tables() {
            create(&mut session, *table).await?;
        }
        let wire = session.wire;
        self.spare.leave(Visit { wire, known });
        Ok(())
    }

    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault> {
        let mut visit = self.visit().await?;
        let facts = self.described(&mut visit, &plan.source).await?;
        let mut wire = visit.wire;
        if plan.across {
            let settings = [Ask::of(SPELLING)];
            talk(&mut wire, &settings, false, &mut |_, _| {}).await?;
        }
        let described = match plan.across {
            false => None,
            true => match schema::read_unproven(&mut wire, &plan.source, &POSTGRES).await {
                Ok(answer) => answer.map_err(Fault::from)?,
                Err(broken) => return Err(broken.unavailable()),
            },
        };
        let texts = text::Texts::new(plan, &facts, described.as_ref());
        Ok(Box::new(mover::PgMover::new(wire, plan, &facts, texts)))
    }

    async fn news(&self, _plan: &MovePlan) -> Result<Option<Box<dyn News>>, Fault> {
        let wire = self.wire().await?;
        Ok(Some(Box::new(news::PgNews::open(wire).await?)))
    }
}
