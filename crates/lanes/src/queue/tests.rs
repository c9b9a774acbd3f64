//! Random submissions, flights and failures against what must always hold.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use proptest::prelude::*;
use tokio::time::Instant;
use windrow_core::intake::Receipt;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Arrivals, Budget, Dones, Executor, Intake, Key, OnConflict, Op, Permit, Profile, Returning,
    Shape, TableName, Units, Value, Write,
};

use super::*;
use crate::batch::Batch;

/// Touches the row that a unit's second value names.
struct KeySink(Profile);

#[async_trait]
impl Sink for KeySink {
    fn profile(&self) -> &Profile {
        &self.0
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        unreachable!("nobody connects here")
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        hashes.push(key_of(unit));
    }
}

fn sink() -> KeySink {
    KeySink(Profile {
        name: "Keys",
        transactional: true,
        flights: 4,
        batch_rows: 100,
        limitations: &[],
    })
}

fn unit(id: i64, key: i64, rows: usize) -> Unit {
    let parts = ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: Box::default(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    };
    let shape = Arc::new(Shape::new(parts));
    Unit::of((0..rows).map(|_| Write::new(shape.clone(), vec![Value::Int(id), Value::Int(key)])))
}

fn number(unit: &Unit, at: usize) -> i64 {
    match &unit.writes()[0].row()[at] {
        Value::Int(n) => *n,
        other => panic!("{other:?}"),
    }
}

fn key_of(unit: &Unit) -> u64 {
    number(unit, 1).unsigned_abs()
}

#[derive(Clone, Debug)]
enum Step {
    /// A source submits units, given by their rows; each touches one of a few keys.
    Submit {
        source: u64,
        rows: Vec<usize>,
        key: i64,
    },
    /// The client of the submission before last leaves.
    Leave,
    /// A source cancels what it is waiting for.
    Cancel { source: u64 },
    /// It is heard that clients of a source have left.
    Forgo { source: u64 },
    /// A batch is formed, if fewer than three flights are under way.
    Depart(Room),
    /// A flight ends; of its units every `again`th is rolled back (0: none).
    Land { which: usize, again: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (
        0..6u64,
        prop::collection::vec(prop_oneof![8 => Just(1usize), 1 => 1..40usize], 1..12),
        0..5i64,
    )
        .prop_map(|(source, rows, key)| Step::Submit { source, rows, key });
    let bytes = prop_oneof![Just(usize::MAX), 200..4000usize];
    let room = (1..30usize, bytes, 1..4usize);
    let depart = room.prop_map(|(rows, bytes, flights)| {
        Step::Depart(Room {
            rows,
            bytes,
            flights,
        })
    });
    let land = (0..3usize, 0..4usize).prop_map(|(which, again)| Step::Land { which, again });
    let cancel = (0..6u64).prop_map(|source| Step::Cancel { source });
    let forgo = (0..6u64).prop_map(|source| Step::Forgo { source });
    prop::collection::vec(
        prop_oneof![3 => submit, 1 => Just(Step::Leave), 1 => cancel, 1 => forgo, 3 => depart, 3 => land],
        1..120,
    )
}

/// A queue, and beside it a plain account of what was put in and what came out.
struct Model {
    queue: Queue,
    tickets: Tickets,
    intake: Intake,
    arrivals: Arrivals,
    runtime: tokio::runtime::Runtime,
    receipts: VecDeque<(Receipt, Vec<i64>)>,
    left: HashSet<i64>,
    next_id: i64,
    /// What each source has still to send, in its order.
    owed: HashMap<u64, Vec<i64>>,
    source_of: HashMap<i64, u64>,
    flying: Vec<(u64, Batch)>,
    next_flight: u64,
    keyed: bool,
    /// True if every second source fails for a while, and recovers, again and again; and if some
    /// units expect long answers.
    delays: bool,
}

impl Model {
    fn new(keyed: bool) -> Self {
        let (intake, arrivals) = Intake::channel(Budget::new(1), 1);
        Self {
            queue: Queue::new(),
            tickets: Tickets::new(),
            intake,
            arrivals,
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            receipts: VecDeque::new(),
            left: HashSet::new(),
            next_id: 0,
            owed: HashMap::new(),
            source_of: HashMap::new(),
            flying: Vec::new(),
            next_flight: 0,
            keyed,
            delays: false,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Submit { source, rows, key } => self.submit(source, &rows, key),
            Step::Leave => {
                if let Some((receipt, ids)) = self.receipts.pop_front() {
                    drop(receipt);
                    self.left.extend(ids);
                }
            }
            Step::Cancel { source } => self.cancel(source),
            Step::Forgo { source } => {
                self.queue.forgo(SourceId(source), &mut self.tickets);
                let left = &self.left;
                self.owed
                    .entry(source)
                    .or_default()
                    .retain(|id| !left.contains(id));
            }
            Step::Depart(room) => self.depart(room),
            Step::Land { which, again } => self.land(which, again),
        }
    }

    fn submit(&mut self, source: u64, rows: &[usize], key: i64) {
        let ids: Vec<i64> = (0..).map(|n| self.next_id + n).take(rows.len()).collect();
        self.next_id += 1000;
        let units: Vec<Unit> = ids
            .iter()
            .zip(rows)
            .map(|(id, rows)| {
                let mut unit = unit(*id, (key + id) % 5, *rows);
                if self.delays && (source + id.unsigned_abs()).is_multiple_of(4) {
                    unit.expect_long_answer();
                }
                unit
            })
            .collect();
        let submit = self.intake.submit(SourceId(source), units, Permit::empty());
        let receipt = self.runtime.block_on(submit).unwrap();
        let submission = self.arrivals.try_recv().unwrap();
        let ticket = self.tickets.open(
            (submission.reply, submission.permit),
            ids.len(),
            submission.policy,
            None,
        );
        let chunk = Chunk {
            ticket,
            first: 0,
            units: submission.units.into_iter(),
            arrived: submission.arrived,
            retry: None,
        };
        self.queue.push(submission.source, chunk);
        self.source_of.extend(ids.iter().map(|id| (*id, source)));
        self.owed.entry(source).or_default().extend(&ids);
        self.receipts.push_back((receipt, ids));
    }

    /// The first unit that is not answered is taken out, unless it is under way.
    fn cancel(&mut self, source: u64) {
        let fault = Fault::cancelled("as asked");
        let left = &self.left;
        let owed = self.owed.entry(source).or_default();
        owed.retain(|id| !left.contains(id));
        let flying = self.flying.iter().flat_map(|(_, batch)| &batch.units);
        let mut flying = flying.map(|unit| self.source_of[&number(unit, 0)]);
        let away = flying.any(|of| of == source);
        let units = self.queue.units();
        let found = self
            .queue
            .cancel(SourceId(source), Instant::now(), &fault, &mut self.tickets);
        let waiting = self.queue.units();
        if away {
            assert!(matches!(found, CancelPlace::Away(_)), "{found:?}");
        } else if owed.is_empty() {
            assert_eq!(found, CancelPlace::Nothing);
        } else {
            owed.remove(0);
            assert_eq!(found, CancelPlace::Queued);
            assert!(waiting < units);
        }
    }

    fn depart(&mut self, room: Room) {
        if self.flying.len() >= if self.keyed { 3 } else { 1 } {
            return;
        }
        let flight = self.next_flight;
        self.next_flight += 1;
        let sink = sink();
        let by_key: Option<&dyn Sink> = if self.keyed { Some(&sink) } else { None };
        self.queue.wake(Instant::now());
        self.queue.set_apart(flight % 32 < 28);
        let apart_first = flight.is_multiple_of(2);
        let apart = |model: &mut Self| {
            let is_ready = model.queue.is_ready_apart();
            let tickets = &mut model.tickets;
            is_ready.then(|| model.queue.form_apart(room, flight, tickets, &sink))?
        };
        let together = |model: &mut Self| {
            let tickets = &mut model.tickets;
            let batch = model.queue.form(room, flight, tickets, by_key)?;
            let is_free = batch.manifest.retry || !model.queue.is_apart();
            assert!(is_free || !batch.units.iter().any(Unit::has_long_answer));
            Some(batch)
        };
        let formed = match apart_first {
            true => apart(self).or_else(|| together(self)),
            false => together(self).or_else(|| apart(self)),
        };
        let Some(batch) = formed else { return };
        self.check_limits(&batch, room);
        self.check_order(&batch);
        if self.keyed {
            self.check_keys(&batch);
        }
        self.flying.push((flight, batch));
    }

    /// A large batch, of which nobody sees when it lands.
    fn form(&mut self, flights: usize) -> Batch {
        let room = Room {
            rows: 1_000,
            bytes: usize::MAX,
            flights,
        };
        let batch = self.queue.form(room, 0, &mut self.tickets, None);
        batch.unwrap()
    }

    fn check_limits(&self, batch: &Batch, room: Room) {
        let rows: usize = batch.units.iter().map(Unit::rows).sum();
        let bytes: usize = batch.units.iter().map(Unit::bytes).sum();
        assert_eq!((rows, bytes), (batch.manifest.rows, batch.manifest.bytes));
        let within = rows <= room.rows && bytes <= room.bytes;
        assert!(
            within || batch.units.len() == 1,
            "{rows} rows, {bytes} bytes: {room:?}"
        );
        let spans: usize = batch.manifest.spans.iter().map(|span| span.count).sum();
        assert_eq!(spans, batch.units.len());
    }

    /// The units of each source are the next ones that it owes, except for those whose clients have
    /// left.
    fn check_order(&mut self, batch: &Batch) {
        let mut sources = HashSet::new();
        for unit in &batch.units {
            let id = number(unit, 0);
            let source = self.source_of[&id];
            sources.insert(source);
            let owed = self.owed.get_mut(&source).unwrap();
            let at = owed
                .iter()
                .position(|owed| *owed == id)
                .expect("neither lost nor doubled");
            assert!(
                owed.drain(..=at)
                    .take(at)
                    .all(|passed| self.left.contains(&passed))
            );
        }
        for (_, other) in &self.flying {
            let busy = other
                .units
                .iter()
                .map(|unit| self.source_of[&number(unit, 0)]);
            assert!(
                busy.into_iter().all(|busy| !sources.contains(&busy)),
                "one source in two flights"
            );
        }
    }

    fn check_keys(&self, batch: &Batch) {
        let keys: HashSet<u64> = batch.units.iter().map(key_of).collect();
        let others = self.flying.iter().flat_map(|(_, other)| &other.units);
        assert!(
            others.map(key_of).all(|key| !keys.contains(&key)),
            "one key in two flights"
        );
    }

    fn land(&mut self, which: usize, again: usize) {
        if self.flying.is_empty() {
            return;
        }
        let (flight, batch) = self.flying.remove(which % self.flying.len());
        let manifest = batch.manifest;
        let mut units = batch.units.into_iter();
        let mut back: Vec<(usize, Chunk)> = Vec::new();
        let mut count = 0;
        for span in &manifest.spans {
            for index in span.first..span.first + span.count {
                let unit = units.next().unwrap();
                count += 1;
                if again > 0 && count % again == 0 {
                    back.push((
                        span.source,
                        self.chunk_again(span, index, unit, manifest.rows),
                    ));
                } else {
                    self.tickets.tell(span.ticket, index, Ok(Dones::new()));
                    let source = self.source_of[&number(&unit, 0)];
                    let has_failed = self.delays && source % 2 == 1 && flight % 16 < 8;
                    self.queue.note(span.source, has_failed);
                }
            }
        }
        for (source, chunk) in back.into_iter().rev() {
            let id = number(&chunk.units.as_slice()[0], 0);
            self.owed
                .get_mut(&self.source_of[&id])
                .unwrap()
                .insert(0, id);
            self.queue.put_back(source, chunk);
        }
        self.queue.release(flight, &manifest, |_| false);
    }

    fn chunk_again(
        &self,
        span: &crate::batch::Span,
        first: usize,
        unit: Unit,
        rows: usize,
    ) -> Chunk {
        Chunk {
            ticket: span.ticket,
            first,
            units: Units::from([unit]).into_iter(),
            arrived: span.arrived,
            retry: Some(RetryPlan {
                attempts: span.attempts + 1,
                rows: (rows / 2).max(1),
                at: (span.attempts % 2 == 1).then(Instant::now),
            }),
        }
    }

    /// Lets everything fly that is left, and checks that every client who stayed has its answer.
    fn finish(mut self) {
        let mut turns = 0;
        while self.queue.units() > 0 || !self.flying.is_empty() {
            self.depart(Room {
                rows: 7,
                bytes: usize::MAX,
                flights: 1,
            });
            self.land(0, 0);
            turns += 1;
            assert!(turns < 100_000, "stuck: {:?}", self.queue);
        }
        let owed = self.owed.values().flatten();
        assert!(
            owed.into_iter().all(|id| self.left.contains(id)),
            "units were lost"
        );
        assert!(self.tickets.is_empty());
        for (receipt, ids) in self.receipts {
            assert_eq!(self.runtime.block_on(receipt).len(), ids.len());
        }
        let (units, rows, bytes) = {
            let (totals, apart) = (self.queue.totals(), self.queue.totals_apart());
            let rows = totals.rows + apart.rows;
            (self.queue.units(), rows, totals.bytes + apart.bytes)
        };
        assert_eq!((units, rows, bytes), (0, 0, 0));
        self.queue.wake(Instant::now());
        self.queue.clear_hollow();
        assert_eq!(
            (self.queue.sources.len(), self.queue.by_id.len()),
            (0, 0),
            "sources are forgotten"
        );
        assert!(self.queue.parked.is_empty());
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_or_overtaken_and_limits_hold(keyed: bool, steps in steps()) {
        let mut model = Model::new(keyed);
        model.delays = true;
        for step in steps {
            model.step(step);
        }
        model.finish();
    }

    /// While no more sources wait than a batch has rows, each has a row in it, whatever the others
    /// have queued.
    #[test]
    fn a_single_row_is_in_the_next_batch(bulks in prop::collection::vec(1..3000usize, 1..9), singles in 1..9usize, spare in 0..50usize) {
        let mut model = Model::new(false);
        let room = Room { rows: bulks.len() + singles + spare, bytes: usize::MAX, flights: 1 };
        for (source, units) in (0..).zip(&bulks) {
            model.submit(source, &vec![1; *units], 0);
        }
        // Whoever is at the head of the ring by now.
        for _ in 0..spare % 3 {
            model.depart(room);
            model.land(0, 0);
        }
        let first = model.next_id;
        for source in 0..singles {
            model.submit(100 + source as u64, &[1], 0);
        }
        model.depart(room);
        let (_, batch) = &model.flying[0];
        let ids: HashSet<i64> = batch.units.iter().map(|unit| number(unit, 0)).collect();
        for id in (first..).step_by(1000).take(singles) {
            prop_assert!(ids.contains(&id), "{ids:?}");
        }
    }

    /// Among those who always have more, rows are shared evenly within a factor.
    #[test]
    fn sources_share_evenly(sources in 2..20usize) {
        let mut model = Model::new(false);
        for source in 0..sources {
            model.submit(source as u64, &vec![1; 600], 0);
        }
        let room = Room { rows: 10 * sources, bytes: usize::MAX, flights: 1 };
        model.depart(room);
        let (_, batch) = &model.flying[0];
        let mut shares: HashMap<u64, usize> = HashMap::new();
        for unit in &batch.units {
            *shares.entry(model.source_of[&number(unit, 0)]).or_default() += 1;
        }
        prop_assert_eq!(batch.units.len(), room.rows);
        let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
        prop_assert!(shares.len() == sources && *least >= 5 && *most <= 20, "{:?}", shares);
    }
}

/// A unit of many rows gets its turn although single rows keep coming.
#[test]
fn a_large_unit_is_not_starved_by_small_ones() {
    let mut model = Model::new(false);
    let room = Room {
        rows: 100,
        bytes: usize::MAX,
        flights: 1,
    };
    model.submit(1, &[60], 0);
    let large = 0;
    for turn in 0..200u64 {
        for source in 0..50 {
            model.submit(1000 + turn * 50 + source, &[1], 0);
        }
        model.depart(room);
        let flown = model.flying[0]
            .1
            .units
            .iter()
            .any(|unit| number(unit, 0) == large);
        model.land(0, 0);
        if flown {
            return;
        }
    }
    panic!("the large unit never left");
}

/// A few sources with many rows each do not all leave with the first of several flights: they would
/// have nothing for the others until it lands.
#[test]
fn sources_are_divided_among_the_flights_that_can_leave() {
    let mut model = Model::new(false);
    for source in 0..8 {
        model.submit(source, &[1; 100], 0);
    }
    let mut sources = HashSet::new();
    for flights in [3, 2, 1] {
        let manifest = model.form(flights).manifest;
        assert!(matches!(manifest.sources.len(), 2 | 3));
        assert!(!manifest.cut, "no limit has left anything behind");
        sources.extend(manifest.sources);
    }
    assert_eq!((sources.len(), model.queue.totals().units), (8, 0));
}

/// Single rows of some clients leave together although several flights could.
#[test]
fn a_few_rows_are_not_divided() {
    let mut model = Model::new(false);
    for source in 0..20 {
        model.submit(source, &[1], 0);
    }
    assert_eq!(model.form(2).units.len(), 20);
}
