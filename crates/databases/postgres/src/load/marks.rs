//! What was loaded before, in a table of the database itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use windrow_bookkeeping::create;
use windrow_core::bookkeeping::OwnTable;
use windrow_core::{Fault, Mark, Marks, Span};

use super::message::push_statement;
use crate::own_tables::PgOwnSession;
use crate::server::Server;
use windrow_pgwire::wire::{Answer, ServerError, Wire};

/// The marks of a database.
pub(super) struct TableOfMarks {
    server: Arc<Server>,
    /// A connection that nobody uses: marks are asked for and merged again and again.
    spare: Mutex<Option<Wire>>,
}

/// For the rest of the transaction: nobody waits for the disk.
const NOT_AWAITED: &str = "SELECT set_config('synchronous_commit', 'off', true)";

/// How long is waited for portions that are under way. A server may take hours to see that a
/// client's machine is gone.
const LONGEST_WAIT: &str = "SELECT set_config('lock_timeout', '10s', true)";

/// Held by the transactions that write a load's portions, all at once. The first number is any that
/// others will not use.
const HOLD: &str = "SELECT pg_advisory_xact_lock_shared(1467117431, hashtext($1))";

/// Waits for the end of them.
const AWAIT: &str = "SELECT pg_advisory_xact_lock(1467117431, hashtext($1))";

type Table = Vec<Vec<Option<String>>>;

impl TableOfMarks {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            spare: Mutex::default(),
        }
    }

    /// One round trip, and one transaction.
    async fn run(&self, append: impl FnOnce(&mut BytesMut) + Send) -> Result<Table, Fault> {
        let mut spare = self.spare().take();
        let mut wire = match spare.take_if(Wire::is_alive) {
            Some(wire) => wire,
            None => self.server.wire().await?.0,
        };
        append(wire.out());
        let answer = ask(&mut wire).await;
        if wire.is_usable() {
            let other = self.spare().replace(wire);
            if let Some(other) = other {
                other.terminate().await;
            }
        }
        answer
    }

    /// Waits for portions of a load that are still being written: the server goes on with what it
    /// has got from a program that was killed, or whose connection is gone.
    async fn settle(&self, load: &str) -> Result<(), Fault> {
        if self.server.dialect().plain_catalog {
            return Ok(());
        }
        let waited = self.run(|out| {
            push_statement(out, LONGEST_WAIT, &[]);
            push_statement(out, AWAIT, &[load]);
        });
        match waited.await {
            Err(fault) if &*fault.code == "55P03" => {
                tracing::warn!(load, "another connection still writes rows of this load");
                Ok(())
            }
            waited => waited.map(drop),
        }
    }

    fn spare(&self) -> MutexGuard<'_, Option<Wire>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends what is appended, with the Sync that commits it; gives all rows.
async fn ask(wire: &mut Wire) -> Result<Table, Fault> {
    frontend::sync(wire.out());
    let mut rows = Vec::new();
    let mut error: Option<ServerError> = None;
    let ended = wire
        .exchange(1, &mut |answer| match answer {
            Answer::DataRow(row) => {
                let text = |cell: Option<&[u8]>| {
                    cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                };
                rows.push(row.columns().map(text).collect());
            }
            Answer::Error(said) => error = error.take().or(Some(said)),
            _ => {}
        })
        .await;
    match (ended, error) {
        (Err(broken), _) => Err(broken.unavailable()),
        (Ok(()), Some(error)) => Err(error.into()),
        (Ok(()), None) => Ok(rows),
    }
}

#[async_trait]
impl Marks for TableOfMarks {
    async fn prepare(&self) -> Result<(), Fault> {
        let (wire, dialect) = self.server.wire().await?;
        let mut session = PgOwnSession { wire, dialect };
        let created = create(&mut session, OwnTable::Loads).await;
        session.wire.terminate().await;
        created
    }

    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault> {
        let sql = format!(
            "SELECT {first}, {end} FROM {table} WHERE {load} = $1 ORDER BY {first}",
            table = Mark::TABLE,
            load = Mark::LOAD,
            first = Mark::FIRST,
            end = Mark::END,
        );
        self.settle(load).await?;
        let rows = self.run(|out| push_statement(out, &sql, &[load])).await?;
        let span = |row: Vec<Option<String>>| {
            let number = |place: usize| row.get(place)?.as_ref()?.parse().ok();
            let (first, end) = (number(0)?, number(1)?);
            Some(Span { first, end })
        };
        let spans: Option<Vec<Span>> = rows.into_iter().map(span).collect();
        spans.ok_or_else(|| {
            Fault::internal(format!("the table {} holds what is no mark", Mark::TABLE))
        })
    }

    async fn merge(&self, mark: &Mark) -> Result<(), Fault> {
        let delete = format!(
            "DELETE FROM {table} WHERE {load} = $1 AND {first} >= $2 AND {end} <= $3",
            table = Mark::TABLE,
            load = Mark::LOAD,
            first = Mark::FIRST,
            end = Mark::END,
        );
        let (first, end) = (mark.span.first.to_string(), mark.span.end.to_string());
        self.run(|out| {
            // One that is lost in a crash is made again from those that come back then.
            if !self.server.dialect().plain_catalog {
                push_statement(out, NOT_AWAITED, &[]);
            }
            push_statement(out, &delete, &[&mark.load, &first, &end]);
            push_marks(out, &mark.load, &[mark.span]);
        })
        .await
        .map(drop)
    }
}

/// Appends the statement that goes before a portion with marks: who reads the marks waits for its
/// end.
pub(super) fn push_hold(out: &mut BytesMut, load: &str) {
    push_statement(out, HOLD, &[load]);
}

/// Appends the statement that makes marks.
pub(super) fn push_marks(out: &mut BytesMut, load: &str, spans: &[Span]) {
    let into = format!(
        "INSERT INTO {} ({}, {}, {})",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    if let [span] = spans {
        let (first, end) = (span.first.to_string(), span.end.to_string());
        let sql = format!("{into} VALUES ($1, $2, $3)");
        push_statement(out, &sql, &[load, &first, &end]);
        return;
    }
    let array = |number: fn(&Span) -> u64| {
        let numbers: Vec<String> = spans.iter().map(|s| number(s).to_string()).collect();
        format!("{{{}}}", numbers.join(","))
    };
    let sql = format!("{into} SELECT $1, * FROM unnest($2::int8[], $3::int8[])");
    let (firsts, ends) = (array(|s| s.first), array(|s| s.end));
    push_statement(out, &sql, &[load, &firsts, &ends]);
}
