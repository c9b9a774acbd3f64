//! Joins each write with its collection, checks it, and plans its request: method, path, and the
//! entries of its array.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use windrow_core::{
    Fault, FaultClass, Key, Name, OnConflict, Op, Returning, Rung, Shape, Value, Write, WriteDone,
};
use windrow_database::named_key::NO_SUCH_KEY;
use windrow_database::plan::Fence;
use windrow_database::shape_faults::named_twice;
use windrow_database::web::{Batch, BoundWrite, push_text};

use crate::values::encode::Unwritable;
use crate::values::{decode, encode};

/// The attribute that is a document's key.
pub(crate) const KEY: &str = "_key";

/// Characters that are percent-encoded in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The HTTP request for the writes of one shape.
#[derive(Clone, Debug)]
pub(crate) struct DocumentRequest {
    pub(crate) op: Op,
    pub(crate) on_conflict: OnConflict,
    pub(crate) returning: Returning,
    pub(crate) collection: Name,
    pub(crate) method: Method,
    /// The path after `/_db/DATABASE`.
    pub(crate) path: String,
    /// The number of values in each row.
    pub(crate) width: usize,
    /// The position of the key in a row; `None` if the server generates it.
    pub(crate) key: Option<usize>,
}

/// Percent-encodes a name for a path.
pub(crate) fn in_path(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}

impl DocumentRequest {
    /// Returns the request for a shape.
    ///
    /// # Errors
    /// The shape is invalid, or ArangoDB does not support it.
    pub(crate) fn new(shape: &Shape, database: &str) -> Result<Self, Fault> {
        check_shape(shape, database)?;
        let (method, query) = match (shape.op, shape.on_conflict) {
            // An existing key is detected by its error, also if it is to be ignored:
            // `overwriteMode=ignore` does not report whether it wrote.
            (Op::Insert, OnConflict::Error | OnConflict::Ignore) => (Method::POST, "?"),
            (Op::Insert, OnConflict::Update) => (
                Method::POST,
                "?overwriteMode=update&keepNull=true&mergeObjects=false&",
            ),
            (Op::Update, _) => (Method::PATCH, "?keepNull=true&mergeObjects=false&"),
            (Op::Delete, _) => (Method::DELETE, "?"),
            (Op::Get, _) => (Method::PUT, "?onlyget=true&"),
        };
        let back = match (&shape.returning, shape.op) {
            (Returning::Nothing, _) | (_, Op::Get) => "",
            (_, Op::Delete) => "returnOld=true",
            _ => "returnNew=true",
        };
        let path = format!(
            "/_api/document/{}{query}{back}",
            in_path(&shape.table.table)
        );
        let stored = shape.columns.iter().position(|column| &**column == KEY);
        Ok(Self {
            op: shape.op,
            on_conflict: shape.on_conflict,
            returning: shape.returning.clone(),
            collection: shape.table.table.clone(),
            method,
            path: path.trim_end_matches(['?', '&']).to_owned(),
            width: shape.columns.len() + usize::from(shape.has_key_values()),
            key: match shape.op {
                Op::Insert => stored,
                _ => Some(shape.columns.len()),
            },
        })
    }

    /// Returns the path with the parameter that delays the answer until the write is on disk.
    pub(crate) fn synced_path(&self) -> String {
        let between = if self.path.contains('?') { '&' } else { '?' };
        format!("{}{between}waitForSync=true", self.path)
    }

    /// Appends an entry to the array.
    pub(crate) fn push(
        &self,
        columns: &[Name],
        row: &[Value],
        out: &mut Vec<u8>,
    ) -> Result<(), (Name, Unwritable)> {
        let key = self
            .key
            .and_then(|place| row.get(place))
            .and_then(encode::key);
        if matches!(self.op, Op::Get | Op::Delete) {
            push_text(out, &key.unwrap_or_default());
            return Ok(());
        }
        out.push(b'{');
        let mut first = true;
        if let Some(key) = key {
            out.extend_from_slice(b"\"_key\":");
            push_text(out, &key);
            first = false;
        }
        let others = columns.iter().zip(row).filter(|(name, _)| &***name != KEY);
        for (name, value) in others {
            if !first {
                out.push(b',');
            }
            first = false;
            push_text(out, name);
            out.push(b':');
            encode::push(value, out).map_err(|why| (name.clone(), why))?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn check_shape(shape: &Shape, database: &str) -> Result<(), Fault> {
    if let Some(schema) = &shape.table.schema
        && **schema != *database
    {
        return Err(Fault::new(
            FaultClass::NoTable,
            "3F000",
            format!(
                "no such schema: {schema}; ArangoDB has none, the database is named by the URL"
            ),
        ));
    }
    for (place, name) in shape.columns.iter().enumerate() {
        if shape
            .columns
            .iter()
            .take(place)
            .any(|before| before == name)
        {
            return Err(named_twice(name));
        }
    }
    let by_key = match &shape.key {
        Key::Primary => true,
        Key::Columns(names) => matches!(&**names, [name] if &**name == KEY),
    };
    if !by_key && (shape.has_key_values() || shape.on_conflict != OnConflict::Error) {
        let message = format!(
            "documents of collection {} are found by _key only",
            shape.table.table
        );
        return Err(Fault::new(FaultClass::NoColumn, NO_SUCH_KEY, message));
    }
    if shape.op == Op::Update && shape.columns.iter().any(|name| &**name == KEY) {
        return Err(Fault::new(
            FaultClass::Unsupported,
            "0A000",
            "the _key of a document cannot be changed; delete it and insert another one",
        ));
    }
    Ok(())
}

/// Returns a hash that identifies a document of a collection.
pub(crate) fn hash(collection: &str, key: &str) -> u64 {
    FixedState::default().hash_one((collection, key))
}

/// Joins all writes without a verdict with their collections. Invalid writes get their error;
/// writes that cannot find a document get the outcome of no rows.
pub(super) fn plan(
    batch: &mut Batch<'_>,
    database: &str,
) -> (Vec<DocumentRequest>, Vec<BoundWrite>) {
    let mut requests: Vec<DocumentRequest> = Vec::new();
    let mut bound = Vec::new();
    // Compared by content, not by address: equal shapes of different requests share a group.
    let mut groups: HashMap<&Shape, Result<u32, Fault>> = HashMap::new();
    let pending: Vec<_> = batch.pending().collect();
    for (at, write) in pending {
        let shape = &write.shape;
        let group = groups.entry(&**shape).or_insert_with(|| {
            requests.push(DocumentRequest::new(shape, database)?);
            u32::try_from(requests.len() - 1).map_err(|_| Fault::internal("too many shapes"))
        });
        let group = match group {
            Ok(group) => *group,
            Err(fault) => {
                batch.fail(at, Rung::Solo, fault.clone());
                continue;
            }
        };
        let Some(request) = requests.get(group as usize) else {
            continue;
        };
        let key = match check_write(request, write) {
            Ok(key) => key,
            Err(NotSent::Invalid(fault)) => {
                batch.fail(at, Rung::Solo, fault);
                continue;
            }
            Err(NotSent::FindsNothing) => {
                batch.done(at, Rung::Solo, none(request));
                continue;
            }
        };
        bound.push(BoundWrite {
            at,
            group,
            table: group,
            key: key.map(|key| hash(&request.collection, &key)),
            reads: request.op == Op::Get,
            fence: Fence::None,
        });
    }
    (requests, bound)
}

/// Returns the outcome of a write that finds no document.
pub(crate) fn none(request: &DocumentRequest) -> WriteDone {
    let returned = (request.returning != Returning::Nothing)
        .then(|| Box::new(decode::nothing(&request.returning)));
    WriteDone {
        returned,
        ..WriteDone::rows(0)
    }
}

/// The reason why a write is not sent.
enum NotSent {
    Invalid(Fault),
    FindsNothing,
}

/// Returns the key of a write, if it names one.
fn check_write(request: &DocumentRequest, write: &Write) -> Result<Option<String>, NotSent> {
    let (given, columns) = (write.row().len(), write.shape.columns.len());
    if given != request.width {
        let collection = &request.collection;
        let message = match request.op {
            Op::Insert => format!(
                "a row for collection {collection} has {given} values for {columns} columns"
            ),
            _ => format!(
                "the key of collection {collection} is (_key): 1 values are needed, {} given",
                given.saturating_sub(columns)
            ),
        };
        return Err(NotSent::Invalid(Fault::invalid(message)));
    }
    let value = request.key.and_then(|place| write.row().get(place));
    let key = value.and_then(encode::key);
    match (value, &key) {
        (Some(Value::Null), _) if request.op != Op::Insert => return Err(NotSent::FindsNothing),
        (Some(Value::Bytes(_) | Value::Json(_)), _) => {
            return Err(NotSent::Invalid(unwritable(
                request,
                KEY,
                "a key is a text or a number",
            )));
        }
        _ => {}
    }
    for (column, value) in write.shape.columns.iter().zip(write.values()) {
        if let Err(why) = encode::check(value) {
            return Err(NotSent::Invalid(unwritable(request, column, why.0)));
        }
    }
    Ok(key)
}

fn unwritable(request: &DocumentRequest, column: &str, why: &str) -> Fault {
    let message = format!("the value of column \"{column}\" cannot be sent: {why}");
    Fault::new(FaultClass::Value, "22003", message)
        .with_table(Some(&*request.collection))
        .with_column(Some(column))
}

#[cfg(test)]
mod tests {
    use windrow_core::TableName;
    use windrow_core::shape::ShapeParts;

    use super::*;

    fn shape(op: Op, columns: &[&str]) -> ShapeParts {
        ShapeParts {
            op,
            table: TableName::bare("t \u{e9}"),
            columns: columns.iter().map(|c| Name::from(*c)).collect(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        }
    }

    fn entry(parts: ShapeParts, row: &[Value]) -> (String, String) {
        let shape = Shape::new(parts);
        let request = DocumentRequest::new(&shape, "d").unwrap();
        let mut out = Vec::new();
        request.push(&shape.columns, row, &mut out).unwrap();
        (
            format!("{} {}", request.method, request.path),
            String::from_utf8(out).unwrap(),
        )
    }

    #[test]
    fn shapes_become_requests() {
        let (request, body) = entry(shape(Op::Insert, &["a\"", "_key"]), &[1.into(), 7.into()]);
        assert_eq!(request, "POST /_api/document/t%20%C3%A9");
        assert_eq!(body, r#"{"_key":"7","a\"":1}"#);
        let (_, body) = entry(shape(Op::Insert, &["_key"]), &[Value::Null]);
        assert_eq!(body, "{}");
        let (request, body) = entry(shape(Op::Update, &["a"]), &[Value::Null, "k".into()]);
        assert_eq!(
            request,
            "PATCH /_api/document/t%20%C3%A9?keepNull=true&mergeObjects=false"
        );
        assert_eq!(body, r#"{"_key":"k","a":null}"#);
        let mut get = shape(Op::Get, &[]);
        get.returning = Returning::All;
        assert_eq!(
            entry(get, &["k".into()]).0,
            "PUT /_api/document/t%20%C3%A9?onlyget=true"
        );
        let mut delete = shape(Op::Delete, &[]);
        delete.returning = Returning::All;
        let (request, body) = entry(delete, &["k".into()]);
        assert_eq!(
            (&*request, &*body),
            ("DELETE /_api/document/t%20%C3%A9?returnOld=true", "\"k\"")
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut other = shape(Op::Delete, &[]);
        other.key = Key::Columns(["name".into()].into());
        let mut schema = shape(Op::Insert, &["a"]);
        schema.table.schema = Some("s".into());
        for (parts, code) in [
            (other, "42P10"),
            (schema, "3F000"),
            (shape(Op::Update, &["_key"]), "0A000"),
            (shape(Op::Insert, &["a", "a"]), "42701"),
        ] {
            let fault = DocumentRequest::new(&Shape::new(parts), "d").unwrap_err();
            assert_eq!(&*fault.code, code);
        }
    }
}
