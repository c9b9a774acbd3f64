//! TPC-H's `lineitem`, over and over with other keys, as each way to write it needs it.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result};
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItem, LineItemGenerator};
use tpchgen::text::TextPool;

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
    /// What stands behind the key in a list of values, up to its end.
    literals: String,
    /// What stands behind the key in a JSON object, up to its end.
    json: String,
    values: [String; 15],
}

impl Row {
    fn of(item: &LineItem<'_>) -> Self {
        let values = [
            item.l_partkey.to_string(),
            item.l_suppkey.to_string(),
            item.l_linenumber.to_string(),
            item.l_quantity.to_string(),
            item.l_extendedprice.to_string(),
            item.l_discount.to_string(),
            item.l_tax.to_string(),
            item.l_returnflag.to_owned(),
            item.l_linestatus.to_owned(),
            item.l_shipdate.to_string(),
            item.l_commitdate.to_string(),
            item.l_receiptdate.to_string(),
            item.l_shipinstruct.to_owned(),
            item.l_shipmode.to_owned(),
            item.l_comment.to_owned(),
        ];
        let (mut literals, mut json) = (String::new(), String::new());
        for ((name, is_number), value) in COLUMNS.iter().zip(&values) {
            // The texts are words of a list: no quotes, no backslashes.
            let (sql, text) = match is_number {
                true => (value.clone(), value.clone()),
                false => (format!("'{value}'"), format!("\"{value}\"")),
            };
            write!(literals, ",{sql}").ok();
            write!(json, ",\"{name}\":{text}").ok();
        }
        literals.push(')');
        json.push_str("}\n");
        Self {
            order: item.l_orderkey,
            literals,
            json,
            values,
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
        let all: Vec<_> = items
            .iter()
            .take(GENERATED)
            .map(|item| Row::of(&item))
            .collect();
        let last = all.iter().map(|row| row.order).max();
        let stride = last.context("no row was generated")? + 1;
        Ok(Self {
            all,
            stride,
            next: AtomicU64::new(0),
        })
    }

    /// So many rows that nobody else has.
    pub(super) fn take(&self, rows: u64) -> Range<u64> {
        let first = self.next.fetch_add(rows, Ordering::Relaxed);
        first..first + rows
    }

    /// How many have been taken.
    pub(super) fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
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

    /// One INSERT of all of them.
    pub(super) fn insert(&self, numbers: Range<u64>) -> Result<String> {
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

    /// The columns of one row, in their order.
    pub(super) fn values(&self, number: u64) -> Result<(i64, &[String])> {
        let (row, order) = self.at(number)?;
        Ok((order, &row.values))
    }

    fn line(&self, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let (row, order) = self.at(number)?;
        out.extend_from_slice(format!("{{\"l_orderkey\":{order}").as_bytes());
        out.extend_from_slice(row.json.as_bytes());
        Ok(())
    }
}

/// Rows that one body takes at once.
const PORTION: u64 = 500;

/// A body of rows, one JSON object a line, that ends once it is told so.
pub(super) struct Body {
    rows: Arc<Rows>,
    ends: Arc<AtomicBool>,
    buffer: Vec<u8>,
    read: usize,
}

impl Body {
    pub(super) fn new(rows: &Arc<Rows>, ends: &Arc<AtomicBool>) -> Self {
        Self {
            rows: Arc::clone(rows),
            ends: Arc::clone(ends),
            buffer: Vec::new(),
            read: 0,
        }
    }
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() && !self.ends.load(Ordering::Relaxed) {
            self.buffer.clear();
            self.read = 0;
            for number in self.rows.take(PORTION) {
                self.rows
                    .line(number, &mut self.buffer)
                    .map_err(io::Error::other)?;
            }
        }
        let n = self
            .buffer
            .get(self.read..)
            .unwrap_or_default()
            .read(into)?;
        self.read += n;
        Ok(n)
    }
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
            let (order, values) = rows.values(number).unwrap();
            assert!(seen.insert((order, values[2].clone())), "{number}");
        }
        assert_eq!(rows.take(1), beyond..beyond + 1);
        let insert = rows.insert(1..3).unwrap();
        assert_eq!(insert.matches("),(").count(), 1);
        assert!(
            insert.starts_with("insert into lineitem values (1,67310,7311,2,36,"),
            "{insert}"
        );
        let mut line = Vec::new();
        rows.line(1, &mut line).unwrap();
        let object: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(object["l_partkey"], 67_310);
        assert_eq!(object.as_object().unwrap().len(), 16);
    }

    #[test]
    fn a_body_ends_with_a_whole_line_when_it_is_told() {
        let (rows, ends) = (
            Arc::new(Rows::generate().unwrap()),
            Arc::new(AtomicBool::new(false)),
        );
        let mut body = Body::new(&rows, &ends);
        let mut first = [0; 100];
        body.read_exact(&mut first).unwrap();
        ends.store(true, Ordering::Relaxed);
        let mut rest = String::new();
        body.read_to_string(&mut rest).unwrap();
        assert_eq!(rest.lines().count() as u64, PORTION);
        assert!(rest.ends_with("}\n"));
    }
}
