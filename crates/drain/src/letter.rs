//! Dead letters of refused entries.

use windrow_bookkeeping::DeadLetter;
use windrow_core::{Fault, Key, Value, Write, record};
use windrow_spool::SpoolId;

/// The position of an entry, and its bytes.
pub(crate) struct Place<'a> {
    pub(crate) spool: SpoolId,
    pub(crate) partition: u32,
    pub(crate) position: u64,
    pub(crate) entry: &'a [u8],
}

/// Returns the dead letter of an entry of which the database refuses this write.
pub(crate) fn of(place: &Place<'_>, write: &Write, fault: &Fault) -> DeadLetter {
    let Place {
        spool,
        partition,
        position,
        entry,
    } = place;
    let source = format!("spool {spool} partition {partition} position {position}");
    DeadLetter {
        key: record::array(key(write)).into(),
        entry: Some((*entry).into()),
        ..DeadLetter::of(source, write, fault)
    }
}

/// The values of the key's columns, as far as the write names them.
fn key(write: &Write) -> Vec<&Value> {
    if write.shape.has_key_values() {
        return write.key_values().iter().collect();
    }
    let Key::Columns(key) = &write.shape.key else {
        return Vec::new();
    };
    let value = |name| {
        let mut fields = write.shape.columns.iter().zip(write.values());
        fields.find_map(|(column, value)| (column == name).then_some(value))
    };
    key.iter()
        .map(value)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::shape::ShapeParts;
    use windrow_core::{FaultClass, Name, OnConflict, Op, Returning, Shape, TableName};

    use super::*;

    fn write(op: Op, key: Key) -> Write {
        let shape = Shape::new(ShapeParts {
            op,
            table: TableName::parse("shop.orders").unwrap(),
            columns: ["a", "b"].map(Name::from).into(),
            key,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        });
        let row = [Value::Int(1), Value::text("x"), Value::Int(7)];
        let len = if op == Op::Insert { 2 } else { 3 };
        Write::new(Arc::new(shape), row[..len].to_vec())
    }

    #[test]
    fn a_letter_says_all_that_is_known() {
        let place = Place {
            spool: SpoolId(10),
            partition: 3,
            position: 12,
            entry: b"bytes",
        };
        let columns = |names: &[&str]| Key::Columns(names.iter().map(|n| Name::from(*n)).collect());
        let fault = Fault::new(FaultClass::Unique, "23505", "twice").with_constraint(Some("pk"));
        let letter = of(&place, &write(Op::Insert, columns(&["b"])), &fault);
        assert_eq!(
            letter,
            DeadLetter {
                source: "spool 0000000000000000000000000000000a partition 3 position 12".into(),
                destination: "shop.orders".into(),
                key: r#"["x"]"#.into(),
                row: r#"{"a":1,"b":"x"}"#.into(),
                code: "23505".into(),
                message: "twice".into(),
                constraint: Some("pk".into()),
                entry: Some((*b"bytes").into()),
            }
        );
        for (op, key, told) in [
            (Op::Insert, Key::Primary, "[]"),
            (Op::Insert, columns(&["b", "c"]), "[]"),
            (Op::Update, Key::Primary, "[7]"),
        ] {
            assert_eq!(&*of(&place, &write(op, key), &fault).key, told);
        }
    }
}
