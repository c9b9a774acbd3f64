//! The tables against the file, read by the databases' own tools.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use rusqlite::types::Value;
use windrow_testkit::postgres::psql;

use super::file::{MISSING, Weather, is_text};

/// The file is loaded beside the table by `\copy`; as multisets of rows they must be the same.
pub(super) fn postgres(url: &str, file: &Path, weather: &Weather) -> Result<()> {
    let file = file.canonicalize()?;
    let sql = format!(
        "create temp table file (like weather);\n\
         \\copy file from '{}' with (format csv, header, null '{MISSING}')\n\
         select (select count(*) from weather), \
         (select count(*) from (table file except all table weather) x), \
         (select count(*) from (table weather except all table file) x);",
        file.display()
    );
    let counts = psql(url, &sql)?;
    let expected = format!("{}|0|0", weather.rows());
    anyhow::ensure!(
        counts == expected,
        "rows, rows that are missing, rows that are not in the file: {counts} (should be {expected})"
    );
    Ok(())
}

/// Every row of the table is compared with the row of the file that has its key.
pub(super) fn sqlite(file: &Path, weather: &Weather) -> Result<()> {
    let mut expected: Vec<_> = weather.all().collect();
    let last = weather.columns().len().saturating_sub(1);
    expected.sort_by_key(|row| (row.get(0), row.get(last)));
    let names = weather.columns().join(", ");
    let db = Connection::open(file)?;
    let mut statement = db.prepare(&format!(
        "select {names} from weather order by origin, time_hour"
    ))?;
    let mut rows = statement.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        let record = expected.get(found).context("more rows than in the file")?;
        for (at, (name, cell)) in weather.columns().iter().zip(*record).enumerate() {
            let value: Value = row.get(at)?;
            anyhow::ensure!(
                equals(name, cell, &value),
                "row {found}, {name}: {value:?} is there, {cell} is in the file"
            );
        }
        found += 1;
    }
    anyhow::ensure!(
        found == expected.len(),
        "{found} rows are there, {} are in the file",
        expected.len()
    );
    Ok(())
}

fn equals(column: &str, cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell == MISSING,
        Value::Text(text) => is_text(column) && text == cell,
        Value::Integer(n) => cell.parse() == Ok(*n) || cell.parse() == Ok(*n as f64),
        Value::Real(n) => !is_text(column) && cell.parse() == Ok(*n),
        Value::Blob(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        for (column, cell, value, same) in [
            ("temp", "39.02", Value::Real(39.02), true),
            ("temp", "39.02", Value::Real(39.0), false),
            ("temp", "39.02", Value::Text("39.02".into()), false),
            ("pressure", "1e3", Value::Integer(1000), true),
            ("pressure", "1e3", Value::Real(1000.0), true),
            ("wind_gust", "NA", Value::Null, true),
            ("wind_gust", "0", Value::Null, false),
            ("wind_gust", "NA", Value::Text("NA".into()), false),
            ("origin", "EWR", Value::Text("EWR".into()), true),
        ] {
            assert_eq!(
                equals(column, cell, &value),
                same,
                "{column} {cell} {value:?}"
            );
        }
    }
}
