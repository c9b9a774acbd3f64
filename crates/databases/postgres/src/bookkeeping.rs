//! The tables of Windrow's own: how far a spool has been applied, what was refused, and which
//! requests were executed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::bookkeeping::{DeadLetter, IDEMPOTENCY, KeptLetter, REJECTED};
use windrow_core::{Bookkeeping, Fault};
use windrow_pgwire::wire::{DataRow, Wire};

use super::dialect::Dialect;
use super::own_tables::{DEAD_LETTERS, KEYS, POSITIONS, columns, make};
use super::server::Server;
use super::talk::{Ask, number, talk, text};

/// What a spool needs of a database that speaks PostgreSQL's protocol.
pub(super) struct PgBookkeeping {
    server: Arc<Server>,
}

impl PgBookkeeping {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server }
    }
}

#[async_trait]
impl Bookkeeping for PgBookkeeping {
    async fn prepare(&self) -> Result<(), Fault> {
        let (mut wire, dialect) = self.server.wire().await?;
        let made = prepare(&mut wire, dialect).await;
        wire.terminate().await;
        made
    }

    async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        let (mut wire, dialect) = self.server.wire().await?;
        let letters = letters(&mut wire, dialect, after, most).await;
        wire.terminate().await;
        letters
    }

    async fn prepare_keys(&self) -> Result<(), Fault> {
        let (mut wire, dialect) = self.server.wire().await?;
        let made = make(&mut wire, dialect, KEYS).await;
        wire.terminate().await;
        made
    }

    async fn forget_keys(&self, age: Duration, most: usize) -> Result<u64, Fault> {
        let (mut wire, _) = self.server.wire().await?;
        let forgotten = forget(&mut wire, age, most).await;
        wire.terminate().await;
        forgotten
    }
}

async fn forget(wire: &mut Wire, age: Duration, most: usize) -> Result<u64, Fault> {
    if columns(wire, IDEMPOTENCY).await?.is_empty() {
        return Ok(0);
    }
    let sql = format!(
        "DELETE FROM {IDEMPOTENCY} WHERE (idempotency_key, part) IN \
         (SELECT idempotency_key, part FROM {IDEMPOTENCY} WHERE made_at < now() - interval '{} seconds' \
         ORDER BY made_at LIMIT {most}) RETURNING 1",
        age.as_secs()
    );
    let mut forgotten = 0;
    talk(wire, &[Ask::of(sql)], false, &mut |_, _| forgotten += 1).await?;
    Ok(forgotten)
}

async fn prepare(wire: &mut Wire, dialect: &'static Dialect) -> Result<(), Fault> {
    make(wire, dialect, POSITIONS).await?;
    make(wire, dialect, DEAD_LETTERS).await?;
    make(wire, dialect, KEYS).await
}

async fn letters(
    wire: &mut Wire,
    dialect: &'static Dialect,
    after: u64,
    most: usize,
) -> Result<Vec<KeptLetter>, Fault> {
    if columns(wire, REJECTED).await?.is_empty() {
        return Ok(Vec::new());
    }
    // One of an older program has other columns.
    make(wire, dialect, DEAD_LETTERS).await?;
    let after = after.min(i64::MAX.unsigned_abs());
    let sql = format!(
        "SELECT id, rejected_at, source, destination, key, \"row\", code, message, \"constraint\", encode(entry, 'hex') \
         FROM {REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"
    );
    let mut letters = Vec::new();
    talk(wire, &[Ask::of(sql)], false, &mut |_, row| {
        letters.push(letter(&row));
    })
    .await?;
    Ok(letters)
}

fn letter(row: &DataRow<'_>) -> KeptLetter {
    let maybe = |place| text(row, place).map(String::into_boxed_str);
    let word = |place| maybe(place).unwrap_or_default();
    KeptLetter {
        id: number(row, 0),
        rejected_at: word(1),
        letter: DeadLetter {
            source: word(2),
            destination: word(3),
            key: word(4),
            row: word(5),
            code: word(6),
            message: word(7),
            constraint: maybe(8),
            entry: row.get(9).map(from_hexadecimal),
        },
    }
}

/// The bytes of a text of hexadecimal digits.
fn from_hexadecimal(digits: &[u8]) -> Box<[u8]> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or_default();
    let byte = |pair: &[u8]| {
        pair.iter()
            .fold(0_u32, |sum, digit| sum * 16 + value(digit))
    };
    let bytes = digits.chunks(2).map(byte);
    bytes.filter_map(|byte| u8::try_from(byte).ok()).collect()
}
