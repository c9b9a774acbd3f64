//! Calls of SQL clients, as replicas follow them.
//!
//! A statement that names its row by the primary key is followed by this key. One that takes its
//! key from a sequence is followed by the value that it returns. No statement is changed for
//! replicas. Others change rows whose keys are unknown; they are counted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{
    Canceller, Executor, Fault, FaultClass, KeyedRow, Profile, Purpose, Report, Sink, Unit, Value,
    Verdict, Write, WriteDone,
};

use crate::batch::{Rows, unlogged};
use crate::follow::Followed;
use crate::shared::Shared;

/// A sink of the primary, whose rows are brought to replicas.
pub(crate) struct FollowedSink {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) shared: Arc<Shared>,
}

struct FollowedExecutor {
    inner: Box<dyn Executor>,
    shared: Arc<Shared>,
}

/// A row whose key is known once the row is there.
struct PromisedRow {
    /// The unit of the statement, and its place in the unit.
    at: (usize, usize),
    followed: Arc<Followed>,
    /// The known values of the key, with a placeholder for the missing one.
    key: Box<[Value]>,
    place: usize,
}

/// The rows that a batch may change.
#[derive(Default)]
struct NamedRows {
    rows: Rows,
    promised: Vec<PromisedRow>,
    /// Writes that name no row: their unit, their place in it.
    unnamed: Vec<(usize, usize)>,
}

impl NamedRows {
    async fn of(shared: &Shared, units: &[Unit]) -> Result<Self, Fault> {
        let mut named = Self::default();
        for (number, unit) in units.iter().enumerate() {
            for (place, write) in unit.writes().iter().enumerate() {
                let at = (number, place);
                let Some(row) = row_of(write) else {
                    named.unnamed.push(at);
                    continue;
                };
                match shared.tables.get(&row.table).await? {
                    Some(followed) => named.add(at, followed, &row),
                    None => named.unnamed.push(at),
                }
            }
        }
        Ok(named)
    }

    fn add(&mut self, at: (usize, usize), followed: Arc<Followed>, row: &KeyedRow) {
        let Some((key, unknown)) = ordered(&followed, row) else {
            return self.unnamed.push(at);
        };
        match unknown {
            None => self.rows.keys.push(followed.key(key)),
            Some(place) => {
                self.rows.note(followed.note());
                self.promised.push(PromisedRow {
                    at,
                    followed,
                    key,
                    place,
                });
            }
        }
    }

    /// The keys that were promised. `None`: not all of them are known.
    fn keys(&self, report: &Report) -> Option<Vec<Write>> {
        let mut keys = Vec::with_capacity(self.promised.len());
        for promised in &self.promised {
            let (unit, place) = promised.at;
            let done = match report.verdicts.get(unit) {
                Some(Verdict::Final(Ok(dones))) => dones.get(place)?,
                Some(Verdict::Final(Err(failed))) if failed.fault.class == FaultClass::Unknown => {
                    return None;
                }
                _ => continue,
            };
            if done.rows > 0 {
                let mut key = promised.key.clone();
                *key.get_mut(promised.place)? = generated(done)?;
                keys.push(promised.followed.key(key));
            }
        }
        Some(keys)
    }

    /// Returns the number of statements that have changed rows, or may have, whose keys are not
    /// known.
    fn untold(&self, report: &Report) -> u64 {
        let changed = |(unit, place): &&(usize, usize)| match report.verdicts.get(*unit) {
            Some(Verdict::Final(Ok(dones))) => dones.get(*place).is_some_and(|d| d.rows > 0),
            Some(Verdict::Final(Err(failed))) => failed.fault.class == FaultClass::Unknown,
            _ => false,
        };
        self.unnamed.iter().filter(changed).count() as u64
    }
}

/// Returns the one row that a call may change, as far as it names one.
fn row_of(write: &Write) -> Option<KeyedRow> {
    let call = write.call()?;
    call.statement.row_of(&call.arguments, &call.formats)
}

/// Returns the value that a call took from a sequence.
fn generated(done: &WriteDone) -> Option<Value> {
    let generated = done.extra.as_ref()?.generated.as_ref()?;
    Some(Value::Int(generated.value))
}

/// A key in the order of the table's own, and the place of what is not known of it. `None`: the
/// table has another key by now.
fn ordered(followed: &Followed, row: &KeyedRow) -> Option<(Box<[Value]>, Option<usize>)> {
    let own = &followed.table.key;
    let mut unknown = None;
    let mut value = |(at, name): (usize, &windrow_core::Name)| {
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

#[async_trait]
impl Sink for FollowedSink {
    fn profile(&self) -> &Profile {
        self.sink.profile()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(FollowedExecutor {
            inner: self.sink.connect(purpose).await?,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.sink.statement_timeout()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.sink.touches(unit, hashes);
    }
}

#[async_trait]
impl Executor for FollowedExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let named = match NamedRows::of(&self.shared, units).await {
            Ok(named) => named,
            Err(fault) => return Report::broken(units.len(), &Verdict::RolledBack(fault)),
        };
        let ticket = match named.rows.is_empty() {
            true => None,
            false => match self.shared.begin(&named.rows).await {
                Ok(ticket) => Some(ticket),
                Err(fault) => return unlogged(units.len(), fault),
            },
        };
        let report = self.inner.execute(units).await;
        self.shared.untold(named.untold(&report));
        if let Some(ticket) = ticket {
            let keys = named.keys(&report);
            self.shared.end(ticket, &named.rows, keys, &report).await;
        }
        report
    }

    fn arrived(&mut self, at: Instant) {
        self.inner.arrived(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        self.inner.canceller()
    }

    async fn close(self: Box<Self>) {
        self.inner.close().await;
    }
}
