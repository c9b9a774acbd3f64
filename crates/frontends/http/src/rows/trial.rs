use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use windrow_core::{Op, Value, Write};

use super::position::RowError;
use super::{RowReceiver, RowStream};
use crate::plan::Plans;
use crate::query::CsvStyle;

/// The length of the longest row, in bytes: random input makes no long texts.
const MAX_ROW: usize = 4 << 10;

/// Takes all that it is given.
#[derive(Default)]
pub(super) struct All(pub(super) Vec<Write>);

impl RowReceiver for All {
    fn is_full(&self) -> bool {
        false
    }

    fn take(&mut self, write: Write) {
        self.0.push(write);
    }

    fn refuse(&mut self, error: RowError) -> Result<(), RowError> {
        Err(error)
    }
}

/// The rows of a body, by their columns, and the error that ended them.
pub(super) type ReadRows = (Vec<(Vec<String>, Vec<Value>)>, Option<RowError>);

/// The kinds of bodies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Ndjson,
    Array,
    Csv,
}

/// Checks that a body gives the same rows and the same error in whatever pieces it arrives, and
/// that JSON is read as another reader reads it. The first byte chooses the kind of body, the
/// second the length of its pieces.
pub(crate) fn rows(bytes: &[u8]) {
    let Some((&[kind, piece], body)) = bytes.split_first_chunk() else {
        return;
    };
    let kind = match kind % 3 {
        0 => Kind::Ndjson,
        1 => Kind::Array,
        _ => Kind::Csv,
    };
    let whole = read(kind, MAX_ROW, [body]);
    let pieces = body.chunks(usize::from(piece).max(1));
    assert_eq!(whole, read(kind, MAX_ROW, pieces));
    match (kind, &whole) {
        (Kind::Ndjson, (rows, None)) => second_opinion(rows, lines(body)),
        (Kind::Array, (rows, None)) => {
            let objects = serde_json::from_slice::<Vec<BTreeMap<String, IgnoredAny>>>(body);
            assert_eq!(objects.ok().map(|all| all.len()), Some(rows.len()));
        }
        _ => {}
    }
}

/// Reads the pieces of a body whose rows are at most `max_row` bytes long.
pub(super) fn read<'a>(
    kind: Kind,
    max_row: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> ReadRows {
    let plans = Plans::default();
    let Ok(plan) = plans.get(Op::Insert, "t", "") else {
        return (Vec::new(), None);
    };
    let style = CsvStyle {
        null: "".into(),
        delimiter: None,
    };
    let mut stream = match kind {
        Kind::Ndjson => RowStream::ndjson(&plan, max_row),
        Kind::Array => RowStream::array(&plan, max_row),
        Kind::Csv => RowStream::csv(&plan, &style, max_row),
    };
    let mut all = All::default();
    let error = pieces
        .into_iter()
        .try_for_each(|piece| {
            let used = stream.push(piece, &mut all)?;
            assert_eq!(used, piece.len());
            Ok(())
        })
        .and_then(|()| stream.finish(&mut all));
    let rows = all.0.iter().map(|write| {
        let names = write.shape.columns.iter().map(ToString::to_string);
        (names.collect(), write.row().to_vec())
    });
    (rows.collect(), error.err())
}

/// Returns the lines of a body that are not empty.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let lines = body.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.trim_ascii().is_empty())
}

/// Checks that each line is an object with these names, and with equivalent values.
fn second_opinion<'a>(rows: &[(Vec<String>, Vec<Value>)], lines: impl Iterator<Item = &'a [u8]>) {
    let mut rows = rows.iter();
    for line in lines {
        let object = serde_json::from_slice::<BTreeMap<String, &RawValue>>(line);
        let found = rows.next().zip(object.ok());
        assert!(found.is_some(), "no row of JSON: {}", line.escape_ascii());
        let Some(((names, values), object)) = found else {
            return;
        };
        assert_eq!(object.len(), names.len());
        for (name, value) in names.iter().zip(values) {
            let raw = object.get(name).map_or("", |raw| raw.get());
            let same = match value {
                Value::Text(read) => {
                    serde_json::from_str::<String>(raw).is_ok_and(|t| *t == **read)
                }
                Value::Null => raw == "null",
                Value::Bool(read) => raw == if *read { "true" } else { "false" },
                Value::Int(read) => raw.parse() == Ok(*read),
                Value::Number(read) | Value::Json(read) => raw == &**read,
                Value::Bytes(_) => false,
            };
            assert!(same, "{name}: {value:?} of {raw}");
        }
    }
    assert!(rows.next().is_none());
}
