//! Classifies the outcomes of a lane: those that concern one row, and those that end the load.
//! Pure.

use windrow_core::{Fault, FaultClass, Retry, UnitFault, UnitOutcome};

/// The outcome of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowOutcome {
    /// The row was written.
    Written,
    /// The database accepted the row and wrote nothing.
    Nothing,
    /// The row's mark exists: an earlier attempt has written the row.
    WrittenBefore,
    /// The row was refused for its own values.
    Bad(Fault),
    /// The outcome cannot be known.
    Unknown(Fault),
    /// The database was unreachable for too long, or another session held a lock for too long.
    Away(Fault),
    /// No row of this load can be written.
    End(Fault),
}

/// SQLSTATE classes of errors that are not the row's fault: resources, an operator, the system, a
/// defect, a read-only database.
const NOT_THE_ROW: [&str; 6] = ["25", "53", "57", "58", "F0", "XX"];

/// Judges the outcome of a unit of a row, and of its mark before it if rows are marked.
pub(super) fn row_outcome(outcome: UnitOutcome, marked: bool) -> RowOutcome {
    let (at, fault) = match outcome {
        Ok(dones) => {
            return match dones.last().map_or(0, |done| done.rows) {
                0 => RowOutcome::Nothing,
                _ => RowOutcome::Written,
            };
        }
        Err(UnitFault { at, fault, .. }) => (at, fault),
    };
    let of_mark = marked && at == 0;
    match fault.class {
        FaultClass::Unique if of_mark => RowOutcome::WrittenBefore,
        FaultClass::Unknown => RowOutcome::Unknown(fault),
        // The lane has tried for as long as the load may wait.
        FaultClass::Unavailable | FaultClass::Overloaded => RowOutcome::Away(fault),
        FaultClass::Conflict if fault.retry() == Retry::AfterLock => RowOutcome::Away(fault),
        FaultClass::Conflict
        | FaultClass::NoTable
        | FaultClass::NoColumn
        | FaultClass::Denied
        | FaultClass::Unsupported
        | FaultClass::Cancelled => RowOutcome::End(fault),
        _ if of_mark => RowOutcome::End(fault),
        FaultClass::Invalid if fault.code.starts_with("42") => RowOutcome::End(fault),
        FaultClass::Other
            if NOT_THE_ROW
                .iter()
                .any(|class| fault.code.starts_with(class)) =>
        {
            RowOutcome::End(fault)
        }
        _ => RowOutcome::Bad(fault),
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::{Dones, WriteDone};

    use super::*;

    fn failed(at: usize, class: FaultClass, code: &'static str) -> UnitOutcome {
        Err(UnitFault {
            at,
            fault: Fault::new(class, code, "no"),
            before: Vec::new(),
        })
    }

    #[test]
    fn a_row_is_to_blame_only_for_itself() {
        let done: Dones = [WriteDone::rows(1), WriteDone::rows(1)]
            .into_iter()
            .collect();
        assert_eq!(row_outcome(Ok(done), true), RowOutcome::Written);
        let none: Dones = [WriteDone::rows(1), WriteDone::rows(0)]
            .into_iter()
            .collect();
        assert_eq!(row_outcome(Ok(none), true), RowOutcome::Nothing);
        for (class, code) in [
            (FaultClass::Unique, "23505"),
            (FaultClass::Value, "22P02"),
            (FaultClass::Check, "23514"),
            (FaultClass::Other, "P0001"),
            (FaultClass::Invalid, "22023"),
            (FaultClass::TooLarge, "54000"),
        ] {
            let judged = row_outcome(failed(1, class, code), true);
            assert!(matches!(judged, RowOutcome::Bad(_)), "{code}");
        }
        for (class, code) in [
            (FaultClass::NoTable, "42P01"),
            (FaultClass::Invalid, "42P10"),
            (FaultClass::Other, "53100"),
            (FaultClass::Other, "XX000"),
            (FaultClass::Conflict, "40P01"),
        ] {
            let judged = row_outcome(failed(0, class, code), false);
            assert!(matches!(judged, RowOutcome::End(_)), "{code}");
        }
        for (class, code) in [
            (FaultClass::Conflict, "55P03"),
            (FaultClass::Unavailable, "08001"),
        ] {
            let judged = row_outcome(failed(0, class, code), false);
            assert!(matches!(judged, RowOutcome::Away(_)), "{code}");
        }
    }

    #[test]
    fn a_mark_that_is_there_says_that_its_row_is_in() {
        let there = row_outcome(failed(0, FaultClass::Unique, "23505"), true);
        assert_eq!(there, RowOutcome::WrittenBefore);
        let denied = row_outcome(failed(0, FaultClass::Check, "23514"), true);
        assert!(matches!(denied, RowOutcome::End(_)));
    }
}
