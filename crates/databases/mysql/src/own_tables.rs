//! The tables that Windrow keeps for itself: made where they are not there yet, and brought up to
//! date where an older program has made them.

use windrow_core::TableName;
use windrow_core::bookkeeping::{Applied, IDEMPOTENCY, KeyPart, PROGRESS, Partition, REJECTED};

use super::catalog::information::about;
use super::fault::Trouble;
use super::session::{Server, Session};
use super::values::cell::get;

/// How often a table that somebody else makes or changes at the same time is looked at again.
const TRIES: usize = 5;

/// Somebody else was faster: the table is there, a column is there, a column has another name.
const FASTER: [u16; 3] = [1050, 1060, 1054];

/// How many seconds those are waited for who use a table that is to be changed.
const LONGEST_WAIT: &str = "SET SESSION lock_wait_timeout = 10";

/// A table of Windrow's own.
#[derive(Clone, Copy)]
pub(crate) struct OwnTable {
    pub(crate) name: &'static str,
    /// The statement that makes it.
    pub(crate) create: fn(&Server) -> String,
    /// What brings one that has these columns up to date, as changes of one ALTER TABLE.
    pub(crate) lacks: fn(&[String]) -> Vec<&'static str>,
}

/// The table of dead letters. The connection's time zone is UTC, and so are the moments in it.
pub(crate) const DEAD_LETTERS: OwnTable = OwnTable {
    name: REJECTED,
    create: dead_letters,
    lacks: missing_in_dead_letters,
};

/// The table of how far spools have been applied.
pub(crate) const POSITIONS: OwnTable = OwnTable {
    name: PROGRESS,
    create: positions,
    lacks: |_| Vec::new(),
};

/// The table of requests that were executed under a key.
pub(crate) const KEYS: OwnTable = OwnTable {
    name: IDEMPOTENCY,
    create: keys,
    lacks: |_| Vec::new(),
};

/// Makes a table, unless it is there, and changes one that lacks something. It is looked at first:
/// who may not make tables can have somebody else make them before.
pub(crate) async fn make(session: &mut Session, table: OwnTable) -> Result<(), Trouble> {
    for attempt in 1.. {
        let columns = columns(session, table.name).await?;
        let sql = match columns.as_slice() {
            [] => (table.create)(&session.server),
            columns => match (table.lacks)(columns).as_slice() {
                [] => return Ok(()),
                missing => format!("ALTER TABLE {} {}", table.name, missing.join(", ")),
            },
        };
        session.say(LONGEST_WAIT).await?;
        match session.say(&sql).await {
            Err(Trouble::Refused(refusal))
                if attempt < TRIES && FASTER.contains(&refusal.number) => {}
            done => return done.map(drop),
        }
    }
    Ok(())
}

/// The columns of a table; none where there is no such table.
pub(crate) async fn columns(session: &mut Session, table: &str) -> Result<Vec<String>, Trouble> {
    let name = TableName::bare(table);
    let sql = about("COLUMNS", "COLUMN_NAME", "TABLE", &name, "");
    let rows = session.rows(&sql).await?;
    Ok(rows.iter().filter_map(|row| get(row, 0)).collect())
}

/// What stands behind the columns of a table whose texts are compared by their bytes.
pub(crate) fn by_bytes(server: &Server) -> String {
    let collation = if server.mariadb {
        "utf8mb4_nopad_bin"
    } else {
        "utf8mb4_0900_bin"
    };
    format!("ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE {collation}")
}

/// What is put aside must be kept in any case, so nothing checks it: the servers' own checks of
/// JSON know limits that the JSON of a row may exceed.
fn dead_letters(server: &Server) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {REJECTED} (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
         rejected_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), source VARCHAR(255) NOT NULL, \
         destination LONGTEXT NOT NULL, `key` LONGTEXT NOT NULL, `row` LONGTEXT NOT NULL, code VARCHAR(16) NOT NULL, \
         message LONGTEXT NOT NULL, `constraint` TEXT NULL, entry LONGBLOB NULL) {}",
        by_bytes(server)
    )
}

/// A table of an older program called the moment otherwise, and had no entries.
fn missing_in_dead_letters(columns: &[String]) -> Vec<&'static str> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    let mut missing = Vec::new();
    if !has("rejected_at") {
        missing.push(
            "CHANGE COLUMN moved_at rejected_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        );
    }
    if !has("entry") {
        missing.push("ADD COLUMN entry LONGBLOB NULL");
    }
    missing
}

fn positions(server: &Server) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {PROGRESS} (spool VARCHAR({}) NOT NULL, `partition` BIGINT NOT NULL, \
         `position` BIGINT NOT NULL, last_entry VARCHAR({}) NOT NULL DEFAULT '', PRIMARY KEY (spool, `partition`), UNIQUE KEY (spool, `partition`, `position`)) {}",
        Partition::NAME_BYTES,
        Applied::NAME_BYTES,
        by_bytes(server)
    )
}

fn keys(server: &Server) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {IDEMPOTENCY} (idempotency_key VARCHAR({}) NOT NULL, part BIGINT NOT NULL, \
         request VARCHAR({}) NOT NULL, outcome LONGBLOB NULL, made_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), \
         PRIMARY KEY (idempotency_key, part), KEY (made_at)) {}",
        KeyPart::KEY_BYTES,
        KeyPart::REQUEST_BYTES,
        by_bytes(server)
    )
}
