//! A database without transactions, combined with another one for Windrow's own tables.
//!
//! Without a transaction that contains both the progress and the writes, each write must be one
//! that can be executed twice: an insert that names its row by the primary key, and ignores or
//! updates an existing row. A unit is executed in two steps: first its writes, one by one; then, in
//! a transaction of the other database, the progress of the spool and its dead letters. After a
//! crash between the two, the writes are executed again, in their order and with the same result.
//!
//! Only one process may apply a spool this way, because nothing here keeps two from doing so.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::moves::is_own;
use windrow_core::{
    Bookkeeping, Database, Dones, Executor, Fault, FaultClass, Key, Name, OnConflict, Op, Profile,
    Purpose, Report, Sink, TableName, Tally, Unit, UnitFault, Value, Verdict, Write, WriteDone,
};

/// A database without transactions to which a spool can be applied.
pub struct Beside {
    database: Arc<dyn Database>,
    books: Arc<dyn Database>,
}

impl Beside {
    /// Combines two databases. `books`: the one with Windrow's own tables, which has transactions.
    pub fn new(database: Arc<dyn Database>, books: Arc<dyn Database>) -> Self {
        Self { database, books }
    }
}

#[async_trait]
impl Sink for Beside {
    fn profile(&self) -> &Profile {
        self.database.profile()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(Connection {
            name: self.database.profile().name,
            writes: self.database.connect_durably().await?,
            books: self.books.connect(purpose).await?,
            database: Arc::clone(&self.database),
        }))
    }
}

#[async_trait]
impl Database for Beside {
    async fn ping(&self) -> Result<(), Fault> {
        self.database.ping().await
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        self.books.bookkeeping()
    }
}

/// A connection to each of the two.
struct Connection {
    name: &'static str,
    database: Arc<dyn Database>,
    writes: Box<dyn Executor>,
    books: Box<dyn Executor>,
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut whole = Report {
            verdicts: Vec::with_capacity(units.len()),
            tally: Tally::default(),
            usable: true,
        };
        for unit in units {
            let verdict = match whole.usable {
                true => self.one(unit, &mut whole).await,
                false => Verdict::RolledBack(Fault::unavailable("the connection was lost")),
            };
            whole.verdicts.push(verdict);
        }
        whole
    }

    async fn close(self: Box<Self>) {
        self.writes.close().await;
        self.books.close().await;
    }
}

impl Connection {
    /// Executes a unit: its writes first, then those to Windrow's own tables.
    async fn one(&mut self, unit: &Unit, whole: &mut Report) -> Verdict {
        let places = 0..unit.writes().len();
        let (own, writes): (Vec<usize>, Vec<usize>) =
            places.partition(|at| unit.writes().get(*at).is_some_and(is_of_books));
        let mut dones = Dones::from_elem(WriteDone::default(), unit.writes().len());
        if let Some(verdict) = self.write(unit, &writes, &mut dones, whole).await {
            return verdict;
        }
        if own.is_empty() {
            return Verdict::Final(Ok(dones));
        }
        let kept = own.iter().filter_map(|at| unit.writes().get(*at)).cloned();
        let report = self.books.execute(&[Unit::of(kept)]).await;
        whole.usable &= report.usable;
        match report.verdicts.into_iter().next() {
            Some(Verdict::Final(Ok(done))) => {
                put(&mut dones, &own, done);
                Verdict::Final(Ok(dones))
            }
            Some(Verdict::Final(Err(failed))) => {
                let at = own.get(failed.at).copied().unwrap_or_default();
                Verdict::Final(Err(UnitFault { at, ..failed }))
            }
            Some(verdict) => verdict,
            None => Verdict::Final(Err(Fault::internal("a unit got no verdict").into())),
        }
    }

    /// Executes the writes at these positions, one by one. Returns the verdict on the whole unit if
    /// one of them did not succeed.
    async fn write(
        &mut self,
        unit: &Unit,
        places: &[usize],
        dones: &mut Dones,
        whole: &mut Report,
    ) -> Option<Verdict> {
        let mut units = Vec::with_capacity(places.len());
        let mut keys = Vec::new();
        for at in places {
            let write = unit.writes().get(*at)?;
            match self.repeats(write, &mut keys).await {
                Ok(true) => units.push(Unit::one(write.clone())),
                Ok(false) => return Some(failed(*at, self.not_repeatable(write))),
                Err(fault) if fault.may_retry() => return Some(Verdict::RolledBack(fault)),
                Err(fault) => return Some(failed(*at, fault)),
            }
        }
        if units.is_empty() {
            return None;
        }
        let report = self.writes.execute(&units).await;
        whole.usable &= report.usable;
        whole.tally.round_trips += report.tally.round_trips;
        whole.tally.in_database += report.tally.in_database;
        whole.tally.commits += report.tally.commits;
        for (sum, rung) in whole.tally.rungs.iter_mut().zip(report.tally.rungs) {
            *sum += rung;
        }
        let mut refused = None;
        for (at, verdict) in places.iter().zip(report.verdicts) {
            match verdict {
                Verdict::Final(Ok(done)) => put(dones, &[*at], done),
                Verdict::Final(Err(why)) if why.fault.class == FaultClass::Unknown => {
                    return Some(failed(*at, why.fault));
                }
                Verdict::Final(Err(why)) => {
                    refused.get_or_insert_with(|| failed(*at, why.fault));
                }
                // The unit is tried again as a whole, and the writes that succeeded are repeated.
                verdict => return Some(verdict),
            }
        }
        refused
    }

    /// Returns true if a write can be executed twice. `keys`: the primary keys known so far.
    async fn repeats(
        &mut self,
        write: &Write,
        keys: &mut Vec<(TableName, Box<[Name]>)>,
    ) -> Result<bool, Fault> {
        let shape = &write.shape;
        // A read changes nothing.
        if shape.op == Op::Get {
            return Ok(true);
        }
        if shape.op != Op::Insert || shape.on_conflict == OnConflict::Error {
            return Ok(false);
        }
        if let Key::Columns(names) = &shape.key {
            return Ok(holds(write, names));
        }
        if !keys.iter().any(|(table, _)| *table == shape.table) {
            let key = self.database.primary_key(&shape.table).await?;
            keys.push((shape.table.clone(), key));
        }
        let key = keys.iter().find(|(table, _)| *table == shape.table);
        Ok(key.is_some_and(|(_, key)| holds(write, key)))
    }

    fn not_repeatable(&self, write: &Write) -> Fault {
        let name = self.name;
        let message = format!(
            "{name} has no transactions, so the spool applies to it what can be done twice: an \
             insert with on_conflict=ignore or update that has a value for each column of the \
             table's primary key; this {} into {} is none",
            write.shape.op.as_str(),
            write.shape.table
        );
        Fault::new(FaultClass::Unsupported, "0A000", message)
    }
}

/// True if there are columns and the write has a value for each.
fn holds(write: &Write, key: &[Name]) -> bool {
    let has = |name: &Name| {
        let mut fields = write.shape.columns.iter().zip(write.values());
        fields.any(|(column, value)| column == name && !matches!(value, Value::Null))
    };
    !key.is_empty() && key.iter().all(has)
}

/// True for a write to one of Windrow's own tables.
fn is_of_books(write: &Write) -> bool {
    let table = &write.shape.table;
    table.schema.is_none() && is_own(&table.table)
}

fn put(dones: &mut Dones, places: &[usize], done: Dones) {
    for (at, done) in places.iter().zip(done) {
        if let Some(slot) = dones.get_mut(*at) {
            *slot = done;
        }
    }
}

fn failed(at: usize, fault: Fault) -> Verdict {
    Verdict::Final(Err(UnitFault { at, ..fault.into() }))
}
