//! Converts InfluxDB's timestamps to texts in ISO 8601.

use std::time::{SystemTime, UNIX_EPOCH};

use windrow_core::calendar::date_of;

const SECONDS_OF_DAY: i64 = 86_400;
const NANOS_OF_SECOND: i64 = 1_000_000_000;

/// The unit of the timestamps of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Nanoseconds.
    #[default]
    Nanos,
    Micros,
    Millis,
    Seconds,
    Minutes,
    Hours,
}

impl Precision {
    /// Returns the precision of a parameter's value.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "" | "n" | "ns" => Self::Nanos,
            "u" | "us" | "µ" => Self::Micros,
            "ms" => Self::Millis,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    /// Returns the nanoseconds since 1970 of a timestamp; `None` if 64 bits do not hold them.
    pub(crate) fn nanos(self, timestamp: i64) -> Option<i64> {
        timestamp.checked_mul(match self {
            Self::Nanos => 1,
            Self::Micros => 1_000,
            Self::Millis => 1_000_000,
            Self::Seconds => NANOS_OF_SECOND,
            Self::Minutes => 60 * NANOS_OF_SECOND,
            Self::Hours => 3_600 * NANOS_OF_SECOND,
        })
    }
}

/// Returns the nanoseconds since 1970 of this moment.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Writes a moment in UTC. All texts have six digits behind the point, so that they sort as the
/// moments do in a column of text.
pub(crate) fn text(nanos: i64) -> String {
    let seconds = nanos.div_euclid(NANOS_OF_SECOND);
    let micros = nanos.rem_euclid(NANOS_OF_SECOND) / 1_000;
    let (year, month, day) = date_of(seconds.div_euclid(SECONDS_OF_DAY));
    let of_day = seconds.rem_euclid(SECONDS_OF_DAY);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_the_precision_of_its_request() {
        for (precision, timestamp, moment) in [
            ("", 1_465_839_830_100_400_200, "2016-06-13T17:43:50.100400Z"),
            ("u", 1_465_839_830_100_400, "2016-06-13T17:43:50.100400Z"),
            ("ms", 1_465_839_830_100, "2016-06-13T17:43:50.100000Z"),
            ("s", 1_465_839_830, "2016-06-13T17:43:50.000000Z"),
            ("m", -1, "1969-12-31T23:59:00.000000Z"),
            ("h", 1, "1970-01-01T01:00:00.000000Z"),
            ("ns", i64::MIN, "1677-09-21T00:12:43.145224Z"),
            ("ns", i64::MAX, "2262-04-11T23:47:16.854775Z"),
        ] {
            let precision = Precision::parse(precision).unwrap();
            assert_eq!(text(precision.nanos(timestamp).unwrap()), moment);
        }
        assert_eq!(Precision::Hours.nanos(i64::MAX), None);
        assert_eq!(Precision::parse("d"), None);
        assert!(now() > 1_700_000_000 * NANOS_OF_SECOND);
    }
}
