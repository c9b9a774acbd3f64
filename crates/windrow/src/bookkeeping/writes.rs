//! The writes of a dead letter.

use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use windrow_bookkeeping::{DeadLetter, REJECTED};
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Fault, FaultClass, Key, Name, OnConflict, Op, Returning, Shape, TableName, Value, Write, record,
};
use windrow_database::members::Members;
use windrow_spool::codec::decode_unit;

/// Returns the write that removes a letter.
pub(super) fn removal(id: u64) -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Delete,
        table: TableName::bare(REJECTED),
        columns: Box::default(),
        key: Key::Columns([Name::from("id")].into()),
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    let id = Value::number(&id.to_string());
    Write::new(Arc::new(shape), [id])
}

/// Returns the writes of a letter: the entry of a spool, or a row that a move has taken out of its
/// source.
pub(super) fn writes_of(letter: &DeadLetter) -> Result<Vec<Write>, Fault> {
    match &letter.entry {
        Some(entry) => writes_in(entry),
        None if is_of_spool(letter) => Err(Fault::invalid(format!(
            "the table did not take its entry, which is in a file; name that with --entry FILE: {}",
            letter.message
        ))),
        None => Ok(vec![insert(letter)?]),
    }
}

/// Returns the writes of a letter whose entry is in a file. The letter's message ends with the
/// file's path.
pub(super) fn writes_of_file(
    letter: &DeadLetter,
    file: &Path,
    entry: &[u8],
) -> Result<Vec<Write>, Fault> {
    if letter.entry.is_some() || !is_of_spool(letter) {
        let message = "all that it holds is in the table; leave --entry out";
        return Err(Fault::invalid(message));
    }
    // The file may have moved to another folder since.
    let named = Path::new(&*letter.message).file_name();
    if named.is_none() || named != file.file_name() {
        return Err(Fault::invalid(format!(
            "{} is not the file of its entry: {}",
            file.display(),
            letter.message
        )));
    }
    writes_in(entry)
}

/// Returns true for a letter from a spool. Others are from a table.
fn is_of_spool(letter: &DeadLetter) -> bool {
    letter.source.starts_with("spool ") && letter.source.contains(" position ")
}

fn writes_in(entry: &[u8]) -> Result<Vec<Write>, Fault> {
    decode_unit(entry)
        .map_err(|unreadable| Fault::new(FaultClass::Unsupported, "0A000", unreadable.to_string()))
}

fn insert(letter: &DeadLetter) -> Result<Write, Fault> {
    let table = TableName::parse(&letter.destination)?;
    let fields: Members<'_> = serde_json::from_str(&letter.row)
        .map_err(|e| Fault::invalid(format!("the row of the letter is no JSON object: {e}")))?;
    if fields.0.iter().any(|(name, _)| name == record::MESSAGE) {
        return Err(Fault::invalid(
            "the letter is a message and no row: have it published again as one, then drop the letter",
        ));
    }
    let (columns, row): (Vec<Name>, Vec<Value>) = fields
        .0
        .into_iter()
        .map(|(name, value)| match record::is_unreadable(value.get()) {
            true => Err(not_text(&name)),
            false => Ok((Name::from(name), value_of(value)?)),
        })
        .collect::<Result<Vec<_>, Fault>>()?
        .into_iter()
        .unzip();
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table,
        columns: columns.into(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    Ok(Write::new(Arc::new(shape), row))
}

/// Returns the fault of a text that was not UTF-8, which cannot be written unchanged.
fn not_text(column: &str) -> Fault {
    Fault::invalid(format!(
        "the value of column {column} is a text that is not UTF-8, of which the letter holds the bytes: \
         write the row by the database's own means, then drop the letter"
    ))
}

/// Returns a value with the digits and the spelling with which it was stored.
fn value_of(json: &RawValue) -> Result<Value, Fault> {
    let text = json.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => {
            let read = serde_json::from_str::<String>(text);
            Value::text(read.map_err(|e| Fault::invalid(e.to_string()))?)
        }
        Some(b'{' | b'[') => Value::Json(text.into()),
        _ => Value::number(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(destination: &str, row: &str) -> DeadLetter {
        DeadLetter {
            source: "pending".into(),
            destination: destination.into(),
            key: "[1]".into(),
            row: row.into(),
            code: "23514".into(),
            message: "no".into(),
            constraint: None,
            entry: None,
        }
    }

    #[test]
    fn a_row_is_written_as_it_was_kept() {
        let row = r#"{"z": 1.50, "a": "x\"y", "n": null, "t": true, "j": {"k": [1]}, "i": -7}"#;
        let writes = writes_of(&letter("s.final", row)).unwrap();
        let [write] = &writes[..] else {
            panic!("one write")
        };
        assert_eq!(write.shape.table.to_string(), "s.final");
        let columns: Vec<&str> = write.shape.columns.iter().map(|c| &**c).collect();
        assert_eq!(columns, ["z", "a", "n", "t", "j", "i"]);
        let values = [
            Value::Number("1.50".into()),
            Value::text("x\"y"),
            Value::Null,
            Value::Bool(true),
            Value::Json("{\"k\": [1]}".into()),
            Value::Int(-7),
        ];
        assert_eq!(*write.row(), values);
    }

    #[test]
    fn what_cannot_be_written_is_told() {
        assert!(writes_of(&letter("", "{}")).is_err());
        assert!(writes_of(&letter("t", "[1]")).is_err());
        let message = writes_of(&letter("t", r#"{"windrow_message": "21.5"}"#));
        assert!(message.unwrap_err().message.contains("no row"));
        let mut aside = letter("t", "{}");
        aside.source = "spool 0a partition 0 position 7".into();
        aside.message = "no; its entry is in the file /x/0-7.entry".into();
        let fault = writes_of(&aside).unwrap_err();
        assert!(fault.message.contains("/x/0-7.entry"), "{fault}");
        for (letter, file) in [
            (&aside, "/x/0-17.entry"),
            (&aside, "/x/7.entry"),
            (&letter("t", "{}"), "/x/0-7.entry"),
        ] {
            let entry = windrow_spool::codec::encode_unit(&[]);
            let fault = writes_of_file(letter, Path::new(file), &entry).unwrap_err();
            assert_eq!(fault.class, FaultClass::Invalid);
            assert!(writes_of_file(&aside, Path::new("elsewhere/0-7.entry"), &entry).is_ok());
        }
        let mut of_a_newer = letter("t", "{}");
        of_a_newer.entry = Some([255, 1, 2].into());
        let fault = writes_of(&of_a_newer).unwrap_err();
        assert_eq!(fault.class, FaultClass::Unsupported);
    }
}
