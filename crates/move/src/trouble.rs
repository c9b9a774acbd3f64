//! What a fault means for a move.

use windrow_core::{Fault, FaultClass, Retry};

use super::order::Order;

/// Why a move ends early. What was committed before stays, everything else is in the source.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MoveError {
    /// What is asked for makes no sense, or does not fit the tables.
    #[error("{0}")]
    Invalid(Box<str>),
    /// A database refuses something that concerns more than single rows.
    #[error("{place}: {}", with_detail(.fault))]
    Database {
        /// Which table or database.
        place: Box<str>,
        /// What it said.
        fault: Fault,
    },
    /// Rows that somebody else holds are left.
    #[error(
        "rows that other transactions hold were left in {source_table} after a wait of {waited} seconds: move again, or let them end first"
    )]
    Held {
        /// The table.
        source_table: Box<str>,
        /// How long they were waited for.
        waited: u64,
    },
}

/// The message with the code, and with what else the database said.
fn with_detail(fault: &Fault) -> String {
    match fault.detail() {
        Some(detail) => format!("{fault}; {detail}"),
        None => fault.to_string(),
    }
}

/// Why a batch was not moved.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It was rolled back for no fault of its rows, or the connection was lost: a new mover tries
    /// again.
    Retry(Fault),
    /// The move ends.
    Stop(MoveError),
}

impl Trouble {
    /// A fault that concerns no row: passing, or the end.
    pub(super) fn of(place: impl Into<Box<str>>, fault: Fault) -> Self {
        match is_retried(&fault) {
            true => Self::Retry(fault),
            false => Self::Stop(MoveError::Database {
                place: place.into(),
                fault,
            }),
        }
    }

    /// A fault of rows that were to leave the source. Where rows that others refer to are passed
    /// over, a row was referred to after it had been picked: the next look passes it over.
    pub(super) fn of_leaving(order: &Order, mut fault: Fault) -> Self {
        if order.passes_over_referred && fault.class == FaultClass::ForeignKey {
            fault.class = FaultClass::Conflict;
        }
        Self::of(order.plan.source.to_string(), fault)
    }
}

/// True if a move tries again after this fault. A new look at the source tells what became of a
/// commit whose outcome is unknown. A move ends where an operator has to act: its rows are safe.
pub(super) fn is_retried(fault: &Fault) -> bool {
    fault.may_retry() || fault.retry() == Retry::OutcomeUnknown
}

/// True where a fault concerns the row that it was said of, so that the row goes to the dead
/// letters. `routed`: the destination follows from the row, so that a table which is not there, or
/// is of no use, is the row's own fault.
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
        // What has that name is no table, or not in a state to be written to.
        FaultClass::Other => {
            routed
                && ["42", "55"]
                    .iter()
                    .any(|class| fault.code.starts_with(class))
        }
        _ => false,
    }
}
