//! Reads dates and times in ISO 8601 exactly as the server reads them.
//!
//! Only texts that both read alike are accepted: four-digit years, real days of the calendar, up to
//! six digits of a second's fraction, zones of up to 14 hours. Anything else is left to the server.

#[cfg(test)]
mod tests;

use windrow_core::calendar::{date_of, day_number};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL's clock begins.
const EPOCH: i64 = 10_957;

/// A date and time of day, with its zone if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 2000-01-01.
    days: i64,
    /// Microseconds since midnight.
    micros: i64,
    /// Seconds east of UTC.
    zone: Option<i64>,
}

/// Reads a date alone: days since 2000-01-01.
pub(crate) fn date(text: &str) -> Option<i32> {
    let mut left = text.as_bytes();
    let days = take_date(&mut left)?;
    left.is_empty().then_some(())?;
    i32::try_from(days).ok()
}

/// Reads a time of day without a zone: microseconds since midnight.
pub(crate) fn time_of_day(text: &str) -> Option<i64> {
    let mut left = text.as_bytes();
    let micros = take_time(&mut left)?;
    left.is_empty().then_some(micros)
}

/// Reads a date with or without time of day and zone.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let mut left = text.as_bytes();
    let days = take_date(&mut left)?;
    if left.is_empty() {
        let (micros, zone) = (0, None);
        return Some(Moment { days, micros, zone });
    }
    take_one_of(&mut left, b"Tt ")?;
    let micros = take_time(&mut left)?;
    let zone = take_zone(&mut left)?;
    left.is_empty().then_some(Moment { days, micros, zone })
}

/// Returns the text of a date with a four-digit year, as it is read here; `None` for all others.
pub(crate) fn text_of_date(days: i64) -> Option<String> {
    let (year, month, day) = date_of(days.checked_add(EPOCH)?);
    (1..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Returns the text of a moment given in microseconds since 2000-01-01 00:00, as date and time are
/// read here.
pub(crate) fn text_of(micros: i64) -> Option<String> {
    let day = SECONDS_PER_DAY * MICROS_PER_SECOND;
    let date = text_of_date(micros.div_euclid(day))?;
    let (seconds, fraction) = {
        let of_day = micros.rem_euclid(day);
        (of_day / MICROS_PER_SECOND, of_day % MICROS_PER_SECOND)
    };
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(format!(
        "{date}T{hour:02}:{minute:02}:{second:02}.{fraction:06}"
    ))
}

impl Moment {
    /// Returns true if the moment is written with a zone.
    pub(crate) fn has_zone(self) -> bool {
        self.zone.is_some()
    }

    /// Returns the moment as a `timestamp`: microseconds since 2000-01-01 00:00. A zone is ignored,
    /// as the server ignores it.
    pub(crate) fn local(self) -> i64 {
        self.days * SECONDS_PER_DAY * MICROS_PER_SECOND + self.micros
    }

    /// Returns the moment as a `timestamptz`: microseconds since 2000-01-01 00:00 UTC. A moment
    /// without a zone is in UTC, the zone of Windrow's sessions.
    pub(crate) fn utc(self) -> i64 {
        self.local() - self.zone.unwrap_or(0) * MICROS_PER_SECOND
    }
}

fn take_date(left: &mut &[u8]) -> Option<i64> {
    let year = take_digits(left, 4)?;
    take_one_of(left, b"-")?;
    let month = take_digits(left, 2)?;
    take_one_of(left, b"-")?;
    let day = take_digits(left, 2)?;
    let number = day_number(year, month, day).filter(|_| year >= 1);
    number.map(|number| number - EPOCH)
}

fn take_time(left: &mut &[u8]) -> Option<i64> {
    let hour = take_digits(left, 2)?;
    take_one_of(left, b":")?;
    let minute = take_digits(left, 2)?;
    let mut micros = 0;
    if take_one_of(left, b":").is_some() {
        micros = take_digits(left, 2).filter(|s| *s < 60)? * MICROS_PER_SECOND;
        if take_one_of(left, b".").is_some() {
            micros += take_fraction(left)?;
        }
    }
    (hour < 24 && minute < 60).then_some((hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros)
}

/// Reads one to six digits after the point, as microseconds.
fn take_fraction(left: &mut &[u8]) -> Option<i64> {
    let count = left.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=6).contains(&count) {
        return None;
    }
    let digits = take_digits(left, count)?;
    let missing = u32::try_from(6 - count).ok()?;
    Some(digits * 10_i64.pow(missing))
}

/// Reads `Z`, `+HH`, `+HHMM`, `+HH:MM`, or nothing.
fn take_zone(left: &mut &[u8]) -> Option<Option<i64>> {
    if left.is_empty() {
        return Some(None);
    }
    let sign = match take_one_of(left, b"Zz+-")? {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(Some(0)),
    };
    let hours = take_digits(left, 2).filter(|h| *h <= 14)?;
    let colon = take_one_of(left, b":").is_some();
    let minutes = if colon || !left.is_empty() {
        take_digits(left, 2).filter(|m| *m < 60)?
    } else {
        0
    };
    Some(Some(sign * (hours * 60 + minutes) * 60))
}

fn take_one_of(left: &mut &[u8], wanted: &[u8]) -> Option<u8> {
    let (first, rest) = left.split_first()?;
    wanted.contains(first).then_some(())?;
    *left = rest;
    Some(*first)
}

fn take_digits(left: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, rest) = left.split_at_checked(count)?;
    let mut number = 0;
    for digit in digits {
        number = number * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    *left = rest;
    Some(number)
}
