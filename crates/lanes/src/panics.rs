//! The report on a panic in a sink or an executor: a defect in Windrow, which must not end the
//! lane.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, Report, Sink, UnitOutcome, Verdict};

/// Connects; a sink that panics counts as having refused.
pub(crate) async fn connect(sink: &dyn Sink, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
    let connected = AssertUnwindSafe(sink.connect(purpose)).catch_unwind().await;
    connected.unwrap_or_else(|_| {
        Err(Fault::internal(
            "connecting to the database failed by a defect in Windrow; its log holds the panic",
        ))
    })
}

/// Returns the report on units whose executor panicked.
pub(crate) fn report_of_panic(units: usize) -> Report {
    Report::broken(units, &Verdict::Final(outcome_of_panic()))
}

/// Returns the outcome of a unit whose executor panicked.
pub(crate) fn outcome_of_panic() -> UnitOutcome {
    let fault = Fault::unknown(
        "executing the batch of this write failed by a defect in Windrow; its log holds the panic",
    );
    Err(fault.into())
}
