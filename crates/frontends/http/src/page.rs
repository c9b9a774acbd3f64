//! The parameters of a list of rows.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use windrow_core::{Fault, KeyedTable, Name, RowFilter, RowTest, TableName, Value};

use crate::answers::Refusal;
use crate::query::{decode, invalid, pairs};

/// The default and the largest number of rows in a list.
const DEFAULT_ROWS: usize = 100;
const MAX_ROWS: usize = 1000;

/// The most conditions of one request.
const MAX_FILTERS: usize = 16;

/// The characters that are not percent-encoded in the value of a parameter.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b':');

/// The parameters of a request for a list: its own, and conditions on columns.
#[derive(Debug)]
pub(crate) struct ListQuery {
    pub(crate) rows: usize,
    pub(crate) columns: Option<Vec<Name>>,
    pub(crate) order: Vec<Name>,
    pub(crate) is_descending: bool,
    pub(crate) start_after: Option<Vec<Value>>,
    pub(crate) filters: Vec<RowFilter>,
}

impl ListQuery {
    /// Reads the parameters.
    ///
    /// # Errors
    /// 400 for an invalid value, and for one given twice.
    pub(crate) fn read(query: &str) -> Result<Self, Refusal> {
        let mut list = Self {
            rows: DEFAULT_ROWS,
            columns: None,
            order: Vec::new(),
            is_descending: false,
            start_after: None,
            filters: Vec::new(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for (name, raw) in pairs(query) {
            match name {
                "limit" | "columns" | "order" | "start_after" if seen.contains(&name) => {
                    return Err(invalid(format!("the parameter {name} is given twice")));
                }
                "limit" => list.rows = limit(raw)?,
                "columns" => list.columns = Some(names(raw)?),
                "order" => (list.order, list.is_descending) = order(raw)?,
                "start_after" => list.start_after = Some(values(raw)?),
                _ => list.filters.push(filter(name, raw)?),
            }
            seen.push(name);
        }
        if list.filters.len() > MAX_FILTERS {
            return Err(invalid(format!(
                "a list takes {MAX_FILTERS} conditions on columns at most"
            )));
        }
        Ok(list)
    }

    /// Completes the list by its table: the key is added to the order, so that no two rows are
    /// equal in it, and every column must exist.
    ///
    /// # Errors
    /// 400 for a table that cannot be listed this way, 422 for a missing column.
    pub(crate) fn fit(&mut self, table: &KeyedTable) -> Result<(), Refusal> {
        let named = self.columns.iter().flatten().chain(&self.order);
        let named = named.chain(self.filters.iter().map(|filter| &filter.column));
        for column in named {
            if !table.columns.contains(column) {
                return Err(no_column(&table.name, column).into());
            }
        }
        for column in &self.order {
            if !table.key.contains(column) {
                self.filters.push(RowFilter {
                    column: column.clone(),
                    test: RowTest::NotNull,
                    value: Value::Null,
                });
            }
        }
        let missing = table.key.iter().filter(|key| !self.order.contains(key));
        let missing: Vec<Name> = missing.cloned().collect();
        self.order.extend(missing);
        let Some(start) = &self.start_after else {
            return Ok(());
        };
        if table.key.is_empty() {
            return Err(invalid(format!(
                "the table {} has no primary key, so a list of its rows has no second page; add conditions, or raise limit up to {MAX_ROWS}",
                table.name
            )));
        }
        if start.len() != self.order.len() {
            return Err(invalid(format!(
                "start_after has {} values, and the list is ordered by {} columns ({})",
                start.len(),
                self.order.len(),
                self.order.join(", ")
            )));
        }
        Ok(())
    }

    /// Returns the query of the next page after a row: this query, with another `start_after`.
    pub(crate) fn next(&self, query: &str, columns: &[Name], last: &[Value]) -> String {
        let mut next = String::with_capacity(query.len() + 64);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if !pair.starts_with("start_after=") {
                next.push_str(pair);
                next.push('&');
            }
        }
        next.push_str("start_after=");
        for (place, column) in self.order.iter().enumerate() {
            next.push_str(if place > 0 { "," } else { "" });
            let at = columns.iter().position(|name| name == column);
            let value = at.and_then(|at| last.get(at)).unwrap_or(&Value::Null);
            next.extend(utf8_percent_encode(&spelled(value), PLAIN));
        }
        next
    }
}

/// Returns the text of a value as a URL spells it.
fn spelled(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Number(text) | Value::Text(text) | Value::Json(text) => text.to_string(),
        Value::Bytes(_) => {
            let mut json = Vec::new();
            crate::answers::json::value(&mut json, value);
            String::from_utf8_lossy(&json).trim_matches('"').to_owned()
        }
    }
}

fn limit(raw: &str) -> Result<usize, Refusal> {
    match raw.parse() {
        Ok(rows) if (1..=MAX_ROWS).contains(&rows) => Ok(rows),
        _ => Err(invalid(format!(
            "limit={raw} makes no sense; write a number of rows from 1 to {MAX_ROWS}"
        ))),
    }
}

fn names(raw: &str) -> Result<Vec<Name>, Refusal> {
    let mut names: Vec<Name> = Vec::new();
    for part in raw.split(',') {
        let name = decode(part)?;
        if name.is_empty() || names.iter().any(|known| **known == *name) {
            return Err(invalid(format!(
                "columns and order name columns between commas, each once; {raw:?} does not"
            )));
        }
        names.push((&*name).into());
    }
    Ok(names)
}

/// Reads the columns of an order, each after a minus sign if the largest values come first.
fn order(raw: &str) -> Result<(Vec<Name>, bool), Refusal> {
    let count = raw.split(',').count();
    let descending = raw.split(',').filter(|part| part.starts_with('-')).count();
    if descending != 0 && descending != count {
        return Err(invalid(
            "order has columns of both directions; begin each of them with a minus sign, or none",
        ));
    }
    let is_descending = descending > 0;
    let plain: Vec<&str> = raw
        .split(',')
        .map(|part| {
            part.strip_prefix('-')
                .filter(|_| is_descending)
                .unwrap_or(part)
        })
        .collect();
    Ok((names(&plain.join(","))?, is_descending))
}

fn values(raw: &str) -> Result<Vec<Value>, Refusal> {
    let values = raw.split(',').map(|part| Ok(Value::text(&*decode(part)?)));
    values.collect()
}

/// Reads a condition: `column=value`, `column>=value` or `column<=value`.
fn filter(name: &str, raw: &str) -> Result<RowFilter, Refusal> {
    let name = decode(name)?;
    let (column, test) = match name.strip_suffix(['<', '>']) {
        Some(column) if name.ends_with('<') => (column, RowTest::AtMost),
        Some(column) => (column, RowTest::AtLeast),
        None => (&*name, RowTest::Equal),
    };
    if column.is_empty() || column.contains(['<', '>']) {
        return Err(invalid(format!(
            "the condition {name:?} makes no sense; write column=value, column>=value or column<=value"
        )));
    }
    Ok(RowFilter {
        column: column.into(),
        test,
        value: Value::text(&*decode(raw)?),
    })
}

fn no_column(table: &TableName, column: &Name) -> Fault {
    let message = format!(
        "table {table} has no column named {column}; parameters of a list are limit, order, columns, start_after, after, and conditions on columns"
    );
    Fault::new(windrow_core::FaultClass::NoColumn, "42703", message)
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(key: &[&str]) -> KeyedTable {
        KeyedTable {
            name: TableName::bare("t"),
            key: key.iter().map(|name| Name::from(*name)).collect(),
            columns: ["id", "time", "v"].map(Name::from).into(),
            generated: Box::default(),
            keeps_key: true,
        }
    }

    #[test]
    fn parameters_are_read_and_the_key_completes_the_order() {
        let query = "limit=2&order=-time&time>=2026&v%3C=7&id=a+b&start_after=2026%2C1,5";
        let mut list = ListQuery::read(query).unwrap();
        list.fit(&table(&["id"])).unwrap();
        assert_eq!((list.rows, list.is_descending), (2, true));
        assert_eq!(list.order, ["time", "id"].map(Name::from));
        let tests: Vec<_> = list.filters.iter().map(|filter| filter.test).collect();
        let (ge, le) = (RowTest::AtLeast, RowTest::AtMost);
        assert_eq!(tests, [ge, le, RowTest::Equal, RowTest::NotNull]);
        assert_eq!(list.filters[2].value, Value::text("a b"));
        let start = [Value::text("2026,1"), Value::text("5")];
        assert_eq!(list.start_after.as_deref(), Some(&start[..]));
        let columns = ["id", "time"].map(Name::from);
        let last = [Value::Int(9), Value::text("20:30,é")];
        assert_eq!(
            list.next("order=-time&start_after=x", &columns, &last),
            "order=-time&start_after=20:30%2C%C3%A9,9"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for query in [
            "limit=0",
            "limit=1001",
            "limit=x",
            "order=-a,b",
            "order=",
            "columns=a,a",
            "limit=1&limit=2",
            ">=1",
            "a<>=1",
        ] {
            assert!(ListQuery::read(query).is_err(), "{query}");
        }
        let fits = |query: &str, key: &[&str]| {
            let mut list = ListQuery::read(query).unwrap();
            list.fit(&table(key)).is_ok()
        };
        assert!(fits("start_after=1", &["id"]) && !fits("start_after=1", &[]));
        assert!(!fits("start_after=1,2", &["id"]));
        assert!(!fits("x=1", &["id"]) && !fits("order=x", &["id"]) && !fits("columns=x", &["id"]));
    }
}
