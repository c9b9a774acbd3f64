//! Decimal numbers as text, and whether a double keeps one exactly.

use std::fmt::Write as _;

/// The number of significant digits that every double keeps (`f64::DIGITS`).
const SAFE_DIGITS: usize = f64::DIGITS as usize;

/// The decimal exponents at which every double keeps its digits: neither subnormal nor infinite.
const SAFE_MAGNITUDES: std::ops::RangeInclusive<i64> = -290..=290;

/// The limit up to which every whole number is a double, and prints with all its digits (2^53).
const SAFE_INT: u64 = 1 << 53;

/// The value of a decimal number: sign, significant digits, and the power of ten of the first
/// digit.
struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    skipped: usize,
    digits: usize,
    magnitude: i64,
}

impl<'a> Decimal<'a> {
    /// Parses `-12.50e3` and similar texts. `None` for all others, and for exponents of more than
    /// 18 digits.
    fn read(text: &'a str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = whole.len() + fraction.len();
        let mut places = whole.bytes().chain(fraction.bytes());
        if all == 0 || !places.clone().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let Some(skipped) = places.position(|b| b != b'0') else {
            return Some(Self::zero());
        };
        let last = fraction
            .bytes()
            .rev()
            .chain(whole.bytes().rev())
            .position(|b| b != b'0')
            .unwrap_or(0);
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(skipped).ok()? - 1;
        Some(Self {
            negative,
            whole,
            fraction,
            skipped,
            digits: all - last - skipped,
            magnitude: point + i64::from(exponent),
        })
    }

    fn zero() -> Self {
        Self {
            negative: false,
            whole: "",
            fraction: "",
            skipped: 0,
            digits: 0,
            magnitude: 0,
        }
    }

    fn significant(&self) -> impl Iterator<Item = u8> {
        self.whole
            .bytes()
            .chain(self.fraction.bytes())
            .skip(self.skipped)
            .take(self.digits)
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative
            && self.magnitude == other.magnitude
            && self.digits == other.digits
            && self.significant().eq(other.significant())
    }
}

/// True if the text is a decimal number: digits with at most one point, and optionally a sign and
/// an exponent.
pub fn is_number(text: &str) -> bool {
    Decimal::read(text).is_some()
}

/// True if the shortest decimal form of the nearest double has the value of `digits`: the number
/// keeps its value as a double (`1.10` comes back as `1.1`, `-0` as `0`). False if the text is not
/// a number.
pub fn is_double(digits: &str) -> bool {
    let Some(exact) = Decimal::read(digits) else {
        return false;
    };
    if exact.digits <= SAFE_DIGITS && SAFE_MAGNITUDES.contains(&exact.magnitude) {
        return true;
    }
    let Ok(double) = digits.parse::<f64>() else {
        return false;
    };
    let mut shortest = String::with_capacity(32);
    write!(shortest, "{double:e}").is_ok()
        && Decimal::read(&shortest).is_some_and(|back| back == exact)
}

/// True if a whole number keeps its value as a double.
pub fn int_is_double(n: i64) -> bool {
    n.unsigned_abs() <= SAFE_INT || is_double(&n.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tells_what_a_double_keeps() {
        for yes in [
            "0",
            "-0",
            "-0.0",
            "0e99",
            "1.50",
            "0.1",
            "100",
            "1e3",
            "1E+3",
            "1e300",
            "-2.5e-300",
            "9007199254740992",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004",
            "1e22",
        ] {
            assert!(is_double(yes), "{yes}");
        }
        for no in [
            "9007199254740993",
            "18446744073709551616",
            "1e400",
            "1e-400",
            "0.1000000000000000055511151231257827",
            "123456789.123456789123",
            "",
            ".",
            "-",
            "1.2.3",
            "0x10",
            "NaN",
            "inf",
            "1e",
            "1e99999999999999999999",
        ] {
            assert!(!is_double(no), "{no}");
        }
        assert!(int_is_double(-9_007_199_254_740_992) && !int_is_double(9_007_199_254_740_993));
        assert!(!int_is_double(i64::MAX) && !int_is_double(i64::MIN));
        assert!(is_number("1e400") && !is_number("1e+"));
    }

    proptest! {
        #[test]
        fn every_double_keeps_its_own_shortest_form(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            let (short, plain) = (format!("{double:?}"), double.to_string());
            prop_assert!(is_double(&short) && is_double(&plain), "{}", short);
        }

        #[test]
        fn agrees_with_exact_arithmetic_on_whole_numbers(n in any::<i64>()) {
            #[expect(clippy::cast_precision_loss, reason = "the loss is what is asked about")]
            let shortest = format!("{}", n as f64);
            prop_assert_eq!(int_is_double(n), shortest == n.to_string());
        }

        #[test]
        fn reads_anything_without_harm(text in "[-+0-9.eE]{0,24}") {
            let parsed = text.parse::<f64>();
            prop_assert!(!is_double(&text) || parsed.is_ok());
        }
    }
}
