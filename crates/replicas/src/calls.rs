//! Work that is not made of row writes, as replicas follow it: statements of SQL clients.
//!
//! A statement that names its row by the primary key is followed by this key. One that takes its
//! key from a sequence is followed by the value that it returns. No statement is changed for
//! replicas. Others change rows whose keys are unknown; they are counted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{
    Canceller, Executor, Fault, FaultClass, KeyedRow, Profile, Purpose, Report, RowWrite, Sink,
    Unit, Value, Verdict, Work,
};

use crate::batch::{Rows, unlogged};
use crate::follow::Followed;
use crate::shared::Shared;

/// The access to the rows of statements.
pub struct Says<W: Work> {
    /// The one row that it may change, as far as it names one.
    pub row: fn(&W) -> Option<KeyedRow>,
    /// Returns the value that a statement took from a sequence.
    pub generated: fn(&W::Done) -> Option<Value>,
    /// Returns the number of rows that a statement has changed.
    pub changed: fn(&W::Done) -> u64,
}

impl<W: Work> Clone for Says<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: Work> Copy for Says<W> {}

/// A sink of the primary, whose rows are brought to replicas.
pub(crate) struct FollowedSink<W: Work> {
    pub(crate) sink: Arc<dyn Sink<W>>,
    pub(crate) says: Says<W>,
    pub(crate) shared: Arc<Shared>,
}

struct FollowedExecutor<W: Work> {
    inner: Box<dyn Executor<W>>,
    says: Says<W>,
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
    /// Work that names no row: its unit, its place in it.
    unnamed: Vec<(usize, usize)>,
}

impl NamedRows {
    async fn of<W: Work>(shared: &Shared, units: &[Unit<W>], says: Says<W>) -> Result<Self, Fault> {
        let mut named = Self::default();
        for (number, unit) in units.iter().enumerate() {
            for (place, work) in unit.work().iter().enumerate() {
                let at = (number, place);
                let Some(row) = (says.row)(work) else {
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
    fn keys<W: Work>(&self, report: &Report<W::Done>, says: Says<W>) -> Option<Vec<RowWrite>> {
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
            if (says.changed)(done) > 0 {
                let mut key = promised.key.clone();
                *key.get_mut(promised.place)? = (says.generated)(done)?;
                keys.push(promised.followed.key(key));
            }
        }
        Some(keys)
    }

    /// Returns the number of statements that have changed rows, or may have, whose keys are not
    /// known.
    fn untold<W: Work>(&self, report: &Report<W::Done>, says: Says<W>) -> u64 {
        let changed = |(unit, place): &&(usize, usize)| match report.verdicts.get(*unit) {
            Some(Verdict::Final(Ok(dones))) => {
                dones.get(*place).is_some_and(|d| (says.changed)(d) > 0)
            }
            Some(Verdict::Final(Err(failed))) => failed.fault.class == FaultClass::Unknown,
            _ => false,
        };
        self.unnamed.iter().filter(changed).count() as u64
    }
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
impl<W: Work> Sink<W> for FollowedSink<W> {
    fn profile(&self) -> &Profile {
        self.sink.profile()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor<W>>, Fault> {
        Ok(Box::new(FollowedExecutor {
            inner: self.sink.connect(purpose).await?,
            says: self.says,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.sink.statement_timeout()
    }

    fn touches(&self, unit: &Unit<W>, hashes: &mut Vec<u64>) {
        self.sink.touches(unit, hashes);
    }
}

#[async_trait]
impl<W: Work> Executor<W> for FollowedExecutor<W> {
    async fn execute(&mut self, units: &[Unit<W>]) -> Report<W::Done> {
        let named = match NamedRows::of(&self.shared, units, self.says).await {
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
        self.shared.untold(named.untold(&report, self.says));
        if let Some(ticket) = ticket {
            let keys = named.keys(&report, self.says);
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
