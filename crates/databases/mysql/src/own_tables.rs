//! Windrow's own tables in MySQL and MariaDB: their texts, and how these are run. The time zone of
//! the connection is UTC, and so are the moments in the tables.

use async_trait::async_trait;
use windrow_bookkeeping::{Applied, IDEMPOTENCY, KeyPart, Marker, PROGRESS, ProgressRow, REJECTED};
use windrow_core::bookkeeping::{
    BATCHES, MARKERS, OwnAnswer, OwnSession, OwnStatement, OwnTable, TableChange,
};
use windrow_core::{Bookkeeping, Fault, Mark, Span, TableName};

use super::catalog::information::about;
use super::fault::Trouble;
use super::server::MysqlServer;
use super::session::{Server, Session};
use super::values::cell::get;
use super::values::literal::push_text;

/// The numbers of errors of a change that another session has made first: the table exists, a
/// column exists, a column has another name, an index exists, there is another primary key.
const RACED: [u16; 5] = [1050, 1060, 1054, 1061, 1068];

/// The primary key of the table of markers. An index beside the primary key would not do: for a
/// batch that is a good part of the table the server reads all markers of the move, those of other
/// batches too, and waits for the sessions that write them.
const BY_BATCH: &str = "(batch, `key`)";

/// The unique index by which the marker of a row is found.
const BY_ROW: &str = "windrow_moved_key (move, `key`)";

/// Limits the wait for sessions that use a table that is to be changed, in seconds.
const LOCK_TIMEOUT: &str = "SET SESSION lock_wait_timeout = 10";

#[async_trait]
impl Bookkeeping for MysqlServer {
    async fn open(&self) -> Result<Box<dyn OwnSession>, Fault> {
        let session = self.connect().await?;
        Ok(Box::new(MysqlOwnSession { session }))
    }
}

/// A connection that creates and reads Windrow's own tables.
struct MysqlOwnSession {
    session: Session,
}

#[async_trait]
impl OwnSession for MysqlOwnSession {
    async fn columns(&mut self, table: OwnTable) -> Result<Vec<String>, Fault> {
        let name = TableName::bare(table.name());
        let sql = about("COLUMNS", "COLUMN_NAME", "TABLE", &name, "");
        let rows = self.session.rows(&sql).await?;
        Ok(rows.iter().filter_map(|row| get(row, 0)).collect())
    }

    async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault> {
        let sql = text(&self.session.server, statement);
        let changing = async {
            self.session.say(LOCK_TIMEOUT).await?;
            self.session.say(&sql).await
        };
        match changing.await {
            Ok(_) => Ok(TableChange::Done),
            Err(Trouble::Refused(refusal)) if RACED.contains(&refusal.number) => {
                Ok(TableChange::Raced(refusal.fault))
            }
            Err(trouble) => Err(trouble.into()),
        }
    }

    async fn run(&mut self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
        let answered = match statement {
            OwnStatement::MergeMarks(mark) => {
                let merged = merge_marks(&mut self.session, mark).await;
                merged.map(|()| OwnAnswer::default())
            }
            _ => {
                let sql = text(&self.session.server, statement);
                run(&mut self.session, &sql).await
            }
        };
        Ok(answered?)
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}

/// Runs a text, which reads rows if it begins with `SELECT`.
pub(crate) async fn run(session: &mut Session, sql: &str) -> Result<OwnAnswer, Trouble> {
    let mut answer = OwnAnswer::default();
    if !sql.starts_with("SELECT") {
        answer.deleted = session.say(sql).await?;
        return Ok(answer);
    }
    for row in session.rows(sql).await? {
        let cell = |place| get::<Vec<u8>>(&row, place).map(Vec::into_boxed_slice);
        answer.rows.push((0..row.len()).map(cell).collect());
    }
    Ok(answer)
}

/// Returns the text of a statement.
fn text(server: &Server, statement: OwnStatement<'_>) -> String {
    match statement {
        OwnStatement::Create(table) => create(server, table),
        OwnStatement::RenameMovedAt => format!(
            "ALTER TABLE {REJECTED} CHANGE COLUMN moved_at rejected_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"
        ),
        OwnStatement::AddEntry => format!("ALTER TABLE {REJECTED} ADD COLUMN entry LONGBLOB NULL"),
        OwnStatement::ForgetKeys { age, most } => format!(
            "DELETE FROM {IDEMPOTENCY} WHERE made_at < UTC_TIMESTAMP(6) - INTERVAL {} SECOND ORDER BY made_at LIMIT {most}",
            age.as_secs()
        ),
        OwnStatement::ReadRejected { after, most } => format!(
            "SELECT id, CAST(rejected_at AS CHAR), source, destination, `key`, `row`, code, message, `constraint`, entry \
             FROM {REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"
        ),
        OwnStatement::ReadMarks { load } => {
            let (table, of, first, end) = (Mark::TABLE, Mark::LOAD, Mark::FIRST, Mark::END);
            let mut sql = format!("SELECT `{first}`, `{end}` FROM `{table}` WHERE `{of}` = ");
            push_text(&mut sql, load);
            sql.push_str(&format!(" ORDER BY `{first}`"));
            sql
        }
        OwnStatement::MergeMarks(mark) => insert_marks(&mark.load, &[mark.span]),
        OwnStatement::FindMarkerIndex => {
            let is_first =
                " AND INDEX_NAME = 'PRIMARY' AND SEQ_IN_INDEX = 1 AND COLUMN_NAME = 'batch'";
            let table = TableName::bare(MARKERS);
            about("STATISTICS", "INDEX_NAME", "TABLE", &table, is_first)
        }
        OwnStatement::IndexMarkers => format!(
            "ALTER TABLE {MARKERS} MODIFY batch VARCHAR({}) NOT NULL, DROP PRIMARY KEY, \
             ADD PRIMARY KEY {BY_BATCH}, ADD UNIQUE KEY {BY_ROW}",
            Marker::MAX_BYTES
        ),
        OwnStatement::Plain(text) => text.to_owned(),
    }
}

/// Puts a mark in the place of those within it. A transaction that is open when the connection ends
/// is rolled back.
async fn merge_marks(session: &mut Session, mark: &Mark) -> Result<(), Trouble> {
    let Mark { load, span } = mark;
    let (table, of, first, end) = (Mark::TABLE, Mark::LOAD, Mark::FIRST, Mark::END);
    let mut delete = format!("DELETE FROM `{table}` WHERE `{of}` = ");
    push_text(&mut delete, load);
    delete.push_str(&format!(
        " AND `{first}` >= {} AND `{end}` <= {}",
        span.first, span.end
    ));
    let insert = insert_marks(load, &[*span]);
    for sql in ["START TRANSACTION", &delete, &insert, "COMMIT"] {
        session.say(sql).await?;
    }
    Ok(())
}

/// Returns the statement that inserts marks, at least one.
pub(crate) fn insert_marks(load: &str, spans: &[Span]) -> String {
    let mut sql = format!(
        "INSERT INTO `{}` (`{}`, `{}`, `{}`) VALUES ",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    for (at, span) in spans.iter().enumerate() {
        sql.push_str(if at > 0 { ", (" } else { "(" });
        push_text(&mut sql, load);
        sql.push_str(&format!(", {}, {})", span.first, span.end));
    }
    sql
}

fn create(server: &Server, table: OwnTable) -> String {
    let by_bytes = by_bytes(server);
    match table {
        OwnTable::Progress => format!(
            "CREATE TABLE IF NOT EXISTS {PROGRESS} (spool VARCHAR({}) NOT NULL, `partition` BIGINT NOT NULL, \
             `position` BIGINT NOT NULL, last_entry VARCHAR({}) NOT NULL DEFAULT '', PRIMARY KEY (spool, `partition`), UNIQUE KEY (spool, `partition`, `position`)) {by_bytes}",
            ProgressRow::NAME_BYTES,
            Applied::NAME_BYTES,
        ),
        // Nothing checks the JSON: a dead letter must be kept in any case, and the servers' own
        // checks of JSON have limits that a row may exceed.
        OwnTable::Rejected => format!(
            "CREATE TABLE IF NOT EXISTS {REJECTED} (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
             rejected_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), source VARCHAR(255) NOT NULL, \
             destination LONGTEXT NOT NULL, `key` LONGTEXT NOT NULL, `row` LONGTEXT NOT NULL, code VARCHAR(16) NOT NULL, \
             message LONGTEXT NOT NULL, `constraint` TEXT NULL, entry LONGBLOB NULL) {by_bytes}"
        ),
        OwnTable::Keys => format!(
            "CREATE TABLE IF NOT EXISTS {IDEMPOTENCY} (idempotency_key VARCHAR({}) NOT NULL, part BIGINT NOT NULL, \
             request VARCHAR({}) NOT NULL, outcome LONGBLOB NULL, made_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), \
             PRIMARY KEY (idempotency_key, part), KEY (made_at)) {by_bytes}",
            KeyPart::KEY_BYTES,
            KeyPart::REQUEST_BYTES,
        ),
        OwnTable::Loads => format!(
            "CREATE TABLE IF NOT EXISTS `{}` (`{load}` VARCHAR({}) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
             `{first}` BIGINT NOT NULL, `{}` BIGINT NOT NULL, PRIMARY KEY (`{load}`, `{first}`)) ENGINE = InnoDB",
            Mark::TABLE,
            Mark::NAME_BYTES,
            Mark::END,
            load = Mark::LOAD,
            first = Mark::FIRST,
        ),
        OwnTable::Markers => format!(
            "CREATE TABLE IF NOT EXISTS {MARKERS} (move VARCHAR({most}) NOT NULL, `key` VARCHAR({most}) NOT NULL, \
             batch VARCHAR({most}) NOT NULL, PRIMARY KEY {BY_BATCH}, UNIQUE KEY {BY_ROW}) {by_bytes}",
            most = Marker::MAX_BYTES,
        ),
        OwnTable::Batches => format!(
            "CREATE TABLE IF NOT EXISTS {BATCHES} (batch VARCHAR(128) NOT NULL PRIMARY KEY, \
             moved_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) {by_bytes}"
        ),
    }
}

/// Returns the options of a table whose texts are compared by their bytes.
fn by_bytes(server: &Server) -> String {
    let collation = match server.mariadb {
        true => "utf8mb4_nopad_bin",
        false => "utf8mb4_0900_bin",
    };
    format!("ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE {collation}")
}
