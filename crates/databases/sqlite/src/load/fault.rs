//! Classifies failures of SQLite for a portion.

use windrow_core::{Fault, FaultClass, LoadFault};

use crate::fault::{Failure, Scope};

/// Returns the fault of a failure that no row caused. A busy database may be tried again.
pub(super) fn plain(error: rusqlite::Error) -> Fault {
    Failure::from(error).fault
}

/// Classifies a failure before the commit, when nothing is written: the portion may be tried again,
/// or be filtered.
pub(super) fn before_commit(error: rusqlite::Error) -> LoadFault {
    let Failure { fault, scope } = error.into();
    match (scope, fault.class) {
        (Scope::Busy, _) | (_, FaultClass::Unavailable) => LoadFault::Again(fault),
        (Scope::Machine | Scope::Sync, _) | (_, FaultClass::NoTable | FaultClass::NoColumn) => {
            LoadFault::Hopeless(fault)
        }
        (Scope::Write, _) => LoadFault::Refused(fault),
    }
}

/// Classifies a failed commit, which is undone. It checks deferred foreign keys.
pub(super) fn of_commit(error: rusqlite::Error) -> LoadFault {
    let Failure { fault, scope } = Failure::from(error);
    match scope {
        // The log may contain the whole commit, which shows only when the file is opened the next
        // time.
        Scope::Sync => LoadFault::Unknown(Fault::unknown(fault.message)),
        Scope::Busy => LoadFault::Again(fault),
        Scope::Machine if fault.class == FaultClass::Unavailable => LoadFault::Again(fault),
        Scope::Machine => LoadFault::Hopeless(fault),
        Scope::Write => LoadFault::Refused(fault),
    }
}

/// Classifies a failure to write a mark, which is no fault of the rows.
pub(super) fn of_mark(error: rusqlite::Error) -> LoadFault {
    match before_commit(error) {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

/// Returns the fault of a table that does not fit the rows yet.
pub(super) fn grows() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "a column is to be added first",
    )
}
