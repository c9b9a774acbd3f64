//! What the tests share: a database, a sink on it, and short words for writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Done, Executor, Fault, Key, Name, OnConflict, Op, Report, Returning, Rung, Shape, Sink,
    TableName, Unit, UnitOutcome, Value, Verdict, Write,
};
use windrow_sinks::Options;
use windrow_testkit::cratedb::CrateDb;

/// A table name that no other test has.
pub(crate) fn table() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("w_{}_{number}", std::process::id())
}

/// A database with one connection.
pub(crate) struct Bed {
    pub(crate) stand_in: Option<CrateDb>,
    pub(crate) url: String,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) executor: Box<dyn Executor>,
    /// The table of the test.
    pub(crate) table: String,
    http: reqwest::Client,
}

impl Bed {
    /// `columns`: those of the table, or nothing for no table.
    pub(crate) async fn new(columns: &str) -> Self {
        match std::env::var("WINDROW_TEST_CRATEDB") {
            Ok(url) => Self::at(url, None, columns, &Options::default()).await,
            Err(_) => Self::stand_in(columns).await,
        }
    }

    /// In which tables are made from rows.
    pub(crate) async fn creating(columns: &str) -> Self {
        let options = Options {
            create_tables: true,
            ..Options::default()
        };
        match std::env::var("WINDROW_TEST_CRATEDB") {
            Ok(url) => Self::at(url, None, columns, &options).await,
            Err(_) => {
                let stand_in = CrateDb::start(4).await.unwrap();
                Self::at(stand_in.url(), Some(stand_in), columns, &options).await
            }
        }
    }

    /// On the stand-in in any case.
    pub(crate) async fn stand_in(columns: &str) -> Self {
        let stand_in = CrateDb::start(4).await.unwrap();
        Self::at(stand_in.url(), Some(stand_in), columns, &Options::default()).await
    }

    async fn at(url: String, stand_in: Option<CrateDb>, columns: &str, options: &Options) -> Self {
        let sink = windrow_sinks::open(&url, options).await.unwrap();
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        let bed = Self {
            stand_in,
            url,
            sink,
            executor,
            table: table(),
            http: reqwest::Client::new(),
        };
        if !columns.is_empty() {
            let (table, columns) = (&bed.table, columns.replace("dynamic", ""));
            let dynamic = if columns.ends_with(';') {
                " WITH (column_policy = 'dynamic')"
            } else {
                ""
            };
            let columns = columns.trim_end_matches(';');
            bed.sql(&format!("CREATE TABLE {table} ({columns}){dynamic}"))
                .await;
        }
        bed
    }

    pub(crate) fn kit(&self) -> &CrateDb {
        self.stand_in.as_ref().unwrap()
    }

    /// Says a statement past the sink.
    pub(crate) async fn sql(&self, sql: &str) -> serde_json::Value {
        let at = url::Url::parse(&self.url).unwrap();
        let at = format!(
            "http://{}:{}/_sql",
            at.host_str().unwrap(),
            at.port().unwrap_or(4200)
        );
        let body = serde_json::json!({ "stmt": sql }).to_string();
        let request = self
            .http
            .post(at)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.unwrap();
        assert!(
            answer.status().is_success(),
            "{sql}: {}",
            answer.text().await.unwrap()
        );
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    /// How many rows the table has.
    pub(crate) async fn count(&self) -> usize {
        self.sql(&format!("REFRESH TABLE {}", self.table)).await;
        let rows = self.sql(&format!("SELECT id FROM {}", self.table)).await;
        rows["rows"].as_array().unwrap().len()
    }

    pub(crate) async fn run(&mut self, units: &[Unit]) -> Report {
        let report = self.executor.execute(units).await;
        assert_eq!(report.verdicts.len(), units.len());
        report
    }

    /// One batch that is told its outcomes.
    pub(crate) async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        assert!(report.usable);
        report.verdicts.into_iter().map(told).collect()
    }

    /// One write alone.
    pub(crate) async fn one(&mut self, unit: Unit) -> Result<Done, Fault> {
        let outcome = self.outcomes(&[unit]).await.remove(0);
        Ok(outcome.map_err(|f| f.fault)?.remove(0))
    }

    pub(crate) fn insert(&self, columns: &[&str]) -> Make {
        make(Op::Insert, &self.table, columns)
    }

    pub(crate) fn update(&self, columns: &[&str]) -> Make {
        make(Op::Update, &self.table, columns)
    }

    pub(crate) fn delete(&self) -> Make {
        make(Op::Delete, &self.table, &[])
    }

    pub(crate) fn get(&self) -> Make {
        make(Op::Get, &self.table, &[]).all()
    }
}

pub(crate) fn told(verdict: Verdict) -> UnitOutcome {
    match verdict {
        Verdict::Told(outcome) => outcome,
        other => panic!("not told: {other:?}"),
    }
}

/// What each unit got, in short: its count or its code.
pub(crate) fn brief(outcomes: &[UnitOutcome]) -> Vec<String> {
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

/// The same of a whole report: `again` for what was given back.
pub(crate) fn verdicts(report: &Report) -> Vec<String> {
    let one = |verdict: &Verdict| match verdict {
        Verdict::Told(outcome) => brief(std::slice::from_ref(outcome)).remove(0),
        Verdict::Again(fault) => format!("again {}", fault.code),
        Verdict::Alone(_) => "alone".to_owned(),
        Verdict::Held => "held".to_owned(),
    };
    report.verdicts.iter().map(one).collect()
}

pub(crate) fn fault(outcome: &UnitOutcome) -> &Fault {
    &outcome.as_ref().expect_err("it succeeded").fault
}

pub(crate) fn rung(report: &Report, rung: Rung) -> u64 {
    let place = Rung::ALL.iter().position(|r| *r == rung).unwrap();
    report.tally.rungs[place]
}

/// The rows that a write gave back.
pub(crate) fn returned(done: &Done) -> Vec<Vec<Value>> {
    let returned = done.returned.as_ref().expect("nothing came back");
    returned.rows.iter().map(|r| r.to_vec()).collect()
}

/// A shape under construction.
#[derive(Clone)]
pub(crate) struct Make(ShapeParts);

fn names(names: &[&str]) -> Box<[Name]> {
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

impl Make {
    pub(crate) fn key(mut self, key: &[&str]) -> Self {
        self.0.key = Key::Columns(names(key));
        self
    }

    pub(crate) fn ignore(mut self) -> Self {
        self.0.on_conflict = OnConflict::Ignore;
        self
    }

    pub(crate) fn upsert(mut self) -> Self {
        self.0.on_conflict = OnConflict::Update;
        self
    }

    pub(crate) fn returning(mut self, columns: &[&str]) -> Self {
        self.0.returning = Returning::Columns(names(columns));
        self
    }

    pub(crate) fn all(mut self) -> Self {
        self.0.returning = Returning::All;
        self
    }

    pub(crate) fn write<const N: usize>(&self, row: [Value; N]) -> Write {
        Write::new(Arc::new(Shape::new(self.0.clone())), row)
    }

    pub(crate) fn unit<const N: usize>(&self, row: [Value; N]) -> Unit {
        Unit::one(self.write(row))
    }

    /// Many rows of one shape.
    pub(crate) fn units<const N: usize>(
        &self,
        rows: impl IntoIterator<Item = [Value; N]>,
    ) -> Vec<Unit> {
        let shape = Arc::new(Shape::new(self.0.clone()));
        let unit = |row| Unit::one(Write::new(shape.clone(), row));
        rows.into_iter().map(unit).collect()
    }
}

pub(crate) fn number(digits: &str) -> Value {
    Value::Number(digits.into())
}

pub(crate) fn json(text: &str) -> Value {
    Value::Json(text.into())
}
