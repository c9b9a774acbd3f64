//! Today, without a calendar crate.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today's date in UTC, as `2026-03-01`.
pub(super) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let (y, m, d) = civil(now.map_or(0, |t| t.as_secs() / 86_400));
    format!("{y:04}-{m:02}-{d:02}")
}

/// The civil date of a day since 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_818), (2026, 12, 31));
        assert_eq!(civil(20_819), (2027, 1, 1));
    }
}
