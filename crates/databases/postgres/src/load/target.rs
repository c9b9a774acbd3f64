//! A column that a portion fills.

use windrow_core::Field;
use windrow_database::infer;

use super::binary::Form;
use crate::catalog::column::{Column, Kind};

/// A column that a portion fills.
pub(super) struct Target {
    pub(super) kind: Kind,
    /// The column's binary form, if there is one.
    pub(super) form: Option<Form>,
    /// True if NULL is certainly refused.
    not_null: bool,
    /// Maximum number of characters.
    longest: Option<usize>,
    /// Maximum number of digits before and after the point.
    digits: Option<(usize, usize)>,
    /// The column's kind, if Windrow itself judges what the column keeps.
    judged: Option<infer::Kind>,
}

impl Target {
    /// Reads the column of a table. `hooks`: a trigger may give it a value. `judged`: its kind, if
    /// Windrow itself judges what it keeps.
    pub(super) fn of(column: &Column, hooks: bool, judged: Option<infer::Kind>) -> Self {
        Self {
            kind: column.kind.clone(),
            form: Form::of(column),
            // A trigger may give it a value.
            not_null: column.not_null && !hooks,
            longest: column.longest(),
            digits: digits(column),
            judged,
        }
    }

    /// Returns false if the column does not keep a field as it is.
    #[inline]
    pub(super) fn keeps(&self, field: &Field<'_>) -> bool {
        self.judged.is_none_or(|kind| kind.takes_field(field))
    }

    /// Returns true if Windrow itself judges what the column keeps.
    pub(super) fn is_judged(&self) -> bool {
        self.judged.is_some()
    }

    /// Returns false if the column would probably refuse a field, for a reason that the field's
    /// spelling does not show.
    pub(super) fn takes(&self, field: &Field<'_>) -> bool {
        let text = match *field {
            Field::Null => return !self.not_null,
            Field::Plain(text) | Field::Text(text) | Field::Number(text) => text,
            Field::Bool(_) | Field::Json(_) | Field::Bytes(_) => return true,
        };
        let short = |most: usize| {
            // Blanks at the end are cut off.
            text.len() <= most || text.trim_end_matches(' ').chars().count() <= most
        };
        let small = |(most, scale): (usize, usize)| {
            let number = text.trim_start_matches(['-', '+']);
            let number = number.trim_start_matches('0');
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            // Rounding of excess digits after the point may carry.
            let carries = fraction.len() > scale && whole.bytes().all(|digit| digit == b'9');
            whole.len() + usize::from(carries) <= most || number.contains(['e', 'E'])
        };
        self.longest.is_none_or(short) && self.digits.is_none_or(small)
    }
}

/// Returns the digits that a `numeric(p, s)` takes before and after the point
/// (`numeric_typmod_precision` of `src/backend/utils/adt/numeric.c`).
fn digits(column: &Column) -> Option<(usize, usize)> {
    let modifier = column.narrowed.checked_sub(4).filter(|m| *m >= 0)?;
    let (precision, scale) = (modifier >> 16 & 0xffff, modifier & 0x7ff);
    // The scale has a sign of its own; with a negative one there may be more digits than the
    // precision says.
    match column.kind == Kind::Numeric && scale <= 1000 {
        true => Some((
            usize::try_from(precision - scale).ok()?,
            usize::try_from(scale).ok()?,
        )),
        false => None,
    }
}
