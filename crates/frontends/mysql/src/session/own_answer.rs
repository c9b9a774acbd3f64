//! Answers questions about the previous write. The session's server connection does not know of a
//! joined write, so the rows of the server's answer are replaced by those of the write.

use windrow_mysqlwire::Warning;
use windrow_mysqlwire::query::put_text;
use windrow_sql::mysql::Asked;

use crate::session_state::LastWrite;

/// A statement after which the server has no warnings: it reads a table and finds nothing wrong.
pub(super) const NO_DIAGNOSTICS: &str = "DO (SELECT 1 FROM (SELECT 1) windrow)";

/// Returns a statement that gives the server the error or the warning of a write. `None` if the
/// write has none, or several, which no statement can cause. `has_escapes` is true if a backslash
/// in a text is an escape.
pub(super) fn diagnostics_of(
    write: &LastWrite,
    has_escapes: bool,
    is_mariadb: bool,
) -> Option<String> {
    let signal = |state: &str, number: u16, message: &str| {
        let mut message = message.replace('\'', "\'\'");
        if has_escapes {
            message = message.replace('\\', "\\\\");
        }
        let origin = if is_mariadb { "" } else { origin(state) };
        format!(
            "SIGNAL SQLSTATE '{state}' \
             SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = '{message}'{origin}"
        )
    };
    match (write.affected, &write.error, &*write.warnings) {
        (_, Some(error), _) => {
            let state = match &error.state {
                // SIGNAL reports these as warnings.
                [b'0', b'0'..=b'2', ..] => "HY000".into(),
                state => String::from_utf8_lossy(state),
            };
            Some(signal(&state, error.number, &error.message))
        }
        (_, None, [warning]) if *warning.level == *b"Warning" => {
            let message = String::from_utf8_lossy(&warning.message);
            Some(signal("01000", warning.number, &message))
        }
        _ => None,
    }
}

/// Returns the items of SIGNAL for the origin that MySQL gives an SQLSTATE.
fn origin(state: &str) -> &'static str {
    match state.as_bytes() {
        [b'0'..=b'4' | b'A'..=b'H', ..] => {
            ", CLASS_ORIGIN = 'ISO 9075', SUBCLASS_ORIGIN = 'ISO 9075'"
        }
        _ => ", CLASS_ORIGIN = 'MySQL', SUBCLASS_ORIGIN = 'MySQL'",
    }
}

/// Returns a statement after which the server counts as many rows as a write affected. `None` if
/// there is none. Errors and warnings stay as they are.
pub(super) fn count_of(write: &LastWrite) -> Option<&'static str> {
    match write.affected {
        // After a question or a prepared statement, the count of rows is -1.
        _ if write.is_behind_question => Some("SELECT 1"),
        None => Some("SELECT 1"),
        Some(0) => Some("DO 0"),
        Some(1) => Some("SELECT 1 INTO @windrow_row_count"),
        Some(_) => None,
    }
}

/// Returns the rows of an answer. `None` if the server's own answer is right.
pub(super) fn rows(asked: Asked, write: &LastWrite) -> Option<Vec<Vec<u8>>> {
    let all: Vec<&Warning> = write.warnings.iter().collect();
    let is_error = |warning: &&Warning| *warning.level == *b"Error";
    let errors: Vec<&Warning> = write.warnings.iter().filter(is_error).collect();
    Some(match asked {
        Asked::RowCount => {
            // After a question, the count of rows is -1.
            let affected = write.affected.filter(|_| !write.is_behind_question);
            let affected = affected.map(|rows| rows.to_string());
            vec![row(&[affected.as_deref().unwrap_or("-1").as_bytes()])]
        }
        Asked::WarningCount | Asked::CountWarnings => vec![count(all.len())],
        Asked::ErrorCount | Asked::CountErrors => vec![count(errors.len())],
        Asked::Warnings { offset, limit } => part(&all, offset, limit),
        Asked::Errors { offset, limit } => part(&errors, offset, limit),
        Asked::LastInsertId | Asked::Identity | Asked::FoundRows => return None,
    })
}

/// Returns the rows of warnings from an offset on, up to a limit.
fn part(warnings: &[&Warning], offset: u64, limit: Option<u64>) -> Vec<Vec<u8>> {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let most = limit.map_or(usize::MAX, number);
    let asked = warnings.iter().skip(number(offset)).take(most);
    asked.map(|warning| warning_row(warning)).collect()
}

fn count(count: usize) -> Vec<u8> {
    row(&[count.to_string().as_bytes()])
}

fn warning_row(warning: &Warning) -> Vec<u8> {
    let number = warning.number.to_string();
    row(&[&warning.level, number.as_bytes(), &warning.message])
}

fn row(values: &[&[u8]]) -> Vec<u8> {
    let mut content = Vec::new();
    values
        .iter()
        .for_each(|value| put_text(&mut content, value));
    content
}
