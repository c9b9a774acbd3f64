//! Reads dates and times in ISO 8601 exactly as the server reads them.

#[cfg(test)]
mod tests;

use windrow_core::calendar::date_of;
use windrow_database::iso_moment::{IsoMoment, MICROS_OF_DAY, clock, read_date};

pub(crate) use windrow_database::iso_moment::read_time as time_of_day;

/// The days from 1970-01-01 to 2000-01-01, the origin of PostgreSQL's times.
const EPOCH: i64 = 10_957;

/// Days from 1970-01-01 back to 0001-01-01: the server has no year 0.
const FIRST_DAY: i64 = -719_162;

/// A date and time of day, with its zone if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(IsoMoment);

/// Reads a date alone: days since 2000-01-01.
pub(crate) fn date(text: &str) -> Option<i32> {
    let days = read_date(text).filter(|days| *days >= FIRST_DAY)?;
    i32::try_from(days - EPOCH).ok()
}

/// Reads a date with or without time of day and zone.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let moment = IsoMoment::read(text).filter(|moment| moment.days >= FIRST_DAY);
    moment.map(Moment)
}

/// Returns the text of a date with a four-digit year, in the form that is read here; `None` for all
/// others.
pub(crate) fn text_of_date(days: i64) -> Option<String> {
    let (year, month, day) = date_of(days.checked_add(EPOCH)?);
    (1..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Returns the text of a moment given in microseconds since 2000-01-01 00:00, as date and time are
/// read here.
pub(crate) fn text_of(micros: i64) -> Option<String> {
    let date = text_of_date(micros.div_euclid(MICROS_OF_DAY))?;
    let (hour, minute, second, fraction) = clock(micros.rem_euclid(MICROS_OF_DAY));
    Some(format!(
        "{date}T{hour:02}:{minute:02}:{second:02}.{fraction:06}"
    ))
}

impl Moment {
    /// Returns true if the moment is written with a zone.
    pub(crate) fn has_zone(self) -> bool {
        self.0.zone.is_some()
    }

    /// Returns the moment as a `timestamp`: microseconds since 2000-01-01 00:00. A zone is ignored,
    /// as the server ignores it.
    pub(crate) fn local(self) -> i64 {
        self.0.local() - EPOCH * MICROS_OF_DAY
    }

    /// Returns the moment as a `timestamptz`: microseconds since 2000-01-01 00:00 UTC.
    pub(crate) fn utc(self) -> i64 {
        self.0.utc() - EPOCH * MICROS_OF_DAY
    }
}
