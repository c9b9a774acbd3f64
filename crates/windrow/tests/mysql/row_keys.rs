//! INSERTs that are sent again with the same key.

use windrow_mysqlwire::command;
use windrow_testkit::mariadb::{MariaDb, sql};

use crate::raw::{LoginForm, Packets, RawClient, error, execute, first_row, success};
use crate::support::{Gateway, TRIED, create, metric, serve, url};

const ROWS: &str = "create table t (id int primary key, v varchar(20));
    create table made (id bigint auto_increment primary key, v varchar(20))";

/// Sends a statement under a key.
async fn under(client: &mut RawClient, key: &str, text: &str) -> Packets {
    client
        .ok(&format!("set @windrow_idempotency_key = '{key}'"))
        .await;
    client.query(text).await.unwrap()
}

/// Returns the number of an answer's error; 0 for none.
fn code(answer: &Packets) -> u16 {
    error(answer).map_or(0, |error| error.number)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_with_a_key_is_executed_once() {
    for ack in ["commit", "spool"] {
        let server = MariaDb::builder().start().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let direct = create(&server, TRIED);
        let exec = |text: &str| sql(&url(&direct), text).unwrap();
        exec(ROWS);
        let options = ["--spool", directory.path().to_str().unwrap()];
        for _ in 0..2 {
            let (mut windrow, through) = serve(&direct, &options);
            for _ in 0..2 {
                let connected = RawClient::connect(&through, &LoginForm::default()).await;
                let (mut client, _) = connected.unwrap();
                client.ok(&format!("set @windrow_ack = '{ack}'")).await;
                let insert = "insert into made (v) values ('a')";
                let done = success(&under(&mut client, "k1", insert).await).unwrap();
                // The first number, if the row is stored when its client gets the answer.
                let number = u64::from(ack == "commit");
                assert_eq!((done.affected, done.insert_id), (1, number));
                let last = client.ok("select last_insert_id()").await;
                assert_eq!(first_row(&last), [number.to_string()]);
                // The key was for one write.
                client.ok("delete from t").await;
                client.ok("insert into t (id, v) values (1, 'x')").await;
                let count = client.ok("select count(*) from made").await;
                assert_eq!(first_row(&count), ["1"]);
            }
            windrow.kill9().unwrap();
        }
        assert_eq!(exec("select group_concat(id, v) from made").trim(), "1a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_under_a_key_is_answered_again() {
    let gateway = Gateway::start();
    gateway.exec(ROWS);
    gateway.exec("insert into t (id, v) values (1, 'there')");
    let mut client = gateway.client().await;
    let insert = "insert into t (id, v) values (1, 'again')";
    let connected = RawClient::connect(&gateway.direct, &LoginForm::default()).await;
    let alone = error(&connected.unwrap().0.query(insert).await.unwrap());
    assert_eq!(error(&under(&mut client, "k", insert).await), alone);
    gateway.exec("delete from t");
    assert_eq!(error(&under(&mut client, "k", insert).await), alone);
    let other = "insert into t (id, v) values (2, 'other')";
    assert_eq!(code(&under(&mut client, "k", other).await), 1105);
    assert_eq!(code(&under(&mut client, "k2", insert).await), 0);
    // An INSERT that was executed before is no failure.
    let refused = r#"windrow_outcomes_total{lane="default",class="unique"}"#;
    assert_eq!(metric(gateway.windrow.address(), refused), 1);
    client
        .prepare(0, b"insert into t (id, v) values (?, ?)")
        .await
        .unwrap();
    for _ in 0..2 {
        client.ok("set @windrow_idempotency_key = 'k3'").await;
        let id = client.id(0).unwrap();
        let answer = client.ask(&execute(id, &["3", "p"])).await.unwrap();
        assert_eq!(success(&answer).unwrap().affected, 1);
    }
    let rows = "select group_concat(id, v order by id) from t";
    assert_eq!(gateway.exec(rows).trim(), "1again,3p");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_cannot_be_executed_under_a_key_is_refused() {
    let gateway = Gateway::start();
    gateway.exec(ROWS);
    let mut client = gateway.client().await;
    for text in [
        "update t set v = 'x'",
        "delete from t where id = 1",
        "insert into t select 1, 'x'",
        "insert ignore into t values (1, 'x')",
        "insert into made (v) values ('a') returning id",
        "select 1; insert into t (id, v) values (1, 'x')",
        "begin",
        "create table other (id int)",
    ] {
        assert_eq!(code(&under(&mut client, "k", text).await), 1235, "{text}");
    }
    // A statement that writes nothing needs no key.
    client.ok("select 1").await;
    client.ok("set names utf8mb4").await;
    client.ok("show tables").await;
    client.prepare(0, b"update t set v = ?").await.unwrap();
    let id = client.id(0).unwrap();
    let answer = client.ask(&execute(id, &["x"])).await.unwrap();
    assert_eq!(code(&answer), 1235);
    client.ok("set @windrow_idempotency_key = null").await;
    client.ok("insert into t (id, v) values (1, 'x')").await;
    // Within a transaction there is no key.
    client.ok("begin").await;
    let set = "set @windrow_idempotency_key = 'k'";
    assert_eq!(code(&client.query(set).await.unwrap()), 1231);
    client.ok("rollback").await;
    let long = format!("set @windrow_idempotency_key = '{}'", "k".repeat(300));
    assert_eq!(code(&client.query(&long).await.unwrap()), 1231);
    // A session that is reset has none.
    client.ok(set).await;
    drop(client.ask(&[command::RESET_CONNECTION]).await.unwrap());
    client.ok("update t set v = 'y' where id = 1").await;
    let rows = "select group_concat(id, v order by id) from t";
    assert_eq!(gateway.exec(rows).trim(), "1y");
}
