//! SQLite's result codes as faults (<https://sqlite.org/rescode.html>).

use rusqlite::ffi;
use windrow_core::{Fault, FaultClass};
use windrow_database::named_key::NO_SUCH_KEY;

/// A failure of SQLite: what to tell, and what it means for the transaction around it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// What the client is told.
    pub(super) fault: Fault,
    /// What it says of the others in the same transaction.
    pub(super) scope: Scope,
}

/// Whose failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The write's own: bad data, a constraint, a bad name.
    Write,
    /// The file's or the machine's: disk full, an I/O error, no memory. Others may meet it too.
    Machine,
    /// Somebody else holds the file: the same may succeed later.
    Busy,
    /// The file could not be synced: a commit that fails with it may still turn out to be on disk.
    Sync,
}

impl Failure {
    /// A failure that a write has by itself.
    pub(super) fn of_write(fault: Fault) -> Self {
        let scope = Scope::Write;
        Self { fault, scope }
    }

    /// What is told of it.
    pub(super) fn into_fault(self) -> Fault {
        self.fault
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
    let scope = match code & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Scope::Busy,
        ffi::SQLITE_IOERR if is_sync(code) => Scope::Sync,
        ffi::SQLITE_IOERR
        | ffi::SQLITE_FULL
        | ffi::SQLITE_NOMEM
        | ffi::SQLITE_CORRUPT
        | ffi::SQLITE_NOTADB
        | ffi::SQLITE_CANTOPEN
        | ffi::SQLITE_PROTOCOL
        | ffi::SQLITE_READONLY => Scope::Machine,
        _ => Scope::Write,
    };
    let fault = match code & 0xff {
        ffi::SQLITE_CONSTRAINT => constraint(code, message),
        ffi::SQLITE_ERROR => by_message(code, message),
        primary => by_code(primary, code, message),
    };
    Failure { fault, scope }
}

fn is_sync(code: i32) -> bool {
    matches!(code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

fn by_code(primary: i32, code: i32, message: &str) -> Fault {
    use FaultClass::{Conflict, Denied, Other, TooLarge, Unavailable, Value};
    let (class, state, advice) = match primary {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            (Conflict, "55P03", "; another process holds the database")
        }
        // Nothing was written, and the same row may be once there is room.
        ffi::SQLITE_FULL => (Unavailable, "53100", "; free some space and try again"),
        ffi::SQLITE_READONLY => (
            Unavailable,
            "25006",
            "; the file or its directory is read-only",
        ),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => (Denied, "42501", ""),
        ffi::SQLITE_NOMEM => (Other, "53200", ""),
        ffi::SQLITE_TOOBIG => (
            TooLarge,
            "54000",
            "; SQLite's limit of a value is 1,000,000,000 bytes",
        ),
        ffi::SQLITE_MISMATCH => (
            Value,
            "22P02",
            "; an INTEGER PRIMARY KEY takes whole numbers only",
        ),
        ffi::SQLITE_CANTOPEN => (Unavailable, "58030", ""),
        ffi::SQLITE_IOERR => (Other, "58030", ""),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => (Other, "XX001", ""),
        ffi::SQLITE_SCHEMA => (Conflict, "40001", ""),
        _ => (Other, "XX000", ""),
    };
    Fault::new(
        class,
        state,
        format!("{message}{advice} (SQLite code {code})"),
    )
}

/// Errors that SQLite has one code for and tells apart by their text.
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

    fn told(code: i32, message: &str) -> Fault {
        failure(code, Some(message)).fault
    }

    #[test]
    fn names_constraint_table_and_column() {
        let fault = told(
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            "UNIQUE constraint failed: t.a, t.b",
        );
        assert_eq!((fault.class, &*fault.code), (FaultClass::Unique, "23505"));
        assert_eq!(fault.constraint(), Some("t.a, t.b"));
        assert_eq!((fault.table(), fault.column()), (Some("t"), None));

        let fault = told(
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            "UNIQUE constraint failed: index 'lower_name'",
        );
        assert_eq!(fault.constraint(), Some("index 'lower_name'"));
        assert_eq!(fault.table(), None);

        let fault = told(
            ffi::SQLITE_CONSTRAINT_NOTNULL,
            "NOT NULL constraint failed: t.a",
        );
        assert_eq!((&*fault.code, fault.column()), ("23502", Some("a")));

        let fault = told(
            SQLITE_CONSTRAINT_DATATYPE,
            "cannot store TEXT value in INTEGER column t.a",
        );
        assert_eq!(
            (fault.class, fault.column()),
            (FaultClass::Value, Some("a"))
        );
    }

    #[test]
    fn says_whose_failure_it_is() {
        let scope = |code| failure(code, None).scope;
        assert_eq!(scope(ffi::SQLITE_BUSY_SNAPSHOT), Scope::Busy);
        assert_eq!(scope(ffi::SQLITE_FULL), Scope::Machine);
        assert_eq!(scope(ffi::SQLITE_IOERR_WRITE), Scope::Machine);
        assert_eq!(scope(ffi::SQLITE_IOERR_FSYNC), Scope::Sync);
        assert_eq!(scope(ffi::SQLITE_CONSTRAINT_CHECK), Scope::Write);
        let read_only = told(ffi::SQLITE_READONLY, "attempt to write a readonly database");
        assert_eq!(
            (read_only.class, &*read_only.code),
            (FaultClass::Unavailable, "25006")
        );
        assert!(told(ffi::SQLITE_BUSY, "database is locked").may_retry());
    }
}
