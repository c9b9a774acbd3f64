//! Days of the proleptic Gregorian calendar, as numbers since 1970-01-01. Pure.
//!
//! From <https://howardhinnant.github.io/date_algorithms.html>: eras of 400 years, and years that
//! begin in March, so that a leap day is the last day of its year.

/// Days from the first day of era 0 (0000-03-01) to 1970-01-01.
const TO_1970: i64 = 719_468;
const DAYS_OF_ERA: i64 = 146_097;

/// Returns the number of a day; `None` if the calendar has no such day.
pub fn day_number(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    let shifted = year - i64::from(month <= 2);
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * DAYS_OF_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - TO_1970)
}

/// Returns year, month and day of a day's number.
pub fn date_of(number: i64) -> (i64, i64, i64) {
    let days = number.saturating_add(TO_1970);
    let (era, of_era) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for number in (-800_000..2_900_000).step_by(7) {
            let (year, month, day) = date_of(number);
            assert_eq!(day_number(year, month, day), Some(number));
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(day_number(2000, 2, 29), Some(11_016));
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2020, 13, 1), (2020, 4, 31)] {
            assert_eq!(day_number(year, month, day), None);
        }
    }
}
