//! A call as the write of a row, if the row is stored exactly as the call would store it, and if
//! the call counts one row whatever its values are.
//!
//! Another connection of the same role can write such a row later. Nothing may depend on the
//! settings of the session that made the call.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    Arguments, AsRow, Conflict, Expression, Formats, Key, Name, OnConflict, Op, ParsedStatement,
    Piece, Returning, RowNumber, Shape, Value,
};

use super::describe::Description;
use super::row_value::{ValueReader, constant};
use crate::catalog::column::{Column, Kind, oid};
use crate::catalog::table::Facts;
use crate::statement::defaults::used_defaults;
use crate::statement::parsed::given;

/// The plan by which the calls of a statement become writes of rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowPlan {
    shape: Arc<Shape>,
    values: Box<[Source]>,
    generates: bool,
}

/// The source of a column's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The statement's text.
    Constant(Value),
    /// A parameter.
    Parameter(usize, ValueReader),
}

impl RowPlan {
    /// Returns the plan; `None` if the calls of the statement are no writes of rows. The code that
    /// its table runs must be proven for each row: it drops no row and writes nothing else.
    pub(super) fn of(
        parsed: &ParsedStatement,
        description: &Description,
        facts: &Facts,
        generates: bool,
    ) -> Option<Self> {
        let relation = description.relation.as_ref()?;
        let is_plain = parsed.op == Op::Insert
            && parsed.returning.is_none()
            && parsed.overriding.is_none()
            && parsed.functions.is_empty()
            // Windrow itself checks the values of rows for such a table.
            && !facts.ours
            // A trigger may drop the row, or depend on the session's settings.
            && !facts.has_hooks;
        let given = given(parsed, facts).filter(|given| is_plain && !given.is_empty())?;
        let defaults = used_defaults(parsed, facts).ok()?;
        let is_free = defaults.into_iter().all(is_same_everywhere);
        if !is_free && !relation.usual_times {
            return None;
        }
        let source = |(name, value): &(&Name, &Expression)| {
            let place = facts.place_of(name)?;
            let column = facts.columns.get(place)?;
            Source::of(column, value, &description.parameters, relation.utc)
        };
        let values = given.iter().map(source).collect::<Option<_>>()?;
        let columns: Box<[Name]> = given.iter().map(|(name, _)| (*name).clone()).collect();
        let (key, on_conflict) = match &parsed.conflict {
            None => (Key::Primary, OnConflict::Error),
            Some(conflict) => (upsert(conflict, &columns, facts)?, OnConflict::Update),
        };
        let shape = Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: facts.name.clone(),
            columns,
            key,
            on_conflict,
            returning: Returning::Nothing,
        }));
        Some(Self {
            shape,
            values,
            generates,
        })
    }

    /// Returns a call as a row; `None` if a value of it might be stored as another one.
    pub(super) fn row(&self, arguments: &Arguments, formats: &Formats) -> Option<AsRow> {
        let raw: Vec<Option<&[u8]>> = arguments.iter().collect();
        let values = self.values.iter();
        let row: Option<Box<[Value]>> = values.map(|source| source.value(&raw, formats)).collect();
        Some(AsRow {
            shape: Arc::clone(&self.shape),
            row: row?,
            generates: self.generates,
            number: RowNumber::None,
        })
    }
}

impl Source {
    fn of(column: &Column, value: &Expression, parameters: &[u32], utc: bool) -> Option<Self> {
        match column.always_generated {
            true => None,
            false => Self::compared(column, value, parameters, utc),
        }
    }

    /// Returns the source of a value that the column is compared with; `None` if the server might
    /// compare with another value.
    pub(super) fn compared(
        column: &Column,
        value: &Expression,
        parameters: &[u32],
        utc: bool,
    ) -> Option<Self> {
        // Only the server knows what a domain does with a value.
        let is_domain = column.type_oid != column.base_oid;
        if is_domain || column.no_value_yet {
            return None;
        }
        let Expression::Sql(pieces) = value else {
            return None;
        };
        let parameter = |place: &u16, cast| {
            let place = usize::from(*place);
            let type_oid = *parameters.get(place)?;
            let reader = ValueReader::of(column, type_oid, utc)?;
            keeps_value(type_oid, cast).then_some(Self::Parameter(place, reader))
        };
        match &**pieces {
            [Piece::Parameter(place)] => parameter(place, None),
            [Piece::Parameter(place), Piece::Text(cast)] => parameter(place, Some(cast)),
            [Piece::Text(sql)] => constant(column, sql.trim(), utc).map(Self::Constant),
            _ => None,
        }
    }

    /// Returns the value of a call; `None` if it might be stored as another one.
    pub(super) fn value(&self, raw: &[Option<&[u8]>], formats: &Formats) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::Parameter(place, reader) => match raw.get(*place)? {
                None => Some(Value::Null),
                Some(bytes) => reader.read(bytes, formats.is_binary(*place)),
            },
        }
    }
}

/// Returns true if a parameter of a type keeps its value by this cast, or there is none.
fn keeps_value(type_oid: u32, cast: Option<&str>) -> bool {
    let Some(cast) = cast else {
        return true;
    };
    let name = cast.trim().strip_prefix("::").map(str::trim_start);
    let names: &[&str] = match type_oid {
        oid::INT2 => &[
            "smallint", "int2", "integer", "int", "int4", "bigint", "int8",
        ],
        oid::INT4 => &["integer", "int", "int4", "bigint", "int8"],
        oid::INT8 => &["bigint", "int8"],
        oid::TEXT | oid::VARCHAR => &["text", "varchar"],
        oid::UUID => &["uuid"],
        _ => &[],
    };
    name.is_some_and(|name| names.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Returns true if a default does not depend on the settings of a session. It may depend on the
/// time, a random number or a sequence.
fn is_same_everywhere(column: &Column) -> bool {
    let is_moment = || column.kind == Kind::Timestamptz;
    match column.default.as_deref().unwrap_or_default() {
        "now()" | "CURRENT_TIMESTAMP" | "clock_timestamp()" => is_moment(),
        "gen_random_uuid()" => true,
        sql => sql.starts_with("nextval(") || is_plain_constant(sql),
    }
}

/// Returns true for numbers, `true`, `false`, NULL and texts, with or without a cast.
fn is_plain_constant(sql: &str) -> bool {
    let (value, cast) = sql.split_once("::").unwrap_or((sql, "text"));
    let quoted = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\''));
    let is_word = matches!(value, "true" | "false" | "NULL");
    let is_number = windrow_core::value::is_number(value.as_bytes());
    let is_cast = matches!(
        cast,
        "text"
            | "character varying"
            | "bpchar"
            | "integer"
            | "bigint"
            | "smallint"
            | "numeric"
            | "jsonb"
            | "json"
            | "boolean"
            | "double precision"
            | "real"
            | "uuid"
    );
    is_cast && (is_word || is_number || quoted.is_some_and(|text| !text.contains('\'')))
}

/// Returns the key of `ON CONFLICT (key) DO UPDATE SET column = excluded.column` for all given
/// columns outside of the key, which is what an upsert of rows does; `None` for any other clause.
fn upsert(conflict: &Conflict, given: &[Name], facts: &Facts) -> Option<Key> {
    let target = conflict.columns.as_ref().filter(|_| conflict.update)?;
    let places: Option<Vec<usize>> = target.iter().map(|name| facts.place_of(name)).collect();
    facts.unique_of(&places?)?;
    let is_key = |name: &&Name| target.contains(name);
    let others = given.iter().filter(|name| !is_key(name));
    let is_new_value = |name: &Name| {
        let mut set = conflict.assignments.iter();
        set.any(|(column, value)| column == name && is_excluded(value, name))
    };
    let same = conflict.assignments.len() == others.clone().count()
        && others.clone().all(is_new_value)
        && !conflict.has_condition;
    let all = target.iter().all(|name| given.contains(name));
    (same && !conflict.assignments.is_empty() && all).then(|| Key::Columns(target.clone()))
}

/// Returns true if a value is `excluded.name`, for a plain name.
fn is_excluded(value: &Expression, name: &str) -> bool {
    let Expression::Sql(pieces) = value else {
        return false;
    };
    let [Piece::Text(sql)] = &**pieces else {
        return false;
    };
    let is_name = |text: &str, name: &str| {
        let text = text.trim();
        let quoted = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        match quoted {
            Some(inside) => inside == name && !inside.contains('"'),
            None => text.to_ascii_lowercase() == name,
        }
    };
    let parts = sql.split_once('.');
    parts.is_some_and(|(table, column)| is_name(table, "excluded") && is_name(column, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_of_the_new_value_are_told_from_others() {
        let is_v = |sql: &str| is_excluded(&Expression::Sql([Piece::Text(sql.into())].into()), "v");
        for same in ["excluded.v", " EXCLUDED . V ", "excluded.\"v\""] {
            assert!(is_v(same), "{same}");
        }
        for other in ["excluded.w", "excluded.v + 1", "t.v", "excluded.\"V\"", "v"] {
            assert!(!is_v(other), "{other}");
        }
        assert!(!is_excluded(&Expression::Default, "v"));
    }

    #[test]
    fn constants_are_told_from_what_depends_on_the_session() {
        for same in [
            "0",
            "-1.5",
            "'x'::text",
            "true",
            "'{}'::jsonb",
            "NULL::character varying",
        ] {
            assert!(is_plain_constant(same), "{same}");
        }
        for other in [
            "CURRENT_USER",
            "now()",
            "'today'::date",
            "'a' || 'b'",
            "f('x')::text",
        ] {
            assert!(!is_plain_constant(other), "{other}");
        }
    }
}
