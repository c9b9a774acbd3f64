//! Compares rows by their keys, and repairs differences.
//!
//! Both databases may be written to meanwhile. So a difference is checked again before it counts,
//! and a repaired row is compared once more, to notice an older row that has replaced a newer one.

use std::sync::Arc;
use std::time::Duration;

use windrow_core::Row;
use windrow_core::{
    BackgroundConnection, Database, Fault, Inventory, KeyedTable, Name, Op, TableName, Write,
};

use crate::alike::alike;
use crate::followed::Followed;
use crate::rows::{KeyReading, WriteResult, Writes, read, write};
use crate::target::Target;

/// The number of keys compared at once.
pub(crate) const KEYS: usize = 1_000;

/// The approximate number of rows kept to be repaired at the end.
const MOST_LEFT: usize = 10_000;

/// The number of checks of a difference, and the delay before each: a replica may be behind.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// A connection to each of the two databases.
pub(crate) struct Ends {
    pub(crate) primary: BackgroundConnection,
    pub(crate) replica: BackgroundConnection,
}

impl Ends {
    /// Returns connections that are not open.
    pub(crate) fn new(primary: &Arc<dyn Database>, replica: &Arc<dyn Database>) -> Self {
        Self {
            primary: BackgroundConnection::new(Arc::clone(primary)),
            replica: BackgroundConnection::new(Arc::clone(replica)),
        }
    }

    /// Opens those of the two connections that are not open.
    pub(crate) async fn open(&mut self) -> Result<(), Fault> {
        self.primary.open().await?;
        self.replica.open().await
    }
}

/// The result of comparing a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The table at the primary.
    pub table: TableName,
    /// The number of rows at the primary.
    pub rows: u64,
    /// The number of rows that the replica lacks.
    pub missing: u64,
    /// The number of rows whose values differ.
    pub different: u64,
    /// The number of rows that only the replica has.
    pub extra: u64,
    /// The number of repaired rows.
    pub mended: u64,
    /// The first refusal of the replica.
    pub refused: Option<Fault>,
    /// False for a table without a primary key, which no replica gets.
    pub followed: bool,
}

impl Checked {
    pub(crate) fn of(table: TableName, followed: bool) -> Self {
        Self {
            table,
            rows: 0,
            missing: 0,
            different: 0,
            extra: 0,
            mended: 0,
            refused: None,
            followed,
        }
    }

    /// Returns the number of differing rows that were not repaired.
    pub fn left(&self) -> u64 {
        (self.missing + self.different + self.extra).saturating_sub(self.mended)
    }
}

/// A table that is being compared.
pub(crate) struct Comparison<'a> {
    pub(crate) ends: &'a mut Ends,
    pub(crate) target: &'a Target,
    pub(crate) followed: &'a Followed,
    /// True if differing rows are repaired.
    pub(crate) repair: bool,
    /// Keys of rows that could not be repaired yet, or that other sessions write again and again.
    pub(crate) left: Vec<Write>,
}

impl Comparison<'_> {
    /// Reads all keys of the table at one end (the replica if `back`), and compares both ends.
    /// Returns their number.
    pub(crate) async fn walk(
        &mut self,
        inventory: &dyn Inventory,
        table: &KeyedTable,
        back: bool,
        checked: &mut Checked,
    ) -> Result<u64, Fault> {
        let place = |name: &Name| table.key.iter().position(|k| k.eq_ignore_ascii_case(name));
        let key = self.followed.table.key.iter();
        let Some(places) = key.map(place).collect::<Option<Vec<usize>>>() else {
            tracing::warn!(table = %table.name, "has another primary key at the replica: rows that it alone has are not found");
            return Ok(0);
        };
        let ordered = |row: Row| -> Row {
            let values = places.iter().filter_map(|place| row.get(*place).cloned());
            values.collect()
        };
        let mut after: Option<Row> = None;
        let mut rows = 0;
        loop {
            let keys = inventory.keys(table, after.as_deref(), KEYS).await?;
            let found = keys.len();
            after = keys.last().cloned();
            rows += found as u64;
            let keys = keys.into_iter().map(ordered).collect();
            self.part(keys, back, checked).await?;
            if found < KEYS {
                return Ok(rows);
            }
        }
    }

    /// Compares the rows of keys, which are in the order of the primary's key. `back`: true if they
    /// are those of the replica.
    pub(crate) async fn part(
        &mut self,
        keys: Vec<Row>,
        back: bool,
        checked: &mut Checked,
    ) -> Result<(), Fault> {
        let how = Treatment {
            repair: self.repair,
            back,
        };
        let keys = keys.into_iter().map(|key| self.followed.key(key)).collect();
        let differing = part(self.ends, self.target, keys, how, checked).await?;
        if self.left.len() < MOST_LEFT {
            let keys = differing.into_iter().map(|difference| difference.key);
            self.left.extend(keys);
        }
        Ok(())
    }

    /// Repairs rows that could not be repaired before: rows that only the replica had may have held
    /// values that others need. Returns the rest.
    pub(crate) async fn again(self, checked: &mut Checked) -> Result<Vec<Write>, Fault> {
        if !self.repair || checked.extra == 0 || self.left.is_empty() {
            return Ok(self.left);
        }
        checked.refused = None;
        let mut left = Vec::new();
        for keys in self.left.chunks(KEYS) {
            let found = differences(self.ends, self.target, keys).await?;
            bring(self.ends, self.target, &found, checked).await?;
            let still = differences(self.ends, self.target, keys).await?;
            checked.mended += found.len().saturating_sub(still.len()) as u64;
            left.extend(still.into_iter().map(|difference| difference.key));
        }
        Ok(left)
    }
}

/// The way in which differences are treated.
#[derive(Clone, Copy)]
struct Treatment {
    /// True if differing rows are repaired.
    repair: bool,
    /// True if rows of the replica are looked up: those at both ends have been compared already.
    back: bool,
}

/// A row that differs.
struct Difference {
    key: Write,
    at_primary: KeyReading,
    at_replica: bool,
}

/// Compares the rows of keys and repairs them if requested; returns those that differ.
async fn part(
    ends: &mut Ends,
    target: &Target,
    mut keys: Vec<Write>,
    how: Treatment,
    checked: &mut Checked,
) -> Result<Vec<Difference>, Fault> {
    let mut found = differences(ends, target, &keys).await?;
    if how.back {
        found.retain(|difference| !matches!(difference.at_primary, KeyReading::Row(..)));
    }
    for look in 1..LOOKS {
        if found.is_empty() {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE * look).await;
        keys = found.into_iter().map(|difference| difference.key).collect();
        found = differences(ends, target, &keys).await?;
    }
    for difference in &found {
        match (&difference.at_primary, difference.at_replica) {
            (KeyReading::Row(..), false) => checked.missing += 1,
            (KeyReading::Row(..), true) => checked.different += 1,
            _ => checked.extra += 1,
        }
    }
    let before = found.len();
    for _ in 0..LOOKS {
        if !how.repair || found.is_empty() {
            break;
        }
        bring(ends, target, &found, checked).await?;
        keys = found.into_iter().map(|difference| difference.key).collect();
        found = differences(ends, target, &keys).await?;
    }
    checked.mended += before.saturating_sub(found.len()) as u64;
    Ok(found)
}

/// Returns the keys with different rows at the replica and at the primary.
async fn differences(
    ends: &mut Ends,
    target: &Target,
    keys: &[Write],
) -> Result<Vec<Difference>, Fault> {
    let mut writes = Writes::new(target);
    let there: Vec<Write> = keys
        .iter()
        .map(|key| writes.at_replica(key, Op::Get))
        .collect();
    let here = read(&mut ends.primary, keys).await?;
    let there = read(&mut ends.replica, &there).await?;
    let mut found = Vec::new();
    for ((key, here), there) in keys.iter().zip(here).zip(there) {
        let wanted = writes.of(key, &here).await?;
        let same = match (&wanted, &there) {
            (None, _) => true,
            (Some(write), KeyReading::Row(columns, row)) if write.shape.op == Op::Insert => {
                let mut fields = write.shape.columns.iter().zip(write.values());
                fields.all(|(name, value)| {
                    let place = columns.iter().position(|c| c.eq_ignore_ascii_case(name));
                    let there = place.and_then(|place| row.get(place));
                    there.is_some_and(|there| alike(value, there))
                })
            }
            (Some(write), KeyReading::Row(..)) => write.shape.op != Op::Delete,
            (Some(write), _) => write.shape.op == Op::Delete,
        };
        if !same {
            found.push(Difference {
                key: key.clone(),
                at_primary: here,
                at_replica: matches!(there, KeyReading::Row(..)),
            });
        }
    }
    Ok(found)
}

/// Writes the primary's rows to the replica.
async fn bring(
    ends: &mut Ends,
    target: &Target,
    found: &[Difference],
    checked: &mut Checked,
) -> Result<(), Fault> {
    let mut writes = Writes::new(target);
    let mut all = Vec::new();
    for difference in found {
        all.extend(writes.of(&difference.key, &difference.at_primary).await?);
    }
    for written in write(&mut ends.replica, &all).await? {
        if let WriteResult::Refused(fault) | WriteResult::Again(fault) = written {
            checked.refused.get_or_insert(fault);
        }
    }
    Ok(())
}
