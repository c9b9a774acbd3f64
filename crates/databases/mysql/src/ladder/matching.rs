//! Which answer belongs to which row of a statement for many.

use std::collections::HashMap;

use mysql_async::{Row, Value as Cell};
use windrow_core::{Returned, RowDone, Value};

use super::batch::BoundWrite;
use super::plan::{Compiled, Results};
use crate::values::column::Column;
use crate::values::decode;
use crate::values::key;
use crate::values::key::{Canon, Found};

/// Rows that come back with the key in front: each belongs to the write whose key it has, or to all
/// reads of it. `None`: one belongs to nobody, as far as can be told.
pub(crate) fn by_key(
    compiled: &Compiled,
    items: &[&BoundWrite],
    rows: Vec<Row>,
) -> Option<Vec<RowDone>> {
    let mut dones: Vec<RowDone> = items.iter().map(|_| empty(compiled)).collect();
    let mut places: HashMap<&Canon, Vec<usize>> = HashMap::new();
    for (at, bound) in items.iter().enumerate() {
        places.entry(bound.canon.as_ref()?).or_default().push(at);
    }
    for row in rows {
        let columns = compiled.key.iter();
        let columns = columns.filter_map(|p| compiled.table.columns.get(*p));
        let cells = (0..compiled.key.len()).filter_map(|at| row.as_ref(at));
        let Found::Row(canon) = key::row_key(columns.zip(cells)) else {
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

/// Rows that an insert gives back, with what was given in front: each belongs to a write that gave
/// just that. Where several did, any of them will do: their rows differ in nothing but what the
/// server made of them. `None`: the server did not store what it was given.
pub(crate) fn by_contents(
    compiled: &Compiled,
    items: &[&BoundWrite],
    rows: Vec<Row>,
) -> Option<Vec<RowDone>> {
    let mut owners: HashMap<Canon, Vec<usize>> = HashMap::new();
    for (at, bound) in items.iter().enumerate() {
        let canon = key::contents(given(compiled).zip(bound.row.iter()))?;
        owners.entry(canon).or_default().push(at);
    }
    let mut dones: Vec<Option<RowDone>> = vec![None; items.len()];
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

/// The columns that an insert gives values to.
fn given(compiled: &Compiled) -> impl Iterator<Item = &Column> {
    let columns = &compiled.table.columns;
    compiled
        .columns
        .iter()
        .filter_map(|place| columns.get(*place))
}

/// What a write is told that found nothing.
pub(crate) fn empty(compiled: &Compiled) -> RowDone {
    let returned = compiled.results.as_ref().map(|results| {
        Box::new(Returned {
            columns: results.names.clone(),
            rows: Vec::new(),
        })
    });
    RowDone {
        returned,
        ..RowDone::rows(0)
    }
}

/// What a write is told that gave back these rows.
pub(crate) fn all(compiled: &Compiled, rows: Vec<Row>) -> RowDone {
    let mut done = empty(compiled);
    for row in rows {
        take(compiled.results.as_ref(), row, 0, &mut done);
    }
    done
}

/// Adds a row whose results begin at `from`.
fn take(results: Option<&Results>, row: Row, from: usize, done: &mut RowDone) {
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
