//! The kind of values of a column that is created for a file.

use std::ops::RangeInclusive;

/// The kind of values of a column, from its file or from all texts in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// True and false.
    Bool,
    /// Whole numbers of 16 bits.
    Int2,
    /// Whole numbers of 32 bits.
    Int4,
    /// Whole numbers of 64 bits.
    Int8,
    /// Binary fractions of 32 bits.
    Float4,
    /// Binary fractions of 64 bits.
    Float8,
    /// Decimal numbers: the number of digits, and how many of them are after the point.
    Decimal(u8, u8),
    /// Text.
    Text,
    /// Arrays and objects.
    Json,
    /// Binary data.
    Bytes,
    /// Days of the calendar.
    Date,
    /// Times of day.
    Time,
    /// Dates with a time of day, of no zone.
    Timestamp,
    /// Dates with a time of day and a time zone.
    Timestamptz,
    /// UUIDs.
    Uuid,
}

impl Holds {
    /// True for dates, times of day, and dates with a time of day.
    pub fn is_time(self) -> bool {
        matches!(
            self,
            Self::Date | Self::Time | Self::Timestamp | Self::Timestamptz
        )
    }

    /// Returns the kind of a text in ISO 8601: a date, a time of day, or both, with a time zone or
    /// without. Accepts only texts that every database reads the same way: years of four digits,
    /// existing days, hours below 24, at most six digits of a second's fraction.
    pub fn time(text: &str) -> Option<Self> {
        let mut left = text.as_bytes();
        let date = take_date(&mut left);
        if date.is_some() && left.is_empty() {
            return Some(Self::Date);
        }
        if date.is_none() {
            left = text.as_bytes();
            take_time(&mut left)?;
            // Without seconds the text is ambiguous: hours and minutes, or minutes and seconds.
            return (left.is_empty() && text.len() > 5).then_some(Self::Time);
        }
        take(&mut left, |byte| matches!(byte, b'T' | b' '))?;
        take_time(&mut left)?;
        if left.is_empty() {
            return Some(Self::Timestamp);
        }
        take_zone(&mut left)?;
        left.is_empty().then_some(Self::Timestamptz)
    }
}

fn take(left: &mut &[u8], wanted: impl Fn(u8) -> bool) -> Option<()> {
    let (first, rest) = left.split_first()?;
    wanted(*first).then(|| *left = rest)
}

/// Takes a number of this many digits.
fn number(left: &mut &[u8], digits: usize, range: RangeInclusive<u32>) -> Option<u32> {
    let (number, rest) = left.split_at_checked(digits)?;
    let mut value = 0;
    for byte in number {
        value = value * 10 + char::from(*byte).to_digit(10)?;
    }
    *left = rest;
    range.contains(&value).then_some(value)
}

fn take_date(left: &mut &[u8]) -> Option<()> {
    let year = number(left, 4, 1..=9999)?;
    take(left, |byte| byte == b'-')?;
    let month = number(left, 2, 1..=12)?;
    take(left, |byte| byte == b'-')?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    number(left, 2, 1..=days).map(|_| ())
}

fn take_time(left: &mut &[u8]) -> Option<()> {
    number(left, 2, 0..=23)?;
    take(left, |byte| byte == b':')?;
    number(left, 2, 0..=59)?;
    if take(left, |byte| byte == b':').is_none() {
        return Some(());
    }
    number(left, 2, 0..=59)?;
    if take(left, |byte| byte == b'.').is_none() {
        return Some(());
    }
    let digits = left.iter().take_while(|byte| byte.is_ascii_digit()).count();
    *left = left.get(digits..)?;
    (1..=6).contains(&digits).then_some(())
}

fn take_zone(left: &mut &[u8]) -> Option<()> {
    if take(left, |byte| byte == b'Z').is_some() {
        return Some(());
    }
    take(left, |byte| matches!(byte, b'+' | b'-'))?;
    number(left, 2, 0..=14)?;
    if left.is_empty() {
        return Some(());
    }
    take(left, |byte| byte == b':')?;
    number(left, 2, 0..=59).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_times_where_every_database_reads_them_as_that() {
        for (text, holds) in [
            ("2024-02-29", Holds::Date),
            ("0001-01-01", Holds::Date),
            ("23:59:59", Holds::Time),
            ("00:00:00.000001", Holds::Time),
            ("2024-01-05T10:00", Holds::Timestamp),
            ("2024-01-05 10:00:00.5", Holds::Timestamp),
            ("2024-01-05T10:00:00Z", Holds::Timestamptz),
            ("2024-01-05 10:00:00.123456+05:30", Holds::Timestamptz),
            ("2024-01-05 10:00:00-08", Holds::Timestamptz),
        ] {
            assert_eq!(Holds::time(text), Some(holds), "{text}");
        }
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "0000-01-01",
            "2024-1-5",
            "05/01/2024",
            "20240105",
            "10:00",
            "24:00:00",
            "23:59:60",
            "10:00:00.",
            "10:00:00.1234567",
            "10:00:00Z",
            "2024-01-05T",
            "2024-01-05 10",
            "2024-01-05  10:00:00",
            "2024-01-05T10:00:00 UTC",
            "2024-01-05T10:00:00+15:00",
            "2024-01-05T10:00:00+5",
            "2024-01-05x",
            " 2024-01-05",
            "2024-01-05\u{663}",
            "now",
        ] {
            assert_eq!(Holds::time(text), None, "{text}");
        }
    }
}
