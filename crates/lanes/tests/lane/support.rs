//! A sink whose flights the test holds in its hand: it sees each batch and answers it when it wants
//! to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use windrow_core::intake::Receipt;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::*;
use windrow_lanes::{Lane, LaneMetrics};

/// What happens to the next attempts to connect.
type Door = Arc<Mutex<Option<Fault>>>;

pub(crate) struct FakeSink {
    profile: Profile,
    flights: mpsc::UnboundedSender<Flight>,
    door: Door,
    connects: Arc<[AtomicUsize; 2]>,
    closes: Arc<AtomicUsize>,
    way: Way,
    allowed: Arc<Mutex<Option<Duration>>>,
}

/// What happens to requests to give up a batch.
#[derive(Clone)]
pub(crate) struct Way {
    /// So many were made.
    made: watch::Sender<usize>,
    /// False while they are held up.
    free: watch::Sender<bool>,
    /// What becomes of them.
    fault: Arc<Mutex<Option<Fault>>>,
}

struct FakeExecutor {
    way: Way,
    purpose: Purpose,
    flights: mpsc::UnboundedSender<Flight>,
    closes: Arc<AtomicUsize>,
    arrived: Option<Instant>,
}

/// A batch under way.
pub(crate) struct Flight {
    pub(crate) ids: Vec<i64>,
    pub(crate) purpose: Purpose,
    /// When its unit arrived, if it runs alone.
    pub(crate) arrived: Option<Instant>,
    answer: oneshot::Sender<Report>,
}

#[async_trait]
impl Sink for FakeSink {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        self.connects[purpose as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(fault) = self.door.lock().unwrap().clone() {
            return Err(fault);
        }
        Ok(Box::new(FakeExecutor {
            purpose,
            flights: self.flights.clone(),
            closes: self.closes.clone(),
            way: self.way.clone(),
            arrived: None,
        }))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        *self.allowed.lock().unwrap()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        for write in unit.writes() {
            if let Some(Value::Int(key)) = write.row().get(1) {
                hashes.push(key.unsigned_abs());
            }
        }
    }
}

#[async_trait]
impl Executor for FakeExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let (answer, answered) = oneshot::channel();
        let flight = Flight {
            ids: units.iter().map(id_of).collect(),
            purpose: self.purpose,
            arrived: self.arrived,
            answer,
        };
        self.flights.send(flight).ok();
        answered.await.expect("the test lets this flight crash")
    }

    fn arrived(&mut self, at: Instant) {
        self.arrived = Some(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::new(self.way.clone()))
    }

    async fn close(self: Box<Self>) {
        self.closes.fetch_add(1, Ordering::Relaxed);
    }
}

impl Way {
    fn free() -> Self {
        Self {
            made: watch::Sender::new(0),
            free: watch::Sender::new(true),
            fault: Arc::default(),
        }
    }
}

#[async_trait]
impl Canceller for Way {
    async fn cancel(&self) -> Result<(), Fault> {
        self.made.send_modify(|made| *made += 1);
        self.free.subscribe().wait_for(|free| *free).await.unwrap();
        self.fault.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl Flight {
    pub(crate) fn report(self, verdicts: Vec<Verdict>) {
        self.answer(verdicts, true);
    }

    pub(crate) fn answer(self, verdicts: Vec<Verdict>, usable: bool) {
        let tally = Tally::default();
        let report = Report {
            verdicts,
            tally,
            usable,
        };
        self.answer.send(report).ok();
    }

    /// All units succeed; each is told its own number as its row count.
    pub(crate) fn ok(self) {
        let verdicts = self.ids.iter().map(|id| told(*id)).collect();
        self.report(verdicts);
    }

    pub(crate) fn all(self, verdict: Verdict, usable: bool) {
        let verdicts = vec![verdict; self.ids.len()];
        self.answer(verdicts, usable);
    }

    pub(crate) fn crash(self) {
        drop(self.answer);
    }
}

pub(crate) fn told(id: i64) -> Verdict {
    Verdict::Final(done(id))
}

pub(crate) fn done(id: i64) -> UnitOutcome {
    Ok(std::iter::once(WriteDone::rows(id.unsigned_abs())).collect())
}

pub(crate) fn conflict() -> Fault {
    Fault::new(FaultClass::Conflict, "40P01", "deadlock detected")
}

/// A unit that is known by a number.
pub(crate) fn unit(id: i64) -> Unit {
    Unit::one(write(&[id]))
}

/// One that touches a row.
pub(crate) fn unit_on(id: i64, key: i64) -> Unit {
    Unit::one(write(&[id, key]))
}

/// The same, with so many bytes.
pub(crate) fn large_unit_on(id: i64, key: i64, bytes: usize) -> Unit {
    let mut write = write(&[id, key]);
    let text = Value::from("x".repeat(bytes).as_str());
    let row: Vec<Value> = write.row().iter().cloned().chain([text]).collect();
    write = Write::new(write.shape, row);
    Unit::one(write)
}

/// One of so many rows.
pub(crate) fn unit_of(id: i64, rows: usize) -> Unit {
    Unit::of((0..rows).map(|_| write(&[id])))
}

fn write(values: &[i64]) -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: Box::default(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    let row: Vec<Value> = values.iter().map(|v| Value::from(*v)).collect();
    Write::new(Arc::new(shape), row)
}

fn id_of(unit: &Unit) -> i64 {
    match unit.writes().first().and_then(|write| write.row().first()) {
        Some(Value::Int(id)) => *id,
        _ => panic!("a unit without a number"),
    }
}

/// A lane on a fake sink.
pub(crate) struct Bench {
    pub(crate) lane: Option<Lane>,
    pub(crate) intake: Intake,
    pub(crate) registry: Registry,
    flights: mpsc::UnboundedReceiver<Flight>,
    door: Door,
    connects: Arc<[AtomicUsize; 2]>,
    closes: Arc<AtomicUsize>,
    way: Way,
    allowed: Arc<Mutex<Option<Duration>>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(1, Limits::default())
    }

    pub(crate) fn with(flights: usize, limits: Limits) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (door, connects, closes) = (Door::default(), Arc::default(), Arc::default());
        let (way, allowed) = (Way::free(), Arc::default());
        let sink = FakeSink {
            way: way.clone(),
            allowed: Arc::clone(&allowed),
            profile: Profile {
                name: "Fake",
                transactional: true,
                flights,
                batch_rows: 1000,
                limitations: &[],
            },
            flights: sender,
            door: Arc::clone(&door),
            connects: Arc::clone(&connects),
            closes: Arc::clone(&closes),
        };
        let mut registry = Registry::default();
        let metrics = LaneMetrics::register(&mut registry);
        let (intake, arrivals) = Intake::channel(Budget::new(1 << 24), 1 << 16);
        let lane = Lane::start(Arc::new(sink), limits, arrivals, metrics, "main".into());
        Self {
            lane: Some(lane),
            intake,
            registry,
            flights: receiver,
            door,
            connects,
            closes,
            way,
            allowed,
        }
    }

    pub(crate) async fn submit(&self, source: SourceId, units: Vec<Unit>) -> Receipt {
        let bytes = units.iter().map(Unit::bytes).sum();
        let permit = self.intake.budget().try_take(bytes).unwrap();
        self.intake.submit(source, units, permit).await.unwrap()
    }

    /// Submits one unit from a source of its own.
    pub(crate) async fn one(&self, unit: Unit) -> Receipt {
        self.submit(self.intake.new_source(), vec![unit]).await
    }

    /// The next batch that leaves.
    pub(crate) async fn flight(&mut self) -> Flight {
        self.flights.recv().await.unwrap()
    }

    /// The same, until the lane has ended.
    pub(crate) async fn next_flight(&mut self) -> Option<Flight> {
        self.flights.recv().await
    }

    /// Lets everything happen that can happen by itself, then tells whether a batch has left.
    pub(crate) async fn try_flight(&mut self) -> Option<Flight> {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        self.flights.try_recv().ok()
    }

    /// From now on connecting fails so, or succeeds.
    pub(crate) fn door(&self, fault: Option<Fault>) {
        *self.door.lock().unwrap() = fault;
    }

    /// How long statements may take from now on.
    pub(crate) fn allow(&self, allowed: Duration) {
        *self.allowed.lock().unwrap() = Some(allowed);
    }

    /// Waits until so many requests to give up a batch were made.
    pub(crate) async fn requests(&self, at_least: usize) {
        let mut made = self.way.made.subscribe();
        made.wait_for(|made| *made >= at_least).await.unwrap();
    }

    /// How many were made.
    pub(crate) fn requested(&self) -> usize {
        *self.way.made.borrow()
    }

    /// Holds such requests up, or lets them through.
    pub(crate) fn hold_requests(&self, held: bool) {
        self.way.free.send_replace(!held);
    }

    /// What becomes of them from now on.
    pub(crate) fn fail_requests(&self, fault: Fault) {
        *self.way.fault.lock().unwrap() = Some(fault);
    }

    pub(crate) fn connects(&self, purpose: Purpose) -> usize {
        self.connects[purpose as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn closes(&self) -> usize {
        self.closes.load(Ordering::Relaxed)
    }

    pub(crate) fn lane(&self) -> &Lane {
        self.lane.as_ref().unwrap()
    }

    /// Drops the way into the lane: another one, whose lane has ended, takes its place.
    pub(crate) fn close_intake(&mut self) {
        self.intake = Intake::channel(Budget::new(1 << 24), 1).0;
    }

    /// True if the registry has any series of the lane.
    pub(crate) fn has_series(&self) -> bool {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text.contains("lane=\"main\"")
    }

    /// The value of a metric, by its name and labels as they are exposed.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} is missing in\n{text}"))
            .parse()
            .unwrap()
    }
}

/// The refusal of a login.
pub(crate) fn denied() -> Fault {
    let text = "password authentication failed";
    Fault::new(FaultClass::Denied, "28P01", text)
}
