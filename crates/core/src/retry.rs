//! Retries: whether a failed write may be tried again, and how long to wait before that.
//!
//! Lanes and all other writers decide by [`Fault::retry`] and not by codes; each knows by itself
//! how long it may wait. Only an executor also reads its own database's codes, while a batch is
//! under way.

mod background;
mod backoff;
mod policy;

pub use self::background::BackgroundRetry;
pub use self::backoff::Backoff;
pub use self::policy::RetryPolicy;

use crate::fault::{Fault, FaultClass};

/// The way in which a failed write may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not at all: the write, its table or its role is the cause, and would be again.
    Never,
    /// Soon, a few times: the database undid the write in favour of another transaction, which has
    /// usually ended soon (a deadlock, a serialization failure, an object in use). If the write
    /// fails so again and again by itself, its own triggers are the reason.
    Soon,
    /// For as long as another session may hold a lock. The number of attempts does not matter.
    AfterLock,
    /// Once the database can be reached, accepts writes and has free resources.
    WhenBack,
    /// With fewer rows at a time: the statement exceeded a time limit. If a write does so by
    /// itself, it would have done so without Windrow.
    Smaller,
    /// Once an operator has repaired the machine or its files. A client is answered with the fault;
    /// a source that must not lose the write waits.
    AfterRepair,
    /// Only after finding out whether it was written.
    OutcomeUnknown,
}

impl Retry {
    /// Returns what a class alone says about a retry; `None` if the write, its table or its role
    /// may be the cause.
    fn of_class(class: FaultClass, code: &str) -> Option<Self> {
        match class {
            FaultClass::Unknown => Some(Self::OutcomeUnknown),
            FaultClass::Overloaded | FaultClass::Unavailable | FaultClass::Cancelled => {
                Some(Self::WhenBack)
            }
            FaultClass::Conflict if code == LOCKED => Some(Self::AfterLock),
            FaultClass::Conflict => Some(Self::Soon),
            FaultClass::Invalid
            | FaultClass::Value
            | FaultClass::Unique
            | FaultClass::ForeignKey
            | FaultClass::NotNull
            | FaultClass::Check
            | FaultClass::NoTable
            | FaultClass::NoColumn
            | FaultClass::Denied
            | FaultClass::TooLarge
            | FaultClass::Unsupported
            | FaultClass::Other => None,
        }
    }

    /// Returns what a code says about a retry if its class says nothing. Some databases report such
    /// a code in another class, such as "denied".
    fn of_code(code: &str) -> Self {
        match code {
            TIMED_OUT => Self::Smaller,
            // A standby, or a primary that has just become one: another server may take the write.
            "25006" => Self::WhenBack,
            // Data or an index that is damaged.
            "XX001" | "XX002" => Self::AfterRepair,
            _ => match code.get(..2) {
                // Insufficient resources; intervention of an operator; an error of the system.
                Some("53" | "57" | "58") => Self::AfterRepair,
                _ => Self::Never,
            },
        }
    }
}

/// SQLSTATE of a lock held by another session: on rows, or in SQLite on the file.
const LOCKED: &str = "55P03";

/// SQLSTATE of a statement that exceeded its timeout, or was cancelled.
const TIMED_OUT: &str = "57014";

impl Fault {
    /// Returns how the write may be tried again.
    pub fn retry(&self) -> Retry {
        Retry::of_class(self.class, &self.code).unwrap_or_else(|| Retry::of_code(&self.code))
    }

    /// True if the fault is the write's own, in any batch.
    pub fn is_own(&self) -> bool {
        Retry::of_class(self.class, &self.code).is_none()
    }

    /// True if the write was certainly not executed and may succeed when tried again, without any
    /// repair.
    pub fn may_retry(&self) -> bool {
        matches!(
            self.retry(),
            Retry::Soon | Retry::AfterLock | Retry::WhenBack
        )
    }

    /// True if the write itself may be the cause, although usually other transactions are: a
    /// trigger may raise the same conflict each time, or always take too long. Never true for
    /// locks.
    pub fn may_be_of_write(&self) -> bool {
        matches!(self.retry(), Retry::Soon | Retry::Smaller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(class: FaultClass, code: &'static str) -> Fault {
        Fault::new(class, code, "no")
    }

    #[test]
    fn class_and_code_decide_how_a_write_is_tried_again() {
        use FaultClass::{
            Cancelled, Check, Conflict, Denied, Invalid, NoTable, Other, Overloaded, TooLarge,
            Unavailable, Unique, Unknown, Value,
        };
        for (class, code, retry) in [
            (Conflict, "40P01", Retry::Soon),
            (Conflict, "40001", Retry::Soon),
            // A trigger that makes a partition of the table that it is in meets it every time.
            (Conflict, "55006", Retry::Soon),
            (Conflict, "55P03", Retry::AfterLock),
            (Unavailable, "08001", Retry::WhenBack),
            (Unavailable, "57P01", Retry::WhenBack),
            (Unavailable, "53100", Retry::WhenBack),
            (Unavailable, "58030", Retry::WhenBack),
            (Overloaded, "53200", Retry::WhenBack),
            (Cancelled, "57014", Retry::WhenBack),
            (Denied, "25006", Retry::WhenBack),
            (Other, "57014", Retry::Smaller),
            (Other, "53200", Retry::AfterRepair),
            (Other, "58030", Retry::AfterRepair),
            (Other, "XX001", Retry::AfterRepair),
            (Other, "XX002", Retry::AfterRepair),
            // The database was dropped.
            (Invalid, "57P04", Retry::AfterRepair),
            (Unknown, "08007", Retry::OutcomeUnknown),
            (Unknown, "57014", Retry::OutcomeUnknown),
            (Other, "XX000", Retry::Never),
            (Other, "25001", Retry::Never),
            (Other, "", Retry::Never),
            (Unique, "23505", Retry::Never),
            (Value, "22001", Retry::Never),
            (Check, "P0001", Retry::Never),
            (NoTable, "42P01", Retry::Never),
            (TooLarge, "54000", Retry::Never),
        ] {
            assert_eq!(fault(class, code).retry(), retry, "{class:?} {code}");
        }
    }

    #[test]
    fn nothing_is_retried_blindly_that_may_have_been_written() {
        assert!(!Fault::unknown("x").may_retry());
        assert!(!Fault::late().may_retry());
        assert!(Fault::unavailable("x").may_retry());
        assert!(Fault::called_back().may_retry());
    }

    #[test]
    fn locks_and_the_machine_are_never_the_fault_of_a_write() {
        use FaultClass::{Conflict, Other, Unavailable};
        for (class, code) in [(Conflict, "40001"), (Conflict, "40P01"), (Other, "57014")] {
            assert!(fault(class, code).may_be_of_write(), "{code}");
        }
        for (class, code) in [
            (Conflict, "55P03"),
            (Unavailable, "08001"),
            (Other, "53200"),
            (Other, "58030"),
        ] {
            assert!(!fault(class, code).may_be_of_write(), "{code}");
        }
        assert!(!Fault::called_back().may_be_of_write());
    }
}
