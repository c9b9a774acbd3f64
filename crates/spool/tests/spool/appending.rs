//! Units of clients, acknowledged once they are durable.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use windrow_core::intake::Receipt;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Budget, FaultClass, Intake, Key, OnConflict, Op, Outcomes, Permit, RetryPolicy, Returning,
    Shape, SourceId, TableName, Unit, Value, Write, WriteDone,
};
use windrow_spool::codec::decode_unit;
use windrow_spool::{
    Appender, Batch, Cursor, Log, LogStatus, Options, Position, Spool, SpoolFault,
};

use crate::disk::Disk;
use crate::help::{log, open, read_from, small};

fn write(text: &str) -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: ["a".into()].into(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    Write::new(Arc::new(shape), [Value::text(text)])
}

fn units(texts: &[&str]) -> Vec<Unit> {
    texts.iter().map(|text| Unit::one(write(text))).collect()
}

/// The texts of all writes of an entry.
fn texts_in(entry: &[u8]) -> Vec<String> {
    let writes = decode_unit(entry).unwrap();
    let text = |write: &Write| match &write.row()[0] {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    writes.iter().map(text).collect()
}

async fn entries(log: &Arc<dyn Log>) -> Vec<Vec<String>> {
    let entries = read_from(log, Position(0)).await.unwrap();
    entries.iter().map(|e| texts_in(&e.payload)).collect()
}

async fn submit(intake: &Intake, source: SourceId, units: Vec<Unit>) -> Receipt {
    let bytes = units.iter().map(Unit::bytes).sum();
    let permit = intake.budget().try_take(bytes).unwrap();
    intake.submit(source, units, permit).await.unwrap()
}

fn classes(outcomes: &Outcomes) -> Vec<Option<FaultClass>> {
    let class = |outcome: &windrow_core::UnitOutcome| {
        outcome.as_ref().err().map(|failed| failed.fault.class)
    };
    outcomes.iter().map(class).collect()
}

/// An appender on a log, and the intake in front of it.
fn start(
    log: &Arc<dyn Log>,
    options: &Options,
) -> (Intake, CancellationToken, tokio::task::JoinHandle<()>) {
    let (intake, arrivals) = Intake::channel(Budget::new(1 << 20), 8);
    let stop = CancellationToken::new();
    let appender = Appender::new(arrivals, Arc::clone(log), options);
    (intake, stop.clone(), tokio::spawn(appender.run(stop)))
}

#[tokio::test]
async fn units_become_entries_in_order() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let (intake, _, task) = start(&log, &small());
    let source = intake.new_source();
    let first = submit(&intake, source, units(&["a", "b"])).await;
    let both = Unit::of([write("c"), write("d")]);
    let second = submit(&intake, source, vec![both]).await;
    let empty = submit(&intake, source, Vec::new()).await;
    assert_eq!(classes(&first.await), [None, None]);
    let outcomes = second.await;
    let done = WriteDone::default();
    assert_eq!(outcomes[0].as_deref(), Ok(&[done.clone(), done][..]));
    assert!(empty.await.is_empty());
    assert_eq!(entries(&log).await, [vec!["a"], vec!["b"], vec!["c", "d"]]);
    assert_eq!(intake.budget().held(), 0);
    // Without an intake nothing more can come.
    drop(intake);
    task.await.unwrap();
}

/// What was answered is in the log after a loss of power at that moment.
#[tokio::test]
async fn what_is_answered_is_durable() {
    for seed in 0..20 {
        let disk = Disk::new(seed);
        let spool = open(&disk, &small()).await.unwrap();
        let log = log(&spool);
        let (intake, stop, _task) = start(&log, &small());
        let mut receipts = Vec::new();
        for number in 0..5 {
            let source = intake.new_source();
            receipts.push(submit(&intake, source, units(&[&number.to_string(), "x"])).await);
        }
        for receipt in receipts.drain(..3) {
            assert_eq!(classes(&receipt.await), [None, None]);
        }
        stop.cancel();
        disk.power_loss();
        let spool = open(&disk, &small()).await.unwrap();
        let found = entries(&crate::help::log(&spool)).await;
        for number in ["0", "1", "2"] {
            assert!(found.contains(&vec![number.to_owned()]), "{found:?}");
        }
    }
}

#[tokio::test]
async fn what_is_too_large_does_not_keep_others_out() {
    let options = Options {
        max_append: 500,
        ..small()
    };
    let disk = Disk::new(1);
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let (intake, _, _) = start(&log, &options);
    let long = "x".repeat(600);
    let texts: Vec<String> = (0..40).map(|n| format!("{n:-<60}")).collect();
    let mut all: Vec<&str> = texts.iter().map(String::as_str).collect();
    all.insert(7, &long);
    let outcomes = submit(&intake, intake.new_source(), units(&all))
        .await
        .await;
    let mut expected = vec![None; 41];
    expected[7] = Some(FaultClass::TooLarge);
    assert_eq!(classes(&outcomes), expected);
    let expected: Vec<_> = texts.iter().map(|text| vec![text.clone()]).collect();
    assert_eq!(entries(&log).await, expected);
}

#[tokio::test]
async fn a_full_spool_says_so_and_goes_on_later() {
    let options = Options {
        max_bytes: 4_000,
        ..small()
    };
    let disk = Disk::new(1);
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let (intake, _, _) = start(&log, &options);
    let text = "x".repeat(3_000);
    let many = || units(&[&text]);
    let source = intake.new_source();
    assert_eq!(
        classes(&submit(&intake, source, many()).await.await),
        [None]
    );
    let outcomes = submit(&intake, source, many()).await.await;
    assert_eq!(classes(&outcomes), [Some(FaultClass::Overloaded)]);
    let message = outcomes[0].as_ref().unwrap_err().fault.to_string();
    assert!(message.contains("spool.max_bytes"), "{message}");
    log.trim(log.end()).await.unwrap();
    assert_eq!(
        classes(&submit(&intake, source, many()).await.await),
        [None]
    );
}

/// Units of a persistent source wait until a full spool has room again, and keep their order. Those
/// that wait when it is closed are refused.
#[tokio::test]
async fn what_must_not_be_lost_waits_for_a_full_spool() {
    let options = Options {
        max_bytes: 4_000,
        ..small()
    };
    let disk = Disk::new(1);
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let (intake, stop, _task) = start(&log, &options);
    let persistent = intake.with_policy(RetryPolicy::persistent());
    let source = intake.new_source();
    let text = |first: char| format!("{first}{}", "x".repeat(1_100));
    let [full, a, b, c] = ["f", "a", "b", "c"].map(|t| text(t.chars().next().unwrap()));
    let filling = submit(&intake, source, units(&[&full, &full])).await.await;
    assert_eq!(classes(&filling), [None, None]);
    let mut kept = Vec::new();
    for text in [&a, &b] {
        kept.push(submit(&persistent, source, units(&[text])).await);
    }
    let client = submit(&intake, source, units(&[&c])).await.await;
    assert_eq!(classes(&client), [Some(FaultClass::Overloaded)]);
    let before = log.end();
    log.trim(before).await.unwrap();
    for receipt in kept {
        assert_eq!(classes(&receipt.await), [None]);
    }
    let entries = read_from(&log, before).await.unwrap();
    let found: Vec<_> = entries.iter().map(|e| texts_in(&e.payload)).collect();
    assert_eq!(found, [[a], [b]]);
    let left = submit(&persistent, source, units(&[&c, &full])).await;
    let client = submit(&intake, source, units(&[&c, &full])).await.await;
    assert_eq!(classes(&client)[1], Some(FaultClass::Overloaded));
    stop.cancel();
    assert_eq!(classes(&left.await)[1], Some(FaultClass::Overloaded));
}

/// A small unit that still has room in a nearly full spool follows the large one before it.
#[tokio::test]
async fn what_must_not_be_lost_keeps_its_order_in_a_nearly_full_spool() {
    let options = Options {
        max_bytes: 4_000,
        group_bytes: 2_000,
        ..small()
    };
    let disk = Disk::new(1);
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let (intake, _stop, _task) = start(&log, &options);
    let persistent = intake.with_policy(RetryPolicy::persistent());
    let source = intake.new_source();
    let full = "f".repeat(1_100);
    for _ in 0..2 {
        let filling = submit(&intake, source, units(&[&full])).await.await;
        assert_eq!(classes(&filling), [None]);
    }
    let large = "l".repeat(2_000);
    let mut kept = Vec::new();
    for text in [&*large, "a", "b"] {
        kept.push(submit(&persistent, source, units(&[text])).await);
    }
    let client = submit(&intake, source, units(&["c"])).await.await;
    assert_eq!(classes(&client), [None], "there is room for a small one");
    log.trim(Position(2)).await.unwrap();
    for receipt in kept {
        assert_eq!(classes(&receipt.await), [None]);
    }
    let entries = read_from(&log, Position(2)).await.unwrap();
    let found: Vec<_> = entries.iter().map(|e| texts_in(&e.payload)).collect();
    assert_eq!(found, [["c"], [&large], ["a"], ["b"]]);
}

#[tokio::test]
async fn told_to_stop_it_finishes_what_it_has() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let (intake, stop, task) = start(&log, &small());
    let source = intake.new_source();
    let receipt = submit(&intake, source, units(&["a", "b"])).await;
    stop.cancel();
    task.await.unwrap();
    assert_eq!(classes(&receipt.await), [None, None]);
    let late = intake.submit(source, units(&["c"]), Permit::empty()).await;
    assert_eq!(late.unwrap_err().class, FaultClass::Cancelled);
    assert_eq!(entries(&log).await.len(), 2);
}

#[tokio::test]
async fn a_log_that_is_closed_refuses_each() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let (intake, _, _) = start(&log, &small());
    spool.close().await.unwrap();
    let receipt = submit(&intake, intake.new_source(), units(&["a", "b"])).await;
    let cancelled = Some(FaultClass::Cancelled);
    assert_eq!(classes(&receipt.await), [cancelled, cancelled]);
}

/// A log whose appends end when the test says so.
#[derive(Debug)]
struct Gate {
    handed: mpsc::UnboundedSender<Batch>,
    open: Semaphore,
    end: Mutex<u64>,
}

#[async_trait]
impl Log for Gate {
    fn refuse(&self, _: &str) {}

    fn partition(&self) -> u32 {
        0
    }

    async fn append(&self, batch: Batch) -> Result<Position, SpoolFault> {
        let entries = batch.len() as u64;
        self.handed.send(batch).unwrap();
        self.open.acquire().await.unwrap().forget();
        let mut end = self.end.lock().unwrap();
        *end += entries;
        Ok(Position(*end - entries))
    }

    fn end(&self) -> Position {
        Position(*self.end.lock().unwrap())
    }

    fn cursor(&self, _: Position) -> Result<Box<dyn Cursor>, SpoolFault> {
        Err(SpoolFault::Closed)
    }

    async fn trim(&self, _: Position) -> Result<(), SpoolFault> {
        Ok(())
    }

    async fn status(&self) -> Result<LogStatus, SpoolFault> {
        Err(SpoolFault::Closed)
    }
}

fn gate() -> (Arc<Gate>, mpsc::UnboundedReceiver<Batch>) {
    let (handed, batches) = mpsc::unbounded_channel();
    let gate = Gate {
        handed,
        open: Semaphore::new(0),
        end: Mutex::default(),
    };
    (Arc::new(gate), batches)
}

fn all_in(batch: &Batch) -> Vec<String> {
    batch.iter().flat_map(texts_in).collect()
}

/// Little that comes while an append is under way waits for its end and goes together; much goes at
/// once, up to a few appends.
#[tokio::test]
async fn what_comes_during_a_sync_goes_together() {
    let (gate, mut handed) = gate();
    let log = Arc::clone(&gate) as Arc<dyn Log>;
    let (intake, _, _) = start(&log, &Options::default());
    let mut receipts = vec![submit(&intake, intake.new_source(), units(&["a"])).await];
    assert_eq!(all_in(&handed.recv().await.unwrap()), ["a"]);
    let left = submit(&intake, intake.new_source(), units(&["left"])).await;
    for text in ["b", "c"] {
        receipts.push(submit(&intake, intake.new_source(), units(&[text, "x"])).await);
    }
    drop(left);
    tokio::task::yield_now().await;
    assert!(handed.try_recv().is_err(), "a few bytes wait");
    gate.open.add_permits(1);
    assert_eq!(all_in(&handed.recv().await.unwrap()), ["b", "x", "c", "x"]);
    let much = "y".repeat(64 << 10);
    for _ in 0..3 {
        receipts.push(submit(&intake, intake.new_source(), units(&[&much])).await);
        assert_eq!(all_in(&handed.recv().await.unwrap()), [&*much]);
    }
    receipts.push(submit(&intake, intake.new_source(), units(&[&much])).await);
    tokio::task::yield_now().await;
    assert!(handed.try_recv().is_err(), "no more than a few at once");
    gate.open.add_permits(5);
    for receipt in receipts {
        assert!(classes(&receipt.await).iter().all(Option::is_none));
    }
    assert_eq!(intake.budget().held(), 0);
}

/// Memory is given back when a submission is answered, and not before.
#[tokio::test]
async fn what_is_under_way_is_charged() {
    let (gate, mut handed) = gate();
    let options = Options {
        group_bytes: 200,
        ..Options::default()
    };
    let log = Arc::clone(&gate) as Arc<dyn Log>;
    let (intake, _, _) = start(&log, &options);
    let text = "x".repeat(100);
    let receipt = submit(&intake, intake.new_source(), units(&[&text, &text])).await;
    // Each in an append of its own.
    assert_eq!(handed.recv().await.unwrap().len(), 1);
    assert_eq!(handed.recv().await.unwrap().len(), 1);
    gate.open.add_permits(1);
    tokio::task::yield_now().await;
    assert!(intake.budget().held() > 400);
    gate.open.add_permits(1);
    assert_eq!(classes(&receipt.await), [None, None]);
    assert_eq!(intake.budget().held(), 0);
}
