//! TPC-H's `lineitem` as files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tpchgen::csv::LineItemCsv;
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{LineItem, LineItemGenerator};

/// Rows that are turned into columns together.
const BATCH: usize = 8192;

/// The first line of the CSV file.
pub(super) fn header() -> &'static str {
    LineItemCsv::header()
}

/// Writes the table at a scale factor (1: six million rows) as CSV. Gives back how many rows.
pub(super) fn write_csv(path: &Path, scale: f64) -> Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "{}", header())?;
    let mut rows = 0;
    for row in LineItemGenerator::new(scale, 1, 1).iter() {
        writeln!(out, "{}", LineItemCsv::new(row))?;
        rows += 1;
    }
    out.flush()?;
    Ok(rows)
}

/// Writes the same rows as Parquet.
pub(super) fn write_parquet(path: &Path, scale: f64) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let file = File::create(path)?;
    let mut rows = LineItemGenerator::new(scale, 1, 1).iter();
    let mut next = || columns(&rows.by_ref().take(BATCH).collect::<Vec<_>>());
    let first = next()?;
    let mut writer = ArrowWriter::try_new(file, first.schema(), Some(properties))?;
    let mut batch = first;
    while batch.num_rows() > 0 {
        writer.write(&batch)?;
        batch = next()?;
    }
    writer.close()?;
    Ok(())
}

fn columns(rows: &[LineItem<'_>]) -> Result<RecordBatch> {
    let columns: [(&str, ArrayRef); 16] = [
        ("l_orderkey", whole(rows, |row| row.l_orderkey)),
        ("l_partkey", whole(rows, |row| row.l_partkey)),
        ("l_suppkey", whole(rows, |row| row.l_suppkey)),
        (
            "l_linenumber",
            Arc::new(Int32Array::from_iter_values(
                rows.iter().map(|row| row.l_linenumber),
            )),
        ),
        ("l_quantity", hundredths(rows, |row| row.l_quantity * 100)?),
        ("l_extendedprice", money(rows, |row| row.l_extendedprice)?),
        ("l_discount", money(rows, |row| row.l_discount)?),
        ("l_tax", money(rows, |row| row.l_tax)?),
        ("l_returnflag", text(rows, |row| row.l_returnflag)),
        ("l_linestatus", text(rows, |row| row.l_linestatus)),
        ("l_shipdate", date(rows, |row| row.l_shipdate)),
        ("l_commitdate", date(rows, |row| row.l_commitdate)),
        ("l_receiptdate", date(rows, |row| row.l_receiptdate)),
        ("l_shipinstruct", text(rows, |row| row.l_shipinstruct)),
        ("l_shipmode", text(rows, |row| row.l_shipmode)),
        ("l_comment", text(rows, |row| row.l_comment)),
    ];
    let columns = columns.map(|(name, values)| (name, values, false));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

fn whole(rows: &[LineItem<'_>], of: fn(&LineItem<'_>) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
}

fn hundredths(rows: &[LineItem<'_>], of: impl Fn(&LineItem<'_>) -> i64) -> Result<ArrayRef> {
    let values = rows.iter().map(|row| i128::from(of(row)));
    let array = Decimal128Array::from_iter_values(values).with_precision_and_scale(15, 2)?;
    Ok(Arc::new(array))
}

fn money(rows: &[LineItem<'_>], of: fn(&LineItem<'_>) -> TPCHDecimal) -> Result<ArrayRef> {
    hundredths(rows, |row| of(row).into_inner())
}

fn date(rows: &[LineItem<'_>], of: fn(&LineItem<'_>) -> TPCHDate) -> ArrayRef {
    let values = rows.iter().map(|row| of(row).to_unix_epoch());
    Arc::new(Date32Array::from_iter_values(values))
}

fn text(rows: &[LineItem<'_>], of: for<'a> fn(&'a LineItem<'_>) -> &'a str) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(rows.iter().map(of)))
}
