//! A connection to the server: its settings, its prepared statements, its cost.

pub(super) mod interrupt;
mod script;
mod settings;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use mysql_async::prelude::Queryable;
use mysql_async::{
    Column, Conn, DriverError, Error, IoError, LocalInfileError, Opts, Params, Row, Statement,
    Value as Cell,
};
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Tally};
use windrow_database::Options;

use self::interrupt::Interrupt;
pub(super) use self::script::Fetched;
use self::settings::{FIRST, Variables};
use super::fault::{NOT_UNDONE, Trouble, refusal};
use super::values::cell::get;

/// Placeholders of all prepared statements that a connection keeps: each takes some 150 bytes here
/// and on the server.
const MAX_PLACEHOLDERS: usize = 1 << 16;

/// Prepared statements that a connection keeps.
const MAX_STATEMENTS: usize = 256;

/// The contents of a file that LOAD DATA LOCAL reads.
pub(super) type FileStream = BoxStream<'static, std::io::Result<Bytes>>;

/// The abilities and limits of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) mariadb: bool,
    /// True if INSERT and DELETE return rows (MariaDB 10.5).
    pub(super) returning: bool,
    /// True if a locking read can skip locked rows (MariaDB 10.6, MySQL 8.0.1).
    pub(super) skips_locked: bool,
    /// True if every warning has the number of its row (MariaDB 10.7).
    pub(super) numbers_rows: bool,
    /// The longest packet, in bytes.
    pub(super) packet: usize,
    /// True if a lock timeout rolls back the whole transaction.
    pub(super) timeout_ends_all: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    conn: Conn,
    pub(super) server: Server,
    /// The statements that set up the connection.
    settings: Box<str>,
    statements: HashMap<Box<str>, Statement>,
    placeholders: usize,
    round_trips: u32,
    in_database: Duration,
    /// True once the server ends the connection.
    ending: bool,
    lock_wait: Option<u64>,
    /// True while statements do not wait for locks.
    has_no_lock_wait: bool,
}

/// The answer to a statement.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Rows that were inserted, found by an update, or deleted.
    pub(super) affected: u64,
    /// The value that AUTO_INCREMENT generated, if there is one.
    pub(super) generated: Option<u64>,
    pub(super) warnings: u16,
    pub(super) rows: Vec<Row>,
}

/// A result with its columns.
#[derive(Debug)]
pub(super) struct QueryResult {
    pub(super) columns: Arc<[Column]>,
    pub(super) rows: Vec<Row>,
}

impl Session {
    /// Connects. `purpose` is `None` for a session that executes no batches.
    pub(super) async fn connect(
        opts: &Opts,
        purpose: Option<Purpose>,
        options: &Options,
    ) -> Result<Self, Fault> {
        let connecting = open(opts, purpose, options);
        match tokio::time::timeout(options.connect_timeout, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(Fault::unavailable(format!(
                "MySQL did not answer within {:?} (connect_timeout)",
                options.connect_timeout
            ))),
        }
    }

    /// Returns the handle that cancels statements of this connection.
    pub(super) async fn interrupt(&mut self, opts: &Opts) -> Result<Arc<Interrupt>, Fault> {
        let interrupt = Interrupt::of(opts, &mut self.conn).await;
        interrupt.map_err(of_connecting)
    }

    /// Executes a statement, and prepares it first if it is not prepared yet.
    pub(super) async fn execute(&mut self, sql: &str, cells: Vec<Cell>) -> Result<Answer, Trouble> {
        let statement = self.prepare(sql, cells.len()).await?;
        let start = Instant::now();
        self.round_trips += 1;
        let answer = run(&mut self.conn, statement, cells).await;
        self.in_database += start.elapsed();
        answer.map_err(|error| self.trouble(error))
    }

    /// Executes a text that returns no rows.
    pub(super) async fn say(&mut self, sql: &str) -> Result<u64, Trouble> {
        let start = Instant::now();
        self.round_trips += 1;
        let said = self.conn.query_drop(sql).await;
        self.in_database += start.elapsed();
        match said {
            Ok(()) => Ok(self.conn.affected_rows()),
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// Executes a text that writes rows. Returns the number of rows that were written, and of
    /// warnings.
    pub(super) async fn write(&mut self, sql: &str) -> Result<(u64, u64), Trouble> {
        let written = self.say(sql).await?;
        Ok((written, u64::from(self.conn.get_warnings())))
    }

    /// Executes a LOAD DATA LOCAL with this file, for any name that the server asks for. Returns
    /// the number of rows that were written, and of warnings (65,535 at most).
    pub(super) async fn load(
        &mut self,
        sql: &str,
        file: FileStream,
    ) -> Result<(u64, u64), Trouble> {
        // The library needs `Sync`, which a stream is not.
        let file = parking_lot::Mutex::new(Some(file));
        self.conn.set_infile_handler(async move {
            let mut file = file.lock();
            Ok(file
                .take()
                .unwrap_or_else(|| Box::pin(futures_util::stream::empty())))
        });
        let said = self.say(sql).await;
        // If the server did not ask for the file, no later statement may get it.
        self.conn
            .set_infile_handler(async { Err(LocalInfileError::NoHandler.into()) });
        Ok((said?, self.conn.get_warnings().into()))
    }

    /// Executes a text of one or more queries. Returns each result with columns until the first
    /// error.
    pub(super) async fn looks(&mut self, sql: &str) -> (Vec<QueryResult>, Result<(), Trouble>) {
        let start = Instant::now();
        self.round_trips += 1;
        let mut all = Vec::new();
        let ended = seen(&mut self.conn, sql, &mut all).await;
        self.in_database += start.elapsed();
        (all, ended.map_err(|error| self.trouble(error)))
    }

    /// Returns true if the last rollback undid all writes. The server warns if a table without
    /// transactions kept some.
    pub(super) async fn undid_all(&mut self) -> Result<bool, Trouble> {
        let warnings = self.rows("SHOW WARNINGS").await?;
        let kept = |row: &Row| get::<u16>(row, 1) == Some(NOT_UNDONE);
        Ok(!warnings.iter().any(kept))
    }

    /// Returns true if the last statement gave so many warnings, and all of them are this one.
    pub(super) async fn only_warned(&mut self, number: u16, count: usize) -> Result<bool, Trouble> {
        let warnings = self.rows("SHOW WARNINGS").await?;
        let is_it = |row: &Row| get::<u16>(row, 1) == Some(number);
        Ok(warnings.len() == count && warnings.iter().all(is_it))
    }

    /// Resets the session, which removes everything that unproven triggers or functions left in it.
    ///
    /// # Errors
    /// The connection cannot be used any more.
    pub(super) async fn renew(&mut self) -> Result<(), Trouble> {
        let start = Instant::now();
        self.round_trips += 2;
        self.statements.clear();
        self.placeholders = 0;
        self.has_no_lock_wait = false;
        let renewed = match self.conn.reset().await {
            Ok(true) => self.conn.query_drop(&*self.settings).await,
            // The server is too old to reset a session.
            Ok(false) => Err(Error::Driver(DriverError::ConnectionClosed)),
            Err(error) => Err(error),
        };
        self.in_database += start.elapsed();
        renewed.map_err(|error| {
            self.give_up();
            self.trouble(error)
        })
    }

    /// Executes a text that returns rows.
    pub(super) async fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Trouble> {
        let start = Instant::now();
        self.round_trips += 1;
        let rows = self.conn.query::<Row, _>(sql).await;
        self.in_database += start.elapsed();
        rows.map_err(|error| self.trouble(error))
    }

    /// Sets whether statements fail at once if they meet another session's lock, or after the lock
    /// timeout. Once a statement has waited, the search for its row must not wait again each time.
    /// In MySQL, whose timeouts are whole seconds, this changes nothing.
    pub(super) async fn hurry(&mut self, on: bool) -> Result<(), Trouble> {
        let (Some(usual), true) = (
            self.lock_wait,
            self.server.mariadb && self.has_no_lock_wait != on,
        ) else {
            return Ok(());
        };
        let wait = if on { 0 } else { usual };
        self.say(&format!("SET SESSION innodb_lock_wait_timeout = {wait}"))
            .await?;
        self.has_no_lock_wait = on;
        Ok(())
    }

    /// Moves the cost until now into a tally.
    pub(super) fn settle(&mut self, tally: &mut Tally) {
        tally.round_trips += std::mem::take(&mut self.round_trips);
        tally.in_database += std::mem::take(&mut self.in_database);
    }

    /// Returns false once nothing more can be sent.
    pub(super) fn is_usable(&self) -> bool {
        !self.ending && !self.conn.is_disconnected()
    }

    /// Marks the connection as unusable.
    pub(super) fn give_up(&mut self) {
        self.ending = true;
    }

    /// Closes the connection.
    pub(super) async fn close(self) {
        // The server notices the end of a connection without it.
        self.conn.disconnect().await.ok();
    }

    async fn prepare(&mut self, sql: &str, placeholders: usize) -> Result<Statement, Trouble> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let full = self.placeholders + placeholders > MAX_PLACEHOLDERS
            || self.statements.len() >= MAX_STATEMENTS;
        if full {
            self.placeholders = 0;
            for (_, statement) in std::mem::take(&mut self.statements) {
                if let Err(error) = self.conn.close(statement).await {
                    return Err(self.trouble(error));
                }
            }
        }
        let start = Instant::now();
        self.round_trips += 1;
        let prepared = self.conn.prep(sql).await;
        self.in_database += start.elapsed();
        let statement = prepared.map_err(|error| self.trouble(error))?;
        self.placeholders += placeholders;
        self.statements.insert(sql.into(), statement.clone());
        Ok(statement)
    }

    fn trouble(&mut self, error: Error) -> Trouble {
        let trouble = Trouble::from(error);
        self.ending |= match &trouble {
            Trouble::Refused(refusal) => refusal.fault.class == FaultClass::Unavailable,
            Trouble::Lost(_) => true,
        };
        trouble
    }
}

async fn run(conn: &mut Conn, statement: Statement, cells: Vec<Cell>) -> Result<Answer, Error> {
    let mut result = conn.exec_iter(statement, Params::Positional(cells)).await?;
    let rows = result.collect::<Row>().await?;
    let answer = Answer {
        affected: result.affected_rows(),
        generated: result.last_insert_id(),
        warnings: result.warnings(),
        rows,
    };
    result.drop_result().await?;
    Ok(answer)
}

async fn seen(conn: &mut Conn, sql: &str, all: &mut Vec<QueryResult>) -> Result<(), Error> {
    let mut result = conn.query_iter(sql).await?;
    while let Some(columns) = result.columns() {
        let rows = result.collect::<Row>().await?;
        if !columns.is_empty() {
            all.push(QueryResult { columns, rows });
        }
        if result.is_empty() {
            break;
        }
    }
    result.drop_result().await
}

async fn open(opts: &Opts, purpose: Option<Purpose>, options: &Options) -> Result<Session, Fault> {
    let mut conn = Conn::new(opts.clone()).await.map_err(of_connecting)?;
    // Whole seconds, rounded up: 0 would not wait at all.
    let wait = options
        .lock_wait
        .as_millis()
        .div_ceil(1000)
        .clamp(1, 86_400);
    let wait = u64::try_from(wait).unwrap_or(1);
    let wait = (purpose == Some(Purpose::Batches)).then_some(wait);
    conn.query_drop(FIRST).await.map_err(of_connecting)?;
    let known = conn.query::<Row, _>(Variables::question()).await;
    let mut known = Variables::read(&known.map_err(of_connecting)?);
    if options.given_numbers {
        known.keep_zeros();
    }
    let settings = known.settings(purpose, wait);
    conn.query_drop(&*settings).await.map_err(of_connecting)?;
    let version = known.get("version");
    let mariadb = version.contains("MariaDB");
    Ok(Session {
        conn,
        server: Server {
            mariadb,
            returning: mariadb && at_least(version, (10, 5)),
            skips_locked: at_least(version, if mariadb { (10, 6) } else { (8, 0) }),
            numbers_rows: mariadb && at_least(version, (10, 7)),
            packet: known.get("max_allowed_packet").parse().unwrap_or(1 << 20),
            timeout_ends_all: known.get("innodb_rollback_on_timeout") == "ON",
        },
        settings: settings.into(),
        statements: HashMap::new(),
        placeholders: 0,
        round_trips: 0,
        in_database: Duration::ZERO,
        ending: false,
        lock_wait: wait,
        has_no_lock_wait: false,
    })
}

fn at_least(version: &str, least: (u32, u32)) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= least
}

/// Returns the fault of a connection that failed. It may succeed later, unless the server itself
/// refused it.
fn of_connecting(error: Error) -> Fault {
    match error {
        Error::Server(error) => {
            let fault = refusal(&error).fault;
            match fault.class {
                FaultClass::NoTable => Fault::new(FaultClass::Invalid, "3D000", fault.message),
                _ => fault,
            }
        }
        Error::Io(IoError::Io(error)) => {
            Fault::unavailable(format!("MySQL cannot be reached: {error}"))
        }
        Error::Io(IoError::Tls(error)) => Fault::new(
            FaultClass::Denied,
            "08001",
            format!("no encrypted connection to MySQL: {error}"),
        ),
        Error::Driver(error) => Fault::new(
            FaultClass::Unavailable,
            "08001",
            format!("no connection to MySQL: {error}"),
        ),
        other => Fault::unavailable(format!("no connection to MySQL: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_numbers() {
        assert!(at_least("10.11.6-MariaDB-0+deb12u1", (10, 5)));
        assert!(at_least("11.0.2-MariaDB", (10, 5)));
        assert!(!at_least("10.4.30-MariaDB", (10, 5)));
        assert!(!at_least("5.5.68-MariaDB", (10, 5)));
    }
}
