//! The fake sink keeps the port's contract.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::sync::Arc;
use std::time::Duration;

use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Database, Fault, FaultClass, Key, OnConflict, Op, Report, Returning, Shape, Sink, TableName,
    Unit, Value, Verdict, Write,
};
use windrow_testkit::sink::{Cost, FakeSink};

fn write(n: i64) -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::parse("t").unwrap(),
        columns: Box::new(["x".into()]),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    Write::new(Arc::new(shape), vec![Value::Int(n)])
}

fn negative(write: &Write) -> Option<Fault> {
    let bad = matches!(write.values(), [Value::Int(n)] if *n < 0);
    bad.then(|| Fault::new(FaultClass::Check, "23514", "negative"))
}

#[tokio::test]
async fn fails_only_the_units_that_hold_a_bad_write_and_says_which() {
    let sink = FakeSink::builder().fail(negative).build();
    let mut connection = sink.connect(Purpose::Batches).await.unwrap();
    let units = [
        Unit::one(write(1)),
        Unit::of([write(2), write(-3)]),
        Unit::one(write(4)),
    ];
    let report = connection.execute(&units).await;
    let told: Vec<_> = report
        .verdicts
        .iter()
        .map(|v| match v {
            Verdict::Final(Ok(dones)) => Ok(dones.len()),
            Verdict::Final(Err(fault)) => Err(fault.at),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [Ok(1), Err(1), Ok(1)]);
    assert_eq!(sink.batch_rows(), [4]);
    assert_eq!(sink.connects(), [Purpose::Batches]);
}

#[tokio::test(start_paused = true)]
async fn a_flight_takes_its_cost_in_virtual_time() {
    let cost = Cost {
        batch: Duration::from_secs(10),
        row: Duration::from_secs(1),
    };
    let sink = FakeSink::builder().cost(cost).build();
    let mut connection = sink.connect(Purpose::Batches).await.unwrap();
    let start = tokio::time::Instant::now();
    let report = connection
        .execute(&[Unit::one(write(1)), Unit::one(write(2))])
        .await;
    assert_eq!(start.elapsed(), Duration::from_secs(12));
    assert_eq!(report.tally.in_database, Duration::from_secs(12));
}

#[tokio::test]
async fn holds_flights_and_counts_them() {
    let sink = FakeSink::new();
    sink.hold();
    let mut flights = Vec::new();
    for n in 0..2 {
        let mut connection = sink.connect(Purpose::Batches).await.unwrap();
        flights.push(tokio::spawn(async move {
            connection
                .execute(&[Unit::one(write(n))])
                .await
                .verdicts
                .len()
        }));
    }
    while sink.batches().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(flights.iter().all(|f| !f.is_finished()));
    sink.release();
    for flight in flights {
        assert_eq!(flight.await.unwrap(), 1);
    }
    assert_eq!(sink.most_flights(), 2);
}

#[tokio::test]
async fn can_be_away_and_can_answer_by_a_script() {
    let again = Verdict::RolledBack(Fault::new(FaultClass::Conflict, "40P01", "deadlock"));
    let scripted = again.clone();
    let sink = FakeSink::builder()
        .script(move |units| (units.len() > 1).then(|| Report::broken(units.len(), &scripted)))
        .build();
    sink.away(Some(Fault::unavailable("away")));
    assert_eq!(
        sink.ping().await.unwrap_err().class,
        FaultClass::Unavailable
    );
    assert!(sink.connect(Purpose::LockWait).await.is_err());
    sink.away(None);
    let mut connection = sink.connect(Purpose::LockWait).await.unwrap();
    let report = connection
        .execute(&[Unit::one(write(1)), Unit::one(write(2))])
        .await;
    assert_eq!(
        (report.verdicts, report.usable),
        (vec![again.clone(), again], false)
    );
    assert!(connection.execute(&[Unit::one(write(1))]).await.usable);
}
