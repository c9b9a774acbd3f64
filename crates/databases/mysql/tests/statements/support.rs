//! Shared by the tests: a lane's sink on a database, and short words for calls and answers.

use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{
    Arguments, Conflict, Described, Describer, Executor, Expression, Formats, Name, Op, Origin,
    ParsedStatement, Piece, Report, Sink, SourceId, SqlCall, Statement, Unit, UnitOutcome, Write,
    WriteDone,
};
use windrow_database::Options;
use windrow_mysql::ClientSink;
use windrow_mysqlwire::{Credential, ErrorPacket, LaneLogin, Target, WriteAnswer, WriteFailure};
use windrow_testkit::mariadb::{MariaDbDatabase, shared};
pub(crate) use windrow_testkit::writes::{eventually, fault, names, rung, told};

/// A database with one connection of a lane.
pub(crate) struct Bed {
    pub(crate) database: MariaDbDatabase,
    pub(crate) sink: Arc<ClientSink>,
    pub(crate) executor: Box<dyn Executor>,
}

/// Returns the login of a lane with these settings.
pub(crate) fn login(url: &str, variables: &[(&'static str, &str)]) -> (Target, LaneLogin) {
    let target = Target::parse(url).unwrap();
    let variables = variables.iter();
    let login = LaneLogin {
        user: target.user.as_bytes().into(),
        credential: Credential::Password(target.password.clone()),
        database: Some(target.database.as_str().into()),
        counts_found_rows: false,
        ignores_space: false,
        has_extended_metadata: false,
        variables: variables
            .map(|(n, v)| {
                (
                    *n,
                    Some(*v)
                        .filter(|v| !v.is_empty() || *n == "sql_mode")
                        .map(Into::into),
                )
            })
            .collect(),
    };
    (target, login)
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &[], |_| {}).await
    }

    /// The same, under settings of the session.
    pub(crate) async fn with(
        sql: &str,
        variables: &[(&'static str, &str)],
        change: impl FnOnce(&mut LaneLogin),
    ) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let (target, mut login) = login(database.url(), variables);
        change(&mut login);
        let sink = ClientSink::new(target, login, &Options::default());
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Self {
            database,
            sink,
            executor,
        }
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    pub(crate) async fn describe(&self, parsed: ParsedStatement) -> Arc<Statement> {
        describe(&self.sink, parsed).await
    }

    pub(crate) async fn apart(&self, parsed: ParsedStatement) -> &'static str {
        match self.sink.describe(&Arc::new(parsed)).await.unwrap() {
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

    /// Executes one batch and returns the outcomes of its units.
    pub(crate) async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch that succeeds throughout; and its report.
    pub(crate) async fn succeed(&mut self, units: &[Unit]) -> (Vec<WriteDone>, Report) {
        let report = self.run(units).await;
        assert!(report.usable);
        let outcomes = report.verdicts.iter().cloned().map(told);
        let done = outcomes.flat_map(|outcome| outcome.unwrap()).collect();
        (done, report)
    }
}

/// Describes a statement that is joined.
pub(crate) async fn describe(sink: &ClientSink, parsed: ParsedStatement) -> Arc<Statement> {
    match sink.describe(&Arc::new(parsed)).await.unwrap() {
        Described::Joined(statement) => statement,
        Described::Apart(reason) => panic!("apart: {reason}"),
    }
}

fn parameter(at: u16) -> Expression {
    Expression::Sql([Piece::Parameter(at)].into())
}

/// An INSERT with a parameter for each column.
pub(crate) fn insert(table: &str, columns: &[&str]) -> ParsedStatement {
    let marks = vec!["?"; columns.len()].join(", ");
    let count = u16::try_from(columns.len()).unwrap();
    ParsedStatement {
        text: format!(
            "INSERT INTO {table} ({}) VALUES ({marks})",
            columns.join(", ")
        )
        .into(),
        types: [].into(),
        op: Op::Insert,
        table: windrow_core::TableName::parse(table).unwrap(),
        alias: None,
        columns: Some(names(columns)),
        values: (0..count).map(parameter).collect(),
        overriding: None,
        conflict: None,
        assignments: [].into(),
        keys: [].into(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: [].into(),
        set_based: true,
    }
}

/// The same with RETURNING.
pub(crate) fn returning(mut parsed: ParsedStatement, list: &str) -> ParsedStatement {
    parsed.text = format!("{} RETURNING {list}", parsed.text).into();
    parsed.returning = Some(list.into());
    parsed
}

/// The same with IGNORE, or with more behind it.
pub(crate) fn conflict(mut parsed: ParsedStatement, text: String, update: bool) -> ParsedStatement {
    parsed.text = text.into();
    parsed.set_based = false;
    parsed.conflict = Some(Conflict {
        columns: None,
        update,
        assignments: [].into(),
        has_condition: false,
        sql: Expression::Default,
    });
    parsed
}

/// `UPDATE table SET column = ? WHERE key = ?`.
pub(crate) fn update(table: &str, column: &str, key: &str) -> ParsedStatement {
    ParsedStatement {
        text: format!("UPDATE {table} SET {column} = ? WHERE {key} = ?").into(),
        op: Op::Update,
        columns: None,
        values: [].into(),
        assignments: [(Name::from(column), parameter(0))].into(),
        keys: [(Name::from(key), parameter(1))].into(),
        set_based: false,
        ..insert(table, &[])
    }
}

/// `DELETE FROM table WHERE key = ?`.
pub(crate) fn delete(table: &str, key: &str) -> ParsedStatement {
    ParsedStatement {
        text: format!("DELETE FROM {table} WHERE {key} = ?").into(),
        op: Op::Delete,
        keys: [(Name::from(key), parameter(0))].into(),
        assignments: [].into(),
        ..update(table, "x", key)
    }
}

fn arguments(values: &[Option<Vec<u8>>]) -> Arguments {
    let mut bytes = Vec::new();
    for value in values {
        let length = value
            .as_ref()
            .map_or(-1, |v| i32::try_from(v.len()).unwrap());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    Arguments::of(bytes, values.len()).unwrap()
}

/// A call by a text with these literals.
pub(crate) fn text(statement: &Arc<Statement>, literals: &[&str]) -> SqlCall {
    let mut parts = statement.parsed().text.split('?');
    let mut text = parts.next().unwrap().to_owned();
    for (part, literal) in parts.zip(literals) {
        text += literal;
        text += part;
    }
    let values: Vec<_> = literals
        .iter()
        .map(|l| Some(l.as_bytes().to_vec()))
        .collect();
    SqlCall {
        statement: statement.clone(),
        arguments: arguments(&values),
        formats: Formats::Text,
        results: Formats::Text,
        fresh: false,
        origin: Some(Box::new(Origin {
            text: text.as_bytes().into(),
            own: None,
        })),
    }
}

/// A value of a prepared statement: `~` is NULL, digits are a number, all else is a text.
fn value(text: &str) -> Option<Vec<u8>> {
    if text == "~" {
        return None;
    }
    Some(match text.parse::<i64>() {
        Ok(number) => [&[8, 0][..], &number.to_le_bytes()].concat(),
        Err(_) => [
            &[253, 0, u8::try_from(text.len()).unwrap()],
            text.as_bytes(),
        ]
        .concat(),
    })
}

/// A call of a prepared statement.
pub(crate) fn prepared(statement: &Arc<Statement>, values: &[&str]) -> SqlCall {
    let values: Vec<_> = values.iter().map(|text| value(text)).collect();
    SqlCall {
        formats: Formats::Binary,
        arguments: arguments(&values),
        origin: None,
        ..text(statement, &[])
    }
}

pub(crate) fn unit(call: SqlCall) -> Unit {
    Unit::one(Write::from(call))
}

/// A unit of a source.
pub(crate) fn unit_of(source: u64, call: SqlCall) -> Unit {
    let mut unit = unit(call);
    unit.hand_over(SourceId(source));
    unit
}

/// The server's answer to a write.
pub(crate) fn answer(done: &WriteDone) -> WriteAnswer {
    let messages = done.extra.as_ref().map(|extra| &extra.messages);
    messages.map_or_else(WriteAnswer::default, |m| WriteAnswer::decode(m).unwrap())
}

/// The server's error of a write.
pub(crate) fn error(outcome: &UnitOutcome) -> ErrorPacket {
    ErrorPacket::parse(&failure(outcome).error).unwrap()
}

/// The server's whole answer to a write that failed.
pub(crate) fn failure(outcome: &UnitOutcome) -> WriteFailure {
    WriteFailure::decode(fault(outcome).verbatim().unwrap()).unwrap()
}

/// True if the server is MariaDB.
pub(crate) fn is_mariadb(bed: &Bed) -> bool {
    bed.sql("select version()").contains("MariaDB")
}
