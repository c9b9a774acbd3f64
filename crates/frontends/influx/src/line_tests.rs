use proptest::prelude::*;

use super::*;

fn one(text: &str) -> Line<'_> {
    let mut lines = Lines::new(text.as_bytes());
    let (number, line) = lines.next().unwrap();
    assert_eq!(number, 1);
    assert!(lines.next().is_none(), "{text}");
    line.unwrap()
}

fn fields(text: &str) -> Vec<(String, Value)> {
    let fields = one(text).fields.into_iter();
    fields.map(|(name, value)| (name.into(), value)).collect()
}

#[test]
fn a_line_has_a_measurement_tags_fields_and_a_timestamp() {
    let line =
        one("weather,location=us-midwest,season=summer temperature=82,ok=t 1465839830100400200\n");
    assert_eq!(line.measurement, "weather");
    assert_eq!(
        line.tags,
        [
            ("location".into(), "us-midwest".into()),
            ("season".into(), "summer".into())
        ]
    );
    assert_eq!(
        line.fields,
        [
            ("temperature".into(), 82.into()),
            ("ok".into(), true.into())
        ]
    );
    assert_eq!(line.timestamp, Some(1_465_839_830_100_400_200));
    assert_eq!(one("m  a=1   -5  \r\n").timestamp, Some(-5));
    assert_eq!(one("m a=1").timestamp, None);
}

#[test]
fn values_have_types() {
    for (text, value) in [
        ("1", 1.into()),
        ("-1.50", Value::number("-1.50")),
        ("1e10", Value::number("1e10")),
        (".5", Value::number("0.5")),
        ("1.", 1.into()),
        ("-12i", (-12).into()),
        ("12u", 12.into()),
        (
            "18446744073709551615u",
            Value::number("18446744073709551615"),
        ),
        ("T", true.into()),
        ("False", false.into()),
        ("\"a, b=c\\\"d\\\\e\\n\"", "a, b=c\"d\\e\\n".into()),
        ("\"two\nlines\"", "two\nlines".into()),
        ("\"\"", "".into()),
    ] {
        assert_eq!(
            fields(&format!("m f={text} 1")),
            [("f".into(), value)],
            "{text}"
        );
    }
}

#[test]
fn names_are_escaped_by_a_backslash() {
    let line = one("my\\ table\\,x,a\\=b=c\\ d,w=back\\slash f\\ 1=1i,g\"=2i");
    assert_eq!(line.measurement, "my table,x");
    assert_eq!(
        line.tags,
        [
            ("a=b".into(), "c d".into()),
            ("w".into(), "back\\slash".into())
        ]
    );
    assert_eq!(
        line.fields,
        [("f 1".into(), 1.into()), ("g\"".into(), 2.into())]
    );
}

#[test]
fn a_line_that_makes_no_sense_is_reported_and_the_next_one_is_read() {
    for (text, why) in [
        ("m", "missing fields"),
        ("m,a=1", "missing fields"),
        (",a=1 f=1", "missing measurement"),
        ("m,=1 f=1", "missing tag key"),
        ("m,a f=1", "missing tag value"),
        ("m,a= f=1", "missing tag value"),
        ("m f", "missing field value"),
        ("m f=", "missing field value"),
        ("m =1", "missing fields"),
        ("m f=1,", "missing fields"),
        ("m f=abc", "invalid number"),
        ("m f=NaN", "invalid number"),
        ("m f=1.5i", "invalid number"),
        ("m f=9223372036854775808i", "invalid number"),
        ("m f=-1u", "invalid number"),
        ("m f=\"x\"y", "invalid field format"),
        ("m f=1 now", "bad timestamp"),
        ("m f=1 1 2", "bad timestamp"),
        ("m f=\"open", "unbalanced quotes"),
    ] {
        let body = format!("# comment\n\n{text}\nn g=1\n");
        let read: Vec<_> = Lines::new(body.as_bytes()).collect();
        let error = read[0].1.as_ref().unwrap_err();
        assert_eq!(*error, format!("unable to parse '{text}': {why}"));
        assert_eq!((read[0].0, read[1].0, read.len()), (3, 4, 2), "{text}");
        assert_eq!(read[1].1.as_ref().unwrap().measurement, "n");
    }
    let broken: Vec<_> = Lines::new(b"m f=\"\xff\"\nn g=\"\n\"\no h=1").collect();
    assert!(broken[0].1.as_ref().unwrap_err().ends_with("invalid UTF-8"));
    let numbers: Vec<u64> = broken.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 4]);
}

fn escape(text: &str, bytes: &str) -> String {
    let escaped = |c: char| match bytes.contains(c) {
        true => format!("\\{c}"),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Returns names that can be written: a backslash before an escaped byte or at the end cannot.
fn name() -> impl Strategy<Value = String> {
    "[^\n\\\\\t ]([^\n\\\\]{0,8}[^\n\\\\ \t])?"
}

fn value() -> impl Strategy<Value = (String, Value)> {
    prop_oneof![
        any::<i64>().prop_map(|n| (format!("{n}i"), n.into())),
        any::<u64>().prop_map(|n| (format!("{n}u"), Value::number(&n.to_string()))),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| (x.to_string(), Value::number(&x.to_string()))),
        any::<bool>().prop_map(|b| (b.to_string(), b.into())),
        any::<String>().prop_map(|s| (format!("\"{}\"", escape(&s, "\"\\")), s.as_str().into())),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        measurement in name().prop_filter("no comment", |name| !name.starts_with('#')),
        tags in proptest::collection::vec((name(), name()), 0..4),
        fields in proptest::collection::vec((name(), value()), 1..4),
        timestamp in any::<Option<i64>>(),
    ) {
        let mut text = escape(&measurement, ", ");
        for (key, value) in &tags {
            text += &format!(",{}={}", escape(key, ",= "), escape(value, ",= "));
        }
        let written: Vec<_> = fields
            .iter()
            .map(|(key, (value, _))| format!("{}={value}", escape(key, ",= ")))
            .collect();
        text += &format!(" {}", written.join(","));
        if let Some(timestamp) = timestamp {
            text += &format!(" {timestamp}");
        }
        text.push('\n');
        let line = one_of(&text);
        prop_assert_eq!(&*line.measurement, &*measurement);
        prop_assert_eq!(line.timestamp, timestamp);
        let read: Vec<_> = line.tags.iter().map(|(k, v)| (&**k, &**v)).collect();
        let given: Vec<_> = tags.iter().map(|(k, v)| (&**k, &**v)).collect();
        prop_assert_eq!(read, given);
        let read: Vec<_> = line.fields.iter().map(|(k, v)| (&**k, v.clone())).collect();
        let given: Vec<_> = fields.iter().map(|(k, (_, v))| (&**k, v.clone())).collect();
        prop_assert_eq!(read, given);
    }

    #[test]
    fn any_bytes_end(body in proptest::collection::vec(
        prop_oneof![Just(b','), Just(b'='), Just(b' '), Just(b'"'), Just(b'\\'), Just(b'\n'), any::<u8>()],
        0..200,
    )) {
        let lines = body.iter().filter(|b| **b == b'\n').count() + 1;
        let read: Vec<_> = Lines::new(&body).collect();
        prop_assert!(read.len() <= lines);
        prop_assert!(read.iter().all(|(number, _)| *number <= lines as u64));
        prop_assert!(read.is_sorted_by_key(|(number, _)| *number));
    }
}

fn one_of(text: &str) -> Line<'_> {
    Lines::new(text.as_bytes()).next().unwrap().1.unwrap()
}
