//! Decides which values another session certainly stores the same, whatever its `sql_mode` is.

use windrow_core::Value;
use windrow_core::calendar::day_number;
use windrow_core::value::is_number;

use super::row_given::GivenValue;
use super::row_settings::RowSettings;
use super::table_look::LookedColumn;
use crate::values::column::Kind;
use crate::values::encode::{fits, plain};

/// The most digits of a number that the server reads exactly before it rounds.
const MAX_DIGITS: usize = 30;

/// Times that a `TIMESTAMP` has on every server, as text.
const TIMESTAMPS: [&str; 2] = ["1970-01-01 00:00:01", "2038-01-19 03:14:07"];

/// Returns a value for a column. `None` if another session might store it otherwise, or refuse it
/// where this one does not.
pub(super) fn stored(
    looked: &LookedColumn,
    given: GivenValue,
    settings: &RowSettings,
) -> Option<Value> {
    let column = &looked.column;
    if column.generated {
        return None;
    }
    match (column.kind, given) {
        (_, GivenValue::Null) => (!column.not_null || column.auto).then_some(Value::Null),
        (Kind::Int | Kind::Bool, GivenValue::Number(text) | GivenValue::Text(text)) => {
            whole(looked, &text)
        }
        (Kind::Decimal(digits, scale), GivenValue::Number(text) | GivenValue::Text(text)) => {
            decimal(looked, &text, (digits, scale))
        }
        (Kind::Double | Kind::Float, GivenValue::Number(text) | GivenValue::Text(text)) => {
            let is_short = text.len() <= MAX_DIGITS && is_number(text.as_bytes());
            let number = text.parse().ok().filter(|_| is_short)?;
            // The sign of a zero is lost, or not.
            if number == 0.0 && text.starts_with('-') {
                return None;
            }
            float(looked, number).map(|_| Value::number(&text))
        }
        (Kind::Double | Kind::Float, GivenValue::Float(number)) => float(looked, number),
        (Kind::Year, GivenValue::Number(text) | GivenValue::Text(text)) => {
            let year = text.parse::<i64>().ok()?;
            (1901..=2155).contains(&year).then_some(Value::Int(year))
        }
        (Kind::Date, GivenValue::Text(text) | GivenValue::Moment(text)) => {
            is_date(&text).then_some(Value::Text(text))
        }
        (Kind::DateTime, GivenValue::Text(text) | GivenValue::Moment(text)) => {
            date_time(&text, column.length).map(Value::text)
        }
        (Kind::Timestamp, GivenValue::Text(text) | GivenValue::Moment(text)) => {
            let text = date_time(&text, column.length).filter(|_| settings.is_utc)?;
            let [first, last] = TIMESTAMPS;
            (first..=last).contains(&&*text).then(|| Value::text(text))
        }
        (Kind::Time, GivenValue::Text(text) | GivenValue::Moment(text)) => {
            time(&text, column.length).map(Value::text)
        }
        (Kind::Char | Kind::Text, GivenValue::Number(text)) => {
            let number = text.parse::<i64>().ok()?;
            let is_plain = number.to_string() == *text && text.len() <= column.length;
            is_plain.then_some(Value::Int(number))
        }
        (_, GivenValue::Text(text)) => words(looked, text, settings),
        (Kind::Binary | Kind::Blob, GivenValue::Bytes(bytes)) => binary(looked, bytes),
        _ => None,
    }
}

/// Returns a text for a column of text or bytes.
fn words(looked: &LookedColumn, text: Box<str>, settings: &RowSettings) -> Option<Value> {
    let column = &looked.column;
    let last = match &*column.charset {
        "" | "utf8mb4" => char::MAX,
        "utf8mb3" | "utf8" => '\u{ffff}',
        "latin1" | "ascii" => '\x7f',
        _ => return None,
    };
    let last = last.min(settings.last_char);
    if text.chars().any(|char| char > last) {
        return None;
    }
    match column.kind {
        Kind::Binary | Kind::Blob => binary(looked, text.into_string().into_bytes().into()),
        Kind::Json => Some(Value::Json(text)),
        Kind::Char | Kind::Text => {
            // TEXT limits bytes.
            let length = match looked.type_name.contains("text") {
                true => text.len(),
                false => text.chars().count(),
            };
            (length <= column.length).then_some(Value::Text(text))
        }
        // A text of these types is stored or refused.
        Kind::Enum => settings.is_strict.then_some(Value::Text(text)),
        Kind::Other => {
            let types = ["uuid", "inet4", "inet6", "set("];
            let is_known = types.iter().any(|name| looked.type_name.starts_with(name));
            (is_known && settings.is_strict).then_some(Value::Text(text))
        }
        _ => None,
    }
}

fn whole(looked: &LookedColumn, text: &str) -> Option<Value> {
    let number = text.parse::<i128>().ok()?;
    let name = &*looked.type_name;
    let sizes = [
        ("tiny", 8),
        ("small", 16),
        ("medium", 24),
        ("int", 32),
        ("big", 64),
    ];
    let size = sizes.iter().find(|(start, _)| name.starts_with(start))?.1;
    let range = match name.contains("unsigned") {
        true => 0..1_i128 << size,
        false => -(1_i128 << (size - 1))..1_i128 << (size - 1),
    };
    // Zero may stand for the next number.
    let is_plain = range.contains(&number) && !(looked.column.auto && number == 0);
    is_plain.then(|| Value::number(&number.to_string()))
}

fn decimal(looked: &LookedColumn, text: &str, (digits, scale): (usize, usize)) -> Option<Value> {
    let (is_negative, ..) = plain(text)?;
    let is_taken = !(is_negative && looked.type_name.contains("unsigned"));
    (is_taken && fits(text, digits, scale)).then(|| Value::number(text))
}

fn float(looked: &LookedColumn, number: f64) -> Option<Value> {
    let is_taken = match &*looked.type_name {
        "double" => number.is_finite(),
        "float" => number.abs() <= f32::MAX.into(),
        // Digits, or unsigned.
        _ => false,
    };
    is_taken.then(|| Value::from(number))
}

fn binary(looked: &LookedColumn, bytes: Box<[u8]>) -> Option<Value> {
    let name = &*looked.type_name;
    let sized = name.strip_suffix(')').and_then(|name| name.split_once('('));
    let most = match (sized, name) {
        (Some(("binary" | "varbinary", length)), _) => length.parse().ok()?,
        (None, "tinyblob") => 0xff,
        (None, "blob") => 0xffff,
        (None, "mediumblob") => 0xff_ffff,
        (None, "longblob") => usize::MAX,
        _ => return None,
    };
    (bytes.len() <= most).then_some(Value::Bytes(bytes))
}

/// Returns the number that some digits give.
fn digits(text: &str, count: usize) -> Option<u32> {
    let is_plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Returns true for a date that exists, as `2026-02-03`.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut part = |count| digits(parts.next()?, count);
    let date = (part(4), part(2), part(2));
    let (Some(year), Some(month), Some(day)) = date else {
        return false;
    };
    year >= 1000 && day_number(year.into(), month.into(), day.into()).is_some()
}

/// Returns a clock's time without zeros at the end. `places`: the digits of a second that the
/// column keeps; `None` if the time has more.
fn clock(text: &str, hours: usize, places: usize) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.splitn(3, ':');
    let hour = digits(parts.next()?, hours)?;
    let (minute, second) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if text.ends_with('.') || minute > 59 || second > 59 || hour > 838 {
        return None;
    }
    digits(fraction, fraction.len())
        .filter(|_| fraction.len() <= 6)
        .or(fraction.is_empty().then_some(0))?;
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    (fraction.len() <= places).then(|| format!("{whole}{point}{fraction}"))
}

fn date_time(text: &str, places: usize) -> Option<String> {
    let Some((date, time)) = text.split_once([' ', 'T']) else {
        return is_date(text).then(|| format!("{text} 00:00:00"));
    };
    let time = clock(time, 2, places).filter(|_| is_date(date))?;
    (*time < *"24").then(|| format!("{date} {time}"))
}

fn time(text: &str, places: usize) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let hours = rest.find(':').filter(|hours| matches!(hours, 2 | 3))?;
    let time = clock(rest, hours, places)?;
    // The sign of a time of nothing is lost.
    let is_plain = sign.is_empty() || time.contains(|char| matches!(char, '1'..='9'));
    let is_taken = !time.starts_with("838:59:59.") && is_plain;
    is_taken.then(|| format!("{sign}{time}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::column::{Column, sample};

    const STRICT: RowSettings = RowSettings {
        refusal: None,
        is_utc: true,
        is_usual: true,
        is_strict: true,
        last_char: char::MAX,
        ..RowSettings::UNKNOWN
    };

    fn column(kind: Kind, type_name: &str, length: usize) -> LookedColumn {
        LookedColumn {
            column: Column {
                length,
                ..sample(kind)
            },
            type_name: type_name.into(),
            default: None,
            is_invisible: false,
        }
    }

    fn of(column: &LookedColumn, text: &str) -> Option<Value> {
        stored(column, GivenValue::Text(text.into()), &STRICT)
    }

    #[test]
    fn numbers_are_stored_within_their_range_only() {
        let number = |kind, name: &str, text: &str| {
            let given = GivenValue::Number(text.into());
            stored(&column(kind, name, 0), given, &STRICT)
        };
        let tiny = |text| number(Kind::Int, "tinyint(4)", text);
        assert_eq!(tiny("127"), Some(Value::Int(127)));
        assert_eq!(
            [tiny("128"), tiny("-129"), tiny("1.5"), tiny("1e1")],
            [const { None }; 4]
        );
        let big = |text| number(Kind::Int, "bigint(20) unsigned", text);
        assert_eq!(
            big("18446744073709551615"),
            Some(Value::number("18446744073709551615"))
        );
        assert_eq!([big("18446744073709551616"), big("-1")], [None, None]);
        let exact = |text| number(Kind::Decimal(5, 2), "decimal(5,2)", text);
        assert_eq!(exact("-123.45"), Some(Value::number("-123.45")));
        assert_eq!(
            [exact("1.234"), exact("1234"), exact("1e1")],
            [None, None, None]
        );
        let double = |text| number(Kind::Double, "double", text);
        assert_eq!(double("1e300"), Some(Value::number("1e300")));
        assert_eq!(double("1e400"), None);
        assert_eq!(number(Kind::Float, "float(5,2)", "1"), None);
        assert_eq!(number(Kind::Text, "varchar(5)", "007"), None);
        assert_eq!(number(Kind::Bit, "bit(8)", "1"), None);
    }

    #[test]
    fn texts_are_stored_if_they_fit_and_keep_their_characters() {
        let short = column(Kind::Text, "varchar(3)", 3);
        assert_eq!(of(&short, "äö😀"), Some(Value::text("äö😀")));
        assert_eq!(of(&short, "four"), None);
        assert_eq!(of(&column(Kind::Text, "tinytext", 3), "äö"), None);
        let lax = RowSettings {
            is_strict: false,
            last_char: '\u{ffff}',
            ..STRICT
        };
        let with =
            |column: &LookedColumn, text: &str| stored(column, GivenValue::Text(text.into()), &lax);
        assert_eq!(with(&short, "😀"), None);
        let mood = column(Kind::Enum, "enum('sad')", 3);
        assert_eq!(
            (of(&mood, "sad"), with(&mood, "sad")),
            (Some(Value::text("sad")), None)
        );
        let json = column(Kind::Json, "longtext", 0);
        assert_eq!(of(&json, "[1]"), Some(Value::Json("[1]".into())));
        let bytes = column(Kind::Blob, "varbinary(2)", 0);
        assert_eq!(of(&bytes, "ä"), Some(Value::Bytes("ä".as_bytes().into())));
        assert_eq!(of(&bytes, "abc"), None);
        let latin = LookedColumn {
            column: Column {
                charset: "latin1".into(),
                ..short.column
            },
            ..column(Kind::Text, "varchar(3)", 3)
        };
        assert_eq!(
            (of(&latin, "a"), of(&latin, "ä")),
            (Some(Value::text("a")), None)
        );
        assert_eq!(of(&column(Kind::Other, "point", 0), "x"), None);
    }

    #[test]
    fn moments_are_stored_in_their_plain_spelling_only() {
        let local = column(Kind::DateTime, "datetime(3)", 3);
        let text = |text: &str| Some(Value::text(text));
        assert_eq!(
            of(&local, "2026-02-03T04:05:06.1200"),
            text("2026-02-03 04:05:06.12")
        );
        assert_eq!(of(&local, "2026-02-03"), text("2026-02-03 00:00:00"));
        for odd in [
            "2026-02-30",
            "0000-00-00",
            "2026-2-3",
            "20260203",
            "2026-02-03 24:00:00",
            "2026-02-03 04:05",
            "2026-02-03 04:05:06.1234",
            "2026-02-03 04:05:06.",
            "2026-02-03 04:05:06+00:00",
            "now",
        ] {
            assert_eq!(of(&local, odd), None, "{odd}");
        }
        let day = column(Kind::Date, "date", 0);
        assert_eq!(of(&day, "2024-02-29"), text("2024-02-29"));
        assert_eq!(of(&day, "2024-02-29 00:00:00"), None);
        let moment = column(Kind::Timestamp, "timestamp", 0);
        assert_eq!(
            of(&moment, "2026-02-03 04:05:06"),
            text("2026-02-03 04:05:06")
        );
        assert_eq!(of(&moment, "1970-01-01 00:00:00"), None);
        let elsewhere = RowSettings {
            is_utc: false,
            ..STRICT
        };
        let given = GivenValue::Text("2026-02-03 04:05:06".into());
        assert_eq!(stored(&moment, given, &elsewhere), None);
        let span = column(Kind::Time, "time", 0);
        assert_eq!(of(&span, "-838:59:59"), text("-838:59:59"));
        assert_eq!(
            [
                of(&span, "839:00:00"),
                of(&span, "1:00:00"),
                of(&span, "-00:00:00")
            ],
            [None, None, None]
        );
    }

    #[test]
    fn null_is_stored_where_it_means_null() {
        let mut plain = column(Kind::Int, "int(11)", 0);
        let of = |column: &LookedColumn| stored(column, GivenValue::Null, &STRICT);
        assert_eq!(of(&plain), Some(Value::Null));
        plain.column.not_null = true;
        assert_eq!(of(&plain), None);
        plain.column.auto = true;
        assert_eq!(of(&plain), Some(Value::Null));
        let zero = GivenValue::Number("0".into());
        assert_eq!(stored(&plain, zero, &STRICT), None);
    }
}
