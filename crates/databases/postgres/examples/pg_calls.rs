//! What SQL calls cost: batches of one size after another against a server, rows a second and CPU
//! time of this process.
//!
//! `cargo run --release -p windrow-postgres --example pg_calls -- postgres://user@host/database`
//! makes the table `windrow_core` there, and drops it again.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_core::sink::Purpose;
use windrow_core::{
    Arguments, Described, Describer, Expression, Formats, Op, ParsedStatement, Piece, Sink,
    SqlCall, Statement, TableName, Unit,
};
use windrow_database::Options;
use windrow_pgwire::{Target, Wire};
use windrow_postgres::StatementSink;

type Failure = Box<dyn std::error::Error>;

/// How long each size is measured.
const SPAN: Duration = Duration::from_secs(2);

fn parsed() -> Arc<ParsedStatement> {
    let parameter = |place| Expression::Sql([Piece::Parameter(place)].into());
    Arc::new(ParsedStatement {
        text: "INSERT INTO windrow_core (id, a, b, c, d) VALUES ($1, $2, $3, $4, $5)".into(),
        types: [].into(),
        op: Op::Insert,
        table: TableName::bare("windrow_core"),
        alias: None,
        columns: Some(["id", "a", "b", "c", "d"].map(Into::into).into()),
        values: (0..5).map(parameter).collect(),
        overriding: None,
        conflict: None,
        assignments: [].into(),
        keys: [].into(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: [].into(),
        set_based: true,
    })
}

fn unit(statement: &Arc<Statement>, id: u64) -> Option<Unit> {
    let id = id.to_string();
    let mut bytes = Vec::with_capacity(96);
    for value in [
        &*id,
        "12345",
        "some text of a row",
        "2.5",
        "2020-01-01 00:00:00+00",
    ] {
        bytes.extend_from_slice(&u32::try_from(value.len()).ok()?.to_be_bytes());
        bytes.extend_from_slice(value.as_bytes());
    }
    let call = SqlCall {
        statement: statement.clone(),
        arguments: Arguments::of(bytes, 5)?,
        formats: Formats::Text,
        results: Formats::Text,
        fresh: false,
        origin: None,
    };
    Some(Unit::one(call.into()))
}

/// CPU time of this thread: from the kernel's own clock, in ticks of nanoseconds.
fn cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

async fn run(wire: &mut Wire, sql: &str) -> Result<(), Failure> {
    let answer = wire
        .simple(sql)
        .await
        .map_err(|broken| broken.unavailable())?;
    answer.map_err(|error| error.to_string())?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let url = std::env::args()
        .nth(1)
        .ok_or("say which database: postgres://..")?;
    let target = Target::parse(&url)?;
    let mut admin = Wire::connect(&target, &[], Duration::from_secs(5)).await?;
    let make = "DROP TABLE IF EXISTS windrow_core; CREATE TABLE windrow_core (id bigint PRIMARY KEY, a int, b text, c float8, d timestamptz)";
    run(&mut admin, make).await?;
    let sink = StatementSink::new(target, Vec::new(), Vec::new(), &Options::default());
    let Described::Joined(statement) = sink.describe(&parsed()).await? else {
        return Err("the statement cannot be joined".into());
    };
    let mut executor = sink.connect(Purpose::Batches).await?;
    let mut next = 0;
    println!("batch      rows/s  round trip us  CPU here, us a row");
    for size in [1, 2, 6, 16, 64, 256, 1000] {
        let (mut rows, mut spent, mut busy) = (0_u32, Duration::ZERO, Duration::ZERO);
        let mut batches = 0_u32;
        while spent < SPAN {
            let units: Option<Vec<Unit>> = (next..next + u64::from(size))
                .map(|id| unit(&statement, id))
                .collect();
            let units = units.ok_or("a value is too long")?;
            next += u64::from(size);
            let (start, used) = (Instant::now(), cpu().unwrap_or_default());
            let report = executor.execute(&units).await;
            spent += start.elapsed();
            busy += cpu().unwrap_or_default().saturating_sub(used);
            (rows, batches) = (rows + size, batches + 1);
            if let Some(other) = report
                .verdicts
                .iter()
                .find(|v| !matches!(v, windrow_core::Verdict::Final(Ok(_))))
            {
                return Err(format!("{other:?}").into());
            }
        }
        println!(
            "{size:5} {:11.0} {:14.1} {:19.3}",
            f64::from(rows) / spent.as_secs_f64(),
            spent.as_secs_f64() * 1e6 / f64::from(batches),
            busy.as_secs_f64() * 1e6 / f64::from(rows),
        );
    }
    executor.close().await;
    run(&mut admin, "DROP TABLE windrow_core").await?;
    Ok(())
}
