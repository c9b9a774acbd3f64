//! As if alone: the same answers and the same tables as the same statements sent directly, one by
//! one.

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;

use crate::operation::{Operation, Token, operations};
use crate::support::{Db, Gateway};

const CLIENTS: usize = 8;

/// What a client was told: rows, or code and constraint (and the message, where the database has
/// one text for both).
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Rows(i64),
    Fault {
        code: String,
        constraint: Option<String>,
        message: String,
    },
}

/// The same statements sent directly.
trait Direct {
    const SCHEMA: &'static str;
    const COLUMNS: &'static str = "id, name, quantity, code";
    async fn run(&self, db: &Db, operation: &Operation) -> Told;
    /// Leaves out what differs for another reason than batching.
    fn normal(&self, told: Told) -> Told;
}

struct OnPostgres;

impl Direct for OnPostgres {
    const SCHEMA: &'static str = "
        create schema twin;
        create table items (id int primary key, name varchar(8) not null,
            quantity int default 7 check (quantity >= 0), code text unique);
        create table twin.items (id int primary key, name varchar(8) not null,
            quantity int default 7 check (quantity >= 0), code text unique);";

    async fn run(&self, db: &Db, operation: &Operation) -> Told {
        let Db::Postgres { client, .. } = db else {
            unreachable!()
        };
        let sql = operation.sql("twin.items", Token::untyped_literal);
        let outcome = client.simple_query(&sql).await;
        match outcome {
            Ok(messages) => messages
                .into_iter()
                .find_map(|m| match m {
                    tokio_postgres::SimpleQueryMessage::CommandComplete(n) => {
                        Some(Told::Rows(i64::try_from(n).unwrap()))
                    }
                    _ => None,
                })
                .unwrap(),
            Err(error) => {
                let db = error.as_db_error().unwrap();
                Told::Fault {
                    code: db.code().code().into(),
                    constraint: db.constraint().map(Into::into),
                    message: db.message().into(),
                }
            }
        }
    }

    fn normal(&self, told: Told) -> Told {
        told
    }
}

struct OnSqlite;

impl Direct for OnSqlite {
    const SCHEMA: &'static str = "
        create table items (id integer primary key, name text not null check (length(name) <= 8),
            quantity integer default 7 check (quantity >= 0), code text unique) strict;
        create table twin_items (id integer primary key, name text not null check (length(name) <= 8),
            quantity integer default 7 check (quantity >= 0), code text unique) strict;";

    async fn run(&self, db: &Db, operation: &Operation) -> Told {
        let Db::Sqlite { connection, .. } = db else {
            unreachable!()
        };
        let sql = operation.sql("twin_items", Token::typed_literal);
        let outcome = match operation {
            Operation::Get { .. } => connection
                .prepare(&sql)
                .and_then(|mut s| s.query_map([], |_| Ok(())).map(|rows| rows.count())),
            _ => connection.execute(&sql, []),
        };
        match outcome {
            Ok(n) => Told::Rows(i64::try_from(n).unwrap()),
            Err(rusqlite::Error::SqliteFailure(error, message)) => Told::Fault {
                code: sqlstate(error.extended_code).into(),
                constraint: None,
                message: message.unwrap_or_default().replace("twin_items", "items"),
            },
            Err(other) => {
                // A statement that cannot be prepared: its message is the database's, its place in
                // the text is not.
                let text = other.to_string();
                let code = if text.contains("no column named") || text.contains("no such column") {
                    "42703"
                } else {
                    "?"
                };
                Told::Fault {
                    code: code.into(),
                    constraint: None,
                    message: String::new(),
                }
            }
        }
    }

    fn normal(&self, told: Told) -> Told {
        match told {
            Told::Fault { code, .. } if code == "42703" => Told::Fault {
                code,
                constraint: None,
                message: String::new(),
            },
            Told::Fault { code, message, .. } => Told::Fault {
                code,
                constraint: None,
                message,
            },
            rows @ Told::Rows(_) => rows,
        }
    }
}

/// SQLite's extended result codes (sqlite.org/rescode.html).
fn sqlstate(extended: i32) -> &'static str {
    match extended {
        1555 | 2067 | 2579 => "23505",
        787 => "23503",
        1299 => "23502",
        275 => "23514",
        3091 => "22000",
        1 => "42703",
        _ => "?",
    }
}

async fn through_windrow(gateway: &Gateway, operation: &Operation) -> Told {
    let (method, path, body) = operation.request();
    let (status, answer) = gateway
        .send(method, &format!("/v1/tables/items/{path}"), body)
        .await;
    let text = |field: &str| answer["error"][field].as_str().map(str::to_owned);
    match operation {
        Operation::Get { .. } if status == 200 => Told::Rows(1),
        Operation::Get { .. } if status == 404 => Told::Rows(0),
        _ => match &answer["rows"] {
            Json::Number(n) => Told::Rows(n.as_i64().unwrap()),
            _ => Told::Fault {
                code: text("code").unwrap_or_else(|| format!("{status}: {answer}")),
                constraint: text("constraint"),
                message: text("message").unwrap_or_default(),
            },
        },
    }
}

async fn compare<D: Direct>(direct: &D, db: &Db, gateway: &Gateway, clients: &[Vec<Operation>]) {
    db.run("delete from items").await;
    let twin = if matches!(db, Db::Postgres { .. }) {
        "twin.items"
    } else {
        "twin_items"
    };
    db.run(&format!("delete from {twin}")).await;
    let told = join_all(clients.iter().map(|operations| async move {
        let mut told = Vec::new();
        for operation in operations {
            told.push(through_windrow(gateway, operation).await);
        }
        told
    }))
    .await;
    for (operations, told) in clients.iter().zip(told) {
        for (operation, told) in operations.iter().zip(told) {
            let alone = direct.normal(direct.run(db, operation).await);
            assert_eq!(
                direct.normal(told),
                alone,
                "left: through Windrow, right: alone; {operation:?}"
            );
        }
    }
    let columns = D::COLUMNS;
    let batched = db
        .rows(&format!("select {columns} from items order by id"))
        .await;
    let alone = db
        .rows(&format!("select {columns} from {twin} order by id"))
        .await;
    assert_eq!(batched, alone);
}

fn check<D: Direct>(direct: &D, db: Db, runtime: &tokio::runtime::Runtime, toml: &str) {
    runtime.block_on(db.run(D::SCHEMA));
    let gateway = runtime.block_on(Gateway::with(&db.url(), toml));
    let clients = prop::collection::vec(operations(20), CLIENTS..=CLIENTS);
    // PROPTEST_CASES asks for more.
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&clients, |clients| {
            let mine = |(n, ops): (usize, Vec<Operation>)| {
                ops.into_iter().map(|o| o.for_client(n)).collect()
            };
            let clients: Vec<Vec<Operation>> = clients.into_iter().enumerate().map(mine).collect();
            runtime.block_on(compare(direct, &db, &gateway, &clients));
            Ok(())
        })
        .unwrap();
    runtime.block_on(gateway.stop());
}

#[test]
fn postgres_answers_as_if_each_client_were_alone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let db = runtime.block_on(Db::postgres());
    check(&OnPostgres, db, &runtime, "");
}

#[test]
fn postgres_does_so_with_several_flights_of_small_batches() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let db = runtime.block_on(Db::postgres());
    check(
        &OnPostgres,
        db,
        &runtime,
        "limits = { flights = 3, batch_rows = 5 }",
    );
}

#[test]
fn sqlite_answers_as_if_each_client_were_alone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    check(&OnSqlite, Db::sqlite(), &runtime, "");
}
