//! Rows per second and server CPU per row of a lane of MySQL clients, by the form of a batch: five
//! columns with a key that the server numbers.
//!
//! `cargo run --release -p windrow-mysql --example mysql_calls`. A private MariaDB that syncs at
//! each commit is started for it; `WINDROW_TEST_MARIADB_PROGRAMS` names another server's programs.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_core::sink::Purpose;
use windrow_core::{
    Arguments, Described, Describer, Expression, Fault, Formats, Name, Op, Origin, ParsedStatement,
    Piece, Sink, SqlCall, Statement, TableName, Unit, Verdict, Write,
};
use windrow_database::Options;
use windrow_mysql::ClientSink;
use windrow_mysqlwire::{Credential, LaneLogin, Target};
use windrow_testkit::mariadb::{MariaDb, sql};

/// The time for which each form is measured.
const SPAN: Duration = Duration::from_secs(3);

const TABLE: &str = "create table reading (id bigint auto_increment primary key, station varchar(30), \
    at datetime, temperature decimal(6,2), humidity int)";

const COLUMNS: [&str; 4] = ["station", "at", "temperature", "humidity"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MariaDb::builder().fsync(true).start()?;
    let url = server.create_database()?;
    sql(&url, TABLE)?;
    let target = Target::parse(&url)?;
    let login = LaneLogin {
        user: target.user.as_bytes().into(),
        credential: Credential::Password(target.password.clone()),
        database: Some(target.database.as_str().into()),
        counts_found_rows: false,
        ignores_space: false,
        has_extended_metadata: false,
        variables: [("sql_mode", Some("STRICT_TRANS_TABLES".into()))].into(),
    };
    let sink = ClientSink::new(target, login, &Options::default());
    println!("form | rows in a batch | rows/s | server CPU us a row");
    for rows in [1, 8, 64, 512] {
        for (form, is_set, is_text) in [
            ("text", true, true),
            ("prepared", true, false),
            ("text, pipelined", false, true),
            ("prepared, pipelined", false, false),
        ] {
            let statement = described(&sink, is_set).await?;
            let mut executor = sink.connect(Purpose::Batches).await?;
            let call = |n: usize| unit(&statement, n, is_text);
            let batch: Vec<Unit> = (0..rows).map(call).collect();
            executor.execute(&batch).await;
            let (start, cpu, mut written) = (Instant::now(), server.cpu_time(), 0_u32);
            while start.elapsed() < SPAN {
                let report = executor.execute(&batch).await;
                for verdict in report.verdicts {
                    match verdict {
                        Verdict::Final(Ok(_)) => written += 1,
                        other => return Err(format!("{other:?}").into()),
                    }
                }
            }
            let cpu = server.cpu_time().saturating_sub(cpu).as_secs_f64();
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{form} | {rows} | {:.0} | {:.1}",
                f64::from(written) / seconds,
                cpu * 1e6 / f64::from(written)
            );
        }
    }
    Ok(())
}

async fn described(sink: &ClientSink, is_set: bool) -> Result<Arc<Statement>, Fault> {
    let parameter = |at| Expression::Sql([Piece::Parameter(at)].into());
    let text = "INSERT INTO reading (station, at, temperature, humidity) VALUES (?, ?, ?, ?)";
    let parsed = ParsedStatement {
        text: text.into(),
        types: [].into(),
        op: Op::Insert,
        table: TableName::bare("reading"),
        alias: None,
        columns: Some(COLUMNS.map(Name::from).into()),
        values: (0..4).map(parameter).collect(),
        overriding: None,
        conflict: None,
        assignments: [].into(),
        keys: [].into(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: [].into(),
        set_based: is_set,
    };
    match sink.describe(&Arc::new(parsed)).await? {
        Described::Joined(statement) => Ok(statement),
        Described::Apart(apart) => Err(Fault::invalid(apart.to_string())),
    }
}

fn unit(statement: &Arc<Statement>, n: usize, is_text: bool) -> Unit {
    let values = [
        format!("station-{}", n % 100),
        "2026-11-27 12:00:00".to_owned(),
        format!("{}.5", n % 40),
        format!("{}", n % 100),
    ];
    let mut bytes = Vec::new();
    for value in &values {
        let value = match is_text {
            true => format!("'{value}'").into_bytes(),
            false => [
                &[253, 0, u8::try_from(value.len()).unwrap_or(0)],
                value.as_bytes(),
            ]
            .concat(),
        };
        bytes.extend_from_slice(&i32::try_from(value.len()).unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(&value);
    }
    let text = format!(
        "INSERT INTO reading (station, at, temperature, humidity) VALUES ('{}')",
        values.join("', '")
    );
    let origin = is_text.then(|| {
        Box::new(Origin {
            text: text.as_bytes().into(),
            own: None,
        })
    });
    Unit::one(Write::from(SqlCall {
        statement: Arc::clone(statement),
        arguments: Arguments::of(bytes, values.len()).unwrap_or_default(),
        formats: if is_text {
            Formats::Text
        } else {
            Formats::Binary
        },
        results: Formats::Text,
        fresh: false,
        origin,
    }))
}
