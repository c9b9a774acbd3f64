use super::*;

#[test]
fn reads_dates_of_the_calendar_only() {
    assert_eq!(date("2000-01-01"), Some(0));
    assert_eq!(date("1999-12-31"), Some(-1));
    assert_eq!(date("2000-03-01"), Some(60));
    assert_eq!(date("2024-02-29"), Some(8825));
    assert_eq!(date("0001-01-01"), Some(-730_119));
    for bad in [
        "2023-02-29",
        "2000-00-01",
        "2000-13-01",
        "2000-1-1",
        "0000-01-01",
        "2000-01-01 ",
        "20000101",
        "2000-01-01T00:00",
        "",
    ] {
        assert_eq!(date(bad), None, "{bad}");
    }
}

#[test]
fn reads_times_and_zones() {
    let second = 1_000_000;
    for (text, utc) in [
        ("2000-01-01T00:00:00Z", 0),
        ("2000-01-01 00:00:01.5", 1_500_000),
        ("2000-01-01T00:00:00.000001z", 1),
        ("2000-01-01", 0),
        ("2000-01-01 01:00", 3600 * second),
        ("2000-01-01T01:00:00+01:00", 0),
        ("2000-01-01T01:00:00+01", 0),
        ("2000-01-01T00:00:00-0130", 5400 * second),
    ] {
        assert_eq!(moment(text).map(Moment::utc), Some(utc), "{text}");
    }
    let zoned = moment("2000-01-01T01:00:00+05:00").unwrap();
    assert_eq!(zoned.local(), 3600 * second);
    for bad in [
        "2000-01-01T24:00:00Z",
        "2000-01-01T00:60:00Z",
        "2000-01-01T00:00:60Z",
        "2000-01-01T00:00:00.0000001Z",
        "2000-01-01T00:00:00.Z",
        "2000-01-01T00:00:00+15",
        "2000-01-01T00:00:00 UTC",
        "2000-01-01T",
        "now",
    ] {
        assert_eq!(moment(bad), None, "{bad}");
    }
}
