//! Times as the server reads and returns them.

use windrow_core::calendar::{date_of, day_number};
use windrow_database::iso_moment::{IsoMoment, MICROS_OF_DAY, clock};

/// Returns the microseconds since 1970-01-01 00:00 of a returned value; `None` for dates that do
/// not exist, such as `0000-00-00`.
pub(crate) fn micros_of(date: (u16, u8, u8), time: (u8, u8, u8), micros: u32) -> Option<i64> {
    let days = day_number(date.0.into(), date.1.into(), date.2.into())?;
    let (h, m, s) = (i64::from(time.0), i64::from(time.1), i64::from(time.2));
    let of_day = ((h * 60 + m) * 60 + s) * 1_000_000 + i64::from(micros);
    Some(days * MICROS_OF_DAY + of_day)
}

/// Returns a time in the server's form, in UTC; `None` for a year that the server does not have.
pub(crate) fn in_utc(moment: IsoMoment) -> Option<String> {
    let (year, month, day) = date_of(moment.utc().div_euclid(MICROS_OF_DAY));
    if !(0..=9999).contains(&year) {
        return None;
    }
    let (h, m, s, micros) = clock(moment.utc().rem_euclid(MICROS_OF_DAY));
    let mut text = format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}");
    if micros > 0 {
        text.push_str(&format!(".{micros:06}"));
    }
    Some(text)
}

/// Returns a fraction of a second with its point and without trailing zeros; nothing for 0.
pub(crate) fn fraction(micros: u32) -> String {
    if micros == 0 {
        return String::new();
    }
    let digits = format!(".{micros:06}");
    digits.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Option<String> {
        in_utc(IsoMoment::read(text)?)
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
