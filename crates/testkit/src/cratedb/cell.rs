//! Values, as CrateDB keeps them.

use serde_json::Value;
use windrow_core::calendar::day_number;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// All its digits.
    Decimal(String),
    Text(String),
    Json(Value),
}

impl Cell {
    /// Converts a parameter to a column's type.
    pub(super) fn cast(value: &Value, data_type: &str) -> Result<Self, String> {
        let base = data_type.split('(').next().unwrap_or_default().trim();
        let wrong = || {
            let shown = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            format!("Cannot cast value `{shown}` to type `{data_type}`")
        };
        if base == "bigint"
            && let Some(Self::Int(n @ (i64::MIN | i64::MAX))) = whole(base, value)
        {
            return Err(format!(
                "Value {n} exceeds allowed range for column of type bigint"
            ));
        }
        let cell = match (base, value) {
            (_, Value::Null) => Some(Self::Null),
            ("boolean", Value::Bool(b)) => Some(Self::Bool(*b)),
            ("boolean", Value::String(text)) => text.parse().ok().map(Self::Bool),
            ("bigint" | "integer" | "smallint", _) => whole(base, value),
            ("double precision" | "real", _) => double(value).map(Self::Double),
            ("numeric", Value::String(text)) => text
                .parse::<f64>()
                .ok()
                .map(|_| Self::Decimal(text.clone())),
            ("numeric", Value::Number(n)) => Some(Self::Decimal(n.to_string())),
            ("timestamp with time zone", Value::Number(n)) => n.as_i64().map(Self::Int),
            ("timestamp with time zone", Value::String(text)) => moment(text).map(Self::Int),
            ("text", Value::String(text)) => Some(Self::Text(text.clone())),
            ("text", Value::Number(n)) => Some(Self::Text(n.to_string())),
            ("text", Value::Bool(b)) => Some(Self::Text(b.to_string())),
            ("object", Value::Object(_)) => Some(Self::Json(value.clone())),
            _ if base.ends_with("_array") && value.is_array() => Some(Self::Json(value.clone())),
            _ => None,
        };
        cell.ok_or_else(wrong)
    }

    /// Returns the type that a dynamic column gets from its first value.
    pub(super) fn type_of(value: &Value) -> &'static str {
        match value {
            Value::Bool(_) => "boolean",
            Value::Number(n) if n.is_i64() => "bigint",
            Value::Number(_) => "double precision",
            Value::Object(_) => "object",
            Value::Array(_) => "text_array",
            Value::String(_) | Value::Null => "text",
        }
    }

    /// As the answer has it.
    pub(super) fn json(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::Double(x) => format!("{x:?}"),
            Self::Decimal(digits) => digits.clone(),
            Self::Text(text) => Value::String(text.clone()).to_string(),
            Self::Json(value) => value.to_string(),
        }
    }
}

fn whole(base: &str, value: &Value) -> Option<Cell> {
    let n: i64 = match value {
        // A fraction is cut off without a word.
        Value::Number(n) => n
            .as_i64()
            .or_else(|| n.to_string().split('.').next()?.parse().ok())?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let fits = match base {
        "integer" => i32::try_from(n).is_ok(),
        "smallint" => i16::try_from(n).is_ok(),
        _ => true,
    };
    fits.then_some(Cell::Int(n))
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// `2013-01-01T06:00:00Z` of some years: enough for a stand-in.
fn moment(text: &str) -> Option<i64> {
    if let Ok(millis) = text.parse() {
        return Some(millis);
    }
    let (date, time) = text.trim_end_matches('Z').split_once('T')?;
    let (time, zone) = time.split_once('+').unwrap_or((time, "0"));
    let zone: i64 = zone.parse().ok()?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let days = day_number(year, month, day)?;
    let mut time = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a day")]
    let of_day = ((hour * 60.0 + minute) * 60_000.0 + second * 1000.0).round() as i64;
    Some(days * 86_400_000 + of_day - zone * 3_600_000)
}
