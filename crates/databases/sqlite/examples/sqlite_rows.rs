//! Rows per second of the SQLite sink by rows in a batch: five columns with a primary key, every
//! commit synced.
//!
//! `cargo run --release -p windrow-sqlite --example sqlite_rows [DIRECTORY]`; DIRECTORY holds the
//! database for the time of the run and should be on the disk that is to be measured.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Executor, Fault, Key, OnConflict, Op, Returning, Shape, TableName, Unit, Value, Verdict, Write,
};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_sqlite::Sqlite;

/// How long each batch size is measured.
const SPAN: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    println!("rows in a batch | rows/s | us per batch | of them in the database");
    for rows in [1, 32, 1_000, 10_000] {
        let directory = tempfile::tempdir_in(&parent)?;
        let url = format!("sqlite:{}/rows.db", directory.path().display());
        let options = Options {
            create_tables: true,
            ..Options::default()
        };
        let sink = Driver::open(&Sqlite, &url, &options).await?;
        let mut executor = sink.connect(Purpose::Batches).await?;
        measure(&mut *executor, rows).await?;
    }
    Ok(())
}

async fn measure(executor: &mut dyn Executor, rows: i64) -> Result<(), Fault> {
    let shape = shape();
    let (mut written, mut batches, mut working) = (0, 0_u32, Duration::ZERO);
    let mut inside = Duration::ZERO;
    while working < SPAN {
        let units: Vec<Unit> = (written..written + rows).map(|i| unit(&shape, i)).collect();
        let started = Instant::now();
        let report = executor.execute(&units).await;
        working += started.elapsed();
        inside += report.tally.in_database;
        for verdict in report.verdicts {
            match verdict {
                Verdict::Final(outcome) => outcome.map_err(|f| f.fault)?,
                Verdict::RolledBack(fault) | Verdict::WaitsForLock(fault) => return Err(fault),
                Verdict::NotTried => return Err(Fault::internal("nothing is held back here")),
            };
        }
        written += rows;
        batches += 1;
    }
    let per_batch = |d: Duration| d.as_secs_f64() * 1e6 / f64::from(batches);
    println!(
        "{rows} | {:.0} | {:.0} | {:.0}",
        f64::from(batches) * rows as f64 / working.as_secs_f64(),
        per_batch(working),
        per_batch(inside)
    );
    Ok(())
}

fn shape() -> Arc<Shape> {
    let columns = ["id", "station", "at", "temperature", "humidity"];
    Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("reading"),
        columns: columns.into_iter().map(Into::into).collect(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }))
}

fn unit(shape: &Arc<Shape>, i: i64) -> Unit {
    Unit::one(Write::new(
        shape.clone(),
        [
            i.into(),
            format!("station-{}", i % 100).into(),
            "2026-01-31T12:34:56Z".into(),
            Value::number(&format!("{}.5", i % 40)),
            (i % 100).into(),
        ],
    ))
}
