//! Parses dates and times in ISO 8601.
//!
//! Only forms that the server parses in the same way are parsed: years of four digits, days that
//! exist, up to six digits of a second's fraction. All others are left to the server.

use windrow_core::calendar::{date_of, day_number};

const SECONDS_PER_DAY: i64 = 86_400;

/// A date and time of day, with its zone if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 1970-01-01.
    days: i64,
    seconds: i64,
    micros: u32,
    /// Seconds east of UTC.
    zone: Option<i64>,
}

impl Moment {
    /// Parses a date with or without time of day and zone.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut left = text.as_bytes();
        let days = take_date(&mut left)?;
        let mut moment = Self {
            days,
            seconds: 0,
            micros: 0,
            zone: None,
        };
        if left.is_empty() {
            return Some(moment);
        }
        take_one_of(&mut left, b"Tt ")?;
        moment.seconds = take_time(&mut left)?;
        if take_one_of(&mut left, b".").is_some() {
            moment.micros = take_fraction(&mut left)?;
        }
        moment.zone = take_zone(&mut left)?;
        left.is_empty().then_some(moment)
    }

    /// Converts a returned value; `None` for dates that do not exist, such as `0000-00-00`.
    pub(crate) fn of(date: (u16, u8, u8), time: (u8, u8, u8), micros: u32) -> Option<Self> {
        let days = day_number(date.0.into(), date.1.into(), date.2.into())?;
        let (h, m, s) = (i64::from(time.0), i64::from(time.1), i64::from(time.2));
        Some(Self {
            days,
            seconds: h * 3600 + m * 60 + s,
            micros,
            zone: None,
        })
    }

    /// Returns true if the text had a zone.
    pub(crate) fn has_zone(&self) -> bool {
        self.zone.is_some()
    }

    /// Returns the microseconds since 1970-01-01 00:00 UTC. A time without a zone is in UTC, the
    /// zone of Windrow's sessions.
    pub(crate) fn utc(&self) -> i64 {
        let seconds = self.days * SECONDS_PER_DAY + self.seconds - self.zone.unwrap_or(0);
        seconds * 1_000_000 + i64::from(self.micros)
    }

    /// Returns the time in the server's form, in UTC; `None` for a year that the server does not
    /// have.
    pub(crate) fn in_utc(&self) -> Option<String> {
        let seconds = self.utc().div_euclid(1_000_000);
        let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        if !(0..=9999).contains(&year) {
            return None;
        }
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        let mut text = format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}");
        if self.micros > 0 {
            text.push_str(&format!(".{:06}", self.micros));
        }
        Some(text)
    }
}

/// Returns the days since 1970-01-01 of a date without time.
pub(crate) fn date(text: &str) -> Option<i64> {
    let mut left = text.as_bytes();
    let days = take_date(&mut left)?;
    left.is_empty().then_some(days)
}

/// Returns a fraction of a second with its point and without trailing zeros; nothing for 0.
pub(crate) fn fraction(micros: u32) -> String {
    if micros == 0 {
        return String::new();
    }
    let digits = format!(".{micros:06}");
    digits.trim_end_matches('0').to_owned()
}

fn take_date(left: &mut &[u8]) -> Option<i64> {
    let year = take_digits(left, 4)?;
    take_one_of(left, b"-")?;
    let month = take_digits(left, 2)?;
    take_one_of(left, b"-")?;
    let day = take_digits(left, 2)?;
    day_number(year, month, day)
}

fn take_time(left: &mut &[u8]) -> Option<i64> {
    let hour = take_digits(left, 2)?;
    take_one_of(left, b":")?;
    let minute = take_digits(left, 2)?;
    let second = match take_one_of(left, b":") {
        Some(_) => take_digits(left, 2)?,
        None => 0,
    };
    (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
}

fn take_fraction(left: &mut &[u8]) -> Option<u32> {
    let digits = left.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=6).contains(&digits) {
        return None;
    }
    let value = u32::try_from(take_digits(left, digits)?).ok()?;
    let missing = u32::try_from(6 - digits).ok()?;
    Some(value * 10_u32.pow(missing))
}

/// Parses `Z`, `+01`, `+0100`, `-01:30`, or nothing. The outer `None` is for all other texts.
fn take_zone(left: &mut &[u8]) -> Option<Option<i64>> {
    let sign = match take_one_of(left, b"Zz+-") {
        None => return Some(None),
        Some(b'Z' | b'z') => return Some(Some(0)),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let hours = take_digits(left, 2)?;
    let colon = take_one_of(left, b":").is_some();
    let minutes = match left.first() {
        Some(b) if b.is_ascii_digit() => take_digits(left, 2)?,
        _ if colon => return None,
        _ => 0,
    };
    (hours <= 14 && minutes < 60).then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

fn take_digits(left: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, rest) = left.split_at_checked(count)?;
    *left = rest;
    let value = |sum: i64, b: &u8| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0'));
    digits.iter().try_fold(0, value)
}

fn take_one_of(left: &mut &[u8], any: &[u8]) -> Option<u8> {
    let (first, rest) = left.split_first()?;
    any.contains(first).then(|| {
        *left = rest;
        *first
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Option<String> {
        Moment::read(text)?.in_utc()
    }

    #[test]
    fn zones_are_turned_into_utc() {
        for (text, expected) in [
            ("2013-01-01T06:00:00Z", "2013-01-01 06:00:00"),
            ("2013-01-01 00:30:00+01:00", "2012-12-31 23:30:00"),
            ("2024-02-29T23:59:59.5-0230", "2024-03-01 02:29:59.500000"),
            ("1969-12-31T23:59:59.000001Z", "1969-12-31 23:59:59.000001"),
            ("2020-05-05", "2020-05-05 00:00:00"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(expected), "{text}");
        }
        for odd in [
            "2023-02-29",
            "now",
            "2020-1-1",
            "2020-01-01T25:00",
            "2020-01-01T00:00:00.1234567",
        ] {
            assert_eq!(utc(odd), None, "{odd}");
        }
    }

    #[test]
    fn fractions_end_where_they_are_zero() {
        assert_eq!(fraction(0), "");
        assert_eq!(fraction(500_000), ".5");
        assert_eq!(fraction(1), ".000001");
    }
}
