//! The writes that failed, counted by table and reason, with the last one of each, for operators.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use windrow_core::bookkeeping::IDEMPOTENCY;
use windrow_core::{Fault, FaultClass, TableName, Unit, Verdict, Write};

/// The most tables that are counted separately.
const MOST: usize = 200;

/// The writes to one table that failed for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The table, as clients have named it.
    pub table: TableName,
    /// The reason.
    pub class: FaultClass,
    /// The number of failed units since the start.
    pub count: u64,
    /// The time at which the last one failed.
    pub at: SystemTime,
    /// The fault of the last one, in the database's words, which may quote values of its row.
    pub last: Fault,
}

type ByClass = BTreeMap<FaultClass, Failure>;

/// The failures of all lanes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Arc<Mutex<HashMap<TableName, ByClass, RandomState>>>);

impl Failures {
    /// Notes the failures of a batch. Keeps one fault for each table and reason. Returns the number
    /// of units that did not really fail: their idempotency keys show that they were executed
    /// before.
    pub(crate) fn note(&self, units: &[Unit], verdicts: &[Verdict]) -> u64 {
        let mut replayed = 0;
        let pairs = units.iter().zip(verdicts);
        let failed = pairs.filter_map(|(unit, verdict)| match verdict {
            Verdict::Final(Err(failed)) => {
                let work = unit.writes();
                let write = work.get(failed.at).or(work.last())?;
                let is_replayed = is_known_key(write, &failed.fault);
                replayed += u64::from(is_replayed);
                (!is_replayed).then(|| (write.table(), &failed.fault))
            }
            _ => None,
        });
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() {
            return replayed;
        }
        let (now, mut all) = (SystemTime::now(), self.0.lock());
        for (table, fault) in failed {
            if !all.contains_key(table) {
                if all.len() >= MOST {
                    continue;
                }
                all.insert(table.clone(), BTreeMap::new());
            }
            let Some(classes) = all.get_mut(table) else {
                continue;
            };
            let failure = classes.entry(fault.class).or_insert_with(|| Failure {
                table: table.clone(),
                class: fault.class,
                count: 0,
                at: now,
                last: fault.clone(),
            });
            failure.count += 1;
            if failure.at != now {
                (failure.at, failure.last) = (now, fault.clone());
            }
        }
        replayed
    }

    /// Returns all failures, the latest first.
    pub(crate) fn list(&self) -> Vec<Failure> {
        let all = self.0.lock();
        let mut list: Vec<Failure> = all.values().flat_map(BTreeMap::values).cloned().collect();
        list.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.table.cmp(&b.table)));
        list
    }
}

/// True if a write failed because the idempotency key that it inserts exists already.
fn is_known_key(write: &Write, fault: &Fault) -> bool {
    fault.class == FaultClass::Unique && &*write.table().table == IDEMPOTENCY
}
