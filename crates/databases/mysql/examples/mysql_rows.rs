//! Rows per second of the MySQL sink by rows in a batch, beside MariaDB's bulk protocol with the
//! same rows: five columns with a primary key.
//!
//! `cargo run --release -p windrow-mysql --example mysql_rows [URL]`; without a URL a private
//! MariaDB that does not sync is started for it. A table `reading` is made and dropped.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Value as Cell};
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Executor, Fault, Key, OnConflict, Op, Returning, Shape, TableName, Unit, Value, Verdict, Write,
};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::MariaDb;

/// How long each batch size is measured.
const SPAN: Duration = Duration::from_secs(2);

const SIZES: [i64; 5] = [1, 32, 256, 1_000, 10_000];

const TABLE: &str = "create or replace table reading (id bigint primary key, station varchar(30), at datetime, \
    temperature decimal(6,2), humidity int)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = match std::env::args().nth(1) {
        Some(_) => None,
        None => Some(MariaDb::start()?),
    };
    let url = match (&server, std::env::args().nth(1)) {
        (Some(server), _) => server.create_database()?,
        (None, url) => url.unwrap_or_default(),
    };
    let mut conn = Conn::from_url(&url).await?;
    let sink = Driver::open(&Mysql, &url, &Options::default()).await?;
    println!("form | rows in a batch | rows/s | us per batch");
    for rows in SIZES {
        conn.query_drop(TABLE).await?;
        let mut executor = sink.connect(Purpose::Batches).await?;
        by_sink(&mut *executor, rows).await?;
        conn.query_drop(TABLE).await?;
        by_bulk_protocol(&mut conn, rows).await?;
    }
    conn.query_drop("drop table reading").await?;
    Ok(())
}

async fn by_sink(executor: &mut dyn Executor, rows: i64) -> Result<(), Fault> {
    let shape = shape();
    let (mut written, mut batches, mut working) = (0, 0_u32, Duration::ZERO);
    while working < SPAN {
        let units: Vec<Unit> = (written..written + rows).map(|i| unit(&shape, i)).collect();
        let started = Instant::now();
        let report = executor.execute(&units).await;
        working += started.elapsed();
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
    say("sink", rows, batches, working);
    Ok(())
}

/// One transaction a batch, as the sink's; which row failed, or counted how, would not be known.
async fn by_bulk_protocol(conn: &mut Conn, rows: i64) -> mysql_async::Result<()> {
    let statement = conn
        .prep("insert into reading values (?, ?, ?, ?, ?)")
        .await?;
    let (mut written, mut batches, mut working) = (0, 0_u32, Duration::ZERO);
    while working < SPAN {
        let started = Instant::now();
        let params = (written..written + rows).map(|i| Params::Positional(cells(i)));
        conn.query_drop("start transaction").await?;
        conn.exec_batch(&statement, params).await?;
        conn.query_drop("commit").await?;
        working += started.elapsed();
        written += rows;
        batches += 1;
    }
    say("bulk protocol", rows, batches, working);
    Ok(())
}

fn say(form: &str, rows: i64, batches: u32, working: Duration) {
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let rate = f64::from(batches) * rows as f64 / working.as_secs_f64();
    let each = working.as_secs_f64() * 1e6 / f64::from(batches);
    println!("{form} | {rows} | {rate:.0} | {each:.0}");
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

fn cells(i: i64) -> Vec<Cell> {
    vec![
        i.into(),
        format!("station-{}", i % 100).into(),
        "2026-01-31 12:34:56".into(),
        format!("{}.5", i % 40).into(),
        (i % 100).into(),
    ]
}
