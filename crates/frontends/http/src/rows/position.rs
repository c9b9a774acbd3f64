//! Positions in a body.

use windrow_core::Fault;

use crate::answers::Refusal;
use crate::answers::json::ErrorPosition;

/// A line, from 1, and a column in bytes, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Position {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// Returns the position after this text.
    pub(crate) fn after(self, text: &[u8]) -> Self {
        let Some(last) = memchr::memrchr(b'\n', text) else {
            return Self {
                line: self.line,
                column: self.column + text.len() as u64,
            };
        };
        Self {
            line: self.line + memchr::memchr_iter(b'\n', text).count() as u64,
            column: (text.len() - last) as u64,
        }
    }

    /// Returns the position of something that was counted from here.
    pub(crate) fn plus(self, inner: Self) -> Self {
        if inner.line == 1 {
            Self {
                line: self.line,
                column: self.column + inner.column - 1,
            }
        } else {
            Self {
                line: self.line + inner.line - 1,
                column: inner.column,
            }
        }
    }
}

/// The error of an unreadable row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    pub(crate) position: Position,
    pub(crate) fault: Fault,
}

impl RowError {
    pub(crate) fn new(position: Position, fault: Fault) -> Self {
        Self { position, fault }
    }

    /// Returns an error of the text itself: SQLSTATE 22P02, invalid text representation.
    pub(crate) fn text(position: Position, message: impl Into<Box<str>>) -> Self {
        let class = windrow_core::FaultClass::Invalid;
        Self::new(position, Fault::new(class, "22P02", message))
    }

    /// Returns the same error, with its position counted from `start`.
    pub(crate) fn from(self, start: Position) -> Self {
        Self {
            position: start.plus(self.position),
            fault: self.fault,
        }
    }
}

impl RowError {
    /// Returns the error as a fault, with its position in the message.
    pub fn into_fault(self) -> Fault {
        let Position { line, column } = self.position;
        let mut fault = self.fault;
        fault.message = format!("line {line}, column {column}: {}", fault.message).into();
        fault
    }
}

impl From<RowError> for Refusal {
    fn from(error: RowError) -> Self {
        let Position { line, column } = error.position;
        Self::from(error.into_fault()).at(ErrorPosition {
            line: Some(line),
            column: Some(column),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_add_up() {
        let position = Position::START.after(b"ab\ncd");
        assert_eq!(position, Position { line: 2, column: 3 });
        assert_eq!(position.after(b"e"), Position { line: 2, column: 4 });
        assert_eq!(
            position.plus(Position { line: 1, column: 5 }),
            Position { line: 2, column: 7 }
        );
        assert_eq!(
            position.plus(Position { line: 3, column: 5 }),
            Position { line: 4, column: 5 }
        );
    }
}
