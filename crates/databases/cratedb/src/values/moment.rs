//! Timestamps: milliseconds since 1970-01-01T00:00:00 UTC, as CrateDB stores and returns them.

use windrow_core::calendar::{date_of, day_number};

const DAY: i64 = 86_400_000;

/// Returns a time in ISO 8601, with `Z` if it has a time zone. `None` for years of more than four
/// digits.
pub(crate) fn iso(millis: i64, zoned: bool) -> Option<String> {
    let (year, month, day) = date_of(millis.div_euclid(DAY));
    if !(0..=9999).contains(&year) {
        return None;
    }
    let of_day = millis.rem_euclid(DAY);
    let (seconds, fraction) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        text.push_str(format!(".{fraction:03}").trim_end_matches('0'));
    }
    if zoned {
        text.push('Z');
    }
    Some(text)
}

/// Returns the moment that a text names in a column with a time zone, or (ignoring its zone)
/// without one. `None` leaves the text to the server: for other forms than ISO 8601, and for
/// fractions of milliseconds.
pub(crate) fn millis(text: &str, zoned: bool) -> Option<i64> {
    if let Ok(millis) = text.parse() {
        return Some(millis);
    }
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some() {
        return None;
    }
    let midnight = day_number(year, month, day)?;
    let (time, offset) = time(rest)?;
    Some(midnight * DAY + time - if zoned { offset } else { 0 })
}

/// Parses the text after the date: milliseconds of the day, and of the offset.
fn time(text: &str) -> Option<(i64, i64)> {
    let Some(text) = text.strip_prefix(['T', ' ']) else {
        return text.is_empty().then_some((0, 0));
    };
    let at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at_checked(at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = number(parts.next()?, 2).filter(|minute| *minute < 60)?;
    let second = parts.next().map_or(Some(0), |part| number(part, 2))?;
    if parts.next().is_some() || second > 59 || fraction.len() > 3 {
        return None;
    }
    let fraction = number(&format!("{fraction:0<3}"), 3)?;
    let time = ((hour * 60 + minute) * 60 + second) * 1000 + fraction;
    Some((time, offset(zone)?))
}

/// Parses `Z`, `+01`, `-0130`, `+01:30` or nothing.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None => return Some(0),
        Some('Z') => return (zone.len() == 1).then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let digits = zone.get(1..)?.replacen(':', "", 1);
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { "00" } else { minutes };
    Some(sign * (number(hours, 2)? * 60 + number(minutes, 2)?) * 60_000)
}

fn number(digits: &str, length: usize) -> Option<i64> {
    let plain = digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        for (text, zoned, expected) in [
            ("1970-01-01T00:00:00Z", true, 0),
            ("2013-01-01T06:00:00.5Z", true, 1_357_020_000_500),
            ("1969-12-31T23:59:59.999Z", true, -1),
            ("2000-02-29T12:00:00Z", true, 951_825_600_000),
            ("0001-01-01T00:00:00", false, -62_135_596_800_000),
        ] {
            assert_eq!(millis(text, zoned), Some(expected), "{text}");
            assert_eq!(iso(expected, zoned).as_deref(), Some(text));
        }
    }

    #[test]
    fn spellings_of_one_moment_are_one() {
        let moment = millis("2020-01-01T00:00:00Z", true);
        for same in [
            "2020-01-01",
            "2020-01-01 00:00",
            "2020-01-01T01:00:00+01",
            "2019-12-31T22:30:00.000-01:30",
            "1577836800000",
        ] {
            assert_eq!(millis(same, true), moment, "{same}");
        }
        assert_eq!(millis("2020-01-01T00:00:00+05", false), moment);
        for odd in [
            "",
            "now",
            "2020-13-01",
            "2021-02-29",
            "2020-1-1",
            "2020-01-01T24:00:00",
            "2020-01-01T00:00:00.0001Z",
            "2020-01-01T00:00:00+1",
            "2020-01-01Z",
            "2020-01-01T00:00:00Zx",
            "2020-01-0\u{e9}",
        ] {
            assert_eq!(millis(odd, true), None, "{odd}");
        }
        assert_eq!(iso(i64::MAX, true), None);
    }
}
