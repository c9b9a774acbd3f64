//! A call as the write of a row, if another session certainly stores the row as the call's own
//! would, and if the call counts one row.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    Arguments, AsRow, Expression, Formats, Key, OnConflict, Op, ParsedStatement, Piece, Returning,
    RowNumber, Shape, Value,
};

use super::row_given::{GivenValue, bound, literal};
use super::row_value::stored;
use super::table_look::{LookedColumn, TableLook, is_same};
use crate::values::column::{ColumnDefault, Kind};

/// The beginning of the names of Windrow's own tables.
const OWN_TABLES: &str = "windrow_";

/// The plan by which the calls of a statement become writes of rows.
#[derive(Debug)]
pub(super) struct RowPlan {
    table: Arc<TableLook>,
    shape: Arc<Shape>,
    /// The place in the table of each column that gets a value, and its source.
    values: Box<[(usize, RowSource)]>,
    /// The same shape with the number given back, if the server may number rows.
    numbered: Option<Arc<Shape>>,
}

/// The source of a column's value.
#[derive(Debug)]
enum RowSource {
    Constant(Value),
    Parameter(usize),
}

/// The reason for an INSERT whose meaning follows every ALTER TABLE, of which Windrow may not know
/// yet.
const NO_COLUMNS: &str = "it names no columns, and the table may have other ones by now: write INSERT INTO table (column, ..)";

/// The reason why a call is no write of a row, for its client.
type NoRow = Box<str>;

impl RowPlan {
    /// Returns the plan of a statement.
    ///
    /// # Errors
    /// The reason why none of its calls is a write of a row.
    pub(super) fn of(parsed: &ParsedStatement, table: &Arc<TableLook>) -> Result<Self, NoRow> {
        if let Some(reason) = why_not_plain(parsed) {
            return Err(reason.into());
        }
        if let Some(reason) = table.rows.settings.refusal {
            return Err(reason.into());
        }
        let name = &table.name;
        if table.rows.is_ours || name.table.starts_with(OWN_TABLES) {
            return Err(format!("Windrow made the table {name}").into());
        }
        if table.has_insert_triggers() {
            return Err(format!("the table {name} has triggers").into());
        }
        if table.rows.has_conditions && !table.rows.settings.is_usual {
            let text = "checks or generated columns, and the session has other settings (sql_mode, time_zone) than a new connection";
            return Err(format!("the table {name} has {text}").into());
        }
        let values = values(parsed, table)?;
        for (place, looked) in table.columns.iter().enumerate() {
            if !values.iter().any(|(given, _)| *given == place) {
                left_out(looked, table)?;
            }
        }
        let looked = |(place, _): &(usize, RowSource)| table.columns.get(*place);
        let columns = values.iter().filter_map(looked);
        let parts = ShapeParts {
            op: Op::Insert,
            table: name.clone(),
            columns: columns.map(|looked| looked.column.name.clone()).collect(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        };
        let numbered = table.auto_column().map(|auto| {
            Arc::new(Shape::new(ShapeParts {
                returning: Returning::Columns([auto.clone()].into()),
                ..parts.clone()
            }))
        });
        Ok(Self {
            numbered,
            table: Arc::clone(table),
            shape: Arc::new(Shape::new(parts)),
            values,
        })
    }

    /// Returns a call as a row.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn row(&self, arguments: &Arguments, formats: &Formats) -> Result<AsRow, NoRow> {
        let given: Vec<Option<&[u8]>> = arguments.iter().collect();
        let generated = self.numbered.clone().map(RowNumber::Generated);
        let mut number = generated.unwrap_or_default();
        let mut row = Vec::with_capacity(self.values.len());
        for (place, source) in &self.values {
            let value = match source {
                RowSource::Constant(value) => value.clone(),
                RowSource::Parameter(at) => self.given(*place, given.get(*at).copied(), formats)?,
            };
            let looked = self.table.columns.get(*place);
            if looked.is_some_and(|looked| looked.column.auto) && !value.is_null() {
                number = given_number(&value);
            }
            row.push(value);
        }
        Ok(AsRow {
            shape: Arc::clone(&self.shape),
            row: row.into(),
            generates: matches!(number, RowNumber::Generated(_)),
            number,
        })
    }

    /// Returns the value of a parameter for the column at a place.
    fn given(
        &self,
        place: usize,
        value: Option<Option<&[u8]>>,
        formats: &Formats,
    ) -> Result<Value, NoRow> {
        let settings = &self.table.rows.settings;
        let given = match value {
            Some(None) => Some(GivenValue::Null),
            Some(Some(value)) if *formats == Formats::Text => str::from_utf8(value)
                .ok()
                .and_then(|text| literal(text, settings)),
            Some(Some(value)) => bound(value, settings),
            None => None,
        };
        of_column(&self.table, place, given)
    }
}

/// Returns the number that a client has given a row.
fn given_number(value: &Value) -> RowNumber {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Number(digits) => digits.parse().ok(),
        _ => None,
    };
    number.map_or(RowNumber::None, RowNumber::Given)
}

/// Returns the reason why a statement is no INSERT of one row of plain values.
fn why_not_plain(parsed: &ParsedStatement) -> Option<&'static str> {
    if parsed.op != Op::Insert {
        Some("only an INSERT can")
    } else if parsed.conflict.is_some() {
        Some("REPLACE, IGNORE and ON DUPLICATE KEY UPDATE depend on the rows that are there")
    } else if parsed.returning.is_some() {
        Some("it has RETURNING")
    } else if !parsed.functions.is_empty() || !parsed.set_based {
        Some("it computes values")
    } else {
        None
    }
}

/// Returns the columns that get values, by their places in the table, with the sources.
fn values(parsed: &ParsedStatement, table: &TableLook) -> Result<Box<[(usize, RowSource)]>, NoRow> {
    let names = parsed.columns.as_ref().ok_or(NO_COLUMNS)?;
    let place = |name: &windrow_core::Name| {
        let mut columns = table.columns.iter();
        columns.position(|looked| is_same(&looked.column.name, name))
    };
    let places: Option<Vec<usize>> = names.iter().map(place).collect();
    let places = places.filter(|places| places.len() == parsed.values.len());
    let places = places.ok_or("its values are not one for each column")?;
    let given = places.into_iter().zip(&parsed.values);
    let mut values = Vec::with_capacity(parsed.values.len());
    for (place, value) in given {
        let Expression::Sql(pieces) = value else {
            continue;
        };
        values.push(match &**pieces {
            [Piece::Parameter(at)] => (place, RowSource::Parameter(usize::from(*at))),
            [Piece::Text(sql)] => {
                let given = literal(sql, &table.rows.settings);
                (place, RowSource::Constant(of_column(table, place, given)?))
            }
            _ => return Err("it computes values".into()),
        });
    }
    match values.is_empty() {
        true => Err("it gives no values".into()),
        false => Ok(values.into()),
    }
}

/// Returns a value for the column at a place.
fn of_column(table: &TableLook, place: usize, given: Option<GivenValue>) -> Result<Value, NoRow> {
    let settings = &table.rows.settings;
    let looked = table.columns.get(place).ok_or("it names no column")?;
    let value = given.and_then(|given| stored(looked, given, settings));
    value.ok_or_else(|| {
        let name = &looked.column.name;
        let kind = looked.column.kind;
        match kind == Kind::Timestamp && !settings.is_utc {
            true => format!("column {name} is a TIMESTAMP, and time_zone is not UTC").into(),
            false => format!(
                "column {name} ({}) may not store its value exactly as it is",
                looked.type_name
            )
            .into(),
        }
    })
}

/// Checks that a column that gets no value has the same one in any session.
///
/// # Errors
/// The reason why that is not certain.
fn left_out(looked: &LookedColumn, table: &TableLook) -> Result<(), NoRow> {
    let column = &looked.column;
    let name = &column.name;
    if column.auto || column.generated || column.null_by_default {
        return Ok(());
    }
    let Some(default) = looked.default.as_deref() else {
        return Err(format!("column {name} has no default").into());
    };
    let default = default.to_ascii_lowercase();
    let is_time = ["current_timestamp", "now("]
        .iter()
        .any(|start| default.starts_with(start));
    let is_in_utc = column.kind == Kind::Timestamp || table.rows.settings.is_utc;
    match column.default {
        ColumnDefault::Constant => Ok(()),
        _ if is_time && is_in_utc || default == "uuid()" => Ok(()),
        _ if is_time => {
            Err(format!("the default of column {name} is a time, and time_zone is not UTC").into())
        }
        _ => Err(format!("the default of column {name} is computed").into()),
    }
}
