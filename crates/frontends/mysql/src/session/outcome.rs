//! Waits for the outcome of a unit, and ends its span.

use windrow_core::intake::Receipt;
use windrow_core::{Fault, TracedRequest, UnitOutcome};
use windrow_mysqlwire::Wire;

/// Ends the span of a unit with its outcome.
pub(super) fn end_trace(traced: Option<Box<TracedRequest>>, outcome: &UnitOutcome) {
    let Some(traced) = traced else { return };
    if let Err(failed) = outcome {
        traced.fails(&failed.fault.code);
    }
    traced.end(false);
}

/// Waits for the outcome of a write. Calls `left` once if the client leaves meanwhile.
pub(super) async fn outcome(
    client: &mut Wire,
    mut receipt: Receipt,
    left: impl Fn(),
) -> UnitOutcome {
    let mut is_watched = true;
    let mut outcomes = loop {
        tokio::select! {
            biased;
            outcomes = &mut receipt => break outcomes,
            next = client.head(0), if is_watched => {
                is_watched = false;
                if !matches!(next, Ok(Some(_))) {
                    left();
                }
            }
        }
    };
    let outcome = outcomes.pop();
    outcome.unwrap_or_else(|| Err(Fault::internal("a write was not answered").into()))
}
