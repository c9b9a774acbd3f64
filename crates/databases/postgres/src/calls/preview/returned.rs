//! The columns of RETURNING, and the result columns of statements that are made by hand.

use windrow_core::ParsedStatement;

use super::words::names;
use crate::calls::describe::Description;
use crate::catalog::column::{Column, oid};
use crate::catalog::table::Facts;

/// The length of a field of RowDescription after its name: the table, the column, the type, its
/// size, its modifier and the format.
const FIELD: usize = 18;

/// Returns the columns of RETURNING, in their order; `None` if it gives anything else. `table`: the
/// number of the table.
pub(super) fn columns<'a>(
    parsed: &ParsedStatement,
    description: &Description,
    table: u32,
    facts: &'a Facts,
) -> Option<Vec<&'a Column>> {
    let Some(returning) = &parsed.returning else {
        return description.fields.is_none().then(Vec::new);
    };
    // The row before the INSERT, which is all NULL.
    if names(returning, &["old", "new"]) {
        return None;
    }
    let (count, mut rest) = description.fields.as_deref()?.split_first_chunk()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (field, next) = rest.get(end + 1..)?.split_at_checked(FIELD)?;
        let (of_table, field) = field.split_first_chunk()?;
        let number = i16::from_be_bytes(*field.first_chunk()?);
        let mut known = facts.columns.iter();
        let column = known.find(|column| column.number == number)?;
        if u32::from_be_bytes(*of_table) != table {
            return None;
        }
        columns.push(column);
        rest = next;
    }
    Some(columns)
}

/// Returns the body of a RowDescription of columns of these types.
pub(super) fn fields(types: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut body = vec![0, 0];
    let mut count = 0_u16;
    for type_oid in types {
        count = count.saturating_add(1);
        body.extend(b"windrow\0");
        // No table, no column.
        body.extend([0; 6]);
        body.extend(type_oid.to_be_bytes());
        body.extend(size_of(type_oid).to_be_bytes());
        body.extend((-1_i32).to_be_bytes());
        body.extend([0; 2]);
    }
    body.splice(..2, count.to_be_bytes());
    body
}

/// Returns the size of a type's values, as far as it is known to be fixed; otherwise -1.
fn size_of(type_oid: u32) -> i16 {
    match type_oid {
        oid::BOOL => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::FLOAT4 | oid::DATE => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::UUID => 16,
        _ => -1,
    }
}
