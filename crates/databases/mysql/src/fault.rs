//! The table of errors: the server's number, class, SQLSTATE, and how far the error reaches
//! (<https://mariadb.com/kb/en/mariadb-error-codes/>,
//! <https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html>).
//!
//! A fault has the SQLSTATE that all databases have for this kind of failure, or else the server's
//! own. The server's number and SQLSTATE are in the message. How a write may be tried again follows
//! from class and SQLSTATE ([`Fault::retry`]).

use mysql_async::{DriverError, Error, ServerError};
use windrow_core::{Fault, FaultClass};
use windrow_mysqlwire::{ErrorPacket, WriteFailure};

use crate::quoted::quoted_name;

/// Two keys are equal.
pub(super) const DUPLICATE: u16 = 1062;

/// A table without transactions kept what was written to it.
pub(super) const NOT_UNDONE: u16 = 1196;

/// A transaction writes to tables of InnoDB and of another engine (a warning of MySQL 9).
pub(super) const ENGINES_COMBINED: u16 = 6414;

/// The statement was cancelled.
pub(super) const INTERRUPTED: u16 = 1317;

/// A number is out of its range.
pub(super) const OVERFLOW: u16 = 1690;

/// An error that the server answered with.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The server's number of the error.
    pub(super) number: u16,
    /// The row of a statement of many, from 0, if the message names it.
    pub(super) row: Option<usize>,
    pub(super) scope: Scope,
    pub(super) fault: Fault,
}

/// The reach of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The statement, which was undone.
    Statement,
    /// The statement, which waited too long for a lock and was undone.
    Lock,
    /// The transaction, which was undone or must be.
    Transaction,
    /// The connection, or all of the server.
    Connection,
}

/// The reason why a statement has no answer.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The server refused.
    Refused(Box<Refusal>),
    /// The connection is lost, with the reason.
    Lost(Box<str>),
}

impl Trouble {
    /// Returns a failure that Windrow found without the server.
    pub(super) fn of(fault: Fault) -> Self {
        Self::Refused(Box::new(Refusal {
            number: 0,
            row: None,
            scope: Scope::Statement,
            fault,
        }))
    }
}

/// The fault for a client, if nothing was written.
impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(refusal) => refusal.fault,
            Trouble::Lost(why) => unavailable(&why),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Server(error) => Self::Refused(Box::new(refusal(&error))),
            Error::Driver(DriverError::ConnectionClosed) => Self::Lost("it was closed".into()),
            other => Self::Lost(other.to_string().into()),
        }
    }
}

/// Returns the fault of a connection that was lost before the commit.
pub(super) fn unavailable(why: &str) -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "08006",
        format!("the connection to MySQL was lost ({why}); nothing was written"),
    )
}

/// Returns the fault of a connection that was lost during the commit.
pub(super) fn unknown(why: &str) -> Fault {
    Fault::unknown(format!(
        "the connection to MySQL was lost ({why}) while this was being committed; it cannot be known whether it was written"
    ))
}

/// Classifies an error of the server.
pub(super) fn refusal(error: &ServerError) -> Refusal {
    let (class, code) = class_of(error);
    let scope = match error.code {
        1205 | 3572 => Scope::Lock,
        _ if class == FaultClass::Conflict => Scope::Transaction,
        _ if class == FaultClass::Unavailable => Scope::Connection,
        _ => Scope::Statement,
    };
    let state = error.state.as_bytes().first_chunk().unwrap_or(b"HY000");
    let message = ErrorPacket::new(error.code, *state, &*error.message).noted();
    let fault = match code {
        Some(code) => Fault::new(class, code, message),
        None => Fault::new(class, error.state.clone(), message),
    };
    Refusal {
        number: error.code,
        row: row_of(&error.message),
        scope,
        fault: with_places(fault, error),
    }
}

/// Classifies an error of the server, as [`WriteFailure::encode`] writes it. The fault holds it for
/// the client.
pub(super) fn refusal_of(packet: &[u8]) -> Refusal {
    let unreadable = || ErrorPacket::new(0, *b"HY000", "the server's answer cannot be read");
    let failure = WriteFailure::decode(packet).unwrap_or_default();
    let error = ErrorPacket::parse(&failure.error).unwrap_or_else(unreadable);
    let state = String::from_utf8_lossy(&error.state).into_owned();
    let mut refusal = refusal(&ServerError {
        code: error.number,
        message: error.message,
        state: state.clone(),
    });
    let decides_retry = !refusal.fault.is_own() || refusal.fault.code == "57014";
    if !decides_retry {
        refusal.fault.code = state.into();
    }
    refusal.fault = refusal.fault.with_verbatim(packet);
    refusal
}

fn class_of(error: &ServerError) -> (FaultClass, Option<&'static str>) {
    use FaultClass::{
        Check, Conflict, Denied, ForeignKey, Invalid, NoColumn, NoTable, NotNull, Other, TooLarge,
        Unavailable, Unique, Unsupported, Value,
    };
    let (class, code) = match error.code {
        1062 | 1169 | 1557 | 1586 | 1761 | 1762 | 1859 => (Unique, "23505"),
        1216 | 1217 | 1451 | 1452 => (ForeignKey, "23503"),
        1048 | 1263 | 1364 => (NotNull, "23502"),
        3819 | 4025 => (Check, "23514"),
        // No partition takes the row.
        1526 | 1748 => (Check, "23514"),
        1369 => (Check, "44000"),
        // A trigger refused the row, with an SQLSTATE of its own.
        1644 => return (Check, None),
        1406 | 1742 | 3905..=3907 => (Value, "22001"),
        1264 | 1690 | 1916 | 3155 | 3616 | 3617 | 3731 | 3732 | 3752 | 3904 => (Value, "22003"),
        1366 if error.message.starts_with("Incorrect string") => (Value, "22021"),
        1265 | 1366 | 1416 | 1917 | 1918 | 3751 | 3998 => (Value, "22P02"),
        // Geometries, JSON (MySQL, then MariaDB), functional indexes and vectors.
        3033 | 3034 | 3037..=3041 | 3055 | 3516 | 3548 | 3643 => (Value, "22P02"),
        3069..=3072 | 3140..=3151 | 3154 | 3156..=3158 | 3853 | 3903 => (Value, "22P02"),
        4035..=4045 | 4048..=4050 | 4076 | 6136..=6138 => (Value, "22P02"),
        1292 | 1367 | 1411 | 1525 => (Value, "22007"),
        1441 => (Value, "22008"),
        // A text that the character set of its column has no letters for.
        1267 | 1300 | 1977 | 3854 | 3988 => (Value, "22021"),
        3020 => (Value, "2201E"),
        1139 | 3685..=3700 => (Value, "2201B"),
        1365 => (Value, "22012"),
        1049 => (NoTable, "3F000"),
        1051 | 1146 => (NoTable, "42P01"),
        1054 => (NoColumn, "42703"),
        1044 | 1045 | 1130..=1133 | 1251 | 1370 | 1698 => (Denied, "28000"),
        1142 | 1143 | 1227 => (Denied, "42501"),
        // Another option than --read-only, such as --skip-grant-tables.
        1290 if !error.message.contains("read") => (Denied, "42501"),
        // A replica, or a primary that has just become one: another server may take the write.
        1036 | 1099 | 1290 | 1792 | 1836 => (Unavailable, "25006"),
        1213 => (Conflict, "40P01"),
        1205 | 3572 => (Conflict, "55P03"),
        1020 | 1615 => (Conflict, "40001"),
        1040 | 1203 | 1226 => (Unavailable, "53300"),
        1047 | 1053 | 1080 | 1152 | 1158..=1161 | 1927 | 4031 => (Unavailable, "57P01"),
        1021 | 1114 => (Unavailable, "53100"),
        1037 | 1038 | 1041 => (Unavailable, "53200"),
        1317 | 1969 | 3024 => (Other, "57014"),
        1118 | 1153 | 1301 | 1390 => (TooLarge, "54000"),
        1110 => (Invalid, "42701"),
        1906 | 3105 => (Invalid, "428C9"),
        1288 | 1348 | 1394 | 1471 => (Invalid, "55000"),
        1059 | 1103 | 1166 => (Invalid, "42602"),
        // The file that is named after a table: characters other than plain letters take several
        // there.
        1005 if error.message.contains("name too long") => (Invalid, "42602"),
        1235 | 1295 => (Unsupported, "0A000"),
        _ => return (Other, None),
    };
    (class, Some(code))
}

/// Reads `.. at row 3`.
fn row_of(message: &str) -> Option<usize> {
    let (_, behind) = message.rsplit_once(" at row ")?;
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse::<usize>().ok()?.checked_sub(1)
}

/// Names the constraint or the column, as far as the English texts do.
fn with_places(fault: Fault, error: &ServerError) -> Fault {
    let text = &*error.message;
    match fault.class {
        FaultClass::Unique => fault.with_constraint(last_quoted(text, " for key ").as_deref()),
        FaultClass::ForeignKey | FaultClass::Check => {
            let name =
                last_quoted(text, "CONSTRAINT ").or_else(|| last_quoted(text, "Check constraint "));
            fault.with_constraint(name.as_deref())
        }
        FaultClass::NotNull | FaultClass::Value | FaultClass::NoColumn => {
            let column = last_quoted(text, "column ")
                .or_else(|| last_quoted(text, "Column "))
                .or_else(|| last_quoted(text, "Field "));
            fault.with_column(column.as_deref())
        }
        _ => fault,
    }
}

/// Returns the last part of the name in quotes after a word: `x` of `'t.x'` and of `` `d`.`t`.`x`
/// ``.
fn last_quoted(text: &str, word: &str) -> Option<String> {
    let (_, behind) = text.rsplit_once(word)?;
    let quote = behind.chars().next().filter(|c| matches!(c, '\'' | '`'))?;
    let mut rest = behind;
    let mut name = None;
    while let Some(inside) = rest.strip_prefix(quote) {
        let (part, after) = match quote {
            '`' => quoted_name(quote, rest)?,
            // The server does not double these.
            _ => inside
                .split_once(quote)
                .map(|(part, after)| (part.to_owned(), after))?,
        };
        name = Some(part);
        rest = after.strip_prefix('.').unwrap_or("");
    }
    match (quote, name?) {
        ('\'', name) => match name.rsplit_once('.') {
            Some((_, last)) => Some(last.to_owned()),
            None => Some(name),
        },
        (_, name) => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, state: &str, message: &str) -> Refusal {
        refusal(&ServerError {
            code,
            state: state.into(),
            message: message.into(),
        })
    }

    #[test]
    fn names_what_was_violated() {
        for (code, message, place) in [
            (1062, "Duplicate entry '5' for key 'PRIMARY'", "PRIMARY"),
            (1062, "Duplicate entry 'a-b' for key 't.mail'", "mail"),
            (
                1452,
                "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `c_fk` FOREIGN KEY (`p`) REFERENCES `p` (`id`))",
                "c_fk",
            ),
            (4025, "CONSTRAINT `t.n` failed for `d`.`t`", "t.n"),
            (4025, "CONSTRAINT `t.j``n` failed for `d`.`t`", "t.j`n"),
            (3819, "Check constraint 'positive' is violated.", "positive"),
        ] {
            assert_eq!(read(code, "23000", message).fault.constraint(), Some(place));
        }
        for (code, message) in [
            (1048, "Column 'x' cannot be null"),
            (1364, "Field 'x' doesn't have a default value"),
            (1406, "Data too long for column 'x' at row 1"),
            (
                1366,
                "Incorrect integer value: 'old' for column `d`.`t`.`x` at row 1",
            ),
        ] {
            assert_eq!(read(code, "22001", message).fault.column(), Some("x"));
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_the_clients_error() {
        for (number, code) in [
            (1367, "22007"),
            (1416, "22P02"),
            (3643, "22P02"),
            (3903, "22P02"),
            (3904, "22003"),
            (3988, "22021"),
            (4038, "22P02"),
            (6136, "22P02"),
        ] {
            let fault = read(number, "HY000", "x").fault;
            assert_eq!((fault.class, &*fault.code), (FaultClass::Value, code));
        }
        let fault = read(1526, "HY000", "Table has no partition for value 20").fault;
        assert_eq!((fault.class, &*fault.code), (FaultClass::Check, "23514"));
    }

    #[test]
    fn a_server_that_can_only_be_read_may_be_written_to_later() {
        let option = |name| {
            let message = format!(
                "The MariaDB server is running with the --{name} option so it cannot execute this statement"
            );
            let fault = read(1290, "HY000", &message).fault;
            (fault.class, fault.code.to_string())
        };
        let read_only = (FaultClass::Unavailable, "25006".to_owned());
        assert_eq!(option("read-only"), read_only);
        let denied = (FaultClass::Denied, "42501".to_owned());
        assert_eq!(option("skip-grant-tables"), denied);
        for number in [1792, 1836] {
            let fault = read(number, "25006", "x").fault;
            assert_eq!((fault.class, fault.code.to_string()), read_only);
        }
    }

    #[test]
    fn every_number_has_its_reach_and_its_retry() {
        use windrow_core::Retry;
        for (number, scope, retry) in [
            (1062, Scope::Statement, Retry::Never),
            (3024, Scope::Statement, Retry::Smaller),
            (1205, Scope::Lock, Retry::AfterLock),
            (1213, Scope::Transaction, Retry::Soon),
            (1020, Scope::Transaction, Retry::Soon),
            (1927, Scope::Connection, Retry::WhenBack),
            (1040, Scope::Connection, Retry::WhenBack),
        ] {
            let refusal = read(number, "HY000", "x");
            assert_eq!(
                (refusal.scope, refusal.fault.retry()),
                (scope, retry),
                "{number}"
            );
        }
    }

    #[test]
    fn a_fault_of_a_client_holds_the_servers_own_packet() {
        let packet = b"\xff\x26\x04#23000Duplicate entry '5' for key 'PRIMARY'";
        let refused = refusal_of(packet);
        assert_eq!(
            (refused.number, refused.scope),
            (DUPLICATE, Scope::Statement)
        );
        assert_eq!(refused.fault.verbatim(), Some(&packet[..]));
        assert_eq!(
            (refused.fault.class, &*refused.fault.code),
            (FaultClass::Unique, "23000")
        );
        let deadlock = refusal_of(b"\xff\xbd\x04#40001Deadlock found");
        assert_eq!(deadlock.scope, Scope::Transaction);
        assert_eq!(&*deadlock.fault.code, "40P01");
    }

    #[test]
    fn keeps_what_it_does_not_know() {
        let refused = read(1644, "45000", "no 3");
        assert_eq!(
            (refused.fault.class, &*refused.fault.code),
            (FaultClass::Check, "45000")
        );
        let unknown = read(9999, "HY000", "odd");
        assert_eq!(
            (unknown.fault.class, &*unknown.fault.code),
            (FaultClass::Other, "HY000")
        );
        assert!(unknown.fault.message.contains("9999"));
        let row = read(1406, "22001", "Data too long for column 'x' at row 421").row;
        assert_eq!(row, Some(420));
    }
}
