//! Windrow's own tables in PostgreSQL and CockroachDB: their statements, and how these are run.

use async_trait::async_trait;
use windrow_bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};
use windrow_core::bookkeeping::{
    BATCHES, MARKERS, OwnAnswer, OwnSession, OwnStatement, OwnTable, TableChange,
};
use windrow_core::{Bookkeeping, Fault, Mark};
use windrow_pgwire::wire::{DataRow, Wire};

use super::dialect::Dialect;
use super::server::Server;
use super::talk::{Ask, talk, text};

/// The SQLSTATEs of a change that another session has made first, which even `IF NOT EXISTS` may
/// report: of a row of the catalog, of the table, its type, a column that exists already, a column
/// that has another name by now.
const RACED: [&str; 5] = ["23505", "42P07", "42710", "42701", "42703"];

/// Selects the columns of a table; none if the table does not exist.
const COLUMNS: &str = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";

/// Waits for other sessions that create tables: `CREATE TABLE IF NOT EXISTS` fails if two sessions
/// execute it at once.
pub(crate) const MAKING: &str = "SELECT pg_advisory_xact_lock(7744582194)";

/// Commits without waiting for the disk. A session that commits a row of the new table also makes
/// everything before it durable, so a crash of the server can only lose an empty table.
const UNHURRIED: &str = "SELECT set_config('synchronous_commit', 'off', true)";

/// Takes a lock that all transactions of a load's portions hold at the same time. The first number
/// is one that other programs are unlikely to use.
pub(crate) const HOLD: &str = "SELECT pg_advisory_xact_lock_shared(1467117431, hashtext($1))";

/// Waits for the end of the transactions that have [`HOLD`].
const AWAIT: &str = "SELECT pg_advisory_xact_lock(1467117431, hashtext($1))";

/// Limits the wait for sessions that use a table that is to be changed, or that write portions of a
/// load. A server may take hours to notice that a client's machine is gone.
const LOCK_TIMEOUT: &str = "SELECT set_config('lock_timeout', '10s', true)";

#[async_trait]
impl Bookkeeping for Server {
    async fn open(&self) -> Result<Box<dyn OwnSession>, Fault> {
        let (wire, dialect) = self.wire().await?;
        Ok(Box::new(PgOwnSession { wire, dialect }))
    }
}

/// A connection that creates and reads Windrow's own tables.
pub(crate) struct PgOwnSession {
    pub(crate) wire: Wire,
    pub(crate) dialect: &'static Dialect,
}

#[async_trait]
impl OwnSession for PgOwnSession {
    async fn columns(&mut self, table: OwnTable) -> Result<Vec<String>, Fault> {
        let mut columns = Vec::new();
        let asks = [Ask::of(COLUMNS).text(table.name())];
        talk(&mut self.wire, &asks, false, &mut |_, row| {
            columns.extend(text(&row, 0));
        })
        .await?;
        Ok(columns)
    }

    /// Runs a change. The statements of one round trip are one transaction, which is rolled back if
    /// one fails.
    async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault> {
        let settings: &[&str] = match self.dialect.plain_catalog {
            true => &[],
            false => &[UNHURRIED, LOCK_TIMEOUT, MAKING],
        };
        let settings = settings.iter().map(|sql| Ask::of(*sql));
        let asks: Vec<Ask> = settings.chain(asks(self.dialect, statement)).collect();
        match talk(&mut self.wire, &asks, false, &mut |_, _| {}).await {
            Ok(()) => Ok(TableChange::Done),
            Err(failed) if RACED.contains(&&*failed.fault.code) => {
                Ok(TableChange::Raced(failed.fault))
            }
            Err(failed) => Err(failed.fault),
        }
    }

    async fn run(&mut self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
        if let OwnStatement::ReadMarks { load } = statement {
            self.settle(load).await?;
        }
        let asks = asks(self.dialect, statement);
        let mut answer = OwnAnswer::default();
        talk(
            &mut self.wire,
            &asks,
            false,
            &mut |_, row| match statement {
                OwnStatement::ReadRejected { .. } => answer.rows.push(rejected_cells(&row)),
                OwnStatement::ForgetKeys { .. } => answer.deleted += 1,
                _ => answer.rows.push(cells(&row)),
            },
        )
        .await?;
        Ok(answer)
    }

    fn is_alive(&mut self) -> bool {
        self.wire.is_alive()
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}

impl PgOwnSession {
    /// Waits for portions of a load that are still being written: after a killed program or a lost
    /// connection, the server goes on with the rows that it has received.
    async fn settle(&mut self, load: &str) -> Result<(), Fault> {
        if self.dialect.plain_catalog {
            return Ok(());
        }
        let asks = [Ask::of(LOCK_TIMEOUT), Ask::of(AWAIT).text(load)];
        match talk(&mut self.wire, &asks, false, &mut |_, _| {}).await {
            Err(failed) if &*failed.fault.code == "55P03" => {
                tracing::warn!(load, "another connection still writes rows of this load");
                Ok(())
            }
            waited => Ok(waited?),
        }
    }
}

/// Returns the values of a row.
pub(crate) fn cells(row: &DataRow<'_>) -> Vec<Option<Box<[u8]>>> {
    row.columns().map(|cell| cell.map(Box::from)).collect()
}

/// Returns the values of a dead letter, whose last column is binary, sent as hexadecimal digits.
fn rejected_cells(row: &DataRow<'_>) -> Vec<Option<Box<[u8]>>> {
    let mut cells = cells(row);
    if let Some(Some(last)) = cells.last_mut() {
        *last = from_hexadecimal(last);
    }
    cells
}

/// Returns the bytes of a text of hexadecimal digits.
fn from_hexadecimal(digits: &[u8]) -> Box<[u8]> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or_default();
    let byte = |pair: &[u8]| {
        pair.iter()
            .fold(0_u32, |sum, digit| sum * 16 + value(digit))
    };
    let bytes = digits.chunks(2).map(byte);
    bytes.filter_map(|byte| u8::try_from(byte).ok()).collect()
}

/// Returns the texts of a statement, with their parameters.
fn asks(dialect: &Dialect, statement: OwnStatement<'_>) -> Vec<Ask> {
    let text = match statement {
        OwnStatement::Create(OwnTable::Keys) => return keys(dialect),
        OwnStatement::Create(OwnTable::Markers) => return markers(dialect),
        OwnStatement::FindMarkerIndex => format!(
            "SELECT indexname FROM pg_indexes WHERE schemaname = ANY (current_schemas(false)) AND tablename = '{MARKERS}' \
             AND indexdef LIKE '% USING %batch%' AND indexdef NOT LIKE '% WHERE %'"
        ),
        OwnStatement::IndexMarkers => index_markers(),
        OwnStatement::Plain(text) => text.to_owned(),
        OwnStatement::ReadMarks { load } => return vec![read_marks(load)],
        OwnStatement::MergeMarks(mark) => return merge_marks(dialect, mark),
        OwnStatement::Create(OwnTable::Progress) => progress(dialect),
        OwnStatement::Create(OwnTable::Rejected) => rejected(dialect),
        OwnStatement::Create(OwnTable::Loads) => loads(dialect),
        OwnStatement::Create(OwnTable::Batches) => format!(
            "CREATE TABLE IF NOT EXISTS {BATCHES} (batch text PRIMARY KEY, moved_at timestamptz NOT NULL DEFAULT now())"
        ),
        OwnStatement::RenameMovedAt => {
            format!("ALTER TABLE {REJECTED} RENAME COLUMN moved_at TO rejected_at")
        }
        OwnStatement::AddEntry => format!("ALTER TABLE {REJECTED} ADD COLUMN entry bytea"),
        OwnStatement::ForgetKeys { age, most } => format!(
            "DELETE FROM {IDEMPOTENCY} WHERE (idempotency_key, part) IN \
             (SELECT idempotency_key, part FROM {IDEMPOTENCY} WHERE made_at < now() - interval '{} seconds' \
             ORDER BY made_at LIMIT {most}) RETURNING 1",
            age.as_secs()
        ),
        OwnStatement::ReadRejected { after, most } => format!(
            "SELECT id, rejected_at, source, destination, key, \"row\", code, message, \"constraint\", encode(entry, 'hex') \
             FROM {REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"
        ),
    };
    vec![Ask::of(text)]
}

fn read_marks(load: &str) -> Ask {
    let (table, of, first, end) = (Mark::TABLE, Mark::LOAD, Mark::FIRST, Mark::END);
    let sql = format!("SELECT {first}, {end} FROM {table} WHERE {of} = $1 ORDER BY {first}");
    Ask::of(sql).text(load)
}

fn merge_marks(dialect: &Dialect, mark: &Mark) -> Vec<Ask> {
    let (table, load, first, end) = (Mark::TABLE, Mark::LOAD, Mark::FIRST, Mark::END);
    let sqls = [
        format!("DELETE FROM {table} WHERE {load} = $1 AND {first} >= $2 AND {end} <= $3"),
        format!("INSERT INTO {table} ({load}, {first}, {end}) VALUES ($1, $2, $3)"),
    ];
    let of_mark = |sql: String| {
        let (first, end) = (mark.span.first.to_string(), mark.span.end.to_string());
        let ask = Ask::of(sql).text(&mark.load);
        ask.untyped(first).untyped(end)
    };
    // If a crash loses a merged mark, the marks that it was merged from come back, and are merged
    // again.
    let unhurried = (!dialect.plain_catalog).then(|| Ask::of(UNHURRIED));
    unhurried.into_iter().chain(sqls.map(of_mark)).collect()
}

fn rejected(dialect: &Dialect) -> String {
    // CockroachDB's JSON type normalizes a document and refuses an invalid one. A dead letter must
    // be kept in any case, byte by byte.
    let json = match dialect.plain_catalog {
        true => "text",
        false => "json",
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {REJECTED} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         rejected_at timestamptz NOT NULL DEFAULT now(), source text NOT NULL, destination text NOT NULL, key {json} NOT NULL, \
         \"row\" {json} NOT NULL, code text NOT NULL, message text NOT NULL, \"constraint\" text, entry bytea)"
    )
}

fn progress(dialect: &Dialect) -> String {
    let collation = by_bytes(dialect);
    format!(
        "CREATE TABLE IF NOT EXISTS {PROGRESS} (spool text{collation} NOT NULL, \"partition\" bigint NOT NULL, \
         \"position\" bigint NOT NULL, last_entry text NOT NULL DEFAULT '', PRIMARY KEY (spool, \"partition\"), UNIQUE (spool, \"partition\", \"position\"))"
    )
}

fn keys(dialect: &Dialect) -> Vec<Ask> {
    let collation = by_bytes(dialect);
    let texts = [
        format!(
            "CREATE TABLE IF NOT EXISTS {IDEMPOTENCY} (idempotency_key text{collation} NOT NULL, part bigint NOT NULL, \
             request text NOT NULL, outcome bytea, made_at timestamptz NOT NULL DEFAULT now(), \
             PRIMARY KEY (idempotency_key, part))"
        ),
        format!("CREATE INDEX IF NOT EXISTS {IDEMPOTENCY}_made_at ON {IDEMPOTENCY} (made_at)"),
    ];
    texts.map(Ask::of).into()
}

fn markers(dialect: &Dialect) -> Vec<Ask> {
    let collation = by_bytes(dialect);
    let table = format!(
        "CREATE TABLE IF NOT EXISTS {MARKERS} (move text{collation} NOT NULL, key text{collation} NOT NULL, \
         batch text{collation} NOT NULL, PRIMARY KEY (move, key))"
    );
    [table, index_markers()].map(Ask::of).into()
}

fn index_markers() -> String {
    format!("CREATE INDEX IF NOT EXISTS {MARKERS}_batch ON {MARKERS} (move, batch)")
}

fn loads(dialect: &Dialect) -> String {
    let collation = by_bytes(dialect);
    let (table, load, first, end) = (Mark::TABLE, Mark::LOAD, Mark::FIRST, Mark::END);
    format!(
        "CREATE TABLE IF NOT EXISTS {table} ({load} text{collation} NOT NULL, {first} bigint NOT NULL, {end} bigint NOT NULL, PRIMARY KEY ({load}, {first}))"
    )
}

/// Returns the collation of a text that is compared by its bytes; none if all texts are.
fn by_bytes(dialect: &Dialect) -> &'static str {
    match dialect.plain_catalog {
        true => "",
        false => " COLLATE \"C\"",
    }
}
