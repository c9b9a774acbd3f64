//! Dates and times from PostgreSQL's binary formats, as ISO 8601 writes them.

/// Days from 0000-03-01 to 2000-01-01.
const TO_2000: i64 = 730_425;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A date from its days since 2000-01-01; `None` outside of the years 1 to 9999.
pub(super) fn date(days: i32) -> Option<String> {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let days = i64::from(days) + TO_2000;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (1..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// A moment from its microseconds since 2000-01-01, without a zone; `None` as [`date`].
pub(super) fn moment(micros: i64) -> Option<String> {
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let date = date(i32::try_from(days).ok()?)?;
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(format!(
        "{date}T{hour:02}:{minute:02}:{second:02}.{micros:06}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "2000-01-01"),
            (59, "2000-02-29"),
            (60, "2000-03-01"),
            (-1, "1999-12-31"),
            (-10_957, "1970-01-01"),
            (36_584, "2100-03-01"),
        ] {
            assert_eq!(date(days).as_deref(), Some(text));
        }
        assert_eq!(moment(-1).as_deref(), Some("1999-12-31T23:59:59.999999"));
    }
}
