//! What a frontend hands to a lane.

use smallvec::SmallVec;
use tokio::time::Instant;

use super::Reply;
use crate::budget::Permit;
use crate::retry::RetryPolicy;
use crate::source::SourceId;
use crate::trace::Trace;
use crate::unit::Unit;
use crate::work::Work;

/// The units of a submission. Nearly always one, kept without an allocation.
pub type Units<W> = SmallVec<[Unit<W>; 1]>;

/// Units that one source hands over at once, to be answered at once.
#[derive(Debug)]
pub struct Submission<W: Work> {
    /// Who asks.
    pub source: SourceId,
    /// What is asked for, in order.
    pub units: Units<W>,
    /// The memory that the units take. The lane gives it back when all of them are answered.
    pub permit: Permit,
    /// When it was handed over.
    pub arrived: Instant,
    /// Where the outcomes go, one for each unit, in order.
    pub reply: Reply<W::Done>,
    /// How long the lane tries the units again.
    pub policy: RetryPolicy,
    /// Where the request is traced: who wants to know what becomes of the units.
    pub trace: Option<Trace>,
}
