//! Chooses the form of each portion by the outcomes of the portions before it.
//!
//! The reader and the workers of a file share it. Each form costs the database less than the next
//! one, and refuses more:
//!
//! 1. The records as in the file, if the database splits records itself.
//! 2. All rows by the bulk form.
//! 3. The rows that look good by the bulk form, the others one by one.
//! 4. All rows one by one.

use windrow_core::FormSkips;

/// The form of a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The records as in the file.
    Unsplit,
    /// All rows by the bulk form.
    Whole,
    /// The rows that look good by the bulk form, the others through the lane.
    WithoutBad,
    /// All rows through the lane.
    Lane,
}

/// The forms that portions have taken so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    /// True if the database may split records itself.
    can_pass: bool,
    /// Portions that are split although the database could split them.
    pass: FormSkips,
    /// Portions that skip the bulk form.
    bulk: FormSkips,
    /// True if the last portion had bad rows, so that the next one is likely to have some.
    has_bad: bool,
}

impl Ways {
    /// Makes a choice without experience. `can_pass` is true if the database may split records
    /// itself.
    pub(super) fn new(can_pass: bool) -> Self {
        Self {
            can_pass,
            ..Self::default()
        }
    }

    /// Returns true if the reader must not split the records of the next portion.
    pub(super) fn reads_unsplit(&mut self) -> bool {
        self.can_pass && !self.has_bad && self.pass.is_due()
    }

    /// Returns true if records that were not split are still to be sent to the database as they
    /// are.
    pub(super) fn passes(&self) -> bool {
        self.can_pass && !self.has_bad
    }

    /// Notes that the database reads such records differently from Windrow.
    pub(super) fn cannot_pass(&mut self) {
        self.can_pass = false;
    }

    /// Returns the form of the next split portion. `is_refused` is true if the database has refused
    /// its records.
    pub(super) fn way(&mut self, is_refused: bool) -> Way {
        match self.bulk.is_due() {
            false => Way::Lane,
            true if self.has_bad || is_refused => Way::WithoutBad,
            true => Way::Whole,
        }
    }

    /// Notes that the bulk form wrote a portion, without some of its rows if `has_bad` is true.
    pub(super) fn written(&mut self, way: Way, has_bad: bool) {
        match way {
            Way::Unsplit => self.pass.succeed(),
            _ => {
                self.bulk.succeed();
                self.has_bad = has_bad;
            }
        }
    }

    /// Notes that the database refused a portion in this form.
    pub(super) fn refused(&mut self, way: Way) {
        match way {
            Way::Unsplit => self.pass.fail(),
            Way::WithoutBad => self.bulk.fail(),
            Way::Whole | Way::Lane => {}
        }
    }

    /// Notes that a portion went through the lane, where some of its rows were refused if `has_bad`
    /// is true.
    pub(super) fn one_by_one(&mut self, has_bad: bool) {
        self.has_bad = has_bad;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_rows_are_expected_after_bad_rows_alone() {
        let mut ways = Ways::new(true);
        assert!(ways.reads_unsplit() && ways.passes());
        ways.refused(Way::Unsplit);
        assert_eq!(ways.way(true), Way::WithoutBad);
        ways.written(Way::WithoutBad, true);
        assert!(!ways.passes() && !ways.reads_unsplit());
        assert_eq!(ways.way(false), Way::WithoutBad);
        ways.written(Way::WithoutBad, false);
        assert_eq!(ways.way(false), Way::Whole);
        // One portion is split after one that was refused.
        assert!(!ways.reads_unsplit() && ways.reads_unsplit());
        ways.written(Way::Unsplit, false);
        assert!(ways.reads_unsplit() && ways.reads_unsplit());
        ways.cannot_pass();
        assert!(!ways.reads_unsplit() && !ways.passes());
    }

    #[test]
    fn what_the_bulk_form_never_takes_is_hardly_tried() {
        let mut ways = Ways::new(false);
        let mut tries = 0;
        for _ in 0..1000 {
            if ways.way(false) != Way::Lane {
                tries += 1;
                ways.refused(Way::WithoutBad);
            }
            ways.one_by_one(false);
        }
        assert!((5..30).contains(&tries), "{tries}");
    }
}
