use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, TableName, Value, Write};

use super::{Decoder, Unreadable, decode_unit, encode_unit};

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

fn write() -> impl Strategy<Value = Write> {
    (parts(), any::<bool>(), vec(value(), 0..8)).prop_map(|(parts, spelled, row)| {
        let shape = if spelled {
            Shape::spelled(parts)
        } else {
            Shape::new(parts)
        };
        Write::new(Arc::new(shape), row)
    })
}

/// Units, some of whose writes share a shape.
fn unit() -> impl Strategy<Value = Vec<Write>> {
    (
        vec(write(), 1..4),
        vec((any::<proptest::sample::Index>(), vec(value(), 0..8)), 0..8),
    )
        .prop_map(|(first, more)| {
            let more = more.into_iter().map(|(which, row)| {
                Write::new(Arc::clone(&first[which.index(first.len())].shape), row)
            });
            first
                .iter()
                .cloned()
                .chain(more.collect::<Vec<_>>())
                .collect()
        })
}

proptest! {
    #[test]
    fn units_come_back_exactly(unit in unit()) {
        let read = decode_unit(&encode_unit(&unit)).unwrap();
        prop_assert_eq!(read.len(), unit.len());
        for (read, write) in read.iter().zip(&unit) {
            prop_assert_eq!(&read.shape, &write.shape);
            prop_assert_eq!(read.shape.is_spelled(), write.shape.is_spelled());
            prop_assert_eq!(read.row(), write.row());
        }
    }

    #[test]
    fn what_is_cut_or_longer_is_refused(unit in unit(), cut: proptest::sample::Index) {
        let mut bytes = encode_unit(&unit);
        prop_assert!(decode_unit(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode_unit(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        decode_unit(&bytes).ok();
        decode_unit(&[&[1][..], &bytes].concat()).ok();
    }

    #[test]
    fn a_flipped_byte_is_read_or_refused(unit in unit(), at: proptest::sample::Index, with: u8) {
        let mut bytes = encode_unit(&unit);
        let at = at.index(bytes.len());
        bytes[at] ^= with;
        if let Err(Unreadable::Malformed { at }) = decode_unit(&bytes) {
            prop_assert!(at <= bytes.len());
        }
    }
}

fn sample() -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: ["a".into(), "b".into()].into(),
        key: Key::Primary,
        on_conflict: OnConflict::Update,
        returning: Returning::Nothing,
    });
    let row = [Value::Int(-1), Value::Number("1.50".into())];
    Write::new(Arc::new(shape), row)
}

/// The shape of the sample: 14 bytes.
const SHAPE: &[u8] = b"\x00\x00\x00\x01t\x02\x01a\x01b\x00\x02\x00";

#[test]
fn version_1_is_written_byte_for_byte() {
    let row = b"\x02\x03\x01\x04\x041.50";
    let length = [u8::try_from(SHAPE.len()).unwrap()];
    let one = [b"\x01\x01\x00", &length[..], SHAPE, row].concat();
    assert_eq!(encode_unit(&[sample()]), one);
    // The second write has the shape of the first, which is not the same object.
    let two = [b"\x01\x02\x00", &length[..], SHAPE, row, b"\x01", row].concat();
    assert_eq!(encode_unit(&[sample(), sample()]), two);
    assert_eq!(encode_unit(&[]), b"\x01\x00");
    assert!(decode_unit(b"\x01\x00").unwrap().is_empty());
}

#[test]
fn equal_shapes_are_the_same_object_in_many_entries() {
    let mut decoder = Decoder::new();
    let first = decoder.unit(&encode_unit(&[sample(), sample()])).unwrap();
    let second = decoder.unit(&encode_unit(&[sample()])).unwrap();
    assert!(Arc::ptr_eq(&first[0].shape, &first[1].shape));
    assert!(Arc::ptr_eq(&first[0].shape, &second[0].shape));
}

/// Clients may write to as many tables as they can name.
#[test]
fn what_a_decoder_remembers_is_bounded() {
    let mut decoder = Decoder::new();
    for number in 0..40_000 {
        let shape = Shape::new(ShapeParts {
            table: TableName::bare(format!("table_{number}_{:-<60}", "")),
            ..(*sample().shape).clone()
        });
        let unit = [Write::new(Arc::new(shape), [Value::Null])];
        let read = decoder.unit(&encode_unit(&unit)).unwrap();
        assert_eq!(read[0].shape, unit[0].shape);
    }
    assert!(decoder.shapes.len() < 20_000);
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let mut bytes = encode_unit(&[sample()]);
    bytes[0] = 2;
    let newer = Unreadable::Newer { found: 2, known: 1 };
    assert_eq!(decode_unit(&bytes).unwrap_err(), newer);
    assert!(decode_unit(&[]).is_err() && decode_unit(&[0]).is_err());
}

/// Lengths that no memory has are refused before room is made for them.
#[test]
fn a_length_is_believed_only_as_far_as_there_are_bytes() {
    let endless = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for cut in [1, 3] {
        let mut bytes = encode_unit(&[sample()]);
        bytes.truncate(cut);
        bytes.extend(endless);
        let read = decode_unit(&bytes);
        assert!(matches!(read, Err(Unreadable::Malformed { .. })), "{cut}");
    }
}

/// A write cannot have a shape that has not stood before it.
#[test]
fn a_shape_that_is_not_there_is_refused() {
    assert_eq!(
        decode_unit(b"\x01\x01\x01\x00").unwrap_err(),
        Unreadable::Malformed { at: 3 }
    );
}
