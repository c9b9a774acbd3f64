//! Short words for loads: plans, portions, and what became of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what tests use may panic as tests may"
)]

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{
    Bulk, Claim, Contents, CsvText, Database, Fault, Field, Filtered, Key, LoadFault, LoadPlan,
    Loaded, Loader, Mark, OnConflict, Purpose, Rows, TableName, Unit, Write,
};

use crate::writes::{names, told};

/// Returns a load into these columns of a table.
pub fn plan(table: &str, columns: &[&str]) -> LoadPlan {
    LoadPlan {
        table: TableName::parse(table).unwrap(),
        columns: names(columns),
        on_conflict: OnConflict::Error,
        key: Key::Primary,
    }
}

/// Returns the same load with another action for existing keys.
pub fn on_conflict(plan: LoadPlan, on_conflict: OnConflict) -> LoadPlan {
    LoadPlan {
        on_conflict,
        ..plan
    }
}

/// Returns a portion, whose records are numbered from 1.
pub fn portion(rows: &[Vec<Field<'_>>]) -> Rows {
    let mut portion = Rows::new(rows.first().map_or(0, Vec::len));
    for (record, row) in (1..).zip(rows) {
        assert!(portion.push(record, row.iter().copied()));
    }
    portion
}

/// Returns a portion of texts as CSV gives them; `NULL` is NULL.
pub fn texts<'t>(rows: &[&[&'t str]]) -> Rows {
    let field = |text: &&'t str| match *text {
        "NULL" => Field::Null,
        text => Field::Plain(text),
    };
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(field).collect())
        .collect();
    portion(&rows)
}

/// Returns the result of a load that wrote rows and left none out.
pub fn written(written: u64) -> Loaded {
    Loaded {
        written,
        ignored: 0,
    }
}

/// The forms of a portion in short words.
#[async_trait]
pub trait WritePortion {
    /// Writes all rows and their mark, or nothing.
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault>;

    /// Writes the rows that look good and their marks.
    async fn filter(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault>;

    /// Writes all records and their mark, or nothing.
    async fn pass(&mut self, csv: CsvText<'_>, mark: Option<&Mark>) -> Result<Loaded, LoadFault>;
}

#[async_trait]
impl WritePortion for dyn Loader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        whole(self, Contents::Rows(rows), mark).await
    }

    async fn filter(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        self.write(Contents::GoodRows(rows), claim).await
    }

    async fn pass(&mut self, csv: CsvText<'_>, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        whole(self, Contents::Csv(csv), mark).await
    }
}

async fn whole(
    loader: &mut dyn Loader,
    contents: Contents<'_>,
    mark: Option<&Mark>,
) -> Result<Loaded, LoadFault> {
    let records = &[];
    let claim = mark.map(|mark| Claim { mark, records });
    let filtered = loader.write(contents, claim.as_ref()).await?;
    assert!(filtered.left.is_empty(), "all rows are written or none");
    Ok(filtered.loaded)
}

/// Why a portion was refused.
pub fn refused(outcome: Result<Loaded, LoadFault>) -> Fault {
    match outcome {
        Err(LoadFault::Refused(fault)) => fault,
        other => panic!("not refused: {other:?}"),
    }
}

/// Why rows cannot be loaded at all.
pub async fn no_loader(bulk: &dyn Bulk, plan: &LoadPlan) -> Fault {
    match bulk.loader(plan).await {
        Ok(_) => panic!("a loader for {plan:?}"),
        Err(fault) => fault,
    }
}

/// Writes rows as a lane does, each by itself. Of each why it failed.
pub async fn alone(
    sink: &dyn Database,
    plan: &LoadPlan,
    rows: &[Vec<Field<'_>>],
) -> Vec<Option<Fault>> {
    let shape = Arc::new(plan.shape());
    let unit = |row: &Vec<Field<'_>>| {
        let values: Vec<_> = row.iter().map(Field::value).collect();
        Unit::one(Write::new(shape.clone(), values))
    };
    let units: Vec<_> = rows.iter().map(unit).collect();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let report = executor.execute(&units).await;
    let fault = |verdict| told(verdict).err().map(|failed| failed.fault);
    report.verdicts.into_iter().map(fault).collect()
}
