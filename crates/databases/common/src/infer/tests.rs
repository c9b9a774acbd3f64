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
        // A table made for these rows needs no further change.
        let made = |name: &Name| {
            let seen_column = seen_columns.columns().iter().find(|s| s.name == *name);
            seen_column.and_then(|s| s.kind).map_or(Existing::Missing, Existing::Of)
        };
        prop_assert_eq!(seen_columns.changes(made), vec![]);
    }
}

#[test]
fn says_what_to_add_and_what_to_widen() {
    let mut seen_columns = SeenColumns::default();
    let null = Value::Null;
    seen_columns.see(
        &names(&["id", "x", "gone", "blob", "own"]),
        &[1.into(), 2.into(), null.clone(), "aGk=".into(), "t".into()],
    );
    // Another shape: other columns, another order.
    seen_columns.see(
        &names(&["x", "new", "id"]),
        &[Value::number("1.5"), true.into(), null],
    );
    let existing = |name: &Name| match &**name {
        "id" | "x" => Existing::Of(Kind::Int),
        "blob" => Existing::Of(Kind::Bytes),
        "own" => Existing::Fixed,
        _ => Existing::Missing,
    };
    assert_eq!(
        seen_columns.changes(existing),
        vec![
            Change::Widen("x".into(), Kind::Number),
            Change::Add("new".into(), Kind::Bool)
        ]
    );
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
