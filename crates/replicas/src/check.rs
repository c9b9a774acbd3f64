//! Comparing a replica with the primary, row by row, and mending it.
//!
//! No order of keys is the same in all databases. So the keys of the primary are looked up at the
//! replica, and then those of the replica at the primary.
//!
//! Both may be written to meanwhile. What differs is looked at again before it counts, and what was
//! mended is compared once more: whoever has overwritten a newer row with an older one notices.

use std::sync::Arc;
use std::time::Duration;

use windrow_core::moves::is_own;
use windrow_core::{
    Database, Fault, FaultClass, Inventory, KeyedTable, Name, Op, Purpose, RowWrite, TableName,
    Value,
};

use crate::alike::alike;
use crate::follow::Followed;
use crate::rows::{Connection, Found, Writes, Written, read, write};
use crate::target::{Names, Target};

/// Keys that are compared at once.
const KEYS: usize = 1_000;

/// Rows that are kept to be mended at the end, about.
const MOST_LEFT: usize = 10_000;

/// How often a difference is looked at, and the pause before: a replica may be behind.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// What replicas are copies of.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) inventory: Arc<dyn Inventory>,
}

impl Source {
    pub(crate) fn new(database: &Arc<dyn Database>) -> Result<Self, Fault> {
        let unsupported = || {
            let name = database.profile().name;
            let message = format!(
                "{name} cannot have replicas, and cannot be compared: Windrow does not know how to list the keys of its tables"
            );
            Fault::new(FaultClass::Unsupported, "0A000", message)
        };
        Ok(Self {
            inventory: database.inventory().ok_or_else(unsupported)?,
            database: Arc::clone(database),
        })
    }
}

/// A connection to each.
pub(crate) struct Ends {
    pub(crate) primary: Connection,
    pub(crate) replica: Connection,
}

/// What was found of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The table at the primary.
    pub table: TableName,
    /// Rows at the primary.
    pub rows: u64,
    /// Rows that the replica lacks.
    pub missing: u64,
    /// Rows whose values differ.
    pub different: u64,
    /// Rows that the replica alone has.
    pub extra: u64,
    /// Those of them that were mended.
    pub mended: u64,
    /// The first refusal of the replica.
    pub refused: Option<Fault>,
    /// False for a table without a primary key, which no replica gets.
    pub followed: bool,
}

impl Checked {
    fn of(table: TableName, followed: bool) -> Self {
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

    /// Rows that differ, and were not mended.
    pub fn left(&self) -> u64 {
        (self.missing + self.different + self.extra).saturating_sub(self.mended)
    }
}

/// Compares all tables of a primary with those of a replica, and mends what differs where that is
/// asked for. `tell` is given each table's result.
///
/// # Errors
/// What the databases say. A row that the replica refuses is told in [`Checked::refused`].
pub async fn check(
    primary: &Arc<dyn Database>,
    replica: &Arc<dyn Database>,
    names: Names,
    repair: bool,
    mut tell: impl FnMut(Checked),
) -> Result<(), Fault> {
    let source = Source::new(primary)?;
    Source::new(replica)?;
    let target = Target::new(Arc::clone(replica), names);
    let mut ends = Ends {
        primary: primary.connect(Purpose::Batches).await?,
        replica: replica.connect(Purpose::Batches).await?,
    };
    for table in source.inventory.tables().await? {
        if !is_own(&table.table) {
            let found = compare(&mut ends, &source, &target, &table, repair).await?;
            tell(found.unwrap_or_else(|| Checked::of(table, false)));
        }
    }
    Ok(())
}

/// Compares a table and mends what differs; `None`: its rows are not followed.
pub(crate) async fn mend(
    ends: &mut Ends,
    source: &Source,
    target: &Target,
    table: &TableName,
) -> Result<Option<Checked>, Fault> {
    compare(ends, source, target, table, true).await
}

async fn compare(
    ends: &mut Ends,
    source: &Source,
    target: &Target,
    name: &TableName,
    repair: bool,
) -> Result<Option<Checked>, Fault> {
    let table = source.inventory.table(name).await?;
    let Some(table) = table.filter(|table| !table.key.is_empty()) else {
        return Ok(None);
    };
    let mut checked = Checked::of(table.name.clone(), true);
    let followed = Followed::new(table);
    let how = How {
        repair,
        back: false,
    };
    let mut left = Vec::new();
    checked.rows = walk(
        ends,
        (&*source.inventory, &followed.table),
        target,
        (&followed, how),
        (&mut checked, &mut left),
    )
    .await?;
    let there = target.table_name(&followed.table.name);
    let inventory = target.database.inventory();
    if let (Some(inventory), Some(there)) = (inventory, target.described(&there).await?) {
        walk(
            ends,
            (&*inventory, &there),
            target,
            (&followed, How { repair, back: true }),
            (&mut checked, &mut Vec::new()),
        )
        .await?;
    }
    // Rows that the replica alone had may have held a value that these need for themselves.
    if repair && checked.extra > 0 {
        checked.refused = None;
        for keys in left.chunks(KEYS) {
            let found = differences(ends, target, keys).await?;
            bring(ends, target, &found, &mut checked).await?;
            let still = differences(ends, target, keys).await?;
            checked.mended += found.len().saturating_sub(still.len()) as u64;
        }
    }
    Ok(Some(checked))
}

/// Goes through all keys of a table at one end, and compares both ends. Gives how many there are,
/// and adds the keys of some that still differ.
async fn walk(
    ends: &mut Ends,
    (inventory, table): (&dyn Inventory, &KeyedTable),
    target: &Target,
    (followed, how): (&Followed, How),
    (checked, left): (&mut Checked, &mut Vec<RowWrite>),
) -> Result<u64, Fault> {
    let place = |name: &Name| table.key.iter().position(|k| k.eq_ignore_ascii_case(name));
    let key = followed.table.key.iter();
    let Some(places) = key.map(place).collect::<Option<Vec<usize>>>() else {
        tracing::warn!(table = %table.name, "has another primary key at the replica: rows that it alone has are not found");
        return Ok(0);
    };
    let ordered = |row: Box<[Value]>| -> Box<[Value]> {
        places
            .iter()
            .filter_map(|place| row.get(*place).cloned())
            .collect()
    };
    let mut after: Option<Box<[Value]>> = None;
    let mut rows = 0;
    loop {
        let keys = inventory.keys(table, after.as_deref(), KEYS).await?;
        let found = keys.len();
        after = keys.last().cloned();
        rows += found as u64;
        let keys = keys
            .into_iter()
            .map(|key| followed.key(ordered(key)))
            .collect();
        let differing = part(ends, target, keys, how, checked).await?;
        if left.len() < MOST_LEFT {
            left.extend(differing.into_iter().map(|difference| difference.key));
        }
        if found < KEYS {
            return Ok(rows);
        }
    }
}

/// What is done about differences.
#[derive(Clone, Copy)]
struct How {
    /// They are mended.
    repair: bool,
    /// Rows of the replica are looked up: those that are at both have been compared already.
    back: bool,
}

/// What differs, and how.
struct Difference {
    key: RowWrite,
    at_primary: Found,
    at_replica: bool,
}

/// Compares the rows of keys; gives those that differ, once what is to be mended is mended.
async fn part(
    ends: &mut Ends,
    target: &Target,
    mut keys: Vec<RowWrite>,
    how: How,
    checked: &mut Checked,
) -> Result<Vec<Difference>, Fault> {
    let mut found = differences(ends, target, &keys).await?;
    if how.back {
        found.retain(|difference| !matches!(difference.at_primary, Found::Row(..)));
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
            (Found::Row(..), false) => checked.missing += 1,
            (Found::Row(..), true) => checked.different += 1,
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

/// Which of the keys have other rows at the replica than at the primary.
async fn differences(
    ends: &mut Ends,
    target: &Target,
    keys: &[RowWrite],
) -> Result<Vec<Difference>, Fault> {
    let mut writes = Writes::new(target);
    let there: Vec<RowWrite> = keys
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
            (Some(write), Found::Row(columns, row)) if write.shape.op == Op::Insert => {
                let mut fields = write.shape.columns.iter().zip(write.values());
                fields.all(|(name, value)| {
                    let place = columns.iter().position(|c| c.eq_ignore_ascii_case(name));
                    let there = place.and_then(|place| row.get(place));
                    there.is_some_and(|there| alike(value, there))
                })
            }
            (Some(write), Found::Row(..)) => write.shape.op != Op::Delete,
            (Some(write), _) => write.shape.op == Op::Delete,
        };
        if !same {
            found.push(Difference {
                key: key.clone(),
                at_primary: here,
                at_replica: matches!(there, Found::Row(..)),
            });
        }
    }
    Ok(found)
}

/// Brings the replica what the primary has.
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
        if let Written::Refused(fault) | Written::Again(fault) = written {
            checked.refused.get_or_insert(fault);
        }
    }
    Ok(())
}
