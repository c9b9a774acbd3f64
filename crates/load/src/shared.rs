//! What the workers of one file share.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use windrow_core::Fault;

use super::blame::Target;
use super::bulk::BulkWriter;
use super::form::{Form, Forms};
use super::lock::lock;
use super::marking::Marking;
use super::meter::Meter;
use super::rejects::{Origin, Rejects};
use super::spans::Spans;
use super::way::Costs;
use super::witness::Witness;

/// What the workers of one file share.
pub(super) struct Shared {
    pub(super) origin: Origin,
    /// The columns of a row.
    pub(super) targets: Vec<Target>,
    pub(super) done: Arc<Spans>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) meter: Arc<Meter>,
    pub(super) marking: Option<Marking>,
    pub(super) costs: Mutex<Costs>,
    pub(super) forms: Arc<Mutex<Forms>>,
    /// Why the bulk form is not used, once that is known.
    pub(super) unsupported: Mutex<Option<String>>,
    /// What is seen of the rows of a table that is made from them.
    pub(super) witness: Option<Mutex<Witness>>,
    pub(super) away_wait: Duration,
    pub(super) halt: CancellationToken,
}

impl Shared {
    /// Rows were written by the bulk form; `whole`: all of their portion.
    pub(super) fn written(&self, form: Form, rows: usize, whole: bool) {
        let mut forms = lock(&self.forms);
        match whole {
            true => forms.written(form, rows, Instant::now()),
            false => forms.disturbed(),
        }
    }

    /// What the ways to write were seen to cost.
    pub(super) fn costs(&self) -> MutexGuard<'_, Costs> {
        lock(&self.costs)
    }

    /// The bulk form cannot do what is asked for: everything goes through the lane.
    pub(super) fn give_up_bulk(&self, bulk_writer: &mut Option<BulkWriter>, fault: Fault) {
        *bulk_writer = None;
        let why = fault.message.into_string();
        lock(&self.unsupported).get_or_insert(why);
    }
}
