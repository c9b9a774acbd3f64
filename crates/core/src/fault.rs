//! The reason why a write failed: one vocabulary for all databases. The class is chosen where the
//! fault arises.

use std::borrow::Cow;
use std::fmt;

/// The kind of a failure. It decides the HTTP status and the metric label; [`Fault::retry`] says
/// if the write may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultClass {
    /// The request itself makes no sense: a bad name, a key of the wrong size, an unknown option.
    Invalid,
    /// A value does not fit its column: wrong type, out of range, too long, a bad encoding.
    Value,
    /// A key exists already.
    Unique,
    /// A foreign key has no match, or other rows still refer to the row.
    ForeignKey,
    /// A NOT NULL column has no value.
    NotNull,
    /// A check or exclusion constraint, or a trigger, refused the row.
    Check,
    /// The table does not exist.
    NoTable,
    /// The column does not exist, or the columns that a write names as its key have no unique key.
    NoColumn,
    /// The role lacks a privilege.
    Denied,
    /// One of Windrow's own limits is exceeded; the message names it.
    TooLarge,
    /// The memory budget is full. Try again later.
    Overloaded,
    /// The database cannot be reached, is starting or stopping, or is read-only (25006); nothing
    /// was written.
    Unavailable,
    /// Deadlock, serialization failure, lock timeout, busy: the database rolled back, and the write
    /// may run again.
    Conflict,
    /// Unknown outcome: the connection broke while the commit was under way.
    Unknown,
    /// The client left before the write was sent, or Windrow is shutting down; nothing was written.
    Cancelled,
    /// This database or version cannot do it.
    Unsupported,
    /// Any other error of the database, or a defect in Windrow.
    Other,
}

impl FaultClass {
    /// All classes, for metrics that are exposed from the start.
    pub const ALL: [Self; 17] = [
        Self::Invalid,
        Self::Value,
        Self::Unique,
        Self::ForeignKey,
        Self::NotNull,
        Self::Check,
        Self::NoTable,
        Self::NoColumn,
        Self::Denied,
        Self::TooLarge,
        Self::Overloaded,
        Self::Unavailable,
        Self::Conflict,
        Self::Unknown,
        Self::Cancelled,
        Self::Unsupported,
        Self::Other,
    ];

    /// Returns the word used as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Value => "value",
            Self::Unique => "unique",
            Self::ForeignKey => "foreign_key",
            Self::NotNull => "not_null",
            Self::Check => "check",
            Self::NoTable => "no_table",
            Self::NoColumn => "no_column",
            Self::Denied => "denied",
            Self::TooLarge => "too_large",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Conflict => "conflict",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::Unsupported => "unsupported",
            Self::Other => "other",
        }
    }
}

/// The reason why a write failed, in the database's own words if it has any.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub class: FaultClass,
    /// An SQLSTATE (PostgreSQL's errcodes appendix), also for databases that have codes of their
    /// own.
    pub code: Cow<'static, str>,
    /// The reason, and the remedy if there is one.
    pub message: Box<str>,
    /// Further properties, which few faults have.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct More {
    detail: Option<Box<str>>,
    hint: Option<Box<str>>,
    constraint: Option<Box<str>>,
    table: Option<Box<str>>,
    column: Option<Box<str>>,
    verbatim: Option<Box<[u8]>>,
}

macro_rules! more {
    ($($(#[$doc:meta])* $name:ident $with:ident;)*) => {
        impl Fault {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> Option<&str> {
                    self.more.as_ref()?.$name.as_deref()
                }

                /// Adds the property; `None` leaves the fault as it is.
                #[must_use]
                pub fn $with(mut self, text: Option<impl Into<Box<str>>>) -> Self {
                    if let Some(text) = text {
                        self.more.get_or_insert_default().$name = Some(text.into());
                    }
                    self
                }
            )*
        }
    };
}

more! {
    /// The database's DETAIL.
    detail with_detail;
    /// The database's HINT, or Windrow's own advice.
    hint with_hint;
    /// The constraint that was violated.
    constraint with_constraint;
    /// The table concerned.
    table with_table;
    /// The column concerned.
    column with_column;
}

impl Fault {
    /// Returns a fault with its code and message.
    pub fn new(
        class: FaultClass,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Box<str>>,
    ) -> Self {
        Self {
            class,
            code: code.into(),
            message: message.into(),
            more: None,
        }
    }

    /// Returns the fault of a request that makes no sense (22023).
    pub fn invalid(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::Invalid, "22023", message)
    }

    /// Returns the fault of an exceeded limit of Windrow (54000); the message must name the limit.
    pub fn too_large(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::TooLarge, "54000", message)
    }

    /// Returns the fault of a database that cannot be reached (08001); nothing was written.
    pub fn unavailable(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::Unavailable, "08001", message)
    }

    /// Returns the fault of a write of which nobody knows if it took place (08007).
    pub fn unknown(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::Unknown, "08007", message)
    }

    /// Returns the fault of a client that left, or of Windrow shutting down (57014); nothing was
    /// written.
    pub fn cancelled(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::Cancelled, "57014", message)
    }

    /// Returns the fault of a write that its client has cancelled (57014), in PostgreSQL's words;
    /// nothing was written.
    pub fn called_back() -> Self {
        Self::cancelled("canceling statement due to user request")
    }

    /// Returns the fault of a write that has taken longer than its statement timeout (57014), in
    /// PostgreSQL's words; nothing was written.
    pub fn late() -> Self {
        Self::new(
            FaultClass::Other,
            "57014",
            "canceling statement due to statement timeout",
        )
    }

    /// Returns the fault of a defect in Windrow (XX000).
    pub fn internal(message: impl Into<Box<str>>) -> Self {
        Self::new(FaultClass::Other, "XX000", message)
    }

    /// PostgreSQL's BindComplete message: the values of a call were accepted.
    pub const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";

    /// Returns the server's own messages (notices, then ErrorResponse) in PostgreSQL's protocol, if
    /// an SQL call failed on a server that speaks it. A frontend of the same protocol passes them
    /// on unchanged. They begin with [`Fault::BIND_COMPLETE`] if the call failed after its values
    /// were accepted; otherwise the values or the plan were refused.
    pub fn verbatim(&self) -> Option<&[u8]> {
        self.more.as_ref()?.verbatim.as_deref()
    }

    /// Adds the server's own messages.
    #[must_use]
    pub fn with_verbatim(mut self, messages: impl Into<Box<[u8]>>) -> Self {
        self.more.get_or_insert_default().verbatim = Some(messages.into());
        self
    }

    /// Returns the bytes that the fault takes in memory.
    pub fn bytes(&self) -> usize {
        let more = self.more.as_ref().map_or(0, |m| {
            [&m.detail, &m.hint, &m.constraint, &m.table, &m.column]
                .iter()
                .map(|t| t.as_ref().map_or(0, |t| t.len()))
                .sum::<usize>()
                + m.verbatim.as_ref().map_or(0, |messages| messages.len())
                + size_of::<More>()
        });
        size_of::<Self>() + self.message.len() + more
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Fault");
        out.field("class", &self.class)
            .field("code", &self.code)
            .field("message", &self.message);
        if let Some(more) = &self.more {
            out.field("more", more);
        }
        out.finish()
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_parts_are_kept_and_cost_nothing_when_absent() {
        let bare = Fault::invalid("x");
        assert_eq!(bare.detail(), None);
        let full = bare
            .clone()
            .with_constraint(Some("t_pkey"))
            .with_detail(None::<&str>);
        assert_eq!((full.constraint(), full.detail()), (Some("t_pkey"), None));
        assert!(full.bytes() > bare.bytes());
    }

    #[test]
    fn labels_are_distinct() {
        let mut labels: Vec<_> = FaultClass::ALL.iter().map(|c| c.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), FaultClass::ALL.len());
    }
}
