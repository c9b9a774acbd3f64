//! Calls of SQL clients: the keys of the rows that they change.
//!
//! A statement that names its row by the primary key is followed by this key. One that takes its
//! key from a sequence is followed by the value that it returns. No statement is changed for
//! replicas. Others change rows whose keys are unknown; they are counted.

use windrow_core::{Fault, KeyedRow, Name, SqlCall, Value};

use crate::follow::{Tables, WriteTrace};
use crate::followed::Followed;
use crate::promised::{GeneratedKey, PromisedKeys};

/// Returns the key of the row that a call may change, if the call names it.
pub(crate) async fn trace(tables: &Tables, call: &SqlCall) -> Result<WriteTrace, Fault> {
    let Some(row) = call.statement.row_of(&call.arguments, &call.formats) else {
        return Ok(WriteTrace::Unnamed);
    };
    let Some(followed) = tables.get(&row.table).await? else {
        return Ok(WriteTrace::Unnamed);
    };
    Ok(match ordered(&followed, &row) {
        None => WriteTrace::Unnamed,
        Some((key, None)) => WriteTrace::Keys(vec![followed.key(key)]),
        Some((key, Some(place))) => {
            let generated = GeneratedKey {
                followed,
                key,
                place,
            };
            WriteTrace::Promised(PromisedKeys::Generated(generated))
        }
    })
}

/// Returns a key in the order of the table's own, and the position of the unknown value; `None` if
/// the table has another key by now.
fn ordered(followed: &Followed, row: &KeyedRow) -> Option<(Box<[Value]>, Option<usize>)> {
    let own = &followed.table.key;
    let mut unknown = None;
    let mut value = |(at, name): (usize, &Name)| {
        let place = row.columns.iter().position(|column| column == name)?;
        let value = row.values.get(place)?.clone();
        if value.is_none() {
            unknown = Some(at);
        }
        Some(value.unwrap_or(Value::Null))
    };
    let key: Option<Box<[Value]>> = own.iter().enumerate().map(&mut value).collect();
    let key = key.filter(|key| key.len() == row.columns.len())?;
    Some((key, unknown))
}
