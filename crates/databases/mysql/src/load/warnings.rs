//! Reads the server's warnings, and the rows of a file that they concern.

use mysql_async::Row;

use crate::fault::Trouble;
use crate::session::Session;
use crate::values::cell::get;

/// The most warnings that are read. The time to read them grows with the square of their number,
/// and a lane is faster when so many rows are bad.
pub(super) const MAX_WARNINGS_READ: u64 = 8192;

/// MySQL's warnings that a form of time is deprecated. The value is stored as meant.
const DEPRECATED: [u32; 2] = [4095, 4096];

/// A warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Warning {
    /// The row's number in the file, from 1; `None` if the server does not tell.
    pub(super) row: Option<usize>,
    /// The number of the corresponding error.
    pub(super) number: u32,
}

/// Reads so many warnings of the last statement. `None` if they cannot be read.
///
/// # Errors
/// The connection is lost.
pub(super) async fn read(
    session: &mut Session,
    count: u64,
) -> Result<Option<Vec<Warning>>, Trouble> {
    if count > MAX_WARNINGS_READ {
        return Ok(None);
    }
    let numbers = session.server.numbers_rows;
    let sql = if numbers {
        numbered(count)
    } else {
        "SHOW WARNINGS".to_owned()
    };
    let rows = match session.rows(&sql).await {
        Ok(rows) => rows,
        Err(Trouble::Refused(_)) if session.is_usable() => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    let warnings = match numbers {
        true => rows
            .first()
            .and_then(|row| get::<String>(row, 0))
            .and_then(|list| listed(&list)),
        false => rows.iter().map(shown).collect(),
    };
    let mut warnings = warnings.filter(|warnings| warnings.len() as u64 == count);
    if let Some(warnings) = &mut warnings
        && !numbers
    {
        warnings.retain(|warning| !DEPRECATED.contains(&warning.number));
    }
    Ok(warnings)
}

/// Returns the block that makes one text of all warnings, such as `3:1062,7:1265,`.
fn numbered(count: u64) -> String {
    format!(
        "BEGIN NOT ATOMIC DECLARE i, r, e INT DEFAULT 0; DECLARE s LONGTEXT CHARACTER SET ascii DEFAULT ''; \
         WHILE i < {count} DO SET i = i + 1; GET DIAGNOSTICS CONDITION i r = ROW_NUMBER, e = MYSQL_ERRNO; \
         SET s = CONCAT(s, IFNULL(r, 0), ':', e, ','); END WHILE; SELECT s; END"
    )
}

/// Parses such a text.
pub(super) fn listed(list: &str) -> Option<Vec<Warning>> {
    let warning = |entry: &str| {
        let (row, number) = entry.split_once(':')?;
        Some(Warning {
            row: row.parse().ok().filter(|row| *row > 0),
            number: number.parse().ok()?,
        })
    };
    list.split_terminator(',').map(warning).collect()
}

/// Parses a row of SHOW WARNINGS. Only the end of its text names the row, because the text before
/// it may contain a value.
fn shown(row: &Row) -> Option<Warning> {
    let text = get::<String>(row, 2)?;
    let digits = text.rsplit_once(" at row ").map(|(_, digits)| digits);
    Some(Warning {
        row: digits.and_then(|digits| digits.parse().ok()),
        number: get(row, 1)?,
    })
}
