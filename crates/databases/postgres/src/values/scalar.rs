//! Reads values as scalars of their columns' types, if it is certain that the server would read the
//! same.
//!
//! `None` only means that the server has to decide.

use windrow_core::Value;

use super::time;
use super::time::Moment;

/// Returns a whole number, also from a text of digits.
pub(crate) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::Number(digits) | Value::Text(digits) => plain_int(digits),
        _ => None,
    }
}

fn plain_int(digits: &str) -> Option<i64> {
    // Every version's input function accepts this: a sign and decimal digits.
    let plain = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
    plain.then(|| digits.parse().ok()).flatten()
}

/// Returns a double; `None` for a number that is too large for one, or so small that it becomes
/// zero. The server refuses these itself.
pub(crate) fn double(value: &Value) -> Option<f64> {
    match value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "rounds to the nearest, as the server's strtod does"
        )]
        Value::Int(n) => Some(*n as f64),
        Value::Number(digits) | Value::Text(digits) => {
            let parsed: f64 = digits.parse().ok()?;
            honest(digits, parsed.is_finite(), parsed == 0.0).then_some(parsed)
        }
        _ => None,
    }
}

/// Returns a single-precision float, rounded once.
pub(crate) fn single(value: &Value) -> Option<f32> {
    match value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "rounds to the nearest, as the server's strtof does"
        )]
        Value::Int(n) => Some(*n as f32),
        Value::Number(digits) | Value::Text(digits) => {
            let parsed: f32 = digits.parse().ok()?;
            honest(digits, parsed.is_finite(), parsed == 0.0).then_some(parsed)
        }
        _ => None,
    }
}

/// Returns a double from plain digits.
pub(crate) fn plain_double(text: &[u8]) -> Option<f64> {
    let text = plain_float(text)?;
    let parsed: f64 = text.parse().ok()?;
    honest(text, parsed.is_finite(), parsed == 0.0).then_some(parsed)
}

/// Returns a single-precision float from plain digits, rounded once.
pub(crate) fn plain_single(text: &[u8]) -> Option<f32> {
    let text = plain_float(text)?;
    let parsed: f32 = text.parse().ok()?;
    honest(text, parsed.is_finite(), parsed == 0.0).then_some(parsed)
}

/// Returns a text of digits, a point and an exponent, which any reader of floats accepts.
fn plain_float(text: &[u8]) -> Option<&str> {
    let plain = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    text.iter().all(plain).then_some(())?;
    std::str::from_utf8(text).ok()
}

/// Returns true if a parsed float keeps its text's meaning: infinite only if the text says so, zero
/// only if there is no other digit before the exponent.
fn honest(digits: &str, finite: bool, zero: bool) -> bool {
    let mantissa = || digits.bytes().take_while(|b| !matches!(b, b'e' | b'E'));
    let written_out = digits.bytes().any(|b| b.is_ascii_digit());
    if zero {
        mantissa().all(|b| !(b'1'..=b'9').contains(&b))
    } else {
        finite || !written_out
    }
}

/// Returns true if numeric's input function accepts the text: digits, a point, a small exponent.
pub(crate) fn is_numeric(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()),
        None => (text, Some(0)),
    };
    let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let mut points = 0;
    let mut digits = 0;
    for b in mantissa.bytes() {
        match b {
            b'0'..=b'9' => digits += 1,
            b'.' => points += 1,
            _ => return false,
        }
    }
    digits > 0 && points <= 1 && exponent.is_some()
}

/// Returns a boolean, spelled as JSON or PostgreSQL spells it.
pub(crate) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        Value::Text(text) => match &**text {
            "true" | "t" => Some(true),
            "false" | "f" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a UUID: 32 hexadecimal digits, with hyphens in the usual places or none.
pub(crate) fn uuid(value: &Value) -> Option<[u8; 16]> {
    let Value::Text(text) = value else {
        return None;
    };
    uuid_of(text.as_bytes())
}

/// Returns a UUID from the bytes of its text.
pub(crate) fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (place, b) in text.iter().copied().enumerate() {
        if b == b'-' && text.len() == 36 && matches!(place, 8 | 13 | 18 | 23) {
            continue;
        }
        let digit = u8::try_from(char::from(b).to_digit(16)?).ok()?;
        let byte = bytes.get_mut(digits / 2)?;
        *byte = (*byte << 4) | digit;
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}

/// Returns a date and time.
pub(crate) fn moment(value: &Value) -> Option<Moment> {
    match value {
        Value::Text(text) => time::moment(text),
        _ => None,
    }
}

/// Returns a date: days since 2000-01-01.
pub(crate) fn date(value: &Value) -> Option<i32> {
    match value {
        Value::Text(text) => time::date(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(digits: &str) -> Value {
        Value::Number(digits.into())
    }

    #[test]
    fn floats_that_the_server_would_refuse_are_left_to_it() {
        assert_eq!(double(&number("1e400")), None);
        assert_eq!(double(&number("1e-400")), None);
        assert_eq!(double(&number("0e9")), Some(0.0));
        assert_eq!(
            double(&number("-0.0")).map(f64::to_bits),
            Some((-0.0_f64).to_bits())
        );
        assert_eq!(double(&Value::text("Infinity")), Some(f64::INFINITY));
        assert!(double(&Value::text("NaN")).is_some_and(f64::is_nan));
        assert_eq!(double(&Value::text(" 1")), None);
        assert_eq!(single(&number("3.5e38")), None);
        assert_eq!(single(&number("0.1")), Some(0.1));
    }

    #[test]
    fn whole_numbers_are_plain_digits() {
        assert_eq!(int(&Value::text("-007")), Some(-7));
        for odd in ["1_000", "0x1F", " 1", "1.0", "", "9223372036854775808"] {
            assert_eq!(int(&Value::text(odd)), None, "{odd}");
        }
    }

    #[test]
    fn numerics_are_told_from_text() {
        for good in ["0", "-1.50", "+.5", "5.", "1e10", "1E-5"] {
            assert!(is_numeric(good), "{good}");
        }
        for odd in ["", ".", "1.2.3", "1e", "1e99999", "x", "1 ", "--1"] {
            assert!(!is_numeric(odd), "{odd}");
        }
    }

    #[test]
    fn uuids_with_and_without_hyphens() {
        let plain = Value::text("00112233445566778899aabbccddeeff");
        let usual = Value::text("00112233-4455-6677-8899-AABBCCDDEEFF");
        assert_eq!(uuid(&plain), uuid(&usual));
        assert_eq!(uuid(&plain).map(|b| b[15]), Some(0xff));
        for odd in [
            "0011",
            "00112233-44556677-8899-aabbccddeeff-",
            "+0112233445566778899aabbccddeeff",
        ] {
            assert_eq!(uuid(&Value::text(odd)), None, "{odd}");
        }
    }
}
