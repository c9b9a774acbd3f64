//! Parses dates and times in ISO 8601. Pure.
//!
//! Accepts only texts that all servers read the same way: years of four digits, existing days, at
//! most six digits of a second's fraction, zones of up to 14 hours. All others are left to the
//! server.

use windrow_core::calendar::day_number;

/// Microseconds of a day.
pub const MICROS_OF_DAY: i64 = 86_400 * MICROS_OF_SECOND;

const MICROS_OF_SECOND: i64 = 1_000_000;

/// A date and time of day, with its zone if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsoMoment {
    /// Days since 1970-01-01.
    pub days: i64,
    /// Microseconds since midnight.
    pub micros: i64,
    /// Seconds east of UTC.
    pub zone: Option<i64>,
}

impl IsoMoment {
    /// Parses a date with or without time of day and zone.
    pub fn read(text: &str) -> Option<Self> {
        let mut left = text.as_bytes();
        let days = take_date(&mut left)?;
        if left.is_empty() {
            let (micros, zone) = (0, None);
            return Some(Self { days, micros, zone });
        }
        take_one_of(&mut left, b"Tt ")?;
        let micros = take_time(&mut left)?;
        let zone = take_zone(&mut left)?;
        left.is_empty().then_some(Self { days, micros, zone })
    }

    /// Returns the microseconds since 1970-01-01 00:00, ignoring the zone.
    pub fn local(self) -> i64 {
        self.days * MICROS_OF_DAY + self.micros
    }

    /// Returns the microseconds since 1970-01-01 00:00 UTC. A moment without a zone is in UTC, the
    /// zone of Windrow's sessions.
    pub fn utc(self) -> i64 {
        self.local() - self.zone.unwrap_or(0) * MICROS_OF_SECOND
    }
}

/// Parses a date alone, as days since 1970-01-01.
pub fn read_date(text: &str) -> Option<i64> {
    let mut left = text.as_bytes();
    let days = take_date(&mut left)?;
    left.is_empty().then_some(days)
}

/// Parses a time of day without a zone, as microseconds since midnight.
pub fn read_time(text: &str) -> Option<i64> {
    let mut left = text.as_bytes();
    let micros = take_time(&mut left)?;
    left.is_empty().then_some(micros)
}

/// Returns hour, minute, second and microsecond of a time of day.
pub fn clock(micros: i64) -> (i64, i64, i64, i64) {
    let (seconds, fraction) = (micros / MICROS_OF_SECOND, micros % MICROS_OF_SECOND);
    (seconds / 3600, seconds / 60 % 60, seconds % 60, fraction)
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
    let mut micros = 0;
    if take_one_of(left, b":").is_some() {
        micros = take_digits(left, 2).filter(|second| *second < 60)? * MICROS_OF_SECOND;
        if take_one_of(left, b".").is_some() {
            micros += take_fraction(left)?;
        }
    }
    (hour < 24 && minute < 60).then_some((hour * 60 + minute) * 60 * MICROS_OF_SECOND + micros)
}

/// Parses one to six digits after the point, as microseconds.
fn take_fraction(left: &mut &[u8]) -> Option<i64> {
    let count = left.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=6).contains(&count) {
        return None;
    }
    let digits = take_digits(left, count)?;
    let missing = u32::try_from(6 - count).ok()?;
    Some(digits * 10_i64.pow(missing))
}

/// Parses `Z`, `+HH`, `+HHMM`, `+HH:MM`, or nothing. The outer `None` is for all other texts.
fn take_zone(left: &mut &[u8]) -> Option<Option<i64>> {
    if left.is_empty() {
        return Some(None);
    }
    let sign = match take_one_of(left, b"Zz+-")? {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(Some(0)),
    };
    let hours = take_digits(left, 2).filter(|hours| *hours <= 14)?;
    let colon = take_one_of(left, b":").is_some();
    let minutes = if colon || !left.is_empty() {
        take_digits(left, 2).filter(|minutes| *minutes < 60)?
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
    let value = |sum: i64, b: &u8| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0'));
    let number = digits.iter().try_fold(0, value)?;
    *left = rest;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_zones_are_read() {
        let second = MICROS_OF_SECOND;
        for (text, utc) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:01.5", 1_500_000),
            ("1970-01-01T00:00:00.000001z", 1),
            ("1970-01-02", MICROS_OF_DAY),
            ("1970-01-01 01:00", 3600 * second),
            ("1970-01-01T01:00:00+01", 0),
            ("1970-01-01T00:00:00-01:30", 5400 * second),
        ] {
            assert_eq!(
                IsoMoment::read(text).map(IsoMoment::utc),
                Some(utc),
                "{text}"
            );
        }
        let zoned = IsoMoment::read("1970-01-01T01:00:00+05:00").unwrap();
        assert_eq!((zoned.local(), zoned.zone), (3600 * second, Some(18_000)));
        for odd in [
            "2023-02-29",
            "20000101",
            "2000-01-01T",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:00:60Z",
            "2000-01-01T00:00.5",
            "2000-01-01T00:00:00.0000001Z",
            "2000-01-01T00:00:00+15",
            "2000-01-01T00:00:00+01:",
            "now",
        ] {
            assert_eq!(IsoMoment::read(odd), None, "{odd}");
        }
        assert_eq!(read_date("1970-01-02"), Some(1));
        assert_eq!(read_date("1970-01-02 "), None);
        let time = read_time("23:59:58.25").unwrap();
        assert_eq!(clock(time), (23, 59, 58, 250_000));
    }
}
