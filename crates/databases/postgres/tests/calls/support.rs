//! What the tests share: a lane's sink on a database, and short words for calls and answers.

use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{
    Arguments, Described, Describer, Executor, Fault, Formats, ParsedStatement, Report, Rung, Sink,
    SqlCall, Statement, Unit, UnitOutcome, Verdict, Write, WriteDone,
};
use windrow_database::Options;
use windrow_pgwire::Target;
use windrow_postgres::StatementSink;
use windrow_testkit::postgres::{PostgresDatabase, shared};

/// The outcome that a verdict tells.
pub(crate) fn told(verdict: Verdict) -> UnitOutcome {
    match verdict {
        Verdict::Final(outcome) => outcome,
        other => panic!("not told: {other:?}"),
    }
}

/// Why a unit failed.
pub(crate) fn fault(outcome: &UnitOutcome) -> &Fault {
    &outcome.as_ref().unwrap_err().fault
}

/// How many calls of a batch went this way.
pub(crate) fn rung(report: &Report, rung: Rung) -> u64 {
    let place = Rung::ALL.iter().position(|r| *r == rung).unwrap();
    report.tally.rungs[place]
}

/// A database with one connection for batches.
pub(crate) struct Bed {
    pub(crate) database: PostgresDatabase,
    pub(crate) sink: Arc<StatementSink>,
    pub(crate) executor: Box<dyn Executor>,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &[], &[]).await
    }

    /// The same, under settings.
    pub(crate) async fn with(sql: &str, startup: &[(&str, &str)], set: &[&str]) -> Self {
        Self::waiting(sql, startup, set, &Options::default()).await
    }

    /// The same, with waiting times.
    pub(crate) async fn waiting(
        sql: &str,
        startup: &[(&str, &str)],
        set: &[&str],
        options: &Options,
    ) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let own = |text: &str| text.to_owned();
        let sink = StatementSink::new(
            Target::parse(database.url()).unwrap(),
            startup.iter().map(|(n, v)| (own(n), own(v))).collect(),
            set.iter().map(|s| own(s)).collect(),
            options,
        );
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Self {
            database,
            sink,
            executor,
        }
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap().trim().to_owned()
    }

    pub(crate) async fn describe(&self, parsed: Arc<ParsedStatement>) -> Arc<Statement> {
        match self.sink.describe(&parsed).await.unwrap() {
            Described::Joined(statement) => statement,
            Described::Apart(reason) => panic!("{}: {reason}", parsed.text),
        }
    }

    pub(crate) async fn apart(&self, parsed: Arc<ParsedStatement>) -> &'static str {
        match self.sink.describe(&parsed).await.unwrap() {
            Described::Joined(statement) => panic!("joined: {statement:?}"),
            Described::Apart(apart) => apart.phrase,
        }
    }

    /// One batch, whose report has a verdict for each unit.
    pub(crate) async fn run(&mut self, units: &[Unit]) -> Report {
        let report = self.executor.execute(units).await;
        assert_eq!(report.verdicts.len(), units.len());
        report
    }

    /// One batch that is told its outcomes.
    pub(crate) async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        if !report.usable {
            // Something ran of which nothing was proven.
            self.executor = self.sink.connect(Purpose::Batches).await.unwrap();
        }
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch that succeeds throughout; and by which rungs.
    pub(crate) async fn succeed(&mut self, units: &[Unit]) -> (Vec<WriteDone>, Report) {
        let report = self.run(units).await;
        let outcomes = report.verdicts.iter().cloned().map(told);
        let done = outcomes.flat_map(|outcome| outcome.unwrap()).collect();
        (done, report)
    }
}

pub(crate) fn arguments<V: AsRef<[u8]>>(values: &[Option<V>]) -> Arguments {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Some(value) => {
                let value = value.as_ref();
                bytes.extend_from_slice(&i32::try_from(value.len()).unwrap().to_be_bytes());
                bytes.extend_from_slice(value);
            }
            None => bytes.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
    Arguments::of(bytes, values.len()).unwrap()
}

/// A call whose values are texts; `~` is NULL.
pub(crate) fn call(statement: &Arc<Statement>, values: &[&str]) -> SqlCall {
    let values: Vec<_> = values.iter().map(|v| (*v != "~").then_some(*v)).collect();
    SqlCall {
        statement: statement.clone(),
        arguments: arguments(&values),
        formats: Formats::Text,
        results: Formats::Text,
        fresh: false,
        origin: None,
    }
}

/// A call whose values are binary.
pub(crate) fn binary(statement: &Arc<Statement>, values: &[&[u8]]) -> SqlCall {
    let values: Vec<_> = values.iter().map(|v| Some(*v)).collect();
    SqlCall {
        formats: Formats::Binary,
        arguments: arguments(&values),
        ..call(statement, &[])
    }
}

pub(crate) fn unit(statement: &Arc<Statement>, values: &[&str]) -> Unit {
    unit_of([call(statement, values)])
}

pub(crate) fn unit_of(calls: impl IntoIterator<Item = SqlCall>) -> Unit {
    Unit::of(calls.into_iter().map(Write::from))
}

/// Protocol messages as `D a|b` and `N message`, a line each.
pub(crate) fn messages(bytes: &[u8]) -> Vec<String> {
    let mut rest = bytes;
    let mut lines = Vec::new();
    while let [tag, a, b, c, d, behind @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let (body, behind) = behind.split_at(length);
        rest = behind;
        lines.push(match tag {
            b'D' => format!("D {}", row(body)),
            tag => format!("{} {}", char::from(*tag), words(body)),
        });
    }
    assert!(rest.is_empty());
    lines
}

fn row(body: &[u8]) -> String {
    let count = u16::from_be_bytes([body[0], body[1]]);
    let values = Arguments::of(&body[2..], usize::from(count)).unwrap();
    let column = |value: Option<&[u8]>| match value {
        None => "~".to_owned(),
        Some(value) => match std::str::from_utf8(value) {
            Ok(text) if !text.contains('\0') => text.to_owned(),
            _ => format!("{value:02x?}"),
        },
    };
    values.iter().map(column).collect::<Vec<_>>().join("|")
}

/// The fields of a notice or error that mean the same wherever it was raised.
fn words(body: &[u8]) -> String {
    let fields = body.split(|b| *b == 0).filter(|field| !field.is_empty());
    let told = fields.filter(|field| b"SCMDHPstcdn".contains(&field[0]));
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    told.map(text).collect::<Vec<_>>().join("; ")
}

/// What a call gave back, as `INSERT 0 n`'s count, rows and notices, and what it took from a
/// sequence.
pub(crate) fn said(done: &WriteDone) -> String {
    let mut text = done.rows.to_string();
    if let Some(extra) = &done.extra {
        for message in messages(&extra.messages) {
            text += &format!(", {message}");
        }
        if let Some(generated) = &extra.generated {
            text += &format!(", took {}", generated.value);
        }
    }
    text
}
