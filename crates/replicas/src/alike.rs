//! Compares values of two databases, each in its own form.

use windrow_core::Value;

/// True if one value is what the other database makes of it.
pub(crate) fn alike(one: &Value, other: &Value) -> bool {
    use Value::{Bool, Bytes, Int, Json, Null, Number, Text};
    match (one, other) {
        (Null, _) | (_, Null) => one == other,
        (Bool(truth), other) | (other, Bool(truth)) => match other {
            Bool(also) => truth == also,
            Int(n) => *n == i64::from(*truth),
            Text(word) | Json(word) => &**word == if *truth { "true" } else { "false" },
            _ => false,
        },
        (Bytes(one), Bytes(other)) => one == other,
        (Bytes(bytes), Text(text)) | (Text(text), Bytes(bytes)) => **bytes == *text.as_bytes(),
        (Json(one), Json(other) | Text(other)) | (Text(other), Json(one)) => {
            one == other || same_json(one, other)
        }
        (Text(one), Text(other)) => one == other || same_moment(one, other),
        (Int(_) | Number(_) | Text(_), Int(_) | Number(_) | Text(_)) => {
            number(&digits(one)).is_some_and(|n| Some(n) == number(&digits(other)))
        }
        _ => one == other,
    }
}

/// A form of a key: keys with the same form are alike; others may be alike, too.
pub(crate) type KeyForm = Box<[FormOf]>;

/// A value of a key.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum FormOf {
    Number(bool, String, i64),
    Plain(Value),
}

pub(crate) fn key_form(key: &[Value]) -> KeyForm {
    let form = |value: &Value| {
        let number = match value {
            Value::Bool(truth) => number(if *truth { "1" } else { "0" }),
            Value::Int(_) | Value::Number(_) => number(&digits(value)),
            _ => None,
        };
        let plain = || FormOf::Plain(value.clone());
        number.map_or_else(plain, |(sign, digits, point)| {
            FormOf::Number(sign, digits, point)
        })
    };
    key.iter().map(form).collect()
}

fn digits(value: &Value) -> String {
    match value {
        Value::Int(n) => n.to_string(),
        Value::Number(text) | Value::Text(text) => text.to_string(),
        _ => String::new(),
    }
}

fn same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    read(one).is_some_and(|one| Some(one) == read(other))
}

/// Returns the significant parts of a decimal number: sign, digits, and the position of the point.
fn number(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let negative = mantissa.starts_with('-');
    let plain = mantissa.trim_start_matches(['-', '+']);
    let (whole, part) = plain.split_once('.').unwrap_or((plain, ""));
    let all = [whole, part].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0').to_owned();
    if digits.is_empty() {
        return Some((false, digits, 0));
    }
    Some((negative, digits, point - i64::try_from(leading).ok()?))
}

/// True for times that only differ in their spelling: `T` or a blank, zeros of a fraction, UTC.
fn same_moment(one: &str, other: &str) -> bool {
    moment(one).is_some_and(|moment_of| Some(moment_of) == moment(other))
}

fn moment(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_time = bytes.get(2) == Some(&b':') || bytes.get(4) == Some(&b'-');
    if !is_time || !text.is_ascii() {
        return None;
    }
    let text = text.replacen('T', " ", 1);
    let text = ["Z", "+00:00", "+00"]
        .iter()
        .find_map(|zone| text.strip_suffix(zone))
        .unwrap_or(&text);
    let text = match text.rsplit_once('.') {
        Some((before, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            match fraction.is_empty() {
                true => before.to_owned(),
                false => format!("{before}.{fraction}"),
            }
        }
        None => text.to_owned(),
    };
    let midnight = text.strip_suffix(" 00:00:00");
    Some(midnight.map_or_else(|| text.clone(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_has_its_own_form_of_a_value() {
        let json = |text: &str| Value::Json(text.into());
        let time = "2026-01-02T03:04:05.5Z";
        for (one, other) in [
            (true.into(), 1.into()),
            (true.into(), "true".into()),
            (Value::number("1.50"), Value::number("1.5")),
            (Value::number("100"), Value::number("1e2")),
            (Value::number("-0.0"), 0.into()),
            (Value::number("0.05"), Value::number("5e-2")),
            ("12".into(), 12.into()),
            (json("{\"a\": 1}"), json("{\"a\":1}")),
            (json("[1]"), "[1]".into()),
            (time.into(), "2026-01-02 03:04:05.500".into()),
            ("2026-01-02T00:00:00".into(), "2026-01-02".into()),
            ("03:04:05.000000".into(), "03:04:05".into()),
            (Value::Null, Value::Null),
        ] {
            assert!(
                alike(&one, &other) && alike(&other, &one),
                "{one:?} {other:?}"
            );
        }
        for (one, other) in [
            (Value::Null, 0.into()),
            (Value::Null, "".into()),
            (true.into(), 0.into()),
            (Value::number("1.5"), Value::number("15")),
            (1.into(), (-1).into()),
            ("a".into(), "A".into()),
            (json("[1]"), json("[2]")),
            (time.into(), "2026-01-02 03:04:06".into()),
            (Value::from(vec![1]), Value::from(vec![2])),
        ] {
            assert!(
                !alike(&one, &other) && !alike(&other, &one),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn keys_of_one_form_are_one_key() {
        let form = |value: Value| key_form(&[value]);
        assert!(form(1.into()) == form(Value::number("1.0")));
        assert!(form(true.into()) == form(1.into()));
        // Texts that are alike as values are keys of two rows.
        assert!(form("1".into()) != form(1.into()));
        assert!(form("1".into()) != form("1.0".into()));
        assert!(form("2026-01-02".into()) != form("2026-01-02 00:00:00".into()));
    }
}
