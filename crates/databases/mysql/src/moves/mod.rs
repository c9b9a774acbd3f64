//! Rows of a table that serves as a queue, brought into their final tables on the same server, or
//! out of it.
//!
//! A batch is one transaction under READ COMMITTED, so that no gap between rows is locked: it reads
//! the keys of rows that nobody else holds (`FOR UPDATE SKIP LOCKED`), copies these rows by `INSERT
//! .. SELECT` and deletes them, both by their whole keys. Statements go in few texts; a row that
//! comes or goes meanwhile shows in the numbers of rows, and undoes them.
//!
//! **Deletes read no row that is not theirs**, because a row that another session holds would make
//! them wait. A range of numbers reads the row behind it too, so it ends before the last one that
//! is held. Other keys are looked up one by one; where a list of them is a good part of a small
//! table the server may read all of the table. On MariaDB a delete does not wait at all at first;
//! if it would have had to, the keys are looked up singly from then on. On MySQL the index is
//! named.
//!
//! **Copies lock nothing.** The rows of a route that lie among others of the batch, without a gap,
//! are read together with these and separated by their route, which takes less than looking each
//! of them up.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the queue: what it is, its tables, its connections |
//! | `effects` | what else changes if rows are deleted, and what keeps them from that |
//! | `survey` | what would be moved |
//! | `source` | the source as a mover uses it: statements and kinds of its columns |
//! | `held` | the rows that a mover holds |
//! | `keys` | keys as literals, and conditions for them |
//! | `script` | statements gathered into texts |
//! | `text` | what several statements have in common |
//! | `connect` | opens a connection for movers |
//! | `mover` | one connection that moves |
//! | `destination` | final tables, looked up and made |
//! | `letters` | dead letters |

mod connect;
mod destination;
mod effects;
mod held;
mod keys;
mod letters;
mod mover;
mod script;
mod source;
mod survey;
mod text;

use std::sync::Arc;

use async_trait::async_trait;
use mysql_async::Opts;
use windrow_bookkeeping::create_all;
use windrow_core::moves::{NameLimit, TableFacts};
use windrow_core::{Fault, FaultClass, MovePlan, Mover, Moves, TableName};
use windrow_database::Options;

use self::connect::connect;
use self::mover::MysqlMover;
use self::source::Source;
use super::fault::Trouble;
use super::own_tables::MysqlBookkeeping;
use super::session::Session;
use super::values::cell::get;

/// The most characters of a table's name.
const NAME_CHARS: usize = 64;

/// A database whose tables can be queues.
pub(super) struct MysqlMoves {
    opts: Opts,
    options: Options,
}

impl MysqlMoves {
    pub(super) fn new(opts: &Opts, options: &Options) -> Self {
        Self {
            opts: opts.clone(),
            options: options.clone(),
        }
    }

    async fn connect(&self) -> Result<Session, Fault> {
        connect(&self.opts, &self.options).await
    }
}

#[async_trait]
impl Moves for MysqlMoves {
    async fn place(&self) -> Result<String, Fault> {
        let mut session = self.connect().await?;
        let place = survey::place(&mut session).await;
        session.close().await;
        place.map_err(Trouble::into_fault)
    }

    async fn name_limit(&self) -> Result<NameLimit, Fault> {
        let mut session = self.connect().await?;
        let rows = session.rows("SELECT @@lower_case_table_names").await;
        session.close().await;
        let rows = rows.map_err(Trouble::into_fault)?;
        let folds = rows.first().and_then(|row| get::<u64>(row, 0));
        Ok(NameLimit::Plain {
            most: NAME_CHARS,
            folded: folds > Some(0),
        })
    }

    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault> {
        let mut session = self.connect().await?;
        let described = survey::describe(&mut session, table).await;
        session.close().await;
        described
    }

    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
        let mut session = self.connect().await?;
        let counted = survey::count(&mut session, plan, most).await;
        session.close().await;
        counted
    }

    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault> {
        let tables = MysqlBookkeeping::new(&self.opts, &self.options);
        create_all(&tables, plan.own_tables()).await
    }

    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault> {
        let mut session = self.connect().await?;
        if !session.server.skips_locked {
            session.close().await;
            return Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                "this server cannot pass over rows that others hold (SKIP LOCKED), by which movers are kept apart; \
                 it takes MariaDB 10.6 or MySQL 8.0.1 at least",
            ));
        }
        let source = Source::read(&mut session, plan).await?;
        let (opts, options) = (self.opts.clone(), self.options.clone());
        Ok(Box::new(MysqlMover::new(session, source, opts, options)))
    }
}

/// The queue that a sink gives.
pub(super) fn moves(opts: &Opts, options: &Options) -> Arc<dyn Moves> {
    Arc::new(MysqlMoves::new(opts, options))
}
