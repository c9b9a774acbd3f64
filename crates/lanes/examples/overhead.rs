//! What a lane costs by itself: CPU time for each unit, over a sink that answers at once.
//!
//! `cargo run --release -p windrow-lanes --example overhead`
//!
//! An argument runs only the measurements whose name holds it, for use under a profiler.
//!
//! Everything runs on one thread (client tasks, lane, sink), so its CPU time is all there is. The
//! time to build and drop the units, which frontends pay in any case, is measured apart and taken
//! off.

#![expect(clippy::print_stdout, reason = "it prints a report")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Arguments, Budget, Executor, Fault, Formats, Intake, Key, Limits, OnConflict, Op,
    ParsedStatement, Profile, Report, Returning, Shape, Signature, Sink, SqlCall, Statement,
    TableName, Tally, Unit, Value, Verdict, Write, WriteDone,
};
use windrow_lanes::{Lane, LaneMetrics};

struct Instantly(Profile);

#[async_trait]
impl Sink for Instantly {
    fn profile(&self) -> &Profile {
        &self.0
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(AtOnce))
    }
}

struct AtOnce;

#[async_trait]
impl Executor for AtOnce {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let done = |_: &Unit| Verdict::Final(Ok(std::iter::once(WriteDone::default()).collect()));
        Report {
            verdicts: units.iter().map(done).collect(),
            tally: Tally::default(),
            usable: true,
        }
    }
}

fn intake() -> (Intake, Lane) {
    let profile = Profile {
        name: "nothing",
        transactional: true,
        flights: 1,
        batch_rows: 10_000,
        limitations: &[],
    };
    let (intake, arrivals) = Intake::channel(Budget::new(1 << 28), 1024);
    let metrics = LaneMetrics::register(&mut Registry::default());
    let sink = Arc::new(Instantly(profile));
    let lane = Lane::start(sink, Limits::default(), arrivals, metrics, "main".into());
    (intake, lane)
}

fn unit(shape: &Arc<Shape>, n: i64) -> Unit {
    let row: Box<[Value]> = Box::new([Value::Int(n), Value::Int(n * 3), Value::Bool(true)]);
    Unit::one(Write::new(shape.clone(), row))
}

fn shape() -> Arc<Shape> {
    Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: ["a", "b", "c"].map(Into::into).into(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }))
}

/// CPU time of this thread. Linux only; elsewhere the time on the wall.
fn cpu(since: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// A prepared INSERT of three values, as SQL sessions submit it.
fn call(statement: &Arc<Statement>) -> Unit {
    const VALUES: [u8; 24] = [
        0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 3,
    ];
    let arguments = Arguments::of(VALUES, 3).unwrap_or_default();
    let call = SqlCall {
        statement: Arc::clone(statement),
        arguments,
        formats: Formats::Binary,
        results: Formats::Binary,
        fresh: false,
        origin: None,
    };
    Unit::one(call.into())
}

fn statement() -> Arc<Statement> {
    let parsed = ParsedStatement {
        text: "INSERT INTO t VALUES ($1, $2, $3)".into(),
        types: Box::default(),
        op: Op::Insert,
        table: TableName::bare("t"),
        alias: None,
        columns: None,
        values: Box::default(),
        overriding: None,
        conflict: None,
        assignments: Box::default(),
        keys: Box::default(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: Box::default(),
        set_based: true,
    };
    Arc::new(Statement::new(
        Arc::new(parsed),
        Arc::new(Signature {
            parameters: [23; 3].into(),
            fields: None,
        }),
        Arc::new(()),
    ))
}

/// Clients of SQL sessions: each has one call under way at any time.
async fn sessions(tasks: i64, each: i64) {
    let (intake, lane) = intake();
    let statement = statement();
    let clients: Vec<_> = (0..tasks)
        .map(|_| {
            let (intake, statement) = (intake.clone(), Arc::clone(&statement));
            tokio::spawn(async move {
                let source = intake.new_source();
                let mut good = 0;
                for _ in 0..each {
                    good += i64::from(intake.run(source, call(&statement)).await.is_ok());
                }
                assert_eq!(good, each);
            })
        })
        .collect();
    for client in clients {
        client.await.ok();
    }
    lane.shutdown().await;
}

async fn singles(tasks: i64, each: i64) {
    let (intake, lane) = intake();
    let shape = shape();
    let clients: Vec<_> = (0..tasks)
        .map(|_| {
            let (intake, shape) = (intake.clone(), shape.clone());
            tokio::spawn(async move {
                let source = intake.new_source();
                let mut good = 0;
                for n in 0..each {
                    good += i64::from(intake.run(source, unit(&shape, n)).await.is_ok());
                }
                assert_eq!(good, each);
            })
        })
        .collect();
    for client in clients {
        client.await.ok();
    }
    lane.shutdown().await;
}

async fn chunks(chunks: i64, size: i64) {
    let (intake, lane) = intake();
    let shape = shape();
    let source = intake.new_source();
    let mut before = None;
    for chunk in 0..chunks {
        let units: Vec<Unit> = (0..size).map(|n| unit(&shape, chunk * size + n)).collect();
        let bytes = units.iter().map(Unit::bytes).sum();
        let Ok(permit) = intake.budget().take(bytes).await else {
            return;
        };
        let receipt = intake.submit(source, units, permit).await;
        // Two chunks are under way at any time, as in a streamed body.
        if let Some(Ok(receipt)) = before.replace(receipt) {
            assert!(receipt.await.iter().all(Result::is_ok));
        }
    }
    drop(before);
    lane.shutdown().await;
}

fn is_wanted(what: &str) -> bool {
    std::env::args()
        .nth(1)
        .is_none_or(|word| what.contains(&word))
}

fn measure(what: &str, units: i64, work: impl Future<Output = ()>) -> f64 {
    if !is_wanted(what) {
        return 0.0;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return 0.0;
    };
    let start = Instant::now();
    let before = cpu(start);
    runtime.block_on(work);
    let each = (cpu(start) - before).as_nanos() as f64 / units as f64;
    println!("{what:48} {each:8.0} ns CPU per unit");
    each
}

/// What a lone client waits for each write, on the wall.
fn latency(what: &str, units: i64) {
    if !is_wanted(what) {
        return;
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let Ok(runtime) = builder.worker_threads(2).enable_all().build() else {
        return;
    };
    let start = Instant::now();
    runtime.block_on(singles(1, units));
    let each = start.elapsed().as_nanos() as f64 / units as f64;
    println!("{what:48} {each:8.0} ns on the wall per unit");
}

fn main() {
    let shape = shape();
    let build = measure("building and dropping a unit", 1_000_000, async {
        for _ in 0..1000 {
            let units: Vec<Unit> = (0..1000).map(|n| unit(&shape, n)).collect();
            std::hint::black_box(units);
        }
    });
    let statement = statement();
    measure("building and dropping a call", 1_000_000, async {
        for _ in 0..1000 {
            let units: Vec<Unit> = (0..1000).map(|_| call(&statement)).collect();
            std::hint::black_box(units);
        }
    });
    for clients in [64, 256, 1000] {
        let each = 1_500_000 / clients;
        let what = format!("sessions: {clients}, one call each in a loop");
        measure(&what, clients * each, sessions(clients, each));
    }
    let a = measure(
        "(a) 64 tasks, one unit each in a loop",
        64 * 20_000,
        singles(64, 20_000),
    );
    let b = measure(
        "(b) one source, chunks of 1,000 units",
        3_000_000,
        chunks(3000, 1000),
    );
    measure(
        "(c) one task, one unit in a loop",
        200_000,
        singles(1, 200_000),
    );
    latency("(c) on a work-stealing runtime of two threads", 200_000);
    println!(
        "without building: (a) {:.0} ns, (b) {:.0} ns",
        a - build,
        b - build
    );
}
