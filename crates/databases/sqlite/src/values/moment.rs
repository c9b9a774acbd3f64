//! The form of moments in tables that Windrow made: one text for each moment, in the order of time.

use std::borrow::Cow;

use windrow_core::Holds;
use windrow_core::calendar::date_of;
use windrow_database::iso_moment::{IsoMoment, MICROS_OF_DAY, clock};

/// Returns the stored text of a moment; `None` for other texts, and for years that are not written
/// with four digits. A zone in digits sorts before the fraction of a second, as `Z` does not.
pub(crate) fn stored_form(text: &str, holds: Holds) -> Option<String> {
    let moment = IsoMoment::read(text)?;
    let (micros, zone) = match (holds, moment.zone) {
        (Holds::Timestamptz, _) => (moment.utc(), "+00:00"),
        (Holds::Timestamp, None) => (moment.local(), ""),
        _ => return None,
    };
    let (year, month, day) = date_of(micros.div_euclid(MICROS_OF_DAY));
    let (h, m, s, fraction) = clock(micros.rem_euclid(MICROS_OF_DAY));
    if !(0..=9999).contains(&year) {
        return None;
    }
    let mut form = format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
    if fraction > 0 {
        form.push_str(&format!(".{fraction:06}"));
    }
    form.push_str(zone);
    Some(form)
}

/// Returns the text of a stored moment for clients, as other databases return theirs.
pub(crate) fn shown_form(stored: &str) -> Cow<'_, str> {
    let (local, zone) = match stored.strip_suffix("+00:00") {
        Some(local) => (local, "Z"),
        None => (stored, ""),
    };
    let short = match local.contains('.') {
        true => local.trim_end_matches('0'),
        false => local,
    };
    match short.len() + zone.len() == stored.len() {
        true => Cow::Borrowed(stored),
        false => Cow::Owned(format!("{short}{zone}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_moment_are_one_text() {
        let utc = |text| stored_form(text, Holds::Timestamptz);
        let expected = Some("2026-01-01T00:00:00+00:00".to_owned());
        for text in [
            "2026-01-01T00:00:00Z",
            "2026-01-01 00:00:00.000+00",
            "2026-01-01T02:30:00+02:30",
            "2026-01-01",
        ] {
            assert_eq!(utc(text), expected, "{text}");
        }
        assert_eq!(utc("now"), None);
        let local = |text| stored_form(text, Holds::Timestamp);
        let expected = Some("2026-01-01T00:00:00.500000".to_owned());
        assert_eq!(local("2026-01-01 00:00:00.50"), expected);
        assert_eq!(local("2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn clients_get_the_form_of_other_databases() {
        for (stored, shown) in [
            ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z"),
            (
                "2026-01-01T00:00:00.120000+00:00",
                "2026-01-01T00:00:00.12Z",
            ),
            ("2026-01-01T00:00:00.500000", "2026-01-01T00:00:00.5"),
            ("2026-01-01T00:00:10", "2026-01-01T00:00:10"),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(shown_form(stored), shown);
        }
    }

    #[test]
    fn texts_sort_as_their_moments() {
        let seconds = ["59", "59.0005", "59.05", "59.5", "59.51"];
        for (holds, zone) in [(Holds::Timestamptz, "Z"), (Holds::Timestamp, "")] {
            let texts = seconds.map(|s| format!("2026-01-01 00:00:{s}{zone}"));
            let forms = texts.map(|text| stored_form(&text, holds));
            assert!(forms.is_sorted() && forms.iter().all(Option::is_some));
        }
    }
}
