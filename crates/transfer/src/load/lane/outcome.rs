//! What an outcome means for a load: does it concern one row, or all? Pure.

use windrow_core::{Fault, FaultClass, UnitFault, UnitOutcome};

/// What is to be done about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in.
    Written,
    /// It was taken, and no row was written.
    Nothing,
    /// Its mark was there: it was written before.
    WrittenBefore,
    /// It was refused for what it is.
    Bad(Fault),
    /// It was rolled back for no fault of its own.
    Again(Fault),
    /// It cannot be known.
    Unknown(Fault),
    /// The database has been away for too long.
    Away(Fault),
    /// No row of this load will ever be written.
    End(Fault),
}

/// SQLSTATE classes of what no row is to blame for: resources, an operator, the system, a defect, a
/// database that is read only.
const NOT_THE_ROW: [&str; 6] = ["25", "53", "57", "58", "F0", "XX"];

/// Judges the outcome of a unit of a row, and of its mark behind it if rows are marked.
pub(super) fn fate(outcome: UnitOutcome, marked: bool) -> Fate {
    let (at, fault) = match outcome {
        Ok(dones) => {
            return match dones.first().map_or(0, |done| done.rows) {
                0 => Fate::Nothing,
                _ => Fate::Written,
            };
        }
        Err(UnitFault { at, fault, .. }) => (at, fault),
    };
    let of_mark = marked && at == 1;
    match fault.class {
        FaultClass::Unique if of_mark => Fate::WrittenBefore,
        FaultClass::Conflict | FaultClass::Overloaded => Fate::Again(fault),
        FaultClass::Unknown => Fate::Unknown(fault),
        FaultClass::Unavailable => Fate::Away(fault),
        FaultClass::NoTable
        | FaultClass::NoColumn
        | FaultClass::Denied
        | FaultClass::Unsupported
        | FaultClass::Cancelled => Fate::End(fault),
        _ if of_mark => Fate::End(fault),
        FaultClass::Invalid if fault.code.starts_with("42") => Fate::End(fault),
        FaultClass::Other
            if NOT_THE_ROW
                .iter()
                .any(|class| fault.code.starts_with(class)) =>
        {
            Fate::End(fault)
        }
        _ => Fate::Bad(fault),
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::{Done, Dones};

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
        let done: Dones = [Done::rows(1), Done::rows(1)].into_iter().collect();
        assert_eq!(fate(Ok(done), true), Fate::Written);
        let none: Dones = [Done::rows(0), Done::rows(1)].into_iter().collect();
        assert_eq!(fate(Ok(none), true), Fate::Nothing);
        for (class, code) in [
            (FaultClass::Unique, "23505"),
            (FaultClass::Value, "22P02"),
            (FaultClass::Check, "23514"),
            (FaultClass::Other, "P0001"),
            (FaultClass::Invalid, "22023"),
            (FaultClass::TooLarge, "54000"),
        ] {
            let judged = fate(failed(0, class, code), true);
            assert!(matches!(judged, Fate::Bad(_)), "{code}");
        }
        for (class, code) in [
            (FaultClass::NoTable, "42P01"),
            (FaultClass::Invalid, "42P10"),
            (FaultClass::Other, "53100"),
            (FaultClass::Other, "XX000"),
        ] {
            let judged = fate(failed(0, class, code), false);
            assert!(matches!(judged, Fate::End(_)), "{code}");
        }
    }

    #[test]
    fn a_mark_that_is_there_says_that_its_row_is_in() {
        let there = fate(failed(1, FaultClass::Unique, "23505"), true);
        assert_eq!(there, Fate::WrittenBefore);
        let denied = fate(failed(1, FaultClass::Check, "23514"), true);
        assert!(matches!(denied, Fate::End(_)));
    }
}
