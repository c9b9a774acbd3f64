//! TPC-H's `lineitem`, over and over with other keys, as each way to write it takes it.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use tpchgen::csv::LineItemCsv;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItem, LineItemGenerator};
use tpchgen::text::TextPool;
use windrow::Value;

use crate::servers::{Driver, Param};

/// Rows that are generated; behind the last of them they begin again with keys beyond.
const GENERATED: usize = 20_000;

/// Bytes of the text that comments are cut from. TPC-H's own 300 million have no other words, and
/// take a while to make.
const TEXTS: i32 = 1 << 20;

/// The names of all columns but the first, and whether their values are numbers.
const COLUMNS: [(&str, bool); 15] = [
    ("l_partkey", true),
    ("l_suppkey", true),
    ("l_linenumber", true),
    ("l_quantity", true),
    ("l_extendedprice", true),
    ("l_discount", true),
    ("l_tax", true),
    ("l_returnflag", false),
    ("l_linestatus", false),
    ("l_shipdate", false),
    ("l_commitdate", false),
    ("l_receiptdate", false),
    ("l_shipinstruct", false),
    ("l_shipmode", false),
    ("l_comment", false),
];

/// One row. Its key is `l_orderkey`, which changes, with `l_linenumber`, which does not.
struct Row {
    order: i64,
    /// The text after the key in a list of values, up to its end.
    literals: String,
    texts: Vec<Param>,
    /// The same as Windrow's library takes them.
    values: Vec<Value>,
}

impl Row {
    /// Takes a line of CSV. Its texts are words of a list: no quotes, no backslashes, no commas.
    fn of(item: LineItem<'_>) -> Self {
        let order = item.l_orderkey;
        let line = LineItemCsv::new(item).to_string();
        let fields: Vec<&str> = line.splitn(16, ',').skip(1).collect();
        let mut literals = String::new();
        for ((_, is_number), text) in COLUMNS.iter().zip(&fields) {
            let quote = if *is_number { "" } else { "'" };
            write!(literals, ",{quote}{}{quote}", text.trim_matches('"')).ok();
        }
        literals.push(')');
        let fields = fields.iter().map(|text| text.trim_matches('"'));
        Self {
            order,
            literals,
            texts: fields
                .clone()
                .map(|text| Param::Text(text.to_owned()))
                .collect(),
            values: fields.map(Value::from_field).collect(),
        }
    }
}

/// Rows without end, each taken once.
pub(super) struct Rows {
    all: Vec<Row>,
    /// By how much keys grow each time.
    stride: i64,
    next: AtomicU64,
}

impl Rows {
    pub(super) fn generate() -> Result<Self> {
        let distributions = Distributions::static_default();
        let texts = TextPool::new(TEXTS, distributions);
        let items = LineItemGenerator::new_with_distributions_and_text_pool(
            1.0,
            1,
            1,
            distributions,
            &texts,
        );
        let all: Vec<_> = items.iter().take(GENERATED).map(Row::of).collect();
        let last = all.iter().map(|row| row.order).max();
        let stride = last.context("no row was generated")? + 1;
        Ok(Self {
            all,
            stride,
            next: AtomicU64::new(0),
        })
    }

    /// Takes `rows` rows that no other writer has.
    pub(super) fn take(&self, rows: u64) -> Range<u64> {
        let first = self.next.fetch_add(rows, Ordering::Relaxed);
        first..first + rows
    }

    /// The row of a number, and its key.
    fn at(&self, number: u64) -> Result<(&Row, i64)> {
        let length = self.all.len() as u64;
        let place = usize::try_from(number % length)?;
        let row = self.all.get(place).context("rows are generated")?;
        Ok((
            row,
            row.order + i64::try_from(number / length)? * self.stride,
        ))
    }

    /// Takes so many rows, writes and commits them: one multi-row INSERT, as a text; into SQLite,
    /// which gains nothing by that, one transaction of a prepared statement.
    pub(super) fn write(&self, driver: &mut Driver, rows: u32) -> Result<()> {
        let numbers = self.take(rows.into());
        if !matches!(driver, Driver::Sqlite(_)) {
            return driver.run(&self.insert(numbers)?);
        }
        let insert = format!("insert into lineitem values {}", driver.lists(1, 16));
        driver.run("begin immediate")?;
        for number in numbers {
            let (row, order) = self.at(number)?;
            let mut params = vec![Param::Int(order)];
            params.extend_from_slice(&row.texts);
            driver.execute(&insert, &params)?;
        }
        driver.run("commit")
    }

    /// One INSERT of all of them.
    fn insert(&self, numbers: Range<u64>) -> Result<String> {
        let mut text = String::from("insert into lineitem values ");
        for number in numbers {
            let (row, order) = self.at(number)?;
            if text.ends_with(')') {
                text.push(',');
            }
            write!(text, "({order}{}", row.literals)?;
        }
        Ok(text)
    }

    /// The same for Windrow's library, which keeps them.
    pub(super) fn values(&self, number: u64) -> Result<Vec<Value>> {
        let (row, order) = self.at(number)?;
        let mut values = Vec::with_capacity(1 + row.values.len());
        values.push(order.into());
        values.extend_from_slice(&row.values);
        Ok(values)
    }
}

/// The names of all columns.
pub(super) fn columns() -> impl Iterator<Item = &'static str> {
    std::iter::once("l_orderkey").chain(COLUMNS.iter().map(|(name, _)| *name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_never_come_twice_and_all_spellings_are_of_one_row() {
        let rows = Rows::generate().unwrap();
        let mut seen = HashSet::new();
        let beyond = GENERATED as u64 + 2_000;
        for number in rows.take(beyond) {
            let (row, order) = rows.at(number).unwrap();
            assert!(
                seen.insert(format!("{order} {:?}", row.texts[2])),
                "{number}"
            );
        }
        assert_eq!(rows.take(1), beyond..beyond + 1);
        let insert = rows.insert(1..3).unwrap();
        assert_eq!(insert.matches("),(").count(), 1);
        assert!(
            insert.starts_with("insert into lineitem values (1,67310,7311,2,36,"),
            "{insert}"
        );
        let values = rows.values(1).unwrap();
        assert_eq!(values.len(), columns().count());
        assert_eq!(values[..2], [1.into(), 67_310.into()]);
    }
}
