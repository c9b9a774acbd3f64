//! Assigns returned rows to the writes of a statement.

use std::collections::HashMap;

use mysql_async::{Row, Value as Cell};
use windrow_core::{Returned, Value, WriteDone};

use crate::executor::batch::BoundWrite;
use crate::executor::plan::{Compiled, Results};
use crate::values::column::Column;
use crate::values::decode;
use crate::values::key;
use crate::values::key::{Canon, RowKey};

/// Assigns rows that begin with the key: each to the write, or to all reads, with that key. Returns
/// `None` if a row has none of these keys.
pub(crate) fn by_key(
    compiled: &Compiled,
    items: &[&BoundWrite],
    rows: Vec<Row>,
) -> Option<Vec<WriteDone>> {
    let mut dones: Vec<WriteDone> = items.iter().map(|_| empty(compiled)).collect();
    let mut places: HashMap<&Canon, Vec<usize>> = HashMap::new();
    for (at, bound) in items.iter().enumerate() {
        places.entry(bound.canon.as_ref()?).or_default().push(at);
    }
    for row in rows {
        let columns = compiled.key.iter();
        let columns = columns.filter_map(|p| compiled.table.columns.get(*p));
        let cells = (0..compiled.key.len()).filter_map(|at| row.as_ref(at));
        let RowKey::Row(canon) = key::row_key(columns.zip(cells)) else {
            return None;
        };
        for place in places.get(&canon)? {
            let done = dones.get_mut(*place)?;
            take(
                compiled.results.as_ref(),
                row.clone(),
                compiled.key.len(),
                done,
            );
        }
    }
    Some(dones)
}

/// Assigns rows of an insert that begin with the stored values: each to a write with those values,
/// or to any of several. Their rows differ only in values that the server generated. Returns `None`
/// if the server stored other values than it was given.
pub(crate) fn by_contents(
    compiled: &Compiled,
    items: &[&BoundWrite],
    rows: Vec<Row>,
) -> Option<Vec<WriteDone>> {
    let mut owners: HashMap<Canon, Vec<usize>> = HashMap::new();
    for (at, bound) in items.iter().enumerate() {
        let canon = key::contents(given(compiled).zip(bound.row.iter()))?;
        owners.entry(canon).or_default().push(at);
    }
    let mut dones: Vec<Option<WriteDone>> = vec![None; items.len()];
    for row in rows {
        let cells = (0..compiled.columns.len()).filter_map(|at| row.as_ref(at).cloned());
        let cells: Vec<Cell> = cells.collect();
        let canon = key::contents(given(compiled).zip(&cells))?;
        let owner = owners.get_mut(&canon)?.pop()?;
        let mut done = empty(compiled);
        take(
            compiled.results.as_ref(),
            row,
            compiled.columns.len(),
            &mut done,
        );
        *dones.get_mut(owner)? = Some(done);
    }
    dones.into_iter().collect()
}

/// Returns the columns of the shape.
fn given(compiled: &Compiled) -> impl Iterator<Item = &Column> {
    let columns = &compiled.table.columns;
    compiled
        .columns
        .iter()
        .filter_map(|place| columns.get(*place))
}

/// Returns the outcome of a write that found no row.
pub(crate) fn empty(compiled: &Compiled) -> WriteDone {
    let returned = compiled.results.as_ref().map(|results| {
        Box::new(Returned {
            columns: results.names.clone(),
            rows: Vec::new(),
        })
    });
    WriteDone {
        returned,
        ..WriteDone::rows(0)
    }
}

/// Returns the outcome of a write with these rows.
pub(crate) fn all(compiled: &Compiled, rows: Vec<Row>) -> WriteDone {
    let mut done = empty(compiled);
    for row in rows {
        take(compiled.results.as_ref(), row, 0, &mut done);
    }
    done
}

/// Adds a row whose returned columns begin at `from`.
fn take(results: Option<&Results>, row: Row, from: usize, done: &mut WriteDone) {
    done.rows += 1;
    let (Some(results), Some(returned)) = (results, done.returned.as_mut()) else {
        return;
    };
    let columns = row.columns();
    let cells = columns.iter().zip(row.unwrap()).skip(from);
    let values = cells.zip(&results.kinds);
    let values: Box<[Value]> = values
        .map(|((column, cell), kind)| decode::value(column, Some(*kind), cell))
        .collect();
    returned.rows.push(values);
}
