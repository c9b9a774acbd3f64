//! What the database in memory holds, and what it makes of a unit.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use windrow_bookkeeping::{PROGRESS, REJECTED};
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Dones, Fault, FaultClass, Key, Name, OnConflict, Op, Returned, Returning, Shape, TableName,
    UnitFault, UnitOutcome, Value, Write, WriteDone,
};
use windrow_spool::codec::encode_unit;

/// What a write is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    /// It is refused where it stands.
    Bad,
    /// It is refused at the commit, and nobody says which it was.
    Late,
    /// The same, as a key that is there already.
    LateKey,
    /// It is rolled back each time, as by a conflict.
    Conflict,
    /// It takes too long each time.
    Slow,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Good, "good"),
    (Kind::Bad, "bad"),
    (Kind::Late, "late"),
    (Kind::LateKey, "late key"),
    (Kind::Conflict, "conflict"),
    (Kind::Slow, "slow"),
];

/// What the writes of an entry are made for, the first that is not good.
pub(crate) fn kind_of(kinds: &[Kind]) -> Kind {
    let mut bad = kinds.iter().filter(|kind| **kind != Kind::Good);
    bad.next().copied().unwrap_or(Kind::Good)
}

/// An entry with a number, whose writes are numbered too.
pub(crate) fn entry(number: usize, kinds: &[Kind]) -> Vec<u8> {
    entry_on("t", number, kinds)
}

pub(crate) fn entry_on(table: &str, number: usize, kinds: &[Kind]) -> Vec<u8> {
    let shape = Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare(table),
        columns: ["entry", "write", "kind"].map(Name::from).into(),
        key: Key::Columns(["entry".into(), "write".into()].into()),
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }));
    let write = |(place, kind): (usize, &Kind)| {
        let word = KINDS.iter().find(|(k, _)| k == kind).unwrap().1;
        let number = Value::Int(number as i64);
        let row = [number, Value::Int(place as i64), Value::text(word)];
        Write::new(Arc::clone(&shape), row)
    };
    let writes: Vec<_> = kinds.iter().enumerate().map(write).collect();
    encode_unit(&writes)
}

/// Tables, as they are committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Position and name of the last entry.
    pub(crate) progress: HashMap<Vec<Value>, [Value; 2]>,
    /// Entry and write, in the order in which they were written.
    pub(crate) rows: Vec<(i64, i64)>,
    /// The rows of dead letters, in the order in which they were written.
    pub(crate) letters: Vec<Vec<Value>>,
}

/// What the tables do not take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taboo {
    /// Tables that the role has no right to.
    pub(crate) denied: BTreeSet<&'static str>,
    /// Bytes of a dead letter's row at most.
    pub(crate) letter_row: Option<usize>,
    /// Bytes of a dead letter's entry at most.
    pub(crate) letter_entry: Option<usize>,
}

impl Tables {
    /// What stands in the row of the progress.
    pub(crate) fn position(&self) -> Option<u64> {
        let [position, _] = self.progress.values().next()?;
        match position {
            Value::Int(position) => u64::try_from(*position).ok(),
            other => panic!("{other:?}"),
        }
    }

    /// A unit as one transaction: all of it or nothing.
    pub(crate) fn transact(&mut self, writes: &[Write], taboo: &Taboo) -> UnitOutcome {
        let mut after = self.clone();
        let mut dones = Dones::new();
        for (at, write) in writes.iter().enumerate() {
            let done = after.write(write, taboo);
            dones.push(done.map_err(|fault| UnitFault { at, ..fault.into() })?);
        }
        for write in writes.iter().filter(|write| is_foreign(write)) {
            match kind(write) {
                Kind::Late => return Err(refusal(FaultClass::ForeignKey, "23503").into()),
                Kind::LateKey => return Err(refusal(FaultClass::Unique, "23505").into()),
                _ => {}
            }
        }
        *self = after;
        Ok(dones)
    }

    fn write(&mut self, write: &Write, taboo: &Taboo) -> Result<WriteDone, Fault> {
        let table = &*write.shape.table.table;
        if taboo.denied.contains(table) {
            let message = format!("permission denied for table {table}");
            return Err(Fault::new(FaultClass::Denied, "42501", message));
        }
        match table {
            PROGRESS => self.move_on(write),
            REJECTED => {
                let Value::Json(row) = &write.row()[3] else {
                    panic!("{write:?}")
                };
                if taboo.letter_row.is_some_and(|most| row.len() > most) {
                    return Err(refusal(FaultClass::Value, "22001"));
                }
                if let (Value::Bytes(entry), Some(most)) = (&write.row()[7], taboo.letter_entry)
                    && entry.len() > most
                {
                    return Err(refusal(FaultClass::TooLarge, "54000"));
                }
                self.letters.push(write.row().to_vec());
                Ok(WriteDone::rows(1))
            }
            _ => match kind(write) {
                Kind::Bad => Err(refusal(FaultClass::Check, "23514")),
                Kind::Conflict => Err(refusal(FaultClass::Conflict, "40001")),
                Kind::Slow => Err(refusal(FaultClass::Other, "57014")),
                _ => {
                    self.rows.push(numbers(write));
                    Ok(WriteDone::rows(1))
                }
            },
        }
    }

    fn move_on(&mut self, write: &Write) -> Result<WriteDone, Fault> {
        let key = write.row()[..2].to_vec();
        match write.shape.op {
            Op::Get => Ok(WriteDone::returning(
                1,
                Returned {
                    columns: ["position".into(), "last_entry".into()].into(),
                    rows: self
                        .progress
                        .get(&key)
                        .map(|found| found.clone().into())
                        .into_iter()
                        .collect(),
                },
            )),
            Op::Delete if self.progress.get(&key).map(|[at, _]| at) == Some(&write.row()[2]) => {
                self.progress.remove(&key);
                Ok(WriteDone::rows(1))
            }
            Op::Delete => Ok(WriteDone::rows(0)),
            _ if self.progress.contains_key(&key) => Err(refusal(FaultClass::Unique, "23505")),
            _ => {
                let [.., position, last] = write.row() else {
                    panic!("{write:?}")
                };
                self.progress.insert(key, [position.clone(), last.clone()]);
                Ok(WriteDone::rows(1))
            }
        }
    }
}

/// True for a write that a client asked for.
pub(crate) fn is_foreign(write: &Write) -> bool {
    ![PROGRESS, REJECTED].contains(&&*write.shape.table.table)
}

/// The numbers of the entry and the write.
pub(crate) fn numbers(write: &Write) -> (i64, i64) {
    match &write.row()[..2] {
        [Value::Int(entry), Value::Int(place)] => (*entry, *place),
        other => panic!("{other:?}"),
    }
}

fn kind(write: &Write) -> Kind {
    let word = &write.row()[2];
    let mut kinds = KINDS.iter();
    let found = kinds.find(|(_, known)| *word == Value::text(*known));
    found.unwrap_or_else(|| panic!("{word:?}")).0
}

fn refusal(class: FaultClass, code: &'static str) -> Fault {
    Fault::new(class, code, "refused").with_constraint(Some("rule"))
}
