//! Classifies the server's warnings for the rows of a file.

use std::collections::BTreeMap;

use super::numbering::{CHECK, Numbering};
use super::selection::Selection;
use super::warnings::Warning;
use crate::fault::DUPLICATE;

/// Warnings of a row that was not written: its key exists, its parent does not, a check fails, or
/// no partition takes it.
const SKIPS: [u32; 9] = [1062, 1169, 1216, 1369, 1452, 1526, 1586, 3819, 4025];

/// The rows of a file that warnings concern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The number of rows that were not written because their key exists, as the conflict rule
    /// says.
    pub(super) ignored: u64,
    /// The places of rows that only a constraint kept from being written. Another row may have been
    /// the reason.
    pub(super) skipped: Vec<usize>,
    /// The places of rows with values that their columns cannot hold.
    pub(super) spoiled: Vec<usize>,
    /// The number of these rows that were written with changed values.
    pub(super) bent: usize,
}

/// The warnings of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// True if the row was not written.
    skipped: bool,
    /// True if a value does not fit its column.
    spoiled: bool,
    /// True if the row has a fault other than its key.
    besides: bool,
}

/// Classifies warnings. `None` if one of them concerns an unknown row. `ignores` is true if an
/// existing key is no fault.
pub(super) fn judge(
    warnings: &[Warning],
    selection: &Selection,
    numbering: Numbering,
    ignores: bool,
) -> Option<Verdict> {
    let mut checked = 0;
    let mut verdict = Verdict::default();
    let mut rows: BTreeMap<usize, Faults> = BTreeMap::new();
    for Warning { row, number } in warnings {
        let duplicate = *number == u32::from(DUPLICATE);
        let Some(row) = *row else {
            if !(ignores && duplicate) {
                return None;
            }
            // Each such row has one such warning.
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
        let faults = rows.entry(selection.place(row + uncounted)?).or_default();
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
    use super::super::warnings::listed;
    use super::*;

    fn selection() -> Selection {
        let mut selection = Selection::new(9);
        for place in [0, 2, 4, 6, 8] {
            selection.send(place);
        }
        selection
    }

    fn judged(list: &str, numbering: Numbering, ignores: bool) -> Option<Verdict> {
        judge(&listed(list).unwrap(), &selection(), numbering, ignores)
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
