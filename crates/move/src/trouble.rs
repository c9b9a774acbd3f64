//! The consequences of a fault for a move.

use windrow_core::{Fault, FaultClass, Retry, UnitOutcome};

use super::order::Order;

/// The reason why a move ends early. Rows that were committed before stay moved; all others are in
/// the source.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MoveError {
    /// The options are invalid, or do not fit the tables.
    #[error("{0}")]
    Invalid(Box<str>),
    /// A database refuses something that concerns more than single rows.
    #[error("{place}: {}", with_detail(.fault))]
    Database {
        /// The table or database.
        place: Box<str>,
        /// The database's error.
        fault: Fault,
    },
    /// Rows are left that other sessions have locked.
    #[error(
        "rows that other transactions hold were left in {source_table} after a wait of {waited} seconds: move again, or let them end first"
    )]
    Held {
        /// The table.
        source_table: Box<str>,
        /// The seconds that the move waited.
        waited: u64,
    },
}

/// Returns the message with its code and detail.
fn with_detail(fault: &Fault) -> String {
    match fault.detail() {
        Some(detail) => format!("{fault}; {detail}"),
        None => fault.to_string(),
    }
}

/// The reason why a batch was not moved.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The batch was rolled back for a reason outside of its rows, or the connection was lost: a
    /// new mover tries again.
    Retry(Fault),
    /// The move ends.
    Stop(MoveError),
}

impl Trouble {
    /// Sorts a fault that concerns no row: the batch is retried, or the move ends.
    pub(super) fn of(place: impl Into<Box<str>>, fault: Fault) -> Self {
        match is_retried(&fault) {
            true => Self::Retry(fault),
            false => Self::Stop(MoveError::Database {
                place: place.into(),
                fault,
            }),
        }
    }

    /// Sorts a fault of rows that were to be deleted from the source. If rows that other rows refer
    /// to are skipped, a row was referred to after it was picked: the next batch skips it.
    pub(super) fn of_leaving(order: &Order, mut fault: Fault) -> Self {
        if order.passes_over_referred && fault.class == FaultClass::ForeignKey {
            fault.class = FaultClass::Conflict;
        }
        Self::of(order.plan.source.to_string(), fault)
    }
}

/// Returns true if a move tries again after this fault. The source shows the outcome of a commit
/// that is unknown. A move ends if an operator must act: its rows are safe.
pub(super) fn is_retried(fault: &Fault) -> bool {
    fault.may_retry() || fault.retry() == Retry::OutcomeUnknown
}

/// Returns true if a fault concerns only its row, so that the row becomes a dead letter. `routed`
/// is true if the destination follows from the row, so that a missing or unsuitable table is the
/// row's own fault.
pub(super) fn is_of_row(fault: &Fault, routed: bool) -> bool {
    match fault.class {
        FaultClass::Value
        | FaultClass::Unique
        | FaultClass::ForeignKey
        | FaultClass::NotNull
        | FaultClass::Check
        | FaultClass::TooLarge => true,
        FaultClass::NoTable
        | FaultClass::NoColumn
        | FaultClass::Invalid
        | FaultClass::Unsupported
        | FaultClass::Denied => routed,
        // The object with that name is not a table, or cannot be written to.
        FaultClass::Other => {
            routed
                && ["42", "55"]
                    .iter()
                    .any(|class| fault.code.starts_with(class))
        }
        _ => false,
    }
}

/// Returns the first fault after which it is unknown whether a row was written.
pub(super) fn unknown(outcomes: &[UnitOutcome]) -> Option<Fault> {
    let mut faults = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let unknown = faults.find(|failed| failed.fault.class == FaultClass::Unknown);
    unknown.map(|failed| failed.fault.clone())
}
