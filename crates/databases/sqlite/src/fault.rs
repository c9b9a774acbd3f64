//! The table of errors: SQLite's result code (<https://sqlite.org/rescode.html>), class, SQLSTATE,
//! and how far the error reaches. How a write may be tried again follows from class and SQLSTATE
//! ([`Fault::retry`]).

use rusqlite::ffi;
use windrow_core::{Fault, FaultClass};
use windrow_database::named_key::NO_SUCH_KEY;

/// An error of SQLite.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The fault for the client.
    pub(super) fault: Fault,
    /// The reach of the error.
    pub(super) scope: Scope,
}

/// The reach of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The write: bad data, a constraint, a bad name.
    Write,
    /// The file or the machine: disk full, an I/O error, no memory. Other writes may meet it too.
    Machine,
    /// The file, which another process has locked.
    Busy,
    /// The disk: the file could not be synced, so a commit that failed may be on disk.
    Sync,
}

impl Failure {
    /// Returns an error of a write.
    pub(super) fn of_write(fault: Fault) -> Self {
        let scope = Scope::Write;
        Self { fault, scope }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        failure.fault
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(error, message) => {
                failure(error.extended_code, message.as_deref())
            }
            rusqlite::Error::SqlInputError { error, msg, .. } => {
                failure(error.extended_code, Some(&msg))
            }
            other => Self::of_write(Fault::internal(format!("SQLite: {other}"))),
        }
    }
}

fn failure(code: i32, message: Option<&str>) -> Failure {
    let message = message.unwrap_or_else(|| ffi::code_to_str(code));
    match code & 0xff {
        ffi::SQLITE_CONSTRAINT => Failure::of_write(constraint(code, message)),
        ffi::SQLITE_ERROR => Failure::of_write(by_message(code, message)),
        primary => by_code(primary, code, message),
    }
}

fn is_sync(code: i32) -> bool {
    matches!(code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

fn by_code(primary: i32, code: i32, message: &str) -> Failure {
    use FaultClass::{Conflict, Denied, Other, TooLarge, Unavailable, Value};
    use Scope::{Busy, Machine, Sync, Write};
    let (class, state, scope, advice) = match primary {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => (
            Conflict,
            "55P03",
            Busy,
            "; another process holds the database",
        ),
        // Nothing was written. The same row may be written once there is space.
        ffi::SQLITE_FULL => (
            Unavailable,
            "53100",
            Machine,
            "; free some space and try again",
        ),
        ffi::SQLITE_READONLY => (
            Unavailable,
            "25006",
            Machine,
            "; the file or its directory is read-only",
        ),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => (Denied, "42501", Write, ""),
        ffi::SQLITE_NOMEM => (Other, "53200", Machine, ""),
        ffi::SQLITE_TOOBIG => (
            TooLarge,
            "54000",
            Write,
            "; SQLite's limit of a value is 1,000,000,000 bytes",
        ),
        ffi::SQLITE_MISMATCH => (
            Value,
            "22P02",
            Write,
            "; an INTEGER PRIMARY KEY takes whole numbers only",
        ),
        ffi::SQLITE_CANTOPEN => (Unavailable, "58030", Machine, ""),
        ffi::SQLITE_IOERR if is_sync(code) => (Other, "58030", Sync, ""),
        ffi::SQLITE_IOERR => (Other, "58030", Machine, ""),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => (Other, "XX001", Machine, ""),
        ffi::SQLITE_PROTOCOL => (Other, "XX000", Machine, ""),
        ffi::SQLITE_SCHEMA => (Conflict, "40001", Write, ""),
        _ => (Other, "XX000", Write, ""),
    };
    let message = format!("{message}{advice} (SQLite code {code})");
    Failure {
        fault: Fault::new(class, state, message),
        scope,
    }
}

/// Classifies errors that have one code in SQLite and differ in their text.
fn by_message(code: i32, message: &str) -> Fault {
    use FaultClass::{Denied, Invalid, NoColumn, NoTable, Other};
    let has = |part| message.contains(part);
    let (class, state) = if message.starts_with("no such table") {
        (NoTable, "42P01")
    } else if message.starts_with("no such column") || has("has no column named") {
        (NoColumn, "42703")
    } else if has("may not be modified") || has("may not be dropped") {
        (Denied, "42501")
    } else if has("generated column") {
        (Invalid, "428C9")
    } else if has("ON CONFLICT clause does not match") {
        let hint = "the key must be exactly the columns of the primary key or of a unique index";
        return Fault::new(NoColumn, NO_SUCH_KEY, message).with_hint(Some(hint));
    } else if has("reserved for internal use") {
        (Invalid, "42939")
    } else if has("because it is a view") {
        (Invalid, "55000")
    } else if has("too many columns") {
        (Invalid, "54011")
    } else {
        let text = format!("{message} (SQLite code {code})");
        return Fault::new(Other, "XX000", text);
    };
    Fault::new(class, state, message)
}

fn constraint(code: i32, message: &str) -> Fault {
    use FaultClass::{Check, ForeignKey, NotNull, Other, Unique, Value};
    let (class, state) = match code {
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => (Unique, "23505"),
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => (ForeignKey, "23503"),
        ffi::SQLITE_CONSTRAINT_NOTNULL => (NotNull, "23502"),
        ffi::SQLITE_CONSTRAINT_CHECK => (Check, "23514"),
        ffi::SQLITE_CONSTRAINT_TRIGGER => (Check, "P0001"),
        SQLITE_CONSTRAINT_DATATYPE => (Value, "22000"),
        _ => {
            let text = format!("{message} (SQLite code {code})");
            return Fault::new(Other, "23000", text);
        }
    };
    let fault = Fault::new(class, state, message);
    let named = message.split_once(" failed: ").map(|(_, what)| what);
    match (class, named) {
        (Unique | NotNull, Some(columns)) => with_columns(fault, columns),
        (Check, Some(name)) => fault.with_constraint(Some(name)),
        (Value, _) => with_stored_column(fault, message),
        _ => fault,
    }
}

/// `SQLITE_CONSTRAINT_DATATYPE` (<https://sqlite.org/rescode.html#constraint_datatype>).
const SQLITE_CONSTRAINT_DATATYPE: i32 = ffi::SQLITE_CONSTRAINT | (12 << 8);

/// Reads `t.a` and `t.a, t.b` as SQLite lists them; `index 'name'` stands for an index over
/// expressions.
fn with_columns(fault: Fault, columns: &str) -> Fault {
    let not_null = fault.class == FaultClass::NotNull;
    let single = !columns.contains(", ");
    let place = columns.split_once('.');
    let fault = match place {
        Some((table, column)) => fault
            .with_table(Some(table))
            .with_column(single.then_some(column)),
        None => fault,
    };
    fault.with_constraint((!not_null).then_some(columns))
}

/// Reads the end of `cannot store TEXT value in INTEGER column t.a`.
fn with_stored_column(fault: Fault, message: &str) -> Fault {
    let place = message.split_once(" column ").map(|(_, place)| place);
    match place.and_then(|p| p.split_once('.')) {
        Some((table, column)) => fault.with_table(Some(table)).with_column(Some(column)),
        None => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, message: &str) -> Fault {
        failure(code, Some(message)).fault
    }

    #[test]
    fn names_constraint_table_and_column() {
        let fault = read(
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            "UNIQUE constraint failed: t.a, t.b",
        );
        assert_eq!((fault.class, &*fault.code), (FaultClass::Unique, "23505"));
        assert_eq!(fault.constraint(), Some("t.a, t.b"));
        assert_eq!((fault.table(), fault.column()), (Some("t"), None));

        let fault = read(
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            "UNIQUE constraint failed: index 'lower_name'",
        );
        assert_eq!(fault.constraint(), Some("index 'lower_name'"));
        assert_eq!(fault.table(), None);

        let fault = read(
            ffi::SQLITE_CONSTRAINT_NOTNULL,
            "NOT NULL constraint failed: t.a",
        );
        assert_eq!((&*fault.code, fault.column()), ("23502", Some("a")));

        let fault = read(
            SQLITE_CONSTRAINT_DATATYPE,
            "cannot store TEXT value in INTEGER column t.a",
        );
        assert_eq!(
            (fault.class, fault.column()),
            (FaultClass::Value, Some("a"))
        );
    }

    #[test]
    fn every_code_has_its_reach_and_its_retry() {
        use windrow_core::Retry;
        for (code, scope, retry) in [
            (ffi::SQLITE_CONSTRAINT_CHECK, Scope::Write, Retry::Never),
            (ffi::SQLITE_BUSY, Scope::Busy, Retry::AfterLock),
            (ffi::SQLITE_FULL, Scope::Machine, Retry::WhenBack),
            (ffi::SQLITE_READONLY, Scope::Machine, Retry::WhenBack),
            (ffi::SQLITE_CANTOPEN, Scope::Machine, Retry::WhenBack),
            (ffi::SQLITE_NOMEM, Scope::Machine, Retry::AfterRepair),
            (ffi::SQLITE_CORRUPT, Scope::Machine, Retry::AfterRepair),
            (ffi::SQLITE_SCHEMA, Scope::Write, Retry::Soon),
        ] {
            let failure = failure(code, Some("x"));
            assert_eq!(
                (failure.scope, failure.fault.retry()),
                (scope, retry),
                "{code}"
            );
        }
        let scope = |code| failure(code, None).scope;
        assert_eq!(scope(ffi::SQLITE_BUSY_SNAPSHOT), Scope::Busy);
        assert_eq!(scope(ffi::SQLITE_FULL), Scope::Machine);
        assert_eq!(scope(ffi::SQLITE_IOERR_WRITE), Scope::Machine);
        assert_eq!(scope(ffi::SQLITE_IOERR_FSYNC), Scope::Sync);
        assert_eq!(scope(ffi::SQLITE_CONSTRAINT_CHECK), Scope::Write);
        let read_only = read(ffi::SQLITE_READONLY, "attempt to write a readonly database");
        assert_eq!(
            (read_only.class, &*read_only.code),
            (FaultClass::Unavailable, "25006")
        );
        assert!(read(ffi::SQLITE_BUSY, "database is locked").may_retry());
    }
}
