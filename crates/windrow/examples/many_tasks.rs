//! Many tasks write one row at a time; together they write batches, and each has its own outcome.
//!
//! `cargo run --example many_tasks -- sqlite:readings.db`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to a person"
)]

use std::process::ExitCode;

use futures_util::future::join_all;
use windrow::{Fault, Writer};

/// Writes 1,000 readings from 100 tasks; every tenth reading is sent twice, as devices do.
pub async fn run(url: &str) -> Result<(usize, usize), Fault> {
    let writer = Writer::builder(url).create_tables(true).open().await?;
    let readings = writer.insert("readings", ["id", "celsius"])?;
    let device = async |device: i64| {
        let (mut written, mut again) = (0, 0);
        for n in 0..10 {
            let row = || [(device * 10 + n).into(), 21.5.into()];
            readings.write(row()).await?;
            written += 1;
            if n == 0 {
                match readings.write(row()).await {
                    Err(fault) if fault.code == "23505" => again += 1,
                    other => return other.map(|_| (written, again)),
                }
            }
        }
        Ok::<_, Fault>((written, again))
    };
    let outcomes: Result<Vec<_>, Fault> =
        join_all((0..100).map(device)).await.into_iter().collect();
    writer.close().await;
    Ok(outcomes?
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
}

#[tokio::main]
async fn main() -> ExitCode {
    let url = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "sqlite::memory:".to_owned());
    match run(&url).await {
        Ok((written, again)) => {
            println!("{written} rows written, {again} were there already");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
