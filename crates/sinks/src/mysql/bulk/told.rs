//! What the server told of the rows of a file: warnings, and the rows that they are of.

use std::collections::BTreeMap;

use mysql_async::Row;

use super::numbering::{CHECK, Numbering};
use super::sieve::Sieve;
use crate::mysql::fault::{DUPLICATE, Trouble};
use crate::mysql::line::Line;
use crate::mysql::schema::get;

/// The most warnings that are read. To read them costs time that grows with their square, and where
/// so many rows are bad the lane is the better way.
pub(super) const MOST_TOLD: u64 = 8192;

/// A warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The row's number in the file, from 1; `None`: the server does not say.
    pub(super) row: Option<usize>,
    /// The number of the error that it would be.
    pub(super) number: u32,
}

/// Warnings of a row that was not written: its key is there, it has no parent, a check fails, or no
/// partition is for it.
const SKIPS: [u32; 9] = [1062, 1169, 1216, 1369, 1452, 1526, 1586, 3819, 4025];

/// Reads so many warnings of the last statement; `None`: that cannot be done.
///
/// # Errors
/// The connection is lost.
pub(super) async fn read(line: &mut Line, count: u64) -> Result<Option<Vec<Told>>, Trouble> {
    if count > MOST_TOLD {
        return Ok(None);
    }
    let numbers = line.server.numbers_rows;
    let sql = if numbers {
        numbered(count)
    } else {
        "SHOW WARNINGS".to_owned()
    };
    let rows = match line.rows(&sql).await {
        Ok(rows) => rows,
        Err(Trouble::Refused(_)) if line.is_usable() => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    let told = match numbers {
        true => rows
            .first()
            .and_then(|row| get::<String>(row, 0))
            .and_then(|list| listed(&list)),
        false => rows.iter().map(shown).collect(),
    };
    Ok(told.filter(|told| told.len() as u64 == count))
}

/// The block that makes one text of all warnings: `3:1062,7:1265,`.
fn numbered(count: u64) -> String {
    format!(
        "BEGIN NOT ATOMIC DECLARE i, r, e INT DEFAULT 0; DECLARE s LONGTEXT CHARACTER SET ascii DEFAULT ''; \
         WHILE i < {count} DO SET i = i + 1; GET DIAGNOSTICS CONDITION i r = ROW_NUMBER, e = MYSQL_ERRNO; \
         SET s = CONCAT(s, IFNULL(r, 0), ':', e, ','); END WHILE; SELECT s; END"
    )
}

fn listed(list: &str) -> Option<Vec<Told>> {
    let told = |entry: &str| {
        let (row, number) = entry.split_once(':')?;
        Some(Told {
            row: row.parse().ok().filter(|row| *row > 0),
            number: number.parse().ok()?,
        })
    };
    list.split_terminator(',').map(told).collect()
}

/// A row of SHOW WARNINGS. Only the end of its text may tell the row: whatever stands before may be
/// a value.
fn shown(row: &Row) -> Option<Told> {
    let text = get::<String>(row, 2)?;
    let digits = text.rsplit_once(" at row ").map(|(_, digits)| digits);
    Some(Told {
        row: digits.and_then(|digits| digits.parse().ok()),
        number: get(row, 1)?,
    })
}

/// What warnings mean for the rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Rows that were not written because their key was there, which is as it should be.
    pub(super) ignored: u64,
    /// The places of rows that were not written, for nothing but a constraint. Another row may
    /// have been in their way.
    pub(super) skipped: Vec<usize>,
    /// The places of rows with values that their columns cannot hold.
    pub(super) spoiled: Vec<usize>,
    /// How many of these were written, with other values.
    pub(super) bent: usize,
}

/// What the warnings of one row say.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// It was not written.
    skipped: bool,
    /// A value does not fit.
    spoiled: bool,
    /// Something besides its key is wrong.
    besides: bool,
}

/// Says what warnings mean; `None`: a warning is of a row that is not known. `ignores`: a key that
/// is there is no fault.
pub(super) fn judge(
    told: &[Told],
    sieve: &Sieve,
    numbering: Numbering,
    ignores: bool,
) -> Option<Verdict> {
    let mut checked = 0;
    let mut verdict = Verdict::default();
    let mut rows: BTreeMap<usize, Faults> = BTreeMap::new();
    for Told { row, number } in told {
        let duplicate = *number == u32::from(DUPLICATE);
        let Some(row) = *row else {
            if !(ignores && duplicate) {
                return None;
            }
            // There is one such warning for a row.
            verdict.ignored += 1;
            continue;
        };
        if checked > 0 && numbering == Numbering::Unknown {
            return None;
        }
        let uncounted = match numbering {
            Numbering::NotChecked => checked,
            Numbering::All | Numbering::Unknown => 0,
        };
        checked += usize::from(*number == CHECK);
        let faults = rows.entry(sieve.place(row + uncounted)?).or_default();
        let skips = SKIPS.contains(number);
        faults.skipped |= skips;
        faults.spoiled |= !skips;
        faults.besides |= !duplicate;
    }
    for (place, faults) in rows {
        if faults.spoiled {
            verdict.spoiled.push(place);
            verdict.bent += usize::from(!faults.skipped);
        } else if ignores && !faults.besides {
            verdict.ignored += 1;
        } else {
            verdict.skipped.push(place);
        }
    }
    Some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve() -> Sieve {
        let mut sieve = Sieve::new(9);
        for place in [0, 2, 4, 6, 8] {
            sieve.send(place);
        }
        sieve
    }

    fn judged(list: &str, numbering: Numbering, ignores: bool) -> Option<Verdict> {
        judge(&listed(list).unwrap(), &sieve(), numbering, ignores)
    }

    fn verdict(ignored: u64, skipped: &[usize], spoiled: &[usize], bent: usize) -> Option<Verdict> {
        Some(Verdict {
            ignored,
            skipped: skipped.into(),
            spoiled: spoiled.into(),
            bent,
        })
    }

    #[test]
    fn warnings_are_sorted_by_what_became_of_their_rows() {
        let list = "1:1062,2:1265,4:1265,4:1062,3:1452,5:1062,";
        assert_eq!(listed(list).unwrap().len(), 6);
        let strict = judged(list, Numbering::Unknown, false);
        assert_eq!(strict, verdict(0, &[0, 4, 8], &[2, 6], 1));
        // A key that may be another one because its value was bent is none to be ignored.
        let ignoring = judged(list, Numbering::Unknown, true);
        assert_eq!(ignoring, verdict(2, &[4], &[2, 6], 1));
    }

    #[test]
    fn rows_that_a_check_refuses_may_not_be_counted() {
        let list = "1:1265,1:4025,1:4025,2:1265,3:4025,";
        let shifted = judged(list, Numbering::NotChecked, false);
        assert_eq!(shifted, verdict(0, &[2, 8], &[0, 6], 1));
        assert_eq!(judged(list, Numbering::Unknown, false), None);
        let last = judged("1:1265,2:4025,", Numbering::Unknown, false);
        assert_eq!(last, verdict(0, &[2], &[0], 1));
        let plain = judged("1:4025,2:1062,", Numbering::All, false);
        assert_eq!(plain, verdict(0, &[0, 2], &[], 0));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for list in ["0:4025,", "6:1062,", "0:1062,"] {
            assert_eq!(judged(list, Numbering::All, false), None);
        }
        let ignored = judged("0:1062,", Numbering::Unknown, true);
        assert_eq!(ignored, verdict(1, &[], &[], 0));
        assert_eq!(listed("1:x,"), None);
    }
}
