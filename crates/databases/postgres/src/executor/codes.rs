//! The meaning of SQLSTATEs while a batch is under way, in addition to
//! [`Fault::retry`](windrow_core::Fault::retry)
//! (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).

use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Verdict};
use windrow_pgwire::class_of;
use windrow_pgwire::wire::ServerError;

use super::answers::Answers;
use super::batch::Batch;
use super::sent::{Sent, SentTransaction};

/// SQLSTATE of a lock timeout.
pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// SQLSTATE of a statement that was cancelled, by a request or by the statement timeout.
pub(crate) const CANCELED: &str = "57014";

/// The meaning of an error for the transaction, or the part of one, that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// Rolled back through no fault of its own: the transaction may run again unchanged.
    Again,
    /// As [`ErrorMeaning::Again`], but on another connection, because the server shuts down.
    Leave,
    /// The server does not know whether the transaction was committed.
    Unknown,
    /// The server has lost the prepared statements.
    StatementsGone,
    /// Another session holds a lock on this version of a table.
    TableLocked(u64),
    /// This version of a table no longer matches its description.
    Changed(u64),
    /// The role may not run this version's guard, or row security fails in the guard.
    Unguarded(u64),
    /// One of the transaction's own writes has failed.
    Own,
}

impl ErrorMeaning {
    /// Returns the meaning of a code that does not depend on a statement.
    pub(crate) fn of_code(code: &str) -> Self {
        match (code, class_of(code)) {
            ("40001" | "40P01", _) => Self::Again,
            (_, FaultClass::Unknown) => Self::Unknown,
            (_, FaultClass::Unavailable) => Self::Leave,
            _ => Self::Own,
        }
    }

    /// Returns the meaning of an error that ended a transaction of a batch at a statement.
    pub(crate) fn in_batch(
        batch: &Batch<'_>,
        transaction: &SentTransaction,
        answers: &Answers,
        (at, error): (usize, &ServerError),
        purpose: Purpose,
    ) -> Self {
        let code = error.code.as_str();
        let statement = transaction.statements.get(at);
        let general = Self::of_code(code);
        match (statement, code) {
            _ if general == Self::Again => general,
            (_, "26000") if !answers.bound && batch.goes_by_name(transaction, at) => {
                Self::StatementsGone
            }
            (Some(Sent::Guard(version)), LOCK_NOT_AVAILABLE) if purpose == Purpose::Batches => {
                Self::TableLocked(*version)
            }
            (Some(Sent::Guard(version)), _) if tells_of_change(code) => Self::Changed(*version),
            (Some(Sent::Guard(version)), _)
                if code != LOCK_NOT_AVAILABLE && !is_about_statement(code) =>
            {
                Self::Unguarded(*version)
            }
            // The expected sequence value was not taken, or the table has changed.
            (Some(Sent::FollowUp(item)), "55000" | "22012") => {
                Self::Changed(batch.version_of(*item))
            }
            _ => general,
        }
    }
}

/// Knowledge about tables and statements that a round trip has proven wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// True if a description is no longer correct: the whole batch is planned again.
    pub(crate) stale: bool,
    /// Versions of tables that have changed since they were described.
    pub(crate) changed: Vec<u64>,
    /// Versions of tables that are unchanged, but whose next change might not be noticed.
    pub(crate) outdated: Vec<u64>,
    /// Versions of tables with a catalog change that does not matter here: their checks are
    /// prepared again.
    pub(crate) irrelevant: Vec<u64>,
    /// True if the form that reports failing rows did not report one that failed.
    pub(crate) missed: bool,
    /// Versions of tables whose guards fail even though the table has not changed.
    pub(crate) unguarded: Vec<u64>,
    /// True if the server does not know the prepared statements.
    pub(crate) statements_gone: bool,
    /// True if the server shuts down.
    pub(crate) leave: bool,
}

impl Findings {
    /// Records what an error means beyond the units that it failed.
    pub(crate) fn note(&mut self, meaning: ErrorMeaning) {
        match meaning {
            ErrorMeaning::Leave => self.leave = true,
            ErrorMeaning::StatementsGone => (self.statements_gone, self.stale) = (true, true),
            ErrorMeaning::Changed(version) => {
                self.stale = true;
                self.changed.push(version);
            }
            ErrorMeaning::Unguarded(version) => self.unguarded.push(version),
            ErrorMeaning::Again
            | ErrorMeaning::Unknown
            | ErrorMeaning::TableLocked(_)
            | ErrorMeaning::Own => {}
        }
    }
}

/// Returns the fault of writes for which the server itself does not know if they were committed.
pub(crate) fn unknown_commit(error: &ServerError) -> Fault {
    Fault::unknown(format!(
        "the database does not know whether this write was committed: {error}"
    ))
}

/// Returns the verdict for the writes of a table that cannot be described.
pub(super) fn verdict_of_table(fault: Fault, purpose: Purpose) -> Verdict {
    let is_locked = fault.code == LOCK_NOT_AVAILABLE;
    if is_locked && purpose == Purpose::Batches {
        Verdict::WaitsForLock(fault)
    } else if fault.may_retry() && !is_locked {
        Verdict::RolledBack(fault)
    } else {
        Verdict::Final(Err(fault.into()))
    }
}

/// Returns true if a set-based statement can leave out and report rows that fail with this code.
pub(super) fn tells(code: &str) -> bool {
    ["23505", "23514", "23503", "23P01"].contains(&code)
}

/// Returns true if the error may come from a statement prepared for an earlier state of its table.
pub(crate) fn may_be_stale(code: &str) -> bool {
    ["22", "42", "0A"].contains(&code.get(..2).unwrap_or_default())
}

/// Returns true if a guard or a check reports with this code that a table has changed: other
/// columns, no table of the name, or another fingerprint of its catalog rows.
fn tells_of_change(code: &str) -> bool {
    [
        "0A000", "22012", "42P01", "42703", "3F000", "42809", "XX000",
    ]
    .contains(&code)
}

/// Returns true if any statement can fail with this code, whatever the statement is.
fn is_about_statement(code: &str) -> bool {
    code == CANCELED || class_of(code) == FaultClass::Unavailable
}
