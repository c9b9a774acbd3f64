//! Moves rows of a table that serves as a queue to their final tables on the same server, or reads
//! them out.
//!
//! A batch is one transaction under READ COMMITTED, so that no gap between rows is locked: it reads
//! the keys of rows that nobody else holds (`FOR UPDATE SKIP LOCKED`), copies these rows by `INSERT
//! .. SELECT` and deletes them, both by their whole keys. Several statements are sent as one text.
//! If a row appears or disappears meanwhile, the numbers of rows differ, and the statements are
//! undone.
//!
//! **Deletes read no row that they do not delete**, because a row that another session has locked
//! would make them wait. A range of numbers reads the row behind it too, so it ends before the last
//! one that is held. Other keys are looked up one by one; if a list of them covers much of a small
//! table, the server may read the whole table. On MariaDB a delete does not wait at all at first;
//! if it would have had to wait, the keys are looked up singly from then on. On MySQL the index is
//! named.
//!
//! **Copies lock nothing.** The rows of a route that lie among others of the batch, without a gap,
//! are read together with these and separated by their route, which is faster than looking up each
//! of them.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the queue: what it is, its tables, its connections |
//! | `effects` | other changes that deleting rows causes, and foreign keys that prevent it |
//! | `survey` | describes tables and counts rows before a move |
//! | `source` | the source as a mover uses it: statements and kinds of its columns |
//! | `held` | the rows that a mover holds |
//! | `keys` | keys as literals, and conditions for them |
//! | `script` | groups statements into texts |
//! | `text` | parts that several statements have in common |
//! | `connect` | opens a connection for movers |
//! | `mover` | a connection that moves rows |
//! | `destination` | looks up and creates final tables |
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

use async_trait::async_trait;
use windrow_bookkeeping::create_all;
use windrow_core::moves::{NameLimit, TableFacts};
use windrow_core::{Fault, FaultClass, MovePlan, Mover, Moves, TableName};

use self::connect::connect;
use self::mover::MysqlMover;
use self::source::Source;
use super::server::MysqlServer;
use super::values::cell::get;

/// The most characters of a table's name.
const NAME_CHARS: usize = 64;

#[async_trait]
impl Moves for MysqlServer {
    async fn place(&self) -> Result<String, Fault> {
        let mut session = connect(self).await?;
        let place = survey::place(&mut session).await;
        session.close().await;
        Ok(place?)
    }

    async fn name_limit(&self) -> Result<NameLimit, Fault> {
        let mut session = connect(self).await?;
        let rows = session.rows("SELECT @@lower_case_table_names").await;
        session.close().await;
        let rows = rows?;
        let folds = rows.first().and_then(|row| get::<u64>(row, 0));
        Ok(NameLimit::Plain {
            most: NAME_CHARS,
            folded: folds > Some(0),
        })
    }

    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault> {
        let mut session = connect(self).await?;
        let described = survey::describe(&mut session, table).await;
        session.close().await;
        described
    }

    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
        let mut session = connect(self).await?;
        let counted = survey::count(&mut session, plan, most).await;
        session.close().await;
        counted
    }

    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault> {
        create_all(self, plan.own_tables()).await
    }

    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault> {
        let mut session = connect(self).await?;
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
        Ok(Box::new(MysqlMover::new(session, source, self.clone())))
    }
}
