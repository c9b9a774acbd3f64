//! Batches of anything against the same writes one by one: nobody may be told anything else than
//! alone.

use windrow_core::{RowDone, RowWrite, Unit, Value};

use crate::support::*;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn key(&mut self) -> Value {
        let key = i64::try_from(self.roll(8)).unwrap();
        match self.roll(12) {
            0 => Value::Null,
            1 => Value::text(key.to_string()),
            2 => Value::text("no/key"),
            _ => key.into(),
        }
    }

    fn value(&mut self) -> Value {
        match self.roll(8) {
            0 => Value::Null,
            1 => number("0.12345678901234567890123"),
            2 => number("1.5"),
            n => i64::try_from(n).unwrap().into(),
        }
    }

    fn unit(&mut self, bed: &Bed) -> Unit<RowWrite> {
        let insert = bed.insert(&["_key", "v"]);
        match self.roll(10) {
            0..=3 => insert.unit([self.key(), self.value()]),
            4 => insert.upsert().unit([self.key(), self.value()]),
            5 => insert.ignore().unit([self.key(), self.value()]),
            6 => bed.update(&["v"]).unit([self.value(), self.key()]),
            7 => bed
                .update(&["t"])
                .returning(&["t", "v"])
                .unit(["x".into(), self.key()]),
            8 => bed.delete().unit([self.key()]),
            _ => bed.get().returning(&["v", "t"]).unit([self.key()]),
        }
    }
}

#[tokio::test]
async fn nobody_is_told_anything_else_than_alone() {
    let (mut together, mut alone) = (Bed::new().await, Bed::new().await);
    for seed in 1..60 {
        let (mut dice, mut same) = (Dice(seed), Dice(seed));
        let size = 3 + seed;
        let batch: Vec<Unit<RowWrite>> = (0..size).map(|_| dice.unit(&together)).collect();
        let outcomes = together.outcomes(&batch).await;
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let unit = same.unit(&alone);
            let told = alone.outcomes(&[unit]).await.remove(0);
            let plain = |mut failed: windrow_core::UnitFault<RowDone>| {
                // The tables have different names.
                failed.fault = failed.fault.with_table(Some(""));
                failed
            };
            let outcome = outcome.map_err(plain);
            assert_eq!(outcome, told.map_err(plain), "{seed}: {:?}", batch[n]);
        }
    }
}
