//! Classifies failures: for the client of the write, and for the other documents of the request.
//!
//! Numbers: <https://docs.arangodb.com/stable/develop/error-codes/> (`lib/Basics/errors.dat` of the server).

use windrow_core::{Fault, FaultClass};
use windrow_database::web::{Refusal, of_status};

use super::answer::Failure;

/// Error number: no document has the key.
pub(super) const MISSING: i64 = 1202;

/// Error number: there is no such collection.
pub(super) const NO_COLLECTION: i64 = 1203;

/// Error number: a collection of that name exists already.
pub(super) const DUPLICATE_NAME: i64 = 1207;

/// Classifies a failure.
pub(super) fn refusal(failure: &Failure, collection: &str) -> Refusal {
    let (class, state, is_request) = class(failure);
    let message = match failure.number {
        0 => format!(
            "ArangoDB, or what stands before it, answered HTTP {}: {}",
            failure.status, failure.message
        ),
        _ => failure.message.clone(),
    };
    let detail = match (failure.number, failure.status) {
        (0, _) => None,
        (number, 0) => Some(format!("ArangoDB error {number}")),
        (number, status) => Some(format!("ArangoDB error {number}, HTTP {status}")),
    };
    let fault = Fault::new(class, state, message)
        .with_detail(detail)
        .with_constraint(constraint(failure))
        .with_table(Some(collection));
    Refusal::new(fault, is_request)
}

/// Returns true if the key exists already, and false if another unique index is violated:
/// `unique constraint violated - in index primary of type primary over '_key'; conflicting key: k`.
pub(super) fn is_key_taken(failure: &Failure) -> bool {
    failure.number == 1210 && constraint(failure) == Some("primary")
}

/// Returns the index that the message of a unique violation names.
fn constraint(failure: &Failure) -> Option<&str> {
    let (_, behind) = failure.message.split_once("in index ")?;
    let (index, _) = behind.split_once(" of type ")?;
    (failure.number == 1210).then_some(index)
}

/// Returns class and SQLSTATE, and true if the failure concerns the whole request and not one
/// document.
fn class(failure: &Failure) -> (FaultClass, &'static str, bool) {
    match failure.number {
        0 => without_number(failure.status),
        10 | 37 | 600 | 1204 | 1206 | 1208 | 1218 | 1220 => (FaultClass::Invalid, "22023", false),
        11 => (FaultClass::Denied, "42501", true),
        9 | 31 | 36 => (FaultClass::Unsupported, "0A000", true),
        18 | 28 | 29 | 1200 => (FaultClass::Conflict, "40001", false),
        30 | 32 | 38 | 1236 | 1302 | 1303 | 1304 | 21003 | 21004 => {
            (FaultClass::Unavailable, "08001", false)
        }
        1004 => (FaultClass::Unavailable, "25006", true),
        1104 => (FaultClass::Unavailable, "53100", true),
        MISSING => (FaultClass::Value, "02000", false),
        NO_COLLECTION => (FaultClass::NoTable, "42P01", true),
        1228 => (FaultClass::NoTable, "3D000", true),
        1205 | 1221 | 1222 | 1226 | 1227 | 1233 | 1239 => (FaultClass::Value, "22P02", false),
        1210 => (FaultClass::Unique, "23505", false),
        1216 => (FaultClass::TooLarge, "54000", false),
        1620 => (FaultClass::Check, "23514", false),
        // A message between the servers of a cluster was lost: the document may be stored.
        1400..=1499 => (FaultClass::Unknown, "08007", false),
        1..=9_999 if failure.status == 0 => (FaultClass::Other, "58000", false),
        _ => without_number(failure.status),
    }
}

/// Classifies a failure by its HTTP status if its number is unknown. ArangoDB itself answers
/// conflicts with 409.
fn without_number(status: u16) -> (FaultClass, &'static str, bool) {
    match of_status(status) {
        _ if status == 409 => (FaultClass::Conflict, "40001", false),
        (FaultClass::Invalid, _, request) => (FaultClass::Invalid, "22023", request),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, number: i64, message: &str) -> Refusal {
        let message = message.to_owned();
        refusal(
            &Failure {
                status,
                number,
                message,
            },
            "t",
        )
    }

    #[test]
    fn numbers_become_states() {
        for (status, number, state) in [
            (0, 1210, "23505"),
            (0, 1200, "40001"),
            (0, 1221, "22P02"),
            (0, 1620, "23514"),
            (0, 4, "58000"),
            (404, 1203, "42P01"),
            (404, 1228, "3D000"),
            (403, 1004, "25006"),
            (401, 0, "28000"),
            (503, 503, "08001"),
            (503, 1456, "08007"),
            (500, 4, "08007"),
            (502, 0, "08007"),
        ] {
            let fault = read(status, number, "m").fault;
            assert_eq!(&*fault.code, state, "{status} {number}");
        }
    }

    #[test]
    fn the_index_that_was_violated_is_named() {
        let message = "unique constraint violated - in index primary of type primary over '_key'; conflicting key: k";
        let key = Failure {
            status: 0,
            number: 1210,
            message: message.to_owned(),
        };
        assert!(is_key_taken(&key));
        assert_eq!(refusal(&key, "t").fault.constraint(), Some("primary"));
        let message = "unique constraint violated - in index name_1 of type persistent over 'name'; conflicting key: 7";
        let other = Failure {
            status: 0,
            number: 1210,
            message: message.to_owned(),
        };
        assert!(!is_key_taken(&other));
        assert_eq!(refusal(&other, "t").fault.constraint(), Some("name_1"));
    }
}
