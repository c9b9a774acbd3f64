//! State and settings shared by the workers of one file.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, Field};

use super::LoadError;
use super::blame::{self, TargetColumn};
use super::marking::Marking;
use super::meter::Meter;
use super::parcel::Parcel;
use super::rejects::{Origin, Reason, Reject, Rejects};
use super::retries::Retries;
use super::way::Ways;
use super::witness::Witness;

/// State and settings shared by the workers of one file.
pub(super) struct Shared {
    pub(super) origin: Origin,
    /// The columns of a row.
    pub(super) targets: Vec<TargetColumn>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) meter: Arc<Meter>,
    pub(super) marking: Option<Marking>,
    /// The forms that portions took so far; shared with the reader.
    pub(super) ways: Arc<Mutex<Ways>>,
    /// The reason why the bulk form is not used; `None` if it is.
    pub(super) unsupported: Mutex<Option<String>>,
    /// The values that were seen, if the table is created from them.
    pub(super) witness: Option<Mutex<Witness>>,
    pub(super) away_wait: Duration,
    pub(super) halt: CancellationToken,
}

impl Shared {
    /// Returns the retries of one call of a worker.
    pub(super) fn retries(&self) -> Retries<'_> {
        Retries::new(self.away_wait, &self.halt)
    }

    /// Notes a row that the database has refused as a reject.
    pub(super) fn reject(
        &self,
        parcel: &Parcel,
        row: usize,
        fault: &Fault,
    ) -> Result<(), LoadError> {
        let portion = &parcel.portion;
        let get = |numbers: &[u64]| numbers.get(row).copied().unwrap_or_default();
        self.meter.rejected();
        let fields: Vec<Field<'_>> = portion.rows.row(row).collect();
        let blame = blame::find(fault, &self.targets, &fields);
        let reject = Reject {
            file: &self.origin.file,
            line: get(portion.rows.lines()),
            record: get(&portion.records),
            raw: portion.raw(row),
            reason: Reason::Database(fault),
            column: blame.as_ref().map(|blame| blame.column),
            value: blame.as_ref().and_then(|blame| blame.value.as_deref()),
        };
        self.rejects.note(&self.origin, &reject)
    }

    /// Notes the records of a portion that could not be read as rejects, before the mark that
    /// covers them is written.
    pub(super) fn reject_unread(&self, parcel: &Parcel) -> Result<(), LoadError> {
        for bad in &parcel.portion.bad {
            self.meter.rejected();
            let reject = Reject::bad(&self.origin.file, bad);
            self.rejects.note(&self.origin, &reject)?;
        }
        self.rejects.settle(&self.origin)
    }
}
