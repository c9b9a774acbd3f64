//! Rules for databases that a spool is applied to: a unit of many writes takes effect as a whole,
//! together with the position that it advances.
//!
//! Each rule takes a database with two tables that are empty: `one (id, a)` and `two (id, n)`,
//! whole numbers but for the text `a`, with `id` as their key; `n` is NOT NULL.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what tests use may panic as tests may"
)]

use std::sync::Arc;

use windrow_bookkeeping::{
    Applied, DeadLetter, KeptLetter, PROGRESS, ProgressRow, REJECTED, dead_letters, prepare,
};
use windrow_core::{
    Bookkeeping, Database, FaultClass, Level, Report, Standing, Unit, UnitFault, Verdict, Write,
    WriteDone,
};

use crate::batches::Batches;
use crate::row;
use crate::writes::{Make, delete, get, insert, told};

/// Rows of a unit, half of them in each table, by turns.
const ROWS: i64 = 300;

/// A database with its bookkeeping, and one partition of a spool.
pub struct Spooled {
    /// One connection.
    pub batches: Batches,
    /// The tables of Windrow's own.
    pub bookkeeping: Arc<dyn Bookkeeping>,
    /// The partition.
    pub partition: ProgressRow,
    one: Make,
    two: Make,
}

/// Up to a position, with a name for the entry before it.
fn last(position: u64) -> Applied {
    Applied {
        position,
        last: format!("entry-{position}").into(),
    }
}

impl Spooled {
    /// Makes the tables of Windrow's own: four do it at the same time.
    pub async fn on(sink: Arc<dyn Database>) -> Self {
        let bookkeeping = sink.bookkeeping().unwrap();
        let b = &bookkeeping;
        let made = tokio::join!(prepare(&**b), prepare(&**b), prepare(&**b), prepare(&**b));
        assert_eq!(made, (Ok(()), Ok(()), Ok(()), Ok(())));
        prepare(&*bookkeeping).await.unwrap();
        Self {
            batches: Batches::on(sink).await,
            bookkeeping,
            partition: ProgressRow {
                spool: "0123456789abcdef0123456789abcdef".into(),
                number: 3,
            },
            one: insert("one", &["id", "a"]),
            two: insert("two", &["id", "n"]),
        }
    }

    /// Inserts of these rows, into both tables by turns.
    pub fn rows(&self, ids: std::ops::Range<i64>) -> Vec<Write> {
        let (one, two) = (self.one.shape(), self.two.shape());
        ids.map(|id| match id % 2 {
            0 => Write::new(one.clone(), row![id, format!("row {id}")]),
            _ => Write::new(two.clone(), row![id, id]),
        })
        .collect()
    }

    /// Returns a unit that moves the partition on, and these writes.
    pub fn unit(&self, from: Option<u64>, to: u64, writes: Vec<Write>) -> Unit {
        Unit::of(
            self.partition
                .advance(from, &last(to))
                .into_iter()
                .chain(writes),
        )
    }

    /// Executes one unit.
    pub async fn run(&mut self, unit: Unit) -> Report {
        self.batches.run(&[unit]).await
    }

    /// Executes a unit that is refused.
    pub async fn refused(&mut self, unit: Unit) -> UnitFault {
        let report = self.run(unit).await;
        assert!(report.usable);
        match report.verdicts.into_iter().next() {
            Some(Verdict::Final(Err(fault))) => fault,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Executes a unit that succeeds; says what it took.
    pub async fn succeed(&mut self, unit: Unit) -> Report {
        let report = self.run(unit).await;
        let verdict = report.verdicts.first().cloned().unwrap();
        told(verdict).unwrap();
        report
    }

    /// Returns the position up to which the partition has been applied.
    pub async fn position(&mut self) -> Option<u64> {
        let read = Unit::one(self.partition.read());
        let done = self.batches.one(read).await.unwrap();
        let found = ProgressRow::found(&done).unwrap();
        found.map(|applied| {
            assert_eq!(applied, last(applied.position));
            applied.position
        })
    }

    /// Returns the rows of these numbers, in both tables.
    async fn state(&mut self, ids: &[i64]) -> Vec<WriteDone> {
        let (one, two) = (get("one"), get("two"));
        let reads = ids
            .iter()
            .flat_map(|id| [one.of(row![*id]), two.of(row![*id])]);
        let reads: Vec<_> = reads.collect();
        self.batches.succeed(&reads).await
    }

    async fn clear(&mut self, ids: &[i64]) {
        let (one, two) = (delete("one"), delete("two"));
        let deletes = ids
            .iter()
            .flat_map(|id| [one.of(row![*id]), two.of(row![*id])]);
        let deletes: Vec<_> = deletes.collect();
        self.batches.succeed(&deletes).await;
    }

    /// Dead letters behind a number.
    pub async fn kept(&self, after: u64, most: usize) -> Vec<KeptLetter> {
        dead_letters(&*self.bookkeeping, after, most).await.unwrap()
    }

    /// Counts those of these rows that are there.
    pub async fn count(&mut self, ids: std::ops::Range<i64>) -> u64 {
        let (one, two) = (get("one"), get("two"));
        let reads: Vec<_> = ids
            .map(|id| match id % 2 {
                0 => one.of(row![id]),
                _ => two.of(row![id]),
            })
            .collect();
        let found = self.batches.succeed(&reads).await;
        found.iter().map(|done| done.rows).sum()
    }
}

/// Returns a letter that is hard to keep.
pub fn letter(constraint: Option<&str>, entry: Option<&[u8]>) -> DeadLetter {
    DeadLetter {
        source: "spool 0123456789abcdef0123456789abcdef partition 4294967295 position 9223372036854775807"
            .into(),
        destination: "sch\u{e4}ma.\"t'\\".into(),
        key: "[1, \"\u{1f600}\", null]".into(),
        row: r#"{"b": [1.50, {"x": "\u0000\n"}], "a": 1e400, "b": "\\"}"#.into(),
        code: "23505".into(),
        message: format!("it's \"said\" \\ {}", "long ".repeat(20_000)).into(),
        constraint: constraint.map(Box::from),
        entry: entry.map(Box::from),
    }
}

/// Units commit as a whole; if another session has advanced the partition, nothing of them is
/// written. `fuses`: writes become statements for many, even if their tables take turns.
pub async fn units_move_the_position_with_their_rows(mut spooled: Spooled, fuses: bool) {
    assert_eq!(spooled.position().await, None);
    for (from, to, rows) in [(None, 5, 0..ROWS), (Some(5), 10, ROWS..2 * ROWS)] {
        let unit = spooled.unit(from, to, spooled.rows(rows.clone()));
        let report = spooled.succeed(unit).await;
        assert_eq!(spooled.position().await, Some(to));
        assert_eq!(spooled.count(rows).await, 300);
        assert_eq!(report.tally.commits, 1);
        if fuses {
            let fused = crate::writes::rung(&report, windrow_core::Rung::Fused);
            assert_eq!(fused, 300, "{:?}", report.tally);
        }
    }
    for (from, at) in [(Some(5), 1), (None, 0), (Some(11), 1)] {
        let unit = spooled.unit(from, 12, spooled.rows(2 * ROWS..3 * ROWS));
        let fault = spooled.refused(unit).await;
        assert_eq!((fault.at, fault.fault.class), (at, FaultClass::Unique));
        assert_eq!(spooled.position().await, Some(10));
        assert_eq!(spooled.count(2 * ROWS..3 * ROWS).await, 0);
    }
    let other = ProgressRow {
        number: 4,
        ..spooled.partition.clone()
    };
    let writes = other.advance(None, &last(u64::from(u32::MAX) << 20));
    spooled.succeed(Unit::of(writes)).await;
    assert_eq!(spooled.position().await, Some(10));
}

/// A row that is refused refuses its unit, by its own place, the first where there are several.
pub async fn the_first_bad_row_is_named(mut spooled: Spooled) {
    let there = spooled.unit(None, 1, spooled.rows(0..10));
    spooled.succeed(there).await;
    let duplicate = |spooled: &Spooled| spooled.rows(4..5).remove(0);
    let null = |spooled: &Spooled| {
        let shape = spooled.two.shape();
        Write::new(shape, row![1_000_001, windrow_core::Value::Null])
    };
    for (bad_row, at_null, first) in [
        (Some(120), None, FaultClass::Unique),
        (None, Some(0), FaultClass::NotNull),
        (Some(250), Some(119), FaultClass::NotNull),
        (Some(7), Some(299), FaultClass::Unique),
    ] {
        let mut rows = spooled.rows(1000..1000 + ROWS);
        let mut places = Vec::new();
        if let Some(at) = bad_row {
            rows[at] = duplicate(&spooled);
            places.push(at);
        }
        if let Some(at) = at_null {
            rows[at] = null(&spooled);
            places.push(at);
        }
        let fault = spooled.refused(spooled.unit(Some(1), 2, rows)).await;
        let place = places.iter().min().unwrap() + 2;
        assert_eq!((fault.at, fault.fault.class), (place, first));
        assert_eq!(spooled.position().await, Some(1));
        assert_eq!(spooled.count(1000..1000 + ROWS).await, 0);
    }
}

/// Rows of one unit that are about each other keep their order.
pub async fn a_unit_keeps_the_order_of_each_row(mut spooled: Spooled) {
    let one = insert("one", &["id", "a"]).upsert().shape();
    let two = insert("two", &["id", "n"]).upsert().shape();
    let mut writes = Vec::new();
    for round in 0..10_i64 {
        for id in 0..20_i64 {
            writes.push(Write::new(one.clone(), row![id, format!("{round}")]));
            writes.push(Write::new(two.clone(), row![id, round]));
        }
    }
    spooled.succeed(spooled.unit(None, 400, writes)).await;
    for id in 0..20_i64 {
        let done = spooled.batches.one(get("one").of(row![id])).await.unwrap();
        assert_eq!(crate::writes::returned(&done)[0][1], "9".into());
        let done = spooled.batches.one(get("two").of(row![id])).await.unwrap();
        assert_eq!(crate::writes::returned(&done)[0][1], 9.into());
    }
}

/// A unit does what its writes do one by one, in their order, or names the first that is refused.
pub async fn a_unit_is_what_its_writes_are_one_by_one(mut spooled: Spooled) {
    let mut chance = Chance(7);
    let mut position = None;
    let mut refused = 0;
    for round in 0..24 {
        let (writes, ids) = chance.writes(60);
        let mut first = None;
        for (at, write) in writes.iter().enumerate() {
            let outcome = spooled.batches.one(Unit::one(write.clone())).await;
            if let Err(fault) = outcome {
                first = Some((at, fault.class));
                break;
            }
        }
        let alone = spooled.state(&ids).await;
        spooled.clear(&ids).await;
        let unit = spooled.unit(position, round + 1, writes);
        let own = usize::from(position.is_some()) + 1;
        if let Some((at, class)) = first {
            let fault = spooled.refused(unit).await;
            assert_eq!((fault.at, fault.fault.class), (at + own, class), "{round}");
            refused += 1;
        } else {
            spooled.succeed(unit).await;
            assert_eq!(spooled.state(&ids).await, alone, "{round}");
            position = Some(round + 1);
        }
        assert_eq!(spooled.position().await, position);
        spooled.clear(&ids).await;
    }
    assert!((4..20).contains(&refused), "{refused}");
}

/// Numbers by chance, the same in each run (the multiplier is Knuth's).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % end
    }

    /// Inserts and upserts by turns, of few rows and of new ones; some may be refused. With them,
    /// the numbers of the rows.
    fn writes(&mut self, most: i64) -> (Vec<Write>, Vec<i64>) {
        let one = insert("one", &["id", "a"]);
        let turned = insert("one", &["a", "id"]);
        let two = insert("two", &["id", "n"]);
        let shapes = [
            one.shape(),
            one.clone().upsert().shape(),
            one.ignore().shape(),
            two.shape(),
            two.clone().upsert().shape(),
            two.ignore().shape(),
            turned.shape(),
            turned.upsert().shape(),
        ];
        let mut writes = Vec::new();
        let mut ids: Vec<i64> = (0..12).collect();
        for n in 0..most {
            let which = self.below(8);
            let strict = [0, 3, 6].contains(&which);
            let id = match strict && self.below(20) > 0 {
                true => 1000 + n,
                false => self.below(12),
            };
            let value = self.below(1000);
            let row = match which {
                0..=2 => row![id, format!("{value}")],
                3..=5 => row![id, value],
                _ => row![format!("{value}"), id],
            };
            let shape = &shapes[usize::try_from(which).unwrap()];
            writes.push(Write::new(shape.clone(), row));
            ids.push(1000 + n);
        }
        (writes, ids)
    }
}

/// Dead letters go with their unit, and come back as they were.
pub async fn letters_are_kept_as_they_are(mut spooled: Spooled) {
    let all: Vec<u8> = (0..=255).collect();
    let letters = [
        letter(Some("t_pkey"), Some(&all)),
        letter(None, None),
        letter(None, Some(&[])),
    ];
    assert_eq!(spooled.kept(0, 10).await, []);
    let with = |spooled: &Spooled, last: Write| {
        let mut writes = spooled.rows(0..20);
        writes.extend(letters.iter().map(DeadLetter::write));
        writes.push(last);
        spooled.unit(None, 23, writes)
    };
    let unit = with(&spooled, spooled.rows(3..4).remove(0));
    assert_eq!(spooled.refused(unit).await.at, 1 + 20 + 3);
    assert_eq!(spooled.kept(0, 10).await, []);
    let unit = with(&spooled, spooled.rows(20..21).remove(0));
    spooled.succeed(unit).await;
    let kept = spooled.kept(0, 10).await;
    let said: Vec<&DeadLetter> = kept.iter().map(|kept| &kept.letter).collect();
    assert_eq!(said, letters.iter().collect::<Vec<_>>());
    assert!(kept.is_sorted_by(|a, b| a.id < b.id) && kept[0].id > 0);
    assert!(kept.iter().all(|kept| kept.rejected_at.len() >= 19));
    assert_eq!(spooled.kept(kept[0].id, 10).await, kept[1..]);
    assert_eq!(spooled.kept(0, 2).await, kept[..2]);
    assert_eq!(spooled.kept(u64::MAX, 2).await, []);
    // Windrow's own tables keep nobody from a transaction with others.
    let standings = spooled.batches.sink.standings();
    let own = |s: &&Standing| [PROGRESS, REJECTED].contains(&&*s.table.table);
    let own: Vec<&Standing> = standings.iter().filter(own).collect();
    assert!(own.len() >= 2, "{standings:?}");
    assert!(own.iter().all(|s| s.level != Level::Apart), "{own:?}");
    // Zero bytes are all that not every database has in a text.
    let zeros = DeadLetter {
        message: "a\0b".into(),
        ..letter(None, None)
    };
    let unit = Unit::one(zeros.write());
    spooled.succeed(unit).await;
    let kept = spooled.kept(kept[2].id, 1).await;
    assert_eq!(&*kept[0].letter.message, "a\u{fffd}b");
}

/// Two who apply the same entries at the same time do not both do so.
pub async fn of_two_at_once_one_commits(mut spooled: Spooled) {
    let mut other = spooled.batches.connect().await;
    let mut from = None;
    for round in 0..12_i64 {
        let to = round.unsigned_abs() + 1;
        let rows = round * 50..round * 50 + 50;
        let unit = || spooled.unit(from, to, spooled.rows(rows.clone()));
        let units = [[unit()], [unit()]];
        let (one, two) = tokio::join!(
            spooled.batches.executor.execute(&units[0]),
            other.execute(&units[1])
        );
        let mut committed = 0;
        for report in [one, two] {
            match &report.verdicts[0] {
                Verdict::Final(Ok(_)) => committed += 1,
                Verdict::Final(Err(fault)) => {
                    assert_eq!(fault.fault.class, FaultClass::Unique, "{fault:?}");
                    assert_eq!(fault.at, usize::from(from.is_some()));
                }
                Verdict::RolledBack(_) | Verdict::WaitsForLock(_) => {}
                Verdict::NotTried => panic!("not tried"),
            }
        }
        // Where both went back, for a deadlock, nothing has happened.
        assert!(committed <= 1);
        if committed == 0 {
            spooled.succeed(units[0][0].clone()).await;
        }
        assert_eq!(spooled.position().await, Some(to));
        assert_eq!(spooled.count(rows).await, 50);
        from = Some(to);
    }
    other.close().await;
}
