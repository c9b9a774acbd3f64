//! In batches or one by one: the same answers, the same rows.

use windrow_core::{Unit, UnitOutcome, Value};

use crate::bed::Bed;
use crate::words::*;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn id(&mut self) -> i64 {
        i64::try_from(self.below(12)).unwrap()
    }

    /// A value for a column of numbers, now and then one that it refuses.
    fn number(&mut self, n: i64) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => "no number".into(),
            2 => Value::number("1.5"),
            _ => n.into(),
        }
    }
}

/// A write to a table: any operation on few rows, so that they meet.
fn write(dice: &mut Dice, table: &str, n: i64) -> Unit {
    let id = match dice.below(15) {
        0 => Value::Null,
        1 => "no key".into(),
        2 => format!("{}", dice.id()).into(),
        _ => dice.id().into(),
    };
    let (text, number) = (format!("{n}"), dice.number(n));
    // A key that the database generates is another one in the other table.
    let give_back = dice.below(2) == 0 && id != Value::Null;
    let make = match dice.below(8) {
        0..=2 => insert(table, &["id", "a", "n"]),
        3 => insert(table, &["id", "a", "n"]).ignore(),
        4 => insert(table, &["n", "id", "a"]).upsert(),
        5 => update(table, &["a"]),
        6 => delete(table),
        _ => return get(table).of(vec![id]),
    };
    let make = if give_back {
        make.returning(&["id", "a", "n"])
    } else {
        make
    };
    let shape = make.shape();
    let value = |name: &str| match name {
        "id" => id.clone(),
        "a" => Value::from(&*text),
        _ => number.clone(),
    };
    let mut row: Vec<Value> = shape.columns.iter().map(|name| value(name)).collect();
    if shape.has_key_values() {
        row.push(id.clone());
    }
    make.of(row)
}

/// An outcome without what names the table.
fn brief(outcome: &UnitOutcome) -> String {
    match outcome {
        Ok(_) => {
            let done = done(outcome);
            let returned = done
                .returned
                .as_ref()
                .map(|r| (r.columns.to_vec(), r.rows.clone()));
            format!("{} {returned:?}", done.rows)
        }
        Err(failed) => {
            let fault = format!("{:?} at {}", failed.fault, failed.at);
            fault.replace("many", "one")
        }
    }
}

pub(crate) async fn batched_answers_are_solo_answers(mut bed: Bed) {
    let columns = [("id", Type::Int), ("a", Type::Text), ("n", Type::Int)];
    bed.lay(&[table("one", &columns), table("many", &columns)])
        .await;
    let gives_back = bed
        .sink
        .profile()
        .limitation(windrow_core::Promise::Returned)
        .is_none();
    for seed in 1..=6 {
        let (mut first, mut second, mut sizes) = (Dice(seed), Dice(seed), Dice(seed + 100));
        let mut n = 0;
        for _ in 0..12 {
            let size = usize::try_from(1 + sizes.below(40)).unwrap();
            let (mut alone, mut units) = (Vec::new(), Vec::new());
            for _ in 0..size {
                n += 1;
                let unit = write(&mut first, "one", n);
                let other = write(&mut second, "many", n);
                let plain = unit.writes()[0].shape.op == windrow_core::Op::Get
                    || unit.writes()[0].shape.returning == windrow_core::Returning::Nothing;
                if !gives_back && !plain {
                    continue;
                }
                alone.extend(bed.outcomes(&[unit]).await);
                units.push(other);
            }
            let together = bed.outcomes(&units).await;
            for ((unit, alone), together) in units.iter().zip(&alone).zip(&together) {
                assert_eq!(brief(together), brief(alone), "seed {seed}: {unit:?}");
            }
        }
        for id in 0..12 {
            assert_eq!(
                bed.seen("many", id).await,
                bed.seen("one", id).await,
                "seed {seed}: {id}"
            );
        }
    }
}
