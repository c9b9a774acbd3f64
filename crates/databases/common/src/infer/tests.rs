use proptest::prelude::*;

use super::*;

fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(Value::from),
        Just(Value::Json("[1]".into())),
    ]
}

fn names(names: &[&str]) -> Vec<Name> {
    names.iter().map(|n| Name::from(*n)).collect()
}

proptest! {
    #[test]
    fn join_is_a_semilattice(a in kind(), b in kind(), c in kind()) {
        prop_assert_eq!(a.join(a), a);
        prop_assert_eq!(a.join(b), b.join(a));
        prop_assert_eq!(a.join(b).join(c), a.join(b.join(c)));
        prop_assert!(a.join(b).holds(a) && a.join(b).holds(b));
        prop_assert!(Kind::Text.holds(a));
    }

    #[test]
    fn every_value_fits_what_is_inferred(rows in proptest::collection::vec((value(), value()), 0..20)) {
        let columns = names(&["a", "b"]);
        let mut seen_columns = SeenColumns::default();
        for (a, b) in &rows {
            seen_columns.see(&columns, &[a.clone(), b.clone()]);
        }
        for (a, b) in &rows {
            for (seen_column, value) in seen_columns.columns().iter().zip([a, b]) {
                if let Some(kind) = Kind::of(value) {
                    prop_assert!(seen_column.kind.is_some_and(|k| k.holds(kind)));
                }
            }
        }
        // The order of the rows does not matter.
        let mut backwards = SeenColumns::default();
        for (a, b) in rows.iter().rev() {
            backwards.see(&columns, &[a.clone(), b.clone()]);
        }
        prop_assert_eq!(&seen_columns, &backwards);
        // A table that is created for these rows accepts them all, times included.
        let mut settled = seen_columns.clone();
        settled.settle(&[], &[]);
        for (a, b) in &rows {
            for (seen_column, value) in settled.columns().iter().zip([a, b]) {
                prop_assert!(seen_column.kind.is_none_or(|kind| kind.takes_value(value)));
            }
        }
    }
}

#[test]
fn a_column_takes_what_it_keeps_as_it_is() {
    let kind = |holds| Kind::Own(holds);
    for (kind, taken, refused) in [
        (
            Kind::Int,
            vec!["5", "-1"],
            vec!["05", "5 ", "n/a", "1.0", ""],
        ),
        (
            Kind::Number,
            vec!["5", "1.50", "1e3"],
            vec!["n/a", "NaN", ""],
        ),
        (Kind::Bool, vec!["true", "false"], vec!["yes", "1", "True"]),
        (Kind::Json, vec!["anything"], vec![]),
        (
            kind(Holds::Date),
            vec!["2024-01-05"],
            vec!["2024-01-05T10:00:00", "today", "10:00:00"],
        ),
        (
            kind(Holds::Time),
            vec!["10:00:00"],
            vec!["2024-01-05T10:00:00", "10:00"],
        ),
        (
            kind(Holds::Timestamp),
            vec!["2024-01-05T10:00:00", "2024-01-05"],
            vec!["2024-01-05T10:00:00+02:00", "now"],
        ),
        (
            kind(Holds::Timestamptz),
            vec!["2024-01-05T10:00:00Z", "2024-01-05 10:00", "2024-01-05"],
            vec!["now", "n/a", "10:00:00"],
        ),
    ] {
        for (texts, takes) in [(taken, true), (refused, false)] {
            for text in texts {
                let value = Value::from(text);
                assert_eq!(kind.takes_value(&value), takes, "{kind:?} {text}");
                assert_eq!(
                    kind.takes_field(&Field::Text(text)),
                    takes,
                    "{kind:?} {text}"
                );
            }
        }
    }
    for (kind, value, takes) in [
        (Kind::Int, Value::number("21.5"), false),
        (Kind::Int, true.into(), false),
        (Kind::Number, 5.into(), true),
        (Kind::Bool, 1.into(), false),
        (Kind::Text, true.into(), true),
        (Kind::Text, Value::Json("{}".into()), true),
        (Kind::Own(Holds::Date), 5.into(), false),
        (Kind::Own(Holds::Date), Value::Null, true),
    ] {
        assert_eq!(kind.takes_value(&value), takes, "{kind:?} {value:?}");
    }
}

#[test]
fn texts_that_all_are_times_make_a_column_of_times() {
    let mut seen_columns = SeenColumns::default();
    let columns = names(&["at", "day", "mixed", "none"]);
    for row in [
        ["2024-01-05T10:00:00Z", "2024-01-05", "2024-01-05", ""],
        ["2024-01-05 10:00:00+02", "2024-02-29", "n/a", ""],
    ] {
        let mut row: Vec<Value> = row.map(Value::from).to_vec();
        row[3] = Value::Null;
        seen_columns.see(&columns, &row);
    }
    seen_columns.settle(&[], &[]);
    let kinds: Vec<_> = seen_columns.columns().iter().map(|s| s.kind).collect();
    let own = |holds| Some(Kind::Own(holds));
    assert_eq!(
        kinds,
        [
            own(Holds::Timestamptz),
            own(Holds::Date),
            Some(Kind::Text),
            None
        ]
    );
    let there = |name: &Name| matches!(&**name, "at" | "day");
    let missing: Vec<_> = seen_columns.missing(there).map(|s| &*s.name).collect();
    assert_eq!(missing, ["mixed", "none"]);
}

#[test]
fn remembers_whether_doubles_are_enough() {
    let mut seen_columns = SeenColumns::default();
    let columns = names(&["a", "b"]);
    seen_columns.see(
        &columns,
        &[Value::number("0.1"), Value::number("0.10000000000000001")],
    );
    seen_columns.see(&columns, &["x".into(), 1.into()]);
    let doubles: Vec<_> = seen_columns.columns().iter().map(|s| s.double).collect();
    assert_eq!(doubles, [true, false]);
    seen_columns.see(&columns, &[i64::MAX.into(), Value::Null]);
    assert!(seen_columns.columns().iter().all(|s| !s.double));
}
