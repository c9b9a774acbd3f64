//! Reads and writes the rows of many keys.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    BackgroundConnection, Fault, Key, Name, OnConflict, Op, Retry, Returning, Row, Shape,
    TableName, Unit, Verdict, Write,
};

use crate::target::Target;

/// The result of reading a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyReading {
    /// A row: its columns, and their values.
    Row(Arc<[Name]>, Row),
    /// No row has the key.
    Nothing,
    /// No row can have this key: the database does not even read it.
    Unreadable(Fault),
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WriteResult {
    Done,
    Refused(Fault),
    /// Not written, through no fault of its own.
    Again(Fault),
}

/// Reads the rows of keys, in their order.
pub(crate) async fn read(
    connection: &mut BackgroundConnection,
    keys: &[Write],
) -> Result<Vec<KeyReading>, Fault> {
    let units: Vec<_> = keys.iter().cloned().map(Unit::one).collect();
    let report = connection.execute(&units).await;
    let found: Result<Vec<KeyReading>, Fault> = report.verdicts.into_iter().map(found).collect();
    match connection.is_open() {
        true => found,
        false => Err(found.err().unwrap_or_else(lost)),
    }
}

fn found(verdict: Verdict) -> Result<KeyReading, Fault> {
    match verdict {
        Verdict::Final(Ok(dones)) => {
            let returned = dones.into_iter().next().and_then(|done| done.returned);
            let row = returned.and_then(|mut r| Some((r.rows.pop()?, r.columns)));
            Ok(row.map_or(KeyReading::Nothing, |(row, columns)| {
                KeyReading::Row(columns, row)
            }))
        }
        Verdict::Final(Err(failed)) if failed.fault.retry() != Retry::Never => Err(failed.fault),
        Verdict::Final(Err(failed)) => Ok(KeyReading::Unreadable(failed.fault)),
        Verdict::RolledBack(fault) | Verdict::WaitsForLock(fault) => Err(fault),
        Verdict::NotTried => Err(Fault::internal("a read was not tried")),
    }
}

fn lost() -> Fault {
    Fault::unavailable("the connection was lost")
}

/// Executes writes as units of their own.
pub(crate) async fn write(
    connection: &mut BackgroundConnection,
    writes: &[Write],
) -> Result<Vec<WriteResult>, Fault> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let units: Vec<_> = writes.iter().cloned().map(Unit::one).collect();
    let report = connection.execute(&units).await;
    let written: Vec<WriteResult> = report.verdicts.into_iter().map(written).collect();
    let again = written.iter().find_map(|written| match written {
        WriteResult::Again(fault) => Some(fault.clone()),
        _ => None,
    });
    match (connection.is_open(), again) {
        (true, _) => Ok(written),
        (false, again) => Err(again.unwrap_or_else(lost)),
    }
}

fn written(verdict: Verdict) -> WriteResult {
    match verdict {
        Verdict::Final(Ok(_)) => WriteResult::Done,
        Verdict::Final(Err(failed)) if failed.fault.retry() != Retry::Never => {
            WriteResult::Again(failed.fault)
        }
        Verdict::Final(Err(failed)) => WriteResult::Refused(failed.fault),
        Verdict::RolledBack(fault) | Verdict::WaitsForLock(fault) => WriteResult::Again(fault),
        Verdict::NotTried => WriteResult::Again(Fault::internal("a write was not tried")),
    }
}

/// Makes the writes that bring a replica up to date.
pub(crate) struct Writes<'r> {
    target: &'r Target,
    /// Upserts by the table at the primary and the columns of its rows.
    upserts: HashMap<(TableName, Arc<[Name]>), Upsert>,
}

#[derive(Clone)]
struct Upsert {
    shape: Arc<Shape>,
    /// The positions of the row's values that are written.
    places: Box<[usize]>,
}

impl<'r> Writes<'r> {
    pub(crate) fn new(target: &'r Target) -> Self {
        Self {
            target,
            upserts: HashMap::new(),
        }
    }

    /// Returns the write for a key; `None` if there is nothing to write.
    pub(crate) async fn of(
        &mut self,
        key: &Write,
        found: &KeyReading,
    ) -> Result<Option<Write>, Fault> {
        match found {
            KeyReading::Unreadable(_) => Ok(None),
            KeyReading::Nothing => Ok(Some(self.at_replica(key, Op::Delete))),
            KeyReading::Row(columns, row) => {
                let upsert = self.upsert(key, columns).await?;
                let values = upsert.places.iter().filter_map(|p| row.get(*p).cloned());
                let values: Row = values.collect();
                Ok(Some(Write::new(upsert.shape, values)))
            }
        }
    }

    /// Returns a read or a delete by the same key at the replica.
    pub(crate) fn at_replica(&self, key: &Write, op: Op) -> Write {
        let parts = ShapeParts {
            op,
            table: self.target.table_name(&key.shape.table),
            returning: match op {
                Op::Get => Returning::All,
                _ => Returning::Nothing,
            },
            ..(*key.shape).clone()
        };
        let shape = match key.shape.is_spelled() {
            true => Shape::spelled(parts),
            false => Shape::new(parts),
        };
        Write::new(Arc::new(shape), key.row())
    }

    async fn upsert(&mut self, key: &Write, columns: &Arc<[Name]>) -> Result<Upsert, Fault> {
        let own = &key.shape.table;
        let known = self.upserts.get(&(own.clone(), Arc::clone(columns)));
        if let Some(upsert) = known {
            return Ok(upsert.clone());
        }
        let table = self.target.table_name(own);
        let there = self.target.described(&table).await?;
        let generated = there.map(|there| there.generated).unwrap_or_default();
        let is_written = |name: &Name| {
            let computed = generated.iter().any(|g| g.eq_ignore_ascii_case(name));
            !computed && !self.target.leaves_out(own, name)
        };
        let places: Box<[usize]> = columns
            .iter()
            .enumerate()
            .filter(|(_, name)| is_written(name))
            .map(|(place, _)| place)
            .collect();
        let names: Box<[Name]> = places
            .iter()
            .filter_map(|p| columns.get(*p).cloned())
            .collect();
        let in_key = |name: &Name| matches!(&key.shape.key, Key::Columns(k) if k.contains(name));
        let on_conflict = match names.iter().all(in_key) {
            true => OnConflict::Ignore,
            false => OnConflict::Update,
        };
        let parts = ShapeParts {
            op: Op::Insert,
            table,
            columns: names,
            on_conflict,
            returning: Returning::Nothing,
            ..(*key.shape).clone()
        };
        let upsert = Upsert {
            shape: Arc::new(Shape::new(parts)),
            places,
        };
        let kept = (own.clone(), Arc::clone(columns));
        self.upserts.insert(kept, upsert.clone());
        Ok(upsert)
    }
}
