//! What SQLSTATEs say of a batch (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).

use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::class_of;
use windrow_pgwire::wire::ServerError;

use super::answers::Answers;
use super::batch::Batch;
use super::form::WorkKind;
use super::sent::{Sent, SentTransaction};

/// A lock was not to be had in time.
pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// A statement was given up: by a cancel request, or because it took too long.
pub(crate) const CANCELED: &str = "57014";

/// The meaning of an error for the transaction, or the part of one, that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// Rolled back for no fault of its own: it may run again as it is.
    Again,
    /// As [`ErrorMeaning::Again`], on another connection: the server goes away.
    Leave,
    /// The server does not know if it has committed.
    Unknown,
    /// The server does not know the statements that were prepared.
    StatementsGone,
    /// Another session holds a lock on this version of a table.
    TableLocked(u64),
    /// This version of a table is not as it was described.
    Changed(u64),
    /// The role may not run this version's guard, or row security fails in it.
    Unguarded(u64),
    /// One of its own writes has failed.
    Own,
}

impl ErrorMeaning {
    /// Returns what a code means that is about no statement in particular.
    pub(crate) fn of_code(code: &str) -> Self {
        match (code, class_of(code)) {
            ("40001" | "40P01", _) => Self::Again,
            (_, FaultClass::Unknown) => Self::Unknown,
            (_, FaultClass::Unavailable) => Self::Leave,
            _ => Self::Own,
        }
    }
}

/// Returns the fault of writes of which the server itself does not know if they were committed.
pub(crate) fn unknown_commit(error: &ServerError) -> Fault {
    Fault::unknown(format!(
        "the database does not know whether this write was committed: {error}"
    ))
}

impl<F: WorkKind> Batch<'_, F> {
    /// Returns what an error means that ended a transaction at a statement.
    pub(crate) fn meaning(
        &self,
        transaction: &SentTransaction,
        answers: &Answers,
        (at, error): (usize, &ServerError),
        purpose: Purpose,
    ) -> ErrorMeaning {
        let code = error.code.as_str();
        let statement = transaction.statements.get(at);
        let general = ErrorMeaning::of_code(code);
        match (statement, code) {
            _ if general == ErrorMeaning::Again => general,
            (_, "26000") if !answers.bound && self.goes_by_name(transaction, at) => {
                ErrorMeaning::StatementsGone
            }
            (Some(Sent::Guard(version)), LOCK_NOT_AVAILABLE) if purpose == Purpose::Batches => {
                ErrorMeaning::TableLocked(*version)
            }
            (Some(Sent::Guard(version)), _) if tells_of_change(code) => {
                ErrorMeaning::Changed(*version)
            }
            (Some(Sent::Guard(version)), _)
                if code != LOCK_NOT_AVAILABLE && !is_about_statement(code) =>
            {
                ErrorMeaning::Unguarded(*version)
            }
            // A value that was to be taken from a sequence was not, or the table has changed.
            (Some(Sent::FollowUp(item)), "55000" | "22012") => {
                ErrorMeaning::Changed(self.version_of(*item))
            }
            _ => general,
        }
    }
}

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
fn tells_of_change(code: &str) -> bool {
    [
        "0A000", "22012", "42P01", "42703", "3F000", "42809", "XX000",
    ]
    .contains(&code)
}

/// Errors that befall any statement, whatever it is.
fn is_about_statement(code: &str) -> bool {
    code == CANCELED || class_of(code) == FaultClass::Unavailable
}
