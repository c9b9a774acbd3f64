//! Writes values of Parquet as text.

use windrow_core::calendar::date_of;

/// Writes a date of the proleptic Gregorian calendar by its days since 1970-01-01 (ISO 8601; years
/// of more than four digits, or before year 0, have a sign).
pub(super) fn date(days: i64, out: &mut String) {
    let (year, month, day) = date_of(days);
    if year < 0 {
        out.push('-');
    } else if year > 9999 {
        out.push('+');
    }
    padded(year.unsigned_abs(), 4, out);
    out.push('-');
    padded(month.unsigned_abs(), 2, out);
    out.push('-');
    padded(day.unsigned_abs(), 2, out);
}

/// Parts of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    per_second: i64,
    digits: usize,
}

impl Unit {
    pub(super) const MILLI: Self = Self::of(3);
    pub(super) const MICRO: Self = Self::of(6);
    pub(super) const NANO: Self = Self::of(9);

    const fn of(digits: u32) -> Self {
        Self {
            per_second: 10_i64.pow(digits),
            digits: digits as usize,
        }
    }

    /// Writes a time of day such as `13:05:00`, with a fraction of the unit's digits if it has one.
    pub(super) fn time(self, since_midnight: i64, out: &mut String) {
        let seconds = since_midnight.div_euclid(self.per_second);
        let fraction = since_midnight.rem_euclid(self.per_second);
        padded((seconds / 3600).unsigned_abs(), 2, out);
        out.push(':');
        padded((seconds / 60 % 60).unsigned_abs(), 2, out);
        out.push(':');
        padded((seconds % 60).unsigned_abs(), 2, out);
        let fraction = fraction.unsigned_abs();
        if fraction == 0 {
            return;
        }
        out.push('.');
        // Programs that write nanoseconds mostly have times of microseconds, and databases keep no
        // more.
        match self.digits {
            9 if fraction.is_multiple_of(1000) => padded(fraction / 1000, 6, out),
            digits => padded(fraction, digits, out),
        }
    }

    /// Writes a point in time by its distance from 1970, such as `2026-01-31T13:05:00`.
    pub(super) fn timestamp(self, since_1970: i64, out: &mut String) {
        let a_day = 86_400 * self.per_second;
        date(since_1970.div_euclid(a_day), out);
        out.push('T');
        self.time(since_1970.rem_euclid(a_day), out);
    }
}

fn padded(number: u64, digits: usize, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number);
    for _ in text.len()..digits {
        out.push('0');
    }
    out.push_str(text);
}

/// Writes a decimal number by its digits and the number of them after the point.
pub(super) fn decimal(digits: &str, scale: i8, out: &mut String) {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    out.push_str(sign);
    let behind = usize::from(scale.max(0).unsigned_abs());
    if behind == 0 {
        out.push_str(digits);
        if digits != "0" {
            (0..scale.unsigned_abs()).for_each(|_| out.push('0'));
        }
        return;
    }
    let before = digits.len().saturating_sub(behind);
    out.push_str(
        digits
            .get(..before)
            .filter(|d| !d.is_empty())
            .unwrap_or("0"),
    );
    out.push('.');
    (digits.len()..behind).for_each(|_| out.push('0'));
    out.push_str(digits.get(before..).unwrap_or_default());
}

/// Writes a JSON string.
pub(super) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    let is_plain = |b: &u8| *b >= 0x20 && !matches!(b, b'"' | b'\\');
    if text.as_bytes().iter().all(is_plain) {
        out.push_str(text);
    } else {
        for c in text.chars() {
            escaped(c, out);
        }
    }
    out.push('"');
}

fn escaped(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if u32::from(c) < 0x20 => {
            out.push_str("\\u00");
            hex_digits(u8::try_from(u32::from(c)).unwrap_or_default(), out);
        }
        c => out.push(c),
    }
}

/// Writes binary data in JSON: a string of `\x` and hexadecimal digits, as PostgreSQL writes it.
pub(super) fn hex(bytes: &[u8], out: &mut String) {
    out.push_str("\"\\\\x");
    bytes.iter().for_each(|byte| hex_digits(*byte, out));
    out.push('"');
}

/// Writes a UUID, if these are the sixteen bytes of one.
pub(super) fn uuid(bytes: &[u8], out: &mut String) {
    for (byte, at) in bytes.iter().zip(0..) {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        hex_digits(*byte, out);
    }
}

fn hex_digits(byte: u8, out: &mut String) {
    for half in [byte >> 4, byte & 15] {
        out.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn dates_and_times_are_iso_8601() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (20_484, "2026-01-31"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_897, "+10000-01-01"),
        ] {
            assert_eq!(of(|out| date(days, out)), text);
        }
        assert_eq!(of(|out| Unit::MILLI.time(46_800_000, out)), "13:00:00");
        assert_eq!(
            of(|out| Unit::MICRO.time(86_399_000_001, out)),
            "23:59:59.000001"
        );
        assert_eq!(
            of(|out| Unit::NANO.timestamp(-1, out)),
            "1969-12-31T23:59:59.999999999"
        );
        assert_eq!(
            of(|out| Unit::MILLI.timestamp(951_782_400_000, out)),
            "2000-02-29T00:00:00"
        );
        date(i64::MAX, &mut String::new());
        Unit::NANO.timestamp(i64::MIN, &mut String::new());
    }

    #[test]
    fn decimals_keep_their_scale() {
        for (digits, scale, text) in [
            ("12345", 2, "123.45"),
            ("-5", 2, "-0.05"),
            ("0", 3, "0.000"),
            ("12", 0, "12"),
            ("12", -2, "1200"),
            ("0", -2, "0"),
        ] {
            assert_eq!(of(|out| decimal(digits, scale, out)), text);
        }
    }

    #[test]
    fn strings_are_escaped_as_json_wants_it() {
        let text = "a\"\\\n\u{1}\u{1f}ä";
        let json = of(|out| quoted(text, out));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert_eq!(of(|out| hex(b"\x00\xff", out)), r#""\\x00ff""#);
        let id = of(|out| uuid(&[0x11; 16], out));
        assert_eq!(id, "11111111-1111-1111-1111-111111111111");
    }
}
