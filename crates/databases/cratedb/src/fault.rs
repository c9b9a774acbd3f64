//! Classifies failures: for the client of the write, and for the other rows of the request.
//!
//! Codes: <https://cratedb.com/docs/crate/reference/en/latest/interfaces/http.html#error-handling> and `HttpErrorStatus.java` of the server.

use windrow_core::{Fault, FaultClass, TableName};
use windrow_database::web::{Refusal, of_status};

use super::answer::Failure;

/// Error code: an update or a delete found no row.
pub(super) const MISSING: i64 = 40_411;

/// Error code: a row with the primary key exists already.
pub(super) const DUPLICATE: i64 = 4091;

/// Error codes: a value was refused.
pub(super) const REFUSED: [i64; 2] = [4000, 4003];

/// Classifies a failure.
pub(super) fn refusal(failure: &Failure, table: &TableName) -> Refusal {
    let (class, state, is_request) = class(failure);
    let message = if failure.code.is_some() {
        failure.message.clone()
    } else {
        format!(
            "CrateDB, or what stands before it, answered HTTP {}: {}",
            failure.status, failure.message
        )
    };
    let fault = Fault::new(class, state, message)
        .with_detail(detail(failure))
        .with_table(Some(&*table.table));
    Refusal::new(fault, is_request)
}

/// Returns the DETAIL of a failure, which is the same for a row of a bulk and for a request.
fn detail(failure: &Failure) -> Option<String> {
    failure.code.map(|code| format!("CrateDB error {code}"))
}

/// Returns class and SQLSTATE, and true if the failure concerns the statement and not one of its
/// rows.
fn class(failure: &Failure) -> (FaultClass, &'static str, bool) {
    let Some(code) = failure.code else {
        return of_status(failure.status);
    };
    match code {
        4000 | 4003 => {
            let (class, state) = refused(&failure.message);
            (class, state, false)
        }
        DUPLICATE => (FaultClass::Unique, "23505", false),
        4092 => (FaultClass::Conflict, "40001", false),
        4004 => (FaultClass::Unsupported, "0A000", true),
        4007 if is_blocked(&failure.message) => (FaultClass::Unavailable, "25006", true),
        4032..=4037 => (FaultClass::Unavailable, "25006", true),
        4007 | 4010 | 4011 | 4030 | 4031 => (FaultClass::Denied, "42501", true),
        4041 | 4046 => (FaultClass::NoTable, "42P01", true),
        4045 => (FaultClass::NoTable, "3F000", true),
        4043 => (FaultClass::NoColumn, "42703", true),
        4001..=4099 | 40_000..=40_999 => (FaultClass::Invalid, "42000", true),
        4290 | 5002 | 5030..=5035 => (FaultClass::Unavailable, "08001", false),
        _ if failure.message.contains("CircuitBreakingException") => {
            (FaultClass::Unavailable, "53200", false)
        }
        // A row of a bulk that failed on its shard was not written, for any reason but -1.
        5000.. if failure.status == 0 => (FaultClass::Other, "58000", false),
        _ => (FaultClass::Unknown, "08007", false),
    }
}

/// Classifies a refused value by the message, because the two codes do not tell the reasons apart.
fn refused(message: &str) -> (FaultClass, &'static str) {
    let lower = message.to_lowercase();
    if lower.contains("must not be null") || lower.contains("not null") {
        (FaultClass::NotNull, "23502")
    } else if lower.contains("failed constraint") || lower.contains("check (") {
        (FaultClass::Check, "23514")
    } else if lower.contains("mismatched input") || lower.contains("no viable alternative") {
        (FaultClass::Invalid, "42601")
    } else {
        (FaultClass::Value, "22P02")
    }
}

fn is_blocked(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("read-only") || lower.contains("read only") || lower.contains("closed")
}

#[cfg(test)]
mod tests {
    use windrow_database::web::Scope;

    use super::*;

    fn read(status: u16, code: i64, message: &str) -> Refusal {
        let failure = Failure {
            status,
            code: Some(code),
            message: message.to_owned(),
        };
        refusal(&failure, &TableName::bare("t"))
    }

    #[test]
    fn codes_become_states() {
        for (status, code, message, state) in [
            (
                0,
                4091,
                "DuplicateKeyException[A document with the same primary key exists already]",
                "23505",
            ),
            (
                400,
                4000,
                "SQLParseException[Cannot cast value `x` to type `bigint`]",
                "22P02",
            ),
            (
                400,
                4000,
                "SQLParseException[line 1:1: mismatched input 'x']",
                "42601",
            ),
            (
                400,
                4000,
                "SQLParseException[A primary key value must not be NULL]",
                "23502",
            ),
            (
                400,
                4003,
                "SQLParseException[\"s\" must not be null]",
                "23502",
            ),
            (
                400,
                4003,
                "SQLParseException[Failed CONSTRAINT c CHECK (\"a\" > 0) for values: [-1]]",
                "23514",
            ),
            (404, 4041, "RelationUnknown[Relation 't' unknown]", "42P01"),
            (
                401,
                4011,
                "MissingPrivilegeException[Missing 'DML' privilege for user 'u']",
                "42501",
            ),
            (403, 4033, "ClusterBlockException[blocked]", "25006"),
            (503, 5031, "MasterNotDiscoveredException", "08001"),
            (
                500,
                5000,
                "CircuitBreakingException[Allocating 2mb for 'http-result' failed]",
                "53200",
            ),
            (500, 5001, "something", "08007"),
        ] {
            let fault = read(status, code, message).fault;
            assert_eq!((&*fault.code, &*fault.message), (state, message));
            assert!(fault.detail().unwrap().contains(&code.to_string()));
        }
    }

    #[test]
    fn only_what_is_certain_is_called_refused() {
        let scope = |status, code| read(status, code, "x").scope;
        assert_eq!(scope(400, 4000), Scope::Write);
        assert_eq!(scope(404, 4043), Scope::Request);
        assert_eq!(scope(503, 5030), Scope::Database);
        assert_eq!(scope(500, 5003), Scope::Unknown);
        assert!(read(409, 4092, "x").fault.may_retry());
        assert_eq!(scope(409, 4092), Scope::Write);
        // Of a row that failed on its shard it is known that it was not written.
        assert_eq!(scope(0, 5000), Scope::Write);
        assert_eq!(scope(0, -1), Scope::Unknown);
        let proxy = |status| {
            let failure = Failure {
                status,
                code: None,
                message: "no upstream".to_owned(),
            };
            refusal(&failure, &TableName::bare("t"))
        };
        assert_eq!(proxy(503).scope, Scope::Database);
        assert_eq!(proxy(502).scope, Scope::Unknown);
        assert!(proxy(504).fault.message.contains("HTTP 504: no upstream"));
    }
}
