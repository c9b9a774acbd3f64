//! Short words for writes, and for what became of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what tests use may panic as tests may"
)]

use std::sync::Arc;

use tokio::time::Instant;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Fault, Key, Name, OnConflict, Op, Report, Returning, Rung, Shape, TableName, Unit, UnitOutcome,
    Value, Verdict, Write, WriteDone,
};

use crate::process::TEST_TIMEOUT;

/// Returns the outcome that a verdict tells.
///
/// # Panics
/// It tells none.
pub fn told(verdict: Verdict) -> UnitOutcome {
    match verdict {
        Verdict::Final(outcome) => outcome,
        other => panic!("no outcome: {other:?}"),
    }
}

/// Why a unit failed.
///
/// # Panics
/// It did not.
pub fn fault(outcome: &UnitOutcome) -> &Fault {
    &outcome.as_ref().expect_err("it succeeded").fault
}

/// Counts the writes of a batch that went this way.
pub fn rung(report: &Report, rung: Rung) -> u64 {
    let place = Rung::ALL.iter().position(|r| *r == rung).unwrap();
    report.tally.rungs[place]
}

/// A shape under construction.
#[derive(Clone, Debug)]
pub struct Make(ShapeParts);

/// Names of columns.
pub fn names(names: &[&str]) -> Box<[Name]> {
    names.iter().map(|name| Name::from(*name)).collect()
}

fn make(op: Op, table: &str, columns: &[&str]) -> Make {
    Make(ShapeParts {
        op,
        table: TableName::parse(table).unwrap(),
        columns: names(columns),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    })
}

/// Returns an insert.
pub fn insert(table: &str, columns: &[&str]) -> Make {
    make(Op::Insert, table, columns)
}

/// Returns an update by key.
pub fn update(table: &str, columns: &[&str]) -> Make {
    make(Op::Update, table, columns)
}

/// Returns a delete by key.
pub fn delete(table: &str) -> Make {
    make(Op::Delete, table, &[])
}

/// Returns a read of all columns by key.
pub fn get(table: &str) -> Make {
    make(Op::Get, table, &[]).all()
}

impl Make {
    /// Sets the columns that name a row.
    #[must_use]
    pub fn key(mut self, key: &[&str]) -> Self {
        self.0.key = Key::Columns(names(key));
        self
    }

    /// Rows that are there already stay as they are.
    #[must_use]
    pub fn ignore(mut self) -> Self {
        self.0.on_conflict = OnConflict::Ignore;
        self
    }

    /// Rows that are there already are changed.
    #[must_use]
    pub fn upsert(mut self) -> Self {
        self.0.on_conflict = OnConflict::Update;
        self
    }

    /// Gives these columns back.
    #[must_use]
    pub fn returning(mut self, columns: &[&str]) -> Self {
        self.0.returning = Returning::Columns(names(columns));
        self
    }

    /// Gives all columns back.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.0.returning = Returning::All;
        self
    }

    /// One write of it.
    #[must_use]
    pub fn write<const N: usize>(&self, row: [Value; N]) -> Write {
        Write::new(self.shape(), row)
    }

    /// Returns a unit of one write.
    #[must_use]
    pub fn unit<const N: usize>(&self, row: [Value; N]) -> Unit {
        Unit::one(self.write(row))
    }

    /// One write of a row that may have any length.
    #[must_use]
    pub fn row(&self, row: Vec<Value>) -> Write {
        write(&self.shape(), row)
    }

    /// Returns a unit of one such write.
    #[must_use]
    pub fn of(&self, row: Vec<Value>) -> Unit {
        Unit::one(self.row(row))
    }

    /// Returns the same as [`Make::unit`], with a key as a path spells it.
    #[must_use]
    pub fn spelled<const N: usize>(&self, row: [Value; N]) -> Unit {
        Unit::one(Write::new(Arc::new(Shape::spelled(self.0.clone())), row))
    }

    /// Many units of one shape.
    pub fn units<const N: usize>(&self, rows: impl IntoIterator<Item = [Value; N]>) -> Vec<Unit> {
        let shape = self.shape();
        let unit = |row| Unit::one(Write::new(shape.clone(), row));
        rows.into_iter().map(unit).collect()
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> Arc<Shape> {
        Arc::new(Shape::new(self.0.clone()))
    }
}

/// One write.
pub fn write(shape: &Arc<Shape>, row: Vec<Value>) -> Write {
    Write::new(shape.clone(), row)
}

/// Returns a unit of one write.
pub fn unit(shape: &Arc<Shape>, row: Vec<Value>) -> Unit {
    Unit::one(write(shape, row))
}

/// A row of values of any kind.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(windrow_core::Value::from($value)),*] };
}

/// Returns a number, by its digits.
pub fn number(digits: &str) -> Value {
    Value::number(digits)
}

/// Returns a value of JSON.
pub fn json(text: &str) -> Value {
    Value::Json(text.into())
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TEST_TIMEOUT, "never: {what}");
        tokio::task::yield_now().await;
    }
}

/// Returns the rows that a write gave back.
pub fn returned(done: &WriteDone) -> Vec<Vec<Value>> {
    let returned = done.returned.as_ref().expect("nothing came back");
    returned.rows.iter().map(|row| row.to_vec()).collect()
}

/// Returns the outcome of each unit in short: its count or its code.
pub fn brief(outcomes: &[UnitOutcome]) -> Vec<String> {
    let one = |outcome: &UnitOutcome| match outcome {
        Ok(dones) => dones
            .iter()
            .map(|d| d.rows.to_string())
            .collect::<Vec<_>>()
            .join(","),
        Err(failed) => failed.fault.code.to_string(),
    };
    outcomes.iter().map(one).collect()
}

/// Returns the same of a whole report, also for verdicts that are not final.
pub fn verdicts(report: &Report) -> Vec<String> {
    let one = |verdict: &Verdict| match verdict {
        Verdict::Final(outcome) => brief(std::slice::from_ref(outcome)).remove(0),
        Verdict::RolledBack(fault) => format!("rolled back {}", fault.code),
        Verdict::WaitsForLock(_) => "waits for a lock".to_owned(),
        Verdict::NotTried => "not tried".to_owned(),
    };
    report.verdicts.iter().map(one).collect()
}
