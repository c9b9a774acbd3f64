//! What the workers of one file share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::blame::Target;
use super::marking::Marking;
use super::meter::Meter;
use super::rejects::{Origin, Rejects};
use super::spans::Spans;
use super::way::Ways;
use super::witness::Witness;

/// State and settings shared by the workers of one file.
pub(super) struct Shared {
    pub(super) origin: Origin,
    /// The columns of a row.
    pub(super) targets: Vec<Target>,
    pub(super) done: Arc<Spans>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) meter: Arc<Meter>,
    pub(super) marking: Option<Marking>,
    /// The forms that portions took so far; the reader asks too.
    pub(super) ways: Arc<Mutex<Ways>>,
    /// The reason why the bulk form is not used, if it is not.
    pub(super) unsupported: Mutex<Option<String>>,
    /// The values seen in a table that is made from them.
    pub(super) witness: Option<Mutex<Witness>>,
    pub(super) away_wait: Duration,
    pub(super) halt: CancellationToken,
}
