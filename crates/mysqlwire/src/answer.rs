//! Finds the end of the server's answer to a command, packet by packet, from the first bytes of
//! each. It collects nothing.

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities, StatusFlags};
use mysql_common::io::ParseBuf;

use crate::command;
use crate::error_packet::ERROR;
use crate::packet::MAX_PART;

/// The bytes of each packet that [`Answer::take`] examines.
pub const LOOK_BYTES: usize = 24;

/// The bytes of a command that [`Answer::to`] examines.
pub const COMMAND_BYTES: usize = EXECUTION_FLAGS + 1;

/// The place of the flags of an execution: after the command and the statement's number.
const EXECUTION_FLAGS: usize = 5;

/// The first byte of a packet that reports success.
const OK: u8 = 0x00;
/// The first byte of a request for a client's file.
const FILE: u8 = 0xfb;
/// The first byte of the end of columns or rows.
const END: u8 = 0xfe;

/// The longest packet that ends columns or rows for a client without `CLIENT_DEPRECATE_EOF`.
const MAX_EOF_BYTES: usize = 8;

/// The agreed forms of answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forms {
    /// True if no packet is between columns and rows (`CLIENT_DEPRECATE_EOF`).
    pub has_no_eof: bool,
    /// True if MariaDB may leave out columns that the client knows.
    pub may_leave_out_columns: bool,
    /// True if the server reports progress by packets that look like errors.
    pub reports_progress: bool,
}

impl Forms {
    /// Returns the forms that client and server agreed on.
    pub fn of(flags: CapabilityFlags, extended: MariadbCapabilities) -> Self {
        let has = |flag| extended.contains(flag);
        Self {
            has_no_eof: flags.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            may_leave_out_columns: has(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
            reports_progress: has(MariadbCapabilities::MARIADB_CLIENT_PROGRESS)
                || flags.contains(CapabilityFlags::CLIENT_PROGRESS_OBSOLETE),
        }
    }
}

/// The part of an answer that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The start of a result.
    Start,
    /// Descriptions of columns, and their number.
    Columns(u64),
    /// The packet after the columns.
    ColumnsEnd,
    Rows,
    /// The packet that tells whether a statement was prepared.
    Prepared,
    /// Descriptions of parameters and columns with the packets after them, and their number.
    Descriptions(u64),
    /// One packet with any content.
    One,
    Done,
}

/// The step that follows a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More packets come.
    More,
    /// The server waits for a file of the client.
    File,
    /// The answer has ended.
    Done,
}

/// An answer that is under way.
#[derive(Clone, Debug)]
pub struct Answer {
    forms: Forms,
    part: Part,
    /// True if the command asked for a cursor.
    may_have_cursor: bool,
    /// The session's status, if the answer contained it.
    status: Option<StatusFlags>,
    is_error: bool,
    /// The last number of warnings that the answer contained.
    warning_count: u16,
    prepared: Option<PreparedStatement>,
}

/// A statement that the server has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedStatement {
    /// The server's number of the statement.
    pub id: u32,
    /// The number of its parameters.
    pub parameters: u16,
}

impl Answer {
    /// Begins the answer to a command, given its first [`COMMAND_BYTES`] bytes, or all of them.
    /// `None` if the command has no answer.
    pub fn to(start: &[u8], forms: Forms) -> Option<Self> {
        let command = start.first().copied().unwrap_or_default();
        // A server may report a cursor that was not asked for.
        let flags = start.get(EXECUTION_FLAGS).copied().unwrap_or_default();
        let part = match command {
            command::QUIT | command::STMT_CLOSE | command::STMT_SEND_LONG_DATA => return None,
            command::QUERY
            | command::PROCESS_INFO
            | command::STMT_EXECUTE
            | command::STMT_BULK_EXECUTE => Part::Start,
            command::STMT_PREPARE => Part::Prepared,
            command::STMT_FETCH | command::FIELD_LIST => Part::Rows,
            _ => Part::One,
        };
        Some(Self {
            forms,
            part,
            may_have_cursor: command == command::STMT_EXECUTE && flags != 0,
            status: None,
            is_error: false,
            warning_count: 0,
            prepared: None,
        })
    }

    /// Returns the statement that was prepared, if the answer contains one.
    pub fn prepared_statement(&self) -> Option<PreparedStatement> {
        self.prepared
    }

    /// Returns the last session status that the answer contained.
    pub fn status(&self) -> Option<StatusFlags> {
        self.status
    }

    /// Returns true if the statement has left an error or warnings to be asked for.
    pub fn has_diagnostics(&self) -> bool {
        self.is_error || self.warning_count > 0
    }

    /// Returns true if the answer ended with an error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns true if the next packet is a row, or the end of the rows.
    pub fn is_in_rows(&self) -> bool {
        self.part == Part::Rows
    }

    /// Takes a packet, given its first [`LOOK_BYTES`] bytes, or all of them.
    pub fn take(&mut self, start: &[u8], len: usize) -> Step {
        let first = start.first().copied();
        if first == Some(ERROR) && self.part != Part::One {
            let is_progress = start.get(1..3) == Some(&[0xff, 0xff]);
            if self.forms.reports_progress && is_progress {
                return Step::More;
            }
            // A column of a row cannot begin with it.
            self.is_error = true;
            self.part = Part::Done;
            return Step::Done;
        }
        match self.part {
            Part::Start => return self.start(start),
            Part::Columns(left) => self.part = self.columns(left - 1),
            Part::ColumnsEnd => {
                let report = eof_report(start);
                self.note(report);
                let status = report.0;
                let exists = status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS);
                let has_cursor = self.may_have_cursor && exists;
                self.part = if has_cursor { Part::Done } else { Part::Rows };
            }
            Part::Rows if self.is_end(first, len) => {
                let report = match self.forms.has_no_eof {
                    true => ok_report(start),
                    false => eof_report(start),
                };
                self.end_result(report);
            }
            Part::Rows => {}
            Part::Prepared => self.part = self.prepared(start),
            Part::Descriptions(left) if left > 1 => self.part = Part::Descriptions(left - 1),
            Part::One => self.one(start, len),
            Part::Descriptions(_) | Part::Done => self.part = Part::Done,
        }
        self.step()
    }

    fn step(&self) -> Step {
        match self.part {
            Part::Done => Step::Done,
            _ => Step::More,
        }
    }

    fn start(&mut self, start: &[u8]) -> Step {
        match start.first() {
            Some(&OK) => self.end_result(ok_report(start)),
            Some(&FILE) => return Step::File,
            _ => {
                let mut from = ParseBuf(start);
                let count = from.checked_eat_lenenc_int().unwrap_or_default();
                let left_out = self.forms.may_leave_out_columns && from.checked_eat_u8() == Some(0);
                self.part = self.columns(if left_out { 0 } else { count });
            }
        }
        self.step()
    }

    /// Returns the part that comes next if so many columns are left.
    fn columns(&self, left: u64) -> Part {
        match (left, self.forms.has_no_eof) {
            (0, true) => Part::Rows,
            (0, false) => Part::ColumnsEnd,
            (left, _) => Part::Columns(left),
        }
    }

    /// Returns the part after the first packet of the answer to a `COM_STMT_PREPARE`: descriptions
    /// of parameters, and of columns, each followed by a packet of its own unless that is left out.
    fn prepared(&mut self, start: &[u8]) -> Part {
        let mut from = ParseBuf(start.get(1..).unwrap_or_default());
        let id = from.checked_eat_u32_le().unwrap_or_default();
        let columns = from.checked_eat_u16_le().unwrap_or_default();
        let parameters = from.checked_eat_u16_le().unwrap_or_default();
        self.prepared = Some(PreparedStatement { id, parameters });
        let behind = u64::from(!self.forms.has_no_eof);
        let of = |count: u16| match count {
            0 => 0,
            count => u64::from(count) + behind,
        };
        match of(columns) + of(parameters) {
            0 => Part::Done,
            all => Part::Descriptions(all),
        }
    }

    fn one(&mut self, start: &[u8], len: usize) {
        self.part = Part::Done;
        match start.first() {
            Some(&OK) => self.note(ok_report(start)),
            Some(&END) if len <= MAX_EOF_BYTES => self.note(eof_report(start)),
            Some(&ERROR) => self.is_error = true,
            _ => {}
        }
    }

    /// Returns true for the packet after the rows: a row that begins so is longer.
    fn is_end(&self, first: Option<u8>, len: usize) -> bool {
        let most = match self.forms.has_no_eof {
            true => MAX_PART - 1,
            false => MAX_EOF_BYTES,
        };
        first == Some(END) && len <= most
    }

    fn end_result(&mut self, report: (StatusFlags, u16)) {
        self.note(report);
        let (status, _) = report;
        let has_more = status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
        self.part = if has_more { Part::Start } else { Part::Done };
    }

    fn note(&mut self, (status, warning_count): (StatusFlags, u16)) {
        self.status = Some(status);
        self.warning_count = warning_count;
    }
}

/// Reads the status of a packet that reports success.
pub fn ok_status(start: &[u8]) -> StatusFlags {
    ok_report(start).0
}

/// Reads the status and the number of warnings of a packet that reports success. They follow the
/// affected rows and the generated number.
fn ok_report(start: &[u8]) -> (StatusFlags, u16) {
    let mut from = ParseBuf(start.get(1..).unwrap_or_default());
    for _ in ["rows", "generated number"] {
        from.checked_eat_lenenc_int();
    }
    let mut number = || from.checked_eat_u16_le().unwrap_or_default();
    (StatusFlags::from_bits_retain(number()), number())
}

/// Reads the status and the number of warnings of a packet after columns or rows.
fn eof_report(start: &[u8]) -> (StatusFlags, u16) {
    let mut from = ParseBuf(start.get(1..).unwrap_or_default());
    let mut number = || from.checked_eat_u16_le().unwrap_or_default();
    let warning_count = number();
    (StatusFlags::from_bits_retain(number()), warning_count)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn steps(command: u8, forms: Forms, packets: &[&[u8]]) -> Vec<Step> {
        let mut answer = Answer::to(&[command], forms).unwrap();
        let take =
            |packet: &&[u8]| answer.take(&packet[..packet.len().min(LOOK_BYTES)], packet.len());
        packets.iter().map(take).collect()
    }

    /// The last packet ends the answer, and no earlier one does.
    fn ends(command: u8, forms: Forms, packets: &[&[u8]]) {
        let steps = steps(command, forms, packets);
        let mut expected = vec![Step::More; packets.len()];
        *expected.last_mut().unwrap() = Step::Done;
        assert_eq!(steps, expected, "{packets:x?}");
    }

    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const MORE: &[u8] = &[0xfe, 0, 0, 0x0a, 0];
    const LAST_OK: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";

    fn new() -> Forms {
        Forms {
            has_no_eof: true,
            ..Forms::default()
        }
    }

    #[test]
    fn success_and_errors_are_one_packet() {
        let ok = &[0, 1, 0, 2, 0, 0, 0][..];
        ends(command::QUERY, Forms::default(), &[ok]);
        ends(command::QUERY, Forms::default(), &[b"\xff\x15\x04#28000no"]);
        ends(0x0e, new(), &[ok]);
        ends(command::STATISTICS, new(), &[b"Uptime: 7"]);
        assert!(Answer::to(&[command::STMT_CLOSE], new()).is_none());
        let mut answer = Answer::to(&[command::QUERY], new()).unwrap();
        answer.take(&[0, 0xfc, 1, 1, 0, 3, 0], 7);
        assert_eq!(answer.status().unwrap().bits(), 3);
    }

    #[test]
    fn rows_end_in_both_forms() {
        let old = [&[1][..], COLUMN, EOF, b"\x011", b"\xfb", EOF];
        ends(command::QUERY, Forms::default(), &old);
        ends(command::QUERY, new(), &[&[1], COLUMN, b"\x011", LAST_OK]);
        ends(
            command::QUERY,
            new(),
            &[&[1], COLUMN, b"\x011", b"\xff\x25\x05#70100"],
        );
        ends(
            command::FIELD_LIST,
            Forms::default(),
            &[COLUMN, COLUMN, EOF],
        );
        ends(command::STMT_FETCH, new(), &[&[0, 0, 1], LAST_OK]);
        let cached = Forms {
            may_leave_out_columns: true,
            ..new()
        };
        ends(
            command::STMT_EXECUTE,
            cached,
            &[&[1, 0], &[0, 0, 1], LAST_OK],
        );
        ends(command::STMT_EXECUTE, cached, &[&[1, 1], COLUMN, LAST_OK]);
    }

    #[test]
    fn several_results_and_a_cursor() {
        let more_ok = &[0, 1, 0, 0x0a, 0, 0, 0][..];
        let one = [more_ok, &[1], COLUMN, EOF, MORE, &[0, 0, 0, 2, 0]];
        ends(command::QUERY, Forms::default(), &one);
        let cursor = &[0xfe, 0, 0, 0x42, 0][..];
        for forms in [Forms::default(), new()] {
            let mut answer = Answer::to(&[command::STMT_EXECUTE, 1, 0, 0, 0, 1], forms).unwrap();
            let steps = [&[1][..], COLUMN, cursor].map(|packet| answer.take(packet, packet.len()));
            assert_eq!(steps, [Step::More, Step::More, Step::Done]);
        }
        // A procedure that has closed its cursor.
        let rows = [&[1][..], COLUMN, cursor, b"\x011", EOF];
        ends(command::QUERY, Forms::default(), &rows);
    }

    #[test]
    fn a_statement_is_described() {
        let of =
            |columns: u8, parameters: u8| vec![0, 1, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
        ends(command::STMT_PREPARE, new(), &[&of(0, 0)]);
        ends(command::STMT_PREPARE, new(), &[&of(1, 1), COLUMN, COLUMN]);
        let mut answer = Answer::to(&[command::STMT_PREPARE], new()).unwrap();
        answer.take(&of(0, 3), 12);
        let prepared = answer.prepared_statement().unwrap();
        assert_eq!((prepared.id, prepared.parameters), (1, 3));
        let old = [&of(1, 2)[..], COLUMN, COLUMN, EOF, COLUMN, EOF];
        ends(command::STMT_PREPARE, Forms::default(), &old);
    }

    #[test]
    fn a_file_is_asked_for() {
        let packets = [&b"\xfb/etc/hosts"[..], &[0, 1, 0, 2, 0, 0, 0]];
        let steps = steps(command::QUERY, new(), &packets);
        assert_eq!(steps, [Step::File, Step::Done]);
    }

    #[test]
    fn progress_is_no_error() {
        let forms = Forms {
            reports_progress: true,
            ..new()
        };
        let progress = b"\xff\xff\xff\x01\x01\x02\0\0\0\x05stage";
        ends(command::QUERY, forms, &[progress, &[0, 0, 0, 2, 0]]);
    }

    proptest! {
        #[test]
        fn nonsense_never_panics(
            command in any::<u8>(),
            bits in any::<(bool, bool, bool)>(),
            packets in vec(vec(any::<u8>(), 0..LOOK_BYTES), 0..20),
        ) {
            let forms = Forms {
                has_no_eof: bits.0,
                may_leave_out_columns: bits.1,
                reports_progress: bits.2,
            };
            if let Some(mut answer) = Answer::to(&[command], forms) {
                for packet in &packets {
                    answer.take(packet, packet.len());
                }
            }
        }
    }
}
