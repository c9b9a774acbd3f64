//! Rows from any source, one status for each: what Perl's DBI calls `execute_for_fetch`.
//!
//! `cargo run --example rows_from_a_file -- sqlite:readings.db readings.csv`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to a person"
)]

use std::io::Read;
use std::process::ExitCode;

use futures_util::{StreamExt, stream};
use windrow::{Fault, Value, Writer};

/// Writes the lines of a CSV file with a header, and says of each line that was refused why. The
/// file is read only as far as it is written, so it may be larger than memory.
pub async fn run(
    url: &str,
    table: &str,
    file: impl Read,
) -> Result<(usize, Vec<(usize, Fault)>), Fault> {
    let mut csv = csv::Reader::from_reader(file);
    let unreadable =
        |error: csv::Error| Fault::new(windrow::FaultClass::Invalid, "22000", error.to_string());
    let columns: Vec<String> = csv
        .headers()
        .map_err(unreadable)?
        .iter()
        .map(str::to_owned)
        .collect();
    let writer = Writer::builder(url).create_tables(true).open().await?;
    let target = writer.insert(table, &columns)?;
    let rows = csv
        .records()
        .map_while(Result::ok)
        .map(|record| record.iter().map(value).collect::<Vec<_>>());
    let mut statuses = std::pin::pin!(target.write_stream(stream::iter(rows)).enumerate());
    let (mut written, mut refused) = (0, Vec::new());
    while let Some((line, status)) = statuses.next().await {
        match status {
            Ok(done) => written += usize::try_from(done.rows).unwrap_or(0),
            Err(fault) => refused.push((line + 2, fault)),
        }
    }
    writer.close().await;
    Ok((written, refused))
}

/// `NA` stands for a missing value.
fn value(field: &str) -> Value {
    if field == "NA" {
        Value::Null
    } else {
        Value::from_field(field)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(path)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: rows_from_a_file URL FILE");
        return ExitCode::FAILURE;
    };
    let outcome = match std::fs::File::open(&path) {
        Ok(file) => run(&url, "rows", file).await,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok((written, refused)) => {
            println!("{written} rows written, {} refused", refused.len());
            for (line, fault) in refused.iter().take(10) {
                println!("line {line}: {fault}");
            }
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
