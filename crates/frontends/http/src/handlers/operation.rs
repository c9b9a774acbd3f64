//! One operation of a batch, from its JSON.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, OnConflict, Op, Returning, Shape, TableName, Value, Write};

use crate::ack::Ack;
use crate::query;
use crate::rows::elements::ShortArray;
use crate::rows::object::{self, Columns};
use crate::system::SystemTables;

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an operation: an object with op and table"
)]
struct Fields<'a> {
    #[serde(borrow, default)]
    #[expect(
        dead_code,
        reason = "read leniently by id_of; named here because other fields are refused"
    )]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    table: Cow<'a, str>,
    #[serde(borrow, default)]
    row: Option<&'a RawValue>,
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    #[serde(borrow, default)]
    on_conflict: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    returning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ack: Option<Cow<'a, str>>,
}

/// Returns the `id` of an operation exactly as in the text, even if the operation is invalid.
pub(crate) fn id_of(operation: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    serde_json::from_str::<Id<'_>>(operation.get()).ok()?.id
}

/// A write, and when it is answered if the operation says so.
pub(crate) type Operation = (Write, Option<Ack>);

/// Reads an operation.
///
/// # Errors
/// An unknown or missing field, an unknown `op`, a table of the database itself, an invalid row or
/// key.
pub(crate) fn read(
    operation: &RawValue,
    system: &SystemTables,
    shapes: &mut Shapes,
) -> Result<Operation, Fault> {
    let fields: Result<Fields<'_>, _> = serde_json::from_str(operation.get());
    let fields =
        fields.map_err(|e| with_form(invalid(&e), op_of(operation).unwrap_or_default()))?;
    let write = write(&fields, system, shapes);
    let write = write.map_err(|fault| with_form(fault, &fields.op))?;
    let ack = fields.ack.as_deref().map(|word| {
        let wrong = || Fault::invalid(format!("ack {word:?} is not known; write commit or spool"));
        Ack::parse(word).ok_or_else(wrong)
    });
    Ok((write, ack.transpose()?))
}

/// Returns the `op` of an operation, even if the operation is invalid.
fn op_of(operation: &RawValue) -> Option<&str> {
    #[derive(Deserialize)]
    struct Op<'a> {
        #[serde(borrow)]
        op: &'a str,
    }
    Some(serde_json::from_str::<Op<'_>>(operation.get()).ok()?.op)
}

/// The form of each operation.
const FORMS: [(&str, &str); 5] = [
    (
        "insert",
        r#"{"op":"insert","table":"t","row":{"id":1,"a":2}}, and "on_conflict" with "key", "returning", "ack", "id""#,
    ),
    (
        "upsert",
        r#"{"op":"upsert","table":"t","row":{"id":1,"a":2}}, and "key", "returning", "ack", "id""#,
    ),
    (
        "update",
        r#"{"op":"update","table":"t","key":1,"row":{"a":2}}, and "returning", "ack", "id""#,
    ),
    (
        "delete",
        r#"{"op":"delete","table":"t","key":1}, and "returning", "ack", "id""#,
    ),
    (
        "get",
        r#"{"op":"get","table":"t","key":1}, and "returning", "id""#,
    ),
];

/// Adds the form of an operation to the fault of a missing or unknown field.
fn with_form(fault: Fault, op: &str) -> Fault {
    if fault.code != "22023" || fault.hint().is_some() {
        return fault;
    }
    let form = FORMS.iter().find(|(name, _)| *name == op);
    fault.with_hint(form.map(|(op, form)| format!("{op} is written {form}")))
}

fn write(fields: &Fields<'_>, system: &SystemTables, shapes: &mut Shapes) -> Result<Write, Fault> {
    let table = TableName::parse(&fields.table)?;
    system.check(&table)?;
    let returning = returning(fields.returning)?;
    match &*fields.op {
        "insert" | "upsert" => insert(fields, table, returning, shapes),
        "update" => keyed(Op::Update, fields, table, returning, shapes),
        "delete" => keyed(Op::Delete, fields, table, returning, shapes),
        "get" => {
            let returning = match returning {
                Returning::Nothing => Returning::All,
                named => named,
            };
            keyed(Op::Get, fields, table, returning, shapes)
        }
        other => Err(Fault::invalid(format!(
            "the op {other:?} is not known; write insert, upsert, update, delete or get"
        ))),
    }
}

fn insert(
    fields: &Fields<'_>,
    table: TableName,
    returning: Returning,
    shapes: &mut Shapes,
) -> Result<Write, Fault> {
    let on_conflict = match fields.on_conflict.as_deref() {
        None if fields.op == "upsert" => OnConflict::Update,
        None => OnConflict::Error,
        Some(_) if fields.op == "upsert" => {
            return Err(Fault::invalid(
                "on_conflict goes with insert; an upsert always updates",
            ));
        }
        Some(word) => query::on_conflict(word).ok_or_else(|| {
            Fault::invalid(format!(
                "on_conflict {word:?} is not known; write error, ignore or update"
            ))
        })?,
    };
    let key = match fields.key {
        None => Key::Primary,
        Some(_) if on_conflict == OnConflict::Error => {
            return Err(Fault::invalid(
                "an insert takes a key only with on_conflict ignore or update",
            ));
        }
        Some(raw) => Key::Columns(names(raw, "the key of an insert or upsert")?),
    };
    let (columns, values) = row(fields.row)?;
    let parts = ShapeParts {
        op: Op::Insert,
        table,
        columns: columns.into(),
        key,
        on_conflict,
        returning,
    };
    Ok(Write::new(shapes.find(parts), values))
}

fn keyed(
    op: Op,
    fields: &Fields<'_>,
    table: TableName,
    returning: Returning,
    shapes: &mut Shapes,
) -> Result<Write, Fault> {
    if fields.on_conflict.is_some() {
        return Err(Fault::invalid("on_conflict goes with insert only"));
    }
    let (columns, mut values) = match (op, fields.row) {
        (Op::Update, raw) => row(raw)?,
        (_, None) => Default::default(),
        (_, Some(_)) => {
            return Err(Fault::invalid(format!("{} takes no row", op.as_str())));
        }
    };
    if op == Op::Update && columns.is_empty() {
        return Err(Fault::invalid(
            "the row has no columns; there is nothing to change",
        ));
    }
    let raw = fields
        .key
        .ok_or_else(|| Fault::invalid(format!("{} needs a key", op.as_str())))?;
    let (key, key_values) = key(raw)?;
    values.extend(key_values);
    let parts = ShapeParts {
        op,
        table,
        columns: columns.into(),
        key,
        on_conflict: OnConflict::Error,
        returning,
    };
    Ok(Write::new(shapes.find(parts), values))
}

fn row(raw: Option<&RawValue>) -> Result<(Vec<Name>, Vec<Value>), Fault> {
    let raw = raw.ok_or_else(|| Fault::invalid("the field row is missing"))?;
    object(raw)
}

fn object(raw: &RawValue) -> Result<(Vec<Name>, Vec<Value>), Fault> {
    match object::read(raw.get().as_bytes(), None, 4) {
        Ok((Columns::Named(names), values)) => Ok((names, values)),
        Ok((Columns::Guessed, values)) => Ok((Vec::new(), values)),
        Err(error) => Err(error.fault),
    }
}

/// Reads a key: `{"a":1}` names columns; `1`, `"x"` and `[1,"x"]` are values of the primary key, in
/// its order.
fn key(raw: &RawValue) -> Result<(Key, Vec<Value>), Fault> {
    let ShortArray(parts) = match raw.get().as_bytes().first() {
        Some(b'{') => {
            let (names, values) = object(raw)?;
            if names.is_empty() {
                return Err(Fault::invalid("the key is empty"));
            }
            return Ok((Key::Columns(names.into()), values));
        }
        Some(b'[') => serde_json::from_str(raw.get()).map_err(|e| invalid(&e))?,
        _ => ShortArray(vec![raw]),
    };
    if parts.is_empty() {
        return Err(Fault::invalid("the key is empty"));
    }
    let values = parts.iter().map(|part| object::value(part.get()));
    let values = values.collect::<Result<_, _>>().map_err(Fault::invalid)?;
    Ok((Key::Primary, values))
}

/// Reads `["a","b"]`, or `"*"` for all columns.
fn returning(raw: Option<&RawValue>) -> Result<Returning, Fault> {
    match raw {
        None => Ok(Returning::Nothing),
        Some(raw) if raw.get() == "\"*\"" => Ok(Returning::All),
        Some(raw) => Ok(Returning::Columns(names(raw, "returning")?)),
    }
}

fn names(raw: &RawValue, what: &str) -> Result<Box<[Name]>, Fault> {
    let ShortArray::<Name>(names) = serde_json::from_str(raw.get())
        .map_err(|_| Fault::invalid(format!("{what} is an array of names of columns")))?;
    object::check_names(&names)?;
    if names.is_empty() {
        return Err(Fault::invalid(format!("{what} names no column")));
    }
    Ok(names.into())
}

fn invalid(error: &serde_json::Error) -> Fault {
    Fault::invalid(object::json_error(error).fault.message)
}

/// The shapes of one batch, each once.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    recent: Vec<Arc<Shape>>,
    next: usize,
}

/// The number of recent shapes that are compared.
const MAX_RECENT_SHAPES: usize = 16;

impl Shapes {
    fn find(&mut self, parts: ShapeParts) -> Arc<Shape> {
        let shape = Shape::new(parts);
        if let Some(known) = self.recent.iter().find(|known| ***known == shape) {
            return Arc::clone(known);
        }
        let shape = Arc::new(shape);
        match self.recent.get_mut(self.next) {
            Some(oldest) => *oldest = Arc::clone(&shape),
            None => self.recent.push(Arc::clone(&shape)),
        }
        self.next = (self.next + 1) % MAX_RECENT_SHAPES;
        shape
    }
}
