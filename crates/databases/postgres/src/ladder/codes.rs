//! What SQLSTATEs say of a batch (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).

use windrow_core::FaultClass;
use windrow_pgwire::class_of;

/// A lock was not to be had in time.
pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// A statement was given up: by a cancel request, or because it took too long.
pub(crate) const CANCELED: &str = "57014";

/// What a set-based statement can tell apart by leaving rows out.
pub(super) fn tells(code: &str) -> bool {
    ["23505", "23514", "23503", "23P01"].contains(&code)
}

/// Errors that a statement prepared for an earlier state of its table may give.
pub(crate) fn may_be_stale(code: &str) -> bool {
    ["22", "42", "0A"].contains(&code.get(..2).unwrap_or_default())
}

/// Errors by which a guard or a check says that a table is not what it was: other columns or none
/// of the name, another print of its catalog rows.
pub(crate) fn tells_of_change(code: &str) -> bool {
    [
        "0A000", "22012", "42P01", "42703", "3F000", "42809", "XX000",
    ]
    .contains(&code)
}

/// Errors that befall any statement, whatever it is.
pub(crate) fn is_about_statement(code: &str) -> bool {
    code == CANCELED || class_of(code) == FaultClass::Unavailable
}
