//! The keys of the rows that a write may change.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_core::moves::is_own;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Fault, Inventory, Key, Name, OnConflict, Op, Returning, Shape, TableName, Value, Write,
};

use crate::followed::Followed;
use crate::promised::{PromisedKeys, ReturnedKeys};

/// The time for which a table's description counts.
const FRESH: Duration = Duration::from_secs(30);

/// The time for a table that does not exist or has no key, which may change at any moment.
const FRESH_WITHOUT: Duration = Duration::from_secs(2);

/// The most tables and shapes kept; beyond it all are dropped.
const MOST: usize = 4096;

/// A table's description, and when it was read.
type Known = (Instant, Option<Arc<Followed>>);

/// The tables that writes have named.
pub(crate) struct Tables {
    inventory: Arc<dyn Inventory>,
    known: Mutex<HashMap<TableName, Known>>,
}

/// The keys of one write.
#[derive(Debug)]
pub(crate) enum WriteTrace {
    /// The write changes no row that is followed.
    Nothing,
    /// The rows that it may change.
    Keys(Vec<Write>),
    /// The keys are in the answer to the write.
    Promised(PromisedKeys),
    /// The keys cannot be known. The note is about all rows of the table.
    Unknown(Write),
    /// A call of an SQL client that does not name its row by the key.
    Unnamed,
}

impl Tables {
    pub(crate) fn new(inventory: Arc<dyn Inventory>) -> Self {
        Self {
            inventory,
            known: Mutex::default(),
        }
    }

    /// Returns a table by any of its names; `None` if its rows are not followed.
    pub(crate) async fn get(&self, name: &TableName) -> Result<Option<Arc<Followed>>, Fault> {
        if is_own(&name.table) {
            return Ok(None);
        }
        let known = {
            let known = self.known.lock();
            known.get(name).cloned()
        };
        if let Some((at, followed)) = known {
            let fresh = if followed.is_some() {
                FRESH
            } else {
                FRESH_WITHOUT
            };
            if at.elapsed() < fresh {
                return Ok(followed);
            }
        }
        self.look(name).await
    }

    /// Reads the table's description again, and returns it.
    pub(crate) async fn look(&self, name: &TableName) -> Result<Option<Arc<Followed>>, Fault> {
        let found = self.inventory.table(name).await?;
        let keyed = found.filter(|table| !table.key.is_empty());
        let followed = keyed.map(|table| Arc::new(Followed::new(table)));
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.clear();
        }
        if known
            .insert(name.clone(), (Instant::now(), followed.clone()))
            .is_none()
            && followed.is_none()
        {
            tracing::warn!(table = %name, "replicas do not get rows of this table as long as it has no primary key");
        }
        Ok(followed)
    }

    /// Returns the keys of the rows that a write may change.
    pub(crate) async fn trace(&self, write: &Write) -> Result<WriteTrace, Fault> {
        if write.shape.op == Op::Get {
            return Ok(WriteTrace::Nothing);
        }
        let followed = self.get(&write.shape.table).await?;
        Ok(followed.map_or(WriteTrace::Nothing, |followed| trace(&followed, write)))
    }
}

fn trace(followed: &Arc<Followed>, write: &Write) -> WriteTrace {
    let shape = &write.shape;
    let by_key = match &shape.key {
        Key::Primary => true,
        Key::Columns(names) => is_key(followed, names),
    };
    match shape.op {
        Op::Get => WriteTrace::Nothing,
        Op::Insert => {
            let by_key = by_key || shape.on_conflict == OnConflict::Error;
            let given = given(followed, write, None);
            match given.filter(|key| by_key && keeps(followed, key)) {
                Some(key) => WriteTrace::Keys(vec![followed.key(key)]),
                None => returned_keys(followed, write, Vec::new()),
            }
        }
        Op::Delete if by_key => WriteTrace::Keys(vec![old_key(followed, write)]),
        Op::Delete => returned_keys(followed, write, Vec::new()),
        Op::Update => {
            let rekeys = shape.columns.iter().any(|c| followed.place(c).is_some());
            match (by_key, rekeys) {
                (true, false) => WriteTrace::Keys(vec![old_key(followed, write)]),
                (true, true) => {
                    let old = old_key(followed, write);
                    let new = given(followed, write, Some(&old));
                    match new.filter(|key| followed.table.keeps_key && keeps(followed, key)) {
                        Some(new) if !shape.is_spelled() => {
                            WriteTrace::Keys(vec![old, followed.key(new)])
                        }
                        _ => returned_keys(followed, write, vec![old]),
                    }
                }
                (false, false) => returned_keys(followed, write, Vec::new()),
                // No value of the write names the key that the row had before.
                (false, true) => WriteTrace::Unknown(followed.note()),
            }
        }
    }
}

fn is_key(followed: &Followed, names: &[Name]) -> bool {
    names.len() == followed.table.key.len() && names.iter().all(|n| followed.place(n).is_some())
}

/// True if a row that gets this key is found by it. A zero may mean the next number.
fn keeps(followed: &Followed, key: &[Value]) -> bool {
    let is_plain = |value: &Value| match value {
        Value::Null | Value::Int(0) | Value::Number(_) => false,
        Value::Text(text) => !text.is_empty() && &**text != "0",
        _ => true,
    };
    followed.table.keeps_key && key.iter().all(is_plain)
}

/// Returns the key that a write gives to its row. `old`: the key that the row has, if it is known.
fn given(followed: &Followed, write: &Write, old: Option<&Write>) -> Option<Box<[Value]>> {
    let value = |(place, name): (usize, &Name)| {
        let mut fields = write.shape.columns.iter().zip(write.values());
        let given = fields.find(|(column, _)| column.eq_ignore_ascii_case(name));
        let given = given.map(|(_, value)| value);
        given
            .or_else(|| old.and_then(|old| old.row().get(place)))
            .cloned()
    };
    followed.table.key.iter().enumerate().map(value).collect()
}

/// Returns the key by which a write finds its row, in the key's own order.
fn old_key(followed: &Followed, write: &Write) -> Write {
    let values = write.key_values();
    let ordered: Box<[Value]> = match &write.shape.key {
        Key::Primary => values.into(),
        Key::Columns(names) => {
            let value = |name: &Name| {
                let place = names.iter().position(|n| n.eq_ignore_ascii_case(name))?;
                values.get(place).cloned()
            };
            let key = followed.table.key.iter();
            key.map(|name| value(name).unwrap_or(Value::Null)).collect()
        }
    };
    let shape = match write.shape.is_spelled() {
        true => &followed.get_spelled,
        false => &followed.get,
    };
    Write::new(Arc::clone(shape), ordered)
}

/// Returns the write with the key among its returned columns.
fn returned_keys(followed: &Arc<Followed>, write: &Write, known: Vec<Write>) -> WriteTrace {
    let parts: &ShapeParts = &write.shape;
    let returning = match &parts.returning {
        Returning::All => Returning::All,
        Returning::Nothing => Returning::Columns(followed.table.key.clone()),
        Returning::Columns(names) => {
            let lacking = followed
                .table
                .key
                .iter()
                .filter(|name| !names.contains(name));
            Returning::Columns(names.iter().chain(lacking).cloned().collect())
        }
    };
    let widened = ShapeParts {
        returning,
        ..parts.clone()
    };
    let shape = match write.shape.is_spelled() {
        true => Shape::spelled(widened),
        false => Shape::new(widened),
    };
    WriteTrace::Promised(PromisedKeys::Returned(Box::new(ReturnedKeys {
        followed: Arc::clone(followed),
        write: Write::new(Arc::new(shape), write.row()),
        asked: parts.returning.clone(),
        known,
    })))
}

#[cfg(test)]
mod tests {
    use windrow_core::{KeyedTable, Returned, WriteDone};

    use super::*;

    fn followed() -> Arc<Followed> {
        let names = |names: &[&str]| names.iter().map(|n| Name::from(*n)).collect();
        Arc::new(Followed::new(KeyedTable {
            name: TableName::bare("t"),
            key: names(&["b", "a"]),
            columns: names(&["a", "b", "c"]),
            generated: Box::default(),
            keeps_key: true,
        }))
    }

    fn write(op: Op, columns: &[&str], key: Key, row: &[Value]) -> Write {
        let shape = Shape::new(ShapeParts {
            op,
            table: TableName::bare("t"),
            columns: columns.iter().map(|n| Name::from(*n)).collect(),
            key,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        });
        Write::new(Arc::new(shape), row.to_vec())
    }

    fn keys(write: &Write) -> Vec<Vec<i64>> {
        let WriteTrace::Keys(keys) = trace(&followed(), write) else {
            return Vec::new();
        };
        let int = |value: &Value| match value {
            Value::Int(n) => *n,
            _ => -1,
        };
        keys.iter()
            .map(|k| k.row().iter().map(int).collect())
            .collect()
    }

    #[test]
    fn keys_are_known_where_they_are_given() {
        let ints = |ints: &[i64]| ints.iter().map(|n| Value::Int(*n)).collect::<Vec<_>>();
        let columns = |names: &[&str]| Key::Columns(names.iter().map(|n| Name::from(*n)).collect());
        let insert = write(
            Op::Insert,
            &["a", "c", "b"],
            Key::Primary,
            &ints(&[1, 2, 3]),
        );
        assert_eq!(keys(&insert), [[3, 1]]);
        let delete = write(Op::Delete, &[], columns(&["a", "b"]), &ints(&[1, 3]));
        assert_eq!(keys(&delete), [[3, 1]]);
        let rekey = write(Op::Update, &["a"], Key::Primary, &ints(&[9, 3, 1]));
        assert_eq!(keys(&rekey), [[3, 1], [3, 9]]);
        // A zero may be counted up; a part of the key is missing; another key.
        for returned in [
            write(Op::Insert, &["a", "b"], Key::Primary, &ints(&[1, 0])),
            write(Op::Insert, &["a"], Key::Primary, &ints(&[1])),
            write(Op::Delete, &[], columns(&["c"]), &ints(&[1])),
            write(Op::Update, &["c"], columns(&["c"]), &ints(&[1, 2])),
        ] {
            assert!(
                matches!(trace(&followed(), &returned), WriteTrace::Promised(_)),
                "{returned:?}"
            );
        }
        let lost = write(Op::Update, &["a"], columns(&["c"]), &ints(&[1, 2]));
        assert!(matches!(trace(&followed(), &lost), WriteTrace::Unknown(_)));
    }

    #[test]
    fn what_was_not_asked_for_is_taken_out_again() {
        let insert = write(Op::Insert, &["c"], Key::Primary, &[Value::Int(2)]);
        let WriteTrace::Promised(asking) = trace(&followed(), &insert) else {
            panic!("the key is not given");
        };
        let names = ["b", "a"].map(Name::from);
        let returned = Returned {
            columns: names.into(),
            rows: vec![[Value::Int(7), Value::Int(8)].into()],
        };
        let mut done = WriteDone::returning(1, returned);
        let keys = asking.take(&mut done).unwrap();
        assert_eq!(*keys[0].row(), [Value::Int(7), Value::Int(8)]);
        assert_eq!(done, WriteDone::rows(1));
        assert!(asking.take(&mut WriteDone::rows(1)).is_none());
    }
}
