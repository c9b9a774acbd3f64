//! A session's prepared statements, and the values of their executions.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use windrow_core::{Arguments, TraceContext};
use windrow_mysqlwire::PreparedStatement;
use windrow_mysqlwire::command;
use windrow_sql::mysql::{AssignedValue, SessionEffect, mentions_row_count};

use crate::statement_kind::StatementKind;

/// The most statements of a session whose texts are kept.
const MAX_STATEMENTS: usize = 1_024;

/// The longest text that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Bytes of an execution's content before its values: command, number, flags, iterations.
const HEAD_BYTES: usize = 10;

/// The prepared statements of a session, by the server's number.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    by_id: HashMap<u32, PreparedText>,
    /// The statement that was prepared last; `None` if that failed.
    last: Option<u32>,
}

/// The number by which clients of MariaDB execute the statement that was prepared last: they send
/// both commands at once.
const LAST: u32 = u32::MAX;

/// A prepared statement.
pub(crate) struct PreparedText {
    /// The text, if it may be a single-row write.
    pub(crate) text: Option<Box<str>>,
    pub(crate) kind: StatementKind,
    /// The effect of an execution on the session.
    pub(crate) effect: SessionEffect,
    pub(crate) parameters: u16,
    /// The session's count of changed settings when the statement was prepared: the server reads
    /// the text by the settings of that time.
    pub(crate) settings_changes: u64,
    /// True if the statement asks for counts or errors of the statement before.
    pub(crate) asks_for_last_write: bool,
    /// The types of the parameters as the client sent them last: two bytes each.
    pub(crate) types: Option<Box<[u8]>>,
    /// True if the server knows those types.
    pub(crate) server_has_types: bool,
    /// The client's character set when it sent the types, if the server does not know them: strings
    /// stay in that set until the client sends the types again.
    pub(crate) charset: Option<Arc<str>>,
    /// True if a part of a value was sent in a command of its own.
    pub(crate) has_long_data: bool,
    /// The assignments to Windrow's own variables.
    pub(crate) own: Box<[(Box<str>, AssignedValue)]>,
    /// The span that a comment of the text names, until the first execution: later ones belong to
    /// other spans.
    pub(crate) caller: Option<TraceContext>,
}

impl PreparedStatements {
    /// Adds a statement. `text` is its text, if that was read.
    pub(crate) fn add(
        &mut self,
        prepared: PreparedStatement,
        settings_changes: u64,
        text: Option<&str>,
        effect: SessionEffect,
        own: Vec<(Box<str>, AssignedValue)>,
    ) {
        let PreparedStatement { id, parameters } = prepared;
        if self.by_id.len() >= MAX_STATEMENTS && !self.by_id.contains_key(&id) {
            return;
        }
        let is_write = |text: &&str| text.len() <= MAX_TEXT_BYTES && may_be_write(text);
        let statement = PreparedText {
            text: text.filter(is_write).map(Into::into),
            kind: text.map_or(StatementKind::UNKNOWN, StatementKind::of),
            effect,
            parameters,
            settings_changes,
            asks_for_last_write: text.is_none_or(mentions_row_count),
            types: None,
            server_has_types: true,
            charset: None,
            has_long_data: false,
            own: own.into(),
            caller: text.filter(is_write).and_then(TraceContext::of_comment),
        };
        self.by_id.insert(id, statement);
    }

    /// Notes the statement that was prepared last, for servers that know it by [`LAST`]; `None` if
    /// it could not be prepared.
    pub(crate) fn set_last(&mut self, id: Option<u32>) {
        self.last = id;
    }

    /// Returns true for an execution by [`LAST`] if no such statement is known.
    pub(crate) fn is_of_none(&self, content: &[u8]) -> bool {
        self.last.is_none() && statement_id(content) == Some(LAST)
    }

    pub(crate) fn get_mut(&mut self, content: &[u8]) -> Option<&mut PreparedText> {
        let id = self.id(content)?;
        self.by_id.get_mut(&id)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Follows a command that changes a statement.
    pub(crate) fn follow(&mut self, content: &[u8]) {
        let Some(id) = self.id(content) else {
            return;
        };
        match content.first() {
            Some(&command::STMT_CLOSE) => drop(self.by_id.remove(&id)),
            Some(&command::STMT_SEND_LONG_DATA) => self.set_long_data(id, true),
            Some(&command::STMT_RESET) => self.set_long_data(id, false),
            _ => {}
        }
    }

    /// Follows a `COM_STMT_BULK_EXECUTE`. If it has types, the server knows these from then on.
    pub(crate) fn follow_bulk(&mut self, content: &[u8]) {
        let has_types = content.get(5).is_some_and(|flags| flags & BULK_TYPES != 0);
        if let Some(statement) = self.get_mut(content).filter(|_| has_types) {
            statement.types = None;
            statement.server_has_types = true;
        }
    }

    fn id(&self, content: &[u8]) -> Option<u32> {
        match statement_id(content)? {
            LAST => self.last,
            id => Some(id),
        }
    }

    fn set_long_data(&mut self, id: u32, has: bool) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.has_long_data = has;
        }
    }
}

/// Returns true for a text that may be a single-row write. It may begin with a comment.
pub(crate) fn may_be_write(text: &str) -> bool {
    let text = text.trim_start();
    let first = text.get(..6).unwrap_or_default();
    let words = ["INSERT", "REPLAC", "UPDATE", "DELETE"];
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
        || ["/*", "--", "#"]
            .iter()
            .any(|begin| text.starts_with(begin))
}

fn statement_id(content: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*content.get(1..)?.first_chunk::<4>()?))
}

/// An execution, as its packet describes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Execution<'a> {
    /// The bits of the values that are NULL.
    nulls: &'a [u8],
    /// The types of the values, two bytes each, if the packet has them.
    pub(crate) types: Option<&'a [u8]>,
    values: &'a [u8],
}

impl<'a> Execution<'a> {
    /// Reads the content of an execution without cursor and attributes. `None` for any other.
    pub(crate) fn read(content: &'a [u8], parameters: u16) -> Option<Self> {
        let count = usize::from(parameters);
        let (head, rest) = content.split_at_checked(HEAD_BYTES)?;
        if head.get(5..) != Some(&[0, 1, 0, 0, 0]) {
            return None;
        }
        if count == 0 {
            return rest.is_empty().then_some(Self {
                nulls: &[],
                types: None,
                values: &[],
            });
        }
        let (nulls, rest) = rest.split_at_checked(count.div_ceil(8))?;
        let (has_types, rest) = rest.split_first()?;
        let (types, values) = match has_types {
            0 => (None, rest),
            _ => {
                let (types, values) = rest.split_at_checked(2 * count)?;
                (Some(types), values)
            }
        };
        Some(Self {
            nulls,
            types,
            values,
        })
    }

    /// Returns the values with their types, for a call. `None` if they are incomplete, or of an
    /// unknown type.
    pub(crate) fn arguments(&self, types: &[u8]) -> Option<Arguments> {
        let mut bytes = Vec::with_capacity(self.values.len() + 3 * types.len());
        let mut rest = self.values;
        let mut count = 0;
        for (place, kind) in types.chunks_exact(2).enumerate() {
            count += 1;
            let is_null = self.nulls.get(place / 8)? & (1 << (place % 8)) != 0;
            if is_null || kind == [TYPE_NULL, 0] {
                bytes.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            let len = value_len(*kind.first()?, rest)?;
            let (value, behind) = rest.split_at_checked(len)?;
            bytes.extend_from_slice(&i32::try_from(len + 2).ok()?.to_be_bytes());
            bytes.extend_from_slice(kind);
            bytes.extend_from_slice(value);
            rest = behind;
        }
        match rest {
            [] => Arguments::of(bytes, count),
            _ => None,
        }
    }
}

/// Returns the beginning of an execution with the types of its values, which the packet left out,
/// and the bytes of the packet that it stands for.
pub(crate) fn with_types(
    content: &[u8],
    parameters: u16,
    types: &[u8],
) -> Option<(usize, Vec<u8>)> {
    let place = HEAD_BYTES + usize::from(parameters).div_ceil(8);
    let (before, rest) = content.split_at_checked(place)?;
    let has_none = rest.first() == Some(&0);
    has_none.then(|| (place + 1, [before, &[1], types].concat()))
}

/// Returns the text of a value of [`Execution::arguments`]. `None` if it is of another type.
pub(crate) fn text_value(value: &[u8]) -> Option<&str> {
    let (kind, value) = value.split_first_chunk::<2>()?;
    let is_text = matches!(kind, [15 | 253 | 254, _]);
    let text = value.get(text_range(value)?).filter(|_| is_text)?;
    str::from_utf8(text).ok()
}

const TYPE_NULL: u8 = 6;

/// The flag of a `COM_STMT_BULK_EXECUTE` that has types.
const BULK_TYPES: u8 = 0x80;

/// Returns the length in bytes of the value that begins here
/// (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>).
fn value_len(kind: u8, from: &[u8]) -> Option<usize> {
    Some(match kind {
        // TINY
        1 => 1,
        // SHORT, YEAR
        2 | 13 => 2,
        // LONG, FLOAT, INT24
        3 | 4 | 9 => 4,
        // DOUBLE, LONGLONG
        5 | 8 => 8,
        // TIMESTAMP, DATE, TIME, DATETIME
        7 | 10..=12 => 1 + usize::from(*from.first()?),
        // DECIMAL, VARCHAR, BIT, JSON, NEWDECIMAL, ENUM, SET, BLOBs, VAR_STRING, STRING, GEOMETRY
        0 | 15 | 16 | 245..=255 => text_range(from)?.end,
        _ => return None,
    })
}

/// Returns the place of a text behind its length.
fn text_range(from: &[u8]) -> Option<Range<usize>> {
    let number = |width: usize| {
        let digits = from.get(1..=width)?.iter().rev();
        Some(digits.fold(0_u64, |sum, digit| sum << 8 | u64::from(*digit)))
    };
    let (start, len) = match *from.first()? {
        0xfb | 0xff => return None,
        0xfc => (3, number(2)?),
        0xfd => (4, number(3)?),
        0xfe => (9, number(8)?),
        len => (1, u64::from(len)),
    };
    Some(start..start.checked_add(usize::try_from(len).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(parameters: &[u8]) -> Vec<u8> {
        [&[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0][..], parameters].concat()
    }

    #[test]
    fn values_are_read_with_their_types() {
        let packet = content(&[0b010, 1, 8, 0, 253, 0, 1, 128, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
        let execution = Execution::read(&packet, 3).unwrap();
        let types = execution.types.unwrap();
        assert_eq!(types, [8, 0, 253, 0, 1, 128]);
        let arguments = execution.arguments(types).unwrap();
        let values: Vec<_> = arguments.iter().collect();
        let long = [8, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(values, [Some(&long[..]), None, Some(&[1, 128, 9][..])]);
        let again = content(&[0, 0, 2, b'h', b'i']);
        let execution = Execution::read(&again, 1).unwrap();
        assert_eq!(execution.types, None);
        let arguments = execution.arguments(&[253, 0]).unwrap();
        assert_eq!(arguments.iter().next(), Some(Some(&b"\xfd\0\x02hi"[..])));
        let (left_out, told) = with_types(&again, 1, &[253, 0]).unwrap();
        let told = [&told, &again[left_out..]].concat();
        assert_eq!(told, content(&[0, 1, 253, 0, 2, b'h', b'i']));
        assert!(Execution::read(&told, 1).unwrap().types.is_some());
    }

    #[test]
    fn what_is_not_whole_or_not_plain_is_not_read() {
        for bytes in [&[][..], &[0], &[0, 1, 253], &[0, 1, 253, 0, 5, b'h']] {
            let packet = content(bytes);
            let read = Execution::read(&packet, 1);
            let arguments = read.and_then(|read| read.arguments(read.types?));
            assert!(arguments.is_none(), "{bytes:?}");
        }
        let mut cursor = content(&[0, 1, 253, 0, 0]);
        cursor[5] = 1;
        assert_eq!(Execution::read(&cursor, 1), None);
        let trailing = content(&[0, 1, 1, 0, 5, 5]);
        let execution = Execution::read(&trailing, 1).unwrap();
        assert!(execution.arguments(&[1, 0]).is_none());
        assert!(Execution::read(&content(&[]), 0).is_some());
        assert!(Execution::read(&content(&[1]), 0).is_none());
    }
}
