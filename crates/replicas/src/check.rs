//! Compares a replica with the primary, row by row, and repairs it.
//!
//! If both databases compute checksums in the same way, only ranges with different checksums are
//! read (`ranges`). Otherwise the rows of both are read in bulk (`side_by_side`). If a table has
//! another key at the replica, or lacks a column there, the keys of the primary are looked up at
//! the replica, and then those of the replica at the primary.

use std::sync::Arc;

use windrow_core::moves::is_own;
use windrow_core::{
    Database, Fault, FaultClass, Inventory, KeyRange, KeyedTable, Name, TableName, Write,
};

use crate::comparison::{Checked, Comparison, Ends};
use crate::followed::Followed;
use crate::ranges::SummedTable;
use crate::side_by_side::Sides;
use crate::target::{Names, Target};

/// The primary that replicas are copies of.
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

/// Compares all tables of a primary with those of a replica, and repairs differences if requested.
/// Calls `tell` with each table's result.
///
/// # Errors
/// The errors of the databases. A row that the replica refuses is reported in [`Checked::refused`].
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
    let mut ends = Ends::new(primary, replica);
    ends.open().await?;
    for table in source.inventory.tables().await? {
        if !is_own(&table.table) {
            let found = compare(&mut ends, &source, &target, &table, repair).await?;
            let checked = found.map(|(checked, _)| checked);
            tell(checked.unwrap_or_else(|| Checked::of(table, false)));
        }
    }
    Ok(())
}

/// Compares a table and repairs differences; `None` if its rows are not followed. Returns the keys
/// of rows that still differ, because other sessions write them meanwhile, or because the replica
/// refuses them.
pub(crate) async fn mend(
    ends: &mut Ends,
    source: &Source,
    target: &Target,
    table: &TableName,
) -> Result<Option<(Checked, Vec<Write>)>, Fault> {
    compare(ends, source, target, table, true).await
}

async fn compare(
    ends: &mut Ends,
    source: &Source,
    target: &Target,
    name: &TableName,
    repair: bool,
) -> Result<Option<(Checked, Vec<Write>)>, Fault> {
    let table = source.inventory.table(name).await?;
    let Some(table) = table.filter(|table| !table.key.is_empty()) else {
        return Ok(None);
    };
    let mut checked = Checked::of(table.name.clone(), true);
    let followed = Followed::new(table);
    let there = target.table_name(&followed.table.name);
    let there = target.described(&there).await?;
    let inventory = target.database.inventory();
    let mut comparison = Comparison {
        ends,
        target,
        followed: &followed,
        repair,
        left: Vec::new(),
    };
    let (here, table) = (&*source.inventory, &followed.table);
    match inventory.as_deref().zip(there.as_ref()) {
        None => checked.rows = comparison.walk(here, table, false, &mut checked).await?,
        Some((other, copy)) => match columns(table, copy, target) {
            Some((columns, key)) => {
                let sides = Sides {
                    primary: (here, table),
                    replica: (other, copy),
                    columns: &columns,
                    key,
                };
                side_by_side(sides, &mut comparison, &mut checked).await?;
            }
            None => {
                checked.rows = comparison.walk(here, table, false, &mut checked).await?;
                comparison.walk(other, copy, true, &mut checked).await?;
            }
        },
    }
    let left = comparison.again(&mut checked).await?;
    Ok(Some((checked, left)))
}

/// Compares a table with the same key and columns at both ends.
async fn side_by_side(
    sides: Sides<'_>,
    comparison: &mut Comparison<'_>,
    checked: &mut Checked,
) -> Result<(), Fault> {
    let sums = sides.primary.0.sums().zip(sides.replica.0.sums());
    match sums.filter(|(here, there)| here.form() == there.form()) {
        Some((primary, replica)) => {
            let summed = SummedTable {
                sides,
                primary,
                replica,
            };
            summed.compare(comparison, checked).await
        }
        None => {
            let all = KeyRange::default();
            sides.compare(all, comparison, checked).await
        }
    }
}

/// Returns the columns to compare, and the positions of the key's among them, if the table has the
/// same key and these columns at both ends.
fn columns(
    table: &KeyedTable,
    copy: &KeyedTable,
    target: &Target,
) -> Option<(Vec<Name>, Box<[usize]>)> {
    let columns = table.columns.iter();
    let columns: Vec<Name> = columns
        .filter(|name| !copy.generated.contains(name) && !target.leaves_out(&table.name, name))
        .cloned()
        .collect();
    let all = columns.iter().all(|name| copy.columns.contains(name));
    let place = |name: &Name| columns.iter().position(|column| column == name);
    let key = table.key.iter().map(place).collect::<Option<_>>()?;
    (all && table.key == copy.key).then_some((columns, key))
}
