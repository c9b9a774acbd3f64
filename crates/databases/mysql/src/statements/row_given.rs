//! The values of calls as their clients gave them: literals, and the values of prepared statements.

use super::row_settings::RowSettings;

/// A value that a client gave. `None` where a function returns one: a value of another form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GivenValue {
    Null,
    /// The decimal text of an exact number; a literal may have an exponent.
    Number(Box<str>),
    /// A number of a prepared statement in the form of a column of `DOUBLE` or `FLOAT`.
    Float(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// A date or time of a prepared statement, as text.
    Moment(Box<str>),
}

/// Reads a literal as the client spelled it.
pub(super) fn literal(spelled: &str, settings: &RowSettings) -> Option<GivenValue> {
    let text = spelled.trim();
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    let number = |digits: &str| Some(GivenValue::Number(digits.into()));
    match text.as_bytes() {
        _ if is("null") => Some(GivenValue::Null),
        _ if is("true") => number("1"),
        _ if is("false") => number("0"),
        [b'\'', ..] => quoted(text, settings).map(|text| GivenValue::Text(text.into())),
        [b'"', ..] if !settings.has_ansi_quotes => {
            quoted(text, settings).map(|text| GivenValue::Text(text.into()))
        }
        [b'x' | b'X', b'\'', digits @ .., b'\''] | [b'0', b'x', digits @ ..] => {
            hex(digits).map(GivenValue::Bytes)
        }
        [b'_', ..] => {
            let rest = text
                .get(..7)
                .filter(|word| word.eq_ignore_ascii_case("_binary"));
            let rest = rest.and(text.get(7..))?.trim_start();
            let bytes = quoted(rest, settings)?.into_bytes();
            Some(GivenValue::Bytes(bytes.into()))
        }
        _ => {
            let plain = text.strip_prefix('+').unwrap_or(text);
            windrow_core::value::is_number(plain.as_bytes())
                .then(|| GivenValue::Number(plain.into()))
        }
    }
}

/// Reads a string of one part.
fn quoted(text: &str, settings: &RowSettings) -> Option<String> {
    let quote = text.chars().next()?;
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut read = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' if settings.has_escapes => match chars.next()? {
                '0' => read.push('\0'),
                'b' => read.push('\x08'),
                'n' => read.push('\n'),
                'r' => read.push('\r'),
                't' => read.push('\t'),
                'Z' => read.push('\x1a'),
                // Patterns of LIKE keep the backslash.
                wild @ ('%' | '_') => read.extend(['\\', wild]),
                other => read.push(other),
            },
            // Two parts side by side have a quote that is not doubled.
            char if char == quote => {
                (chars.next()? == quote).then(|| read.push(quote))?;
            }
            char => read.push(char),
        }
    }
    Some(read)
}

fn hex(digits: &[u8]) -> Option<Box<[u8]>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match *pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

/// Reads a value of a prepared statement: its type, a flag, and its bytes
/// (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>).
pub(super) fn bound(value: &[u8], settings: &RowSettings) -> Option<GivenValue> {
    let (&[kind, flag], bytes) = value.split_first_chunk::<2>()?;
    let is_unsigned = flag & 0x80 != 0;
    Some(match kind {
        // TINY, SHORT, LONG, INT24, LONGLONG
        1..=3 | 8 | 9 => GivenValue::Number(whole(bytes, is_unsigned)?.to_string().into()),
        // FLOAT, DOUBLE
        4 => GivenValue::Float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        5 => GivenValue::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        // TIMESTAMP, DATE, DATETIME
        7 | 10 | 12 => GivenValue::Moment(moment(bytes.get(1..)?)?.into()),
        11 => GivenValue::Moment(time(bytes.get(1..)?)?.into()),
        // DECIMAL, NEWDECIMAL
        0 | 246 => GivenValue::Number(str::from_utf8(long(bytes)?).ok()?.into()),
        // VARCHAR, VAR_STRING, STRING
        15 | 253 | 254 => match str::from_utf8(long(bytes)?) {
            Ok(text) => GivenValue::Text(text.into()),
            Err(_) if settings.keeps_bytes => GivenValue::Bytes(long(bytes)?.into()),
            Err(_) => return None,
        },
        // BLOBs
        249..=252 => GivenValue::Bytes(long(bytes)?.into()),
        _ => return None,
    })
}

/// Returns a whole number of one to eight bytes.
fn whole(bytes: &[u8], is_unsigned: bool) -> Option<i128> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let number = u64::from_le_bytes(wide);
    let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?;
    Some(match is_unsigned {
        true => number.into(),
        false => ((number << unused).cast_signed() >> unused).into(),
    })
}

/// Returns the bytes behind their length.
fn long(from: &[u8]) -> Option<&[u8]> {
    let start = match *from.first()? {
        0xfb | 0xff => return None,
        0xfc => 3,
        0xfd => 4,
        0xfe => 9,
        _ => 1,
    };
    from.get(start..)
}

/// Returns the text of a date, perhaps with a time.
fn moment(bytes: &[u8]) -> Option<String> {
    let (&[low, high, month, day], rest) = bytes.split_first_chunk::<4>()?;
    let year = u16::from_le_bytes([low, high]);
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(match *rest {
        [] => date,
        [h, m, s] => format!("{date} {h:02}:{m:02}:{s:02}"),
        [h, m, s, ref micros @ ..] => {
            let micros = u32::from_le_bytes(micros.try_into().ok()?);
            format!("{date} {h:02}:{m:02}:{s:02}.{micros:06}")
        }
        _ => return None,
    })
}

/// Returns the text of a time, which may be longer than a day.
fn time(bytes: &[u8]) -> Option<String> {
    let Some((&[sign, d0, d1, d2, d3, h, m, s], micros)) = bytes.split_first_chunk::<8>() else {
        return bytes.is_empty().then(|| "00:00:00".to_owned());
    };
    let hours = u64::from(u32::from_le_bytes([d0, d1, d2, d3])) * 24 + u64::from(h);
    let sign = if sign == 0 { "" } else { "-" };
    let time = format!("{sign}{hours:02}:{m:02}:{s:02}");
    Some(match micros {
        [] => time,
        micros => format!("{time}.{:06}", u32::from_le_bytes(micros.try_into().ok()?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<GivenValue> {
        Some(GivenValue::Text(text.into()))
    }

    fn number(digits: &str) -> Option<GivenValue> {
        Some(GivenValue::Number(digits.into()))
    }

    #[test]
    fn literals_are_read_as_the_server_reads_them() {
        let settings = RowSettings::UNKNOWN;
        let bytes = |bytes: &[u8]| Some(GivenValue::Bytes(bytes.into()));
        for (spelled, expected) in [
            ("null", Some(GivenValue::Null)),
            ("TRUE", number("1")),
            ("-12.50", number("-12.50")),
            ("+7", number("7")),
            ("1e5", number("1e5")),
            ("'it''s'", text("it's")),
            (r"'a\'b\\\n\%\x'", text("a'b\\\n\\%x")),
            ("\"a'\"", text("a'")),
            ("''", text("")),
            ("'a' 'b'", None),
            (r"'a\'", None),
            ("X'00fF'", bytes(&[0, 255])),
            ("0x4142", bytes(b"AB")),
            ("x'0'", None),
            ("_binary'a\\0'", bytes(b"a\0")),
            ("_latin1'a'", None),
            ("N'a'", None),
            ("DATE'2026-01-01'", None),
            ("now()", None),
            ("", None),
        ] {
            assert_eq!(literal(spelled, &settings), expected, "{spelled}");
        }
        let plain = RowSettings {
            has_escapes: false,
            has_ansi_quotes: true,
            ..settings
        };
        assert_eq!(literal(r"'a\n'", &plain), text(r"a\n"));
        assert_eq!(literal("\"a\"", &plain), None);
    }

    #[test]
    fn bound_values_are_read_by_their_types() {
        let of = |value: &[u8]| bound(value, &RowSettings::UNKNOWN);
        let moment = |text: &str| Some(GivenValue::Moment(text.into()));
        assert_eq!(of(&[1, 0, 0xff]), number("-1"));
        assert_eq!(of(&[1, 0x80, 0xff]), number("255"));
        assert_eq!(of(&[8, 0, 0, 1, 0, 0, 0, 0, 0, 0]), number("256"));
        assert_eq!(of(&[253, 0, 2, b'h', b'i']), text("hi"));
        assert_eq!(of(&[246, 0, 3, b'1', b'.', b'5']), number("1.5"));
        assert_eq!(of(&[253, 0, 1, 0xff]), None);
        assert_eq!(of(&[10, 0, 4, 0xea, 7, 2, 3]), moment("2026-02-03"));
        let local = [12, 0, 7, 0xea, 7, 2, 3, 4, 5, 6];
        assert_eq!(of(&local), moment("2026-02-03 04:05:06"));
        let long = [11, 0, 8, 1, 1, 0, 0, 0, 2, 3, 4];
        assert_eq!(of(&long), moment("-26:03:04"));
        assert_eq!(of(&[12, 0, 0]), None);
        assert_eq!(of(&[245, 0, 1, b'1']), None);
    }
}
