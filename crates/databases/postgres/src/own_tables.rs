//! The tables that Windrow keeps for itself: made where they are not there yet, and brought up to
//! date where an older program has made them.

use windrow_core::Fault;
use windrow_core::bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};
use windrow_pgwire::wire::Wire;

use crate::dialect::Dialect;
use crate::talk::{Ask, Failed, talk, text};

/// How often a table that somebody else makes or changes at the same time is looked at again.
const TRIES: usize = 5;

/// Somebody else was faster, which even `IF NOT EXISTS` may say: of a row of the catalog, the
/// table, its type, a column that is there already, one that has another name by now.
const FASTER: [&str; 5] = ["23505", "42P07", "42710", "42701", "42703"];

/// The columns of a table; none where there is no such table.
const COLUMNS: &str = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";

/// Whoever makes tables waits for others who do: `CREATE TABLE IF NOT EXISTS` fails if two do it at
/// once.
pub(crate) const MAKING: &str = "SELECT pg_advisory_xact_lock(7744582194)";

/// Nobody waits for the disk: whoever puts a row into the new table waits for all that was written
/// before, so that a server that dies loses the table only while there is nothing in it.
const UNHURRIED: &str = "SELECT set_config('synchronous_commit', 'off', true)";

/// How long those are waited for who use a table that is to be changed.
const LONGEST_WAIT: &str = "SELECT set_config('lock_timeout', '10s', true)";

/// A table of Windrow's own.
#[derive(Clone, Copy)]
pub(crate) struct OwnTable {
    pub(crate) name: &'static str,
    /// The statements that make it.
    pub(crate) create: fn(&Dialect) -> Vec<String>,
    /// The statements that bring one that has these columns up to date.
    pub(crate) lacks: fn(&[String]) -> Vec<String>,
}

/// The table of dead letters.
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
pub(crate) async fn make(
    wire: &mut Wire,
    dialect: &'static Dialect,
    table: OwnTable,
) -> Result<(), Fault> {
    for attempt in 1.. {
        let columns = columns(wire, table.name).await?;
        let missing = match columns.as_slice() {
            [] => (table.create)(dialect),
            columns => (table.lacks)(columns),
        };
        if missing.is_empty() {
            return Ok(());
        }
        match change(wire, dialect, missing).await {
            Err(failed) if attempt < TRIES && FASTER.contains(&&*failed.fault.code) => {}
            done => return Ok(done?),
        }
    }
    Ok(())
}

/// The columns of a table; none where there is no such table.
pub(crate) async fn columns(wire: &mut Wire, table: &str) -> Result<Vec<String>, Fault> {
    let mut columns = Vec::new();
    let asks = [Ask::of(COLUMNS).text(table)];
    talk(wire, &asks, false, &mut |_, row| {
        columns.extend(text(&row, 0));
    })
    .await?;
    Ok(columns)
}

/// Changes the schema in one transaction: that of one round trip, which is undone as a whole where
/// something fails.
async fn change(
    wire: &mut Wire,
    dialect: &'static Dialect,
    statements: Vec<String>,
) -> Result<(), Failed> {
    let settings: &[&str] = match dialect.plain_catalog {
        true => &[],
        false => &[UNHURRIED, LONGEST_WAIT, MAKING],
    };
    let asks: Vec<Ask> = settings
        .iter()
        .map(|sql| Ask::of(*sql))
        .chain(statements.into_iter().map(Ask::of))
        .collect();
    talk(wire, &asks, false, &mut |_, _| {}).await
}

fn dead_letters(dialect: &Dialect) -> Vec<String> {
    // CockroachDB's type for JSON keeps what a document means, and refuses what it has no meaning
    // for; what is put aside must be kept in any case, and as it is.
    let json = if dialect.plain_catalog {
        "text"
    } else {
        "json"
    };
    vec![format!(
        "CREATE TABLE IF NOT EXISTS {REJECTED} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         rejected_at timestamptz NOT NULL DEFAULT now(), source text NOT NULL, destination text NOT NULL, key {json} NOT NULL, \
         \"row\" {json} NOT NULL, code text NOT NULL, message text NOT NULL, \"constraint\" text, entry bytea)"
    )]
}

/// A table of an older program called the moment otherwise, and had no entries.
fn missing_in_dead_letters(columns: &[String]) -> Vec<String> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    let mut missing = Vec::new();
    if !has("rejected_at") {
        missing.push(format!(
            "ALTER TABLE {REJECTED} RENAME COLUMN moved_at TO rejected_at"
        ));
    }
    if !has("entry") {
        missing.push(format!("ALTER TABLE {REJECTED} ADD COLUMN entry bytea"));
    }
    missing
}

fn positions(dialect: &Dialect) -> Vec<String> {
    let collation = by_bytes(dialect);
    vec![format!(
        "CREATE TABLE IF NOT EXISTS {PROGRESS} (spool text{collation} NOT NULL, \"partition\" bigint NOT NULL, \
         \"position\" bigint NOT NULL, last_entry text NOT NULL DEFAULT '', PRIMARY KEY (spool, \"partition\"), UNIQUE (spool, \"partition\", \"position\"))"
    )]
}

fn keys(dialect: &Dialect) -> Vec<String> {
    let collation = by_bytes(dialect);
    vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {IDEMPOTENCY} (idempotency_key text{collation} NOT NULL, part bigint NOT NULL, \
             request text NOT NULL, outcome bytea, made_at timestamptz NOT NULL DEFAULT now(), \
             PRIMARY KEY (idempotency_key, part))"
        ),
        format!("CREATE INDEX IF NOT EXISTS {IDEMPOTENCY}_made_at ON {IDEMPOTENCY} (made_at)"),
    ]
}

/// What stands behind the type of a text that is compared by its bytes; not needed where all are.
pub(crate) fn by_bytes(dialect: &Dialect) -> &'static str {
    match dialect.plain_catalog {
        true => "",
        false => " COLLATE \"C\"",
    }
}
