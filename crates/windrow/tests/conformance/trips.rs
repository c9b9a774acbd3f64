//! How many round trips a batch takes, by count: what the sink says, and what a slow line before
//! the database sees.
//!
//! No time is measured. The line only makes sure that what is one answer is one, and that nothing
//! is answered early.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{Executor, Rung, Unit};
use windrow_database::Options;
use windrow_testkit::mariadb::{is_mysql, shared};
use windrow_testkit::proxy::{Delay, Proxy};

use crate::bed::Bed;
use crate::grounds::{self, Ground};
use crate::words::*;

/// How late each answer comes.
const LATE: Duration = Duration::from_millis(40);

/// A connection over a slow line.
struct Slow {
    bed: Bed,
    proxy: Proxy,
    executor: Box<dyn Executor>,
}

impl Slow {
    async fn new(ground: Box<dyn Ground>) -> Self {
        let bed = Bed::new(ground, &[]).await.unwrap();
        bed.lay(&[plain()]).await;
        let proxy = Proxy::builder(bed.ground.wire().unwrap())
            .to_client(Delay::of(LATE))
            .start()
            .await
            .unwrap();
        let through = proxy.through(&bed.ground.url()).unwrap();
        let sink = bed.another(&through, &Options::default()).await;
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Self {
            bed,
            proxy,
            executor,
        }
    }

    /// The round trips of a batch whose writes all succeed, by that rung; the line must have seen
    /// as many.
    async fn trips(&mut self, rung: Rung, units: &[Unit]) -> u32 {
        let before = self.proxy.round_trips();
        let report = self.executor.execute(units).await;
        let seen = self.proxy.round_trips() - before;
        for (unit, verdict) in units.iter().zip(report.verdicts) {
            let outcome = told(verdict);
            assert!(outcome.is_ok(), "{unit:?}: {outcome:?}");
        }
        let mut tally = windrow_core::Tally::default();
        tally.add(rung, units.len());
        assert_eq!(report.tally.rungs, tally.rungs, "{rung:?}");
        let told = report.tally.round_trips;
        assert_eq!(u64::from(told), seen, "what is counted and what was sent");
        told
    }

    /// The same of many writes: for the first time on this connection, and once their statement is
    /// known.
    async fn twice(&mut self, units: impl Fn(i64) -> Vec<Unit>) -> [u32; 2] {
        let first = self.trips(Rung::Fused, &units(0)).await;
        [first, self.trips(Rung::Fused, &units(1)).await]
    }
}

/// Rows of each batch.
const ROWS: i64 = 50;

/// A write for each of the rows of a round.
fn each(round: i64, unit: impl Fn(i64) -> Unit) -> Vec<Unit> {
    let first = 1000 + round * ROWS;
    (first..first + ROWS).map(unit).collect()
}

/// What a batch of one shape takes: for the first time, and from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trips {
    /// One insert alone; the first also learns of the table.
    solo: [u32; 2],
    inserts: [u32; 2],
    reads: [u32; 2],
    updates: [u32; 2],
    upserts: [u32; 2],
    deletes: [u32; 2],
}

impl Trips {
    /// Returns the fewer round trips of two measurements, batch by batch.
    fn least(self, other: Self) -> Self {
        let least = |a: [u32; 2], b: [u32; 2]| [a[0].min(b[0]), a[1].min(b[1])];
        Self {
            solo: least(self.solo, other.solo),
            inserts: least(self.inserts, other.inserts),
            reads: least(self.reads, other.reads),
            updates: least(self.updates, other.updates),
            upserts: least(self.upserts, other.upserts),
            deletes: least(self.deletes, other.deletes),
        }
    }
}

async fn measure(ground: Box<dyn Ground>) -> Trips {
    let mut slow = Slow::new(ground).await;
    let put = insert("t", &["id", "a"]);
    let (upsert, set) = (put.clone().upsert(), update("t", &["a"]));
    let first = slow.trips(Rung::Solo, &[put.of(row![0, "x"])]).await;
    let second = slow.trips(Rung::Solo, &[put.of(row![1, "x"])]).await;
    let inserts = |round| each(round, |id| put.of(row![id, "x"]));
    let reads = |round| each(round, |id| get("t").of(row![id]));
    let updates = |round| each(round, |id| set.of(row!["y", id]));
    let upserts = |round| each(round + 1, |id| upsert.of(row![id, "z"]));
    let deletes = |round| each(round, |id| delete("t").of(row![id]));
    let trips = Trips {
        solo: [first, second],
        inserts: slow.twice(inserts).await,
        reads: slow.twice(reads).await,
        updates: slow.twice(updates).await,
        upserts: slow.twice(upserts).await,
        deletes: slow.twice(deletes).await,
    };
    for id in [1000, 1000 + 2 * ROWS - 1] {
        assert_eq!(slow.bed.seen("t", id).await, None);
    }
    assert!(slow.bed.seen("t", 1000 + 2 * ROWS).await.is_some());
    trips
}

/// A batch is one round trip, in which new statements are prepared. The first one on a connection
/// also reads the table's description, and prepares the statement that guards it.
#[tokio::test]
async fn postgres() {
    let ground = grounds::postgres::start().await.unwrap();
    let new = [1, 1];
    let expected = Trips {
        solo: [3, 1],
        inserts: new,
        reads: new,
        updates: new,
        upserts: new,
        deletes: new,
    };
    assert_eq!(measure(ground).await, expected);
}

/// The protocol knows no pipelining. A statement that is a transaction of its own is one round
/// trip, and one more to prepare it. An update is one in three: the guard opens its transaction,
/// and COMMIT ends it; it is never prepared.
///
/// A table is looked at once more if that was done more than a second ago, which may be in any of
/// the batches: the fewest of several measurements count.
#[tokio::test]
async fn mariadb() {
    let new = [2, 1];
    let any = shared().unwrap();
    let is_mysql = is_mysql(any.url()).unwrap();
    let expected = Trips {
        solo: [if is_mysql { 8 } else { 9 }, 1],
        inserts: new,
        reads: new,
        updates: [3, 3],
        upserts: new,
        // MySQL has no DELETE .. RETURNING.
        deletes: if is_mysql { [6, 4] } else { new },
    };
    let mut least: Option<Trips> = None;
    for _ in 0..6 {
        let Some(ground) = grounds::mariadb::start().await else {
            return;
        };
        let trips = measure(ground).await;
        let trips = match least.take() {
            Some(before) => trips.least(before),
            None => trips,
        };
        if trips == expected {
            return;
        }
        least = Some(trips);
    }
    assert_eq!(least, Some(expected));
}

/// A batch is one request, and two before the first of them read the table's columns and its key.
#[tokio::test]
async fn cratedb() {
    let ground = grounds::cratedb::start().await.unwrap();
    let one = [1, 1];
    let expected = Trips {
        solo: [3, 1],
        inserts: one,
        reads: one,
        updates: one,
        upserts: one,
        deletes: one,
    };
    assert_eq!(measure(ground).await, expected);
}

/// A batch is one request, from the first on.
#[tokio::test]
async fn arangodb() {
    let ground = grounds::arangodb::start().await.unwrap();
    let one = [1, 1];
    let expected = Trips {
        solo: one,
        inserts: one,
        reads: one,
        updates: one,
        upserts: one,
        deletes: one,
    };
    assert_eq!(measure(ground).await, expected);
}
