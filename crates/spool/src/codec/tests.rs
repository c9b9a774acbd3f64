use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, RowWrite, Shape, TableName, Value};

use super::{Unreadable, decode, to_bytes};

fn name() -> impl Strategy<Value = Name> {
    ".{0,20}".prop_map(Name::from)
}

fn names() -> impl Strategy<Value = Box<[Name]>> {
    vec(name(), 0..5).prop_map(Into::into)
}

fn value() -> impl Strategy<Value = Value> {
    let text = || any::<String>().prop_map(Box::<str>::from);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX), -1..2_i64].prop_map(Value::Int),
        "-?[0-9]{1,40}(\\.[0-9]{1,40})?(e[+-][0-9]{1,3})?".prop_map(|n| Value::Number(n.into())),
        text().prop_map(Value::Text),
        text().prop_map(Value::Json),
        vec(any::<u8>(), 0..300).prop_map(Value::from),
    ]
}

fn parts() -> impl Strategy<Value = ShapeParts> {
    let op = prop_oneof![
        Just(Op::Insert),
        Just(Op::Update),
        Just(Op::Delete),
        Just(Op::Get)
    ];
    let key = prop_oneof![Just(Key::Primary), names().prop_map(Key::Columns)];
    let on_conflict = prop_oneof![
        Just(OnConflict::Error),
        Just(OnConflict::Ignore),
        Just(OnConflict::Update)
    ];
    let returning = prop_oneof![
        Just(Returning::Nothing),
        Just(Returning::All),
        names().prop_map(Returning::Columns)
    ];
    let table = (proptest::option::of(name()), name());
    (op, table, names(), key, on_conflict, returning).prop_map(
        |(op, (schema, table), columns, key, on_conflict, returning)| ShapeParts {
            op,
            table: TableName { schema, table },
            columns,
            key,
            on_conflict,
            returning,
        },
    )
}

fn write() -> impl Strategy<Value = RowWrite> {
    (parts(), any::<bool>(), vec(value(), 0..8)).prop_map(|(parts, spelled, row)| {
        let shape = if spelled {
            Shape::spelled(parts)
        } else {
            Shape::new(parts)
        };
        RowWrite::new(Arc::new(shape), row)
    })
}

proptest! {
    #[test]
    fn writes_come_back_exactly(write in write()) {
        let read = decode(&to_bytes(&write)).unwrap();
        prop_assert_eq!(&read.shape, &write.shape);
        prop_assert_eq!(read.shape.is_spelled(), write.shape.is_spelled());
        prop_assert_eq!(read.row, write.row);
    }

    #[test]
    fn what_is_cut_or_longer_is_refused(write in write(), cut: proptest::sample::Index) {
        let mut bytes = to_bytes(&write);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        decode(&bytes).ok();
        decode(&[&[1][..], &bytes].concat()).ok();
    }
}

fn sample() -> RowWrite {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: ["a".into(), "b".into()].into(),
        key: Key::Primary,
        on_conflict: OnConflict::Update,
        returning: Returning::Nothing,
    });
    let row = [Value::Int(-1), Value::Number("1.50".into())];
    RowWrite::new(Arc::new(shape), row)
}

#[test]
fn version_1_is_written_byte_for_byte() {
    let bytes = b"\x01\x00\x00\x00\x01t\x02\x01a\x01b\x00\x02\x00\x02\x03\x01\x04\x041.50";
    assert_eq!(to_bytes(&sample()), bytes);
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let mut bytes = to_bytes(&sample());
    bytes[0] = 2;
    let newer = Unreadable::Newer { found: 2, known: 1 };
    assert_eq!(decode(&bytes).unwrap_err(), newer);
    assert!(decode(&[]).is_err() && decode(&[0]).is_err());
}

/// Lengths that no memory has are refused before room is made for them.
#[test]
fn a_length_is_believed_only_as_far_as_there_are_bytes() {
    let mut bytes = to_bytes(&sample());
    bytes.truncate(6);
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    assert!(matches!(decode(&bytes), Err(Unreadable::Malformed { .. })));
}
