//! Executions of many rows (`COM_STMT_BULK_EXECUTE`), which clients of MariaDB send.

use windrow_mysqlwire::command;
use windrow_mysqlwire::{MariadbCapabilities, Target};
use windrow_testkit::mariadb::is_mysql;

use crate::raw::{LoginForm, Packets, RawClient, execute};
use crate::support::Gateway;

/// The flag of types, and two types: a number of eight bytes, a text.
const NUMBER_AND_TEXT: [u8; 6] = [0x80, 0, 8, 0, 0xfd, 0];

/// Returns an execution with these numbers, and the text `n` with each.
fn bulk(id: [u8; 4], types: &[u8], numbers: &[i64]) -> Vec<u8> {
    let mut content = [&[command::STMT_BULK_EXECUTE], &id[..], types].concat();
    for number in numbers {
        content.push(0);
        content.extend(number.to_le_bytes());
        content.extend([0, 1, b'n']);
    }
    content
}

/// Returns an execution with a number, by the types of the execution before.
fn again(id: [u8; 4], number: i64) -> Vec<u8> {
    let head = [&[command::STMT_EXECUTE], &id[..], &[0, 1, 0, 0, 0, 0, 0]].concat();
    [&head[..], &number.to_le_bytes(), &[1, b'n']].concat()
}

async fn play(target: &Target) -> Vec<Packets> {
    let form = LoginForm {
        extended: MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS,
        ..LoginForm::default()
    };
    let (mut client, _) = RawClient::connect(target, &form).await.unwrap();
    client
        .ok("create or replace table t (id int primary key, v varchar(9))")
        .await;
    let text = b"insert into t (id, v) values (?, ?)";
    let mut answers = vec![client.prepare(0, text).await.unwrap()];
    let id = client.id(0).unwrap();
    for content in [
        execute(id, &["1", "n"]),
        bulk(id, &NUMBER_AND_TEXT, &[2, 3, 4]),
        again(id, 50),
        bulk(id, &NUMBER_AND_TEXT, &[5, 3, 6]),
        again(id, 51),
        execute(id, &["8", "n"]),
    ] {
        answers.push(client.ask(&content).await.unwrap());
        answers.push(client.query("show warnings").await.unwrap());
    }
    answers.push(client.query("select * from t").await.unwrap());
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_of_many_rows_are_relayed() {
    let gateway = Gateway::start();
    if is_mysql(&gateway.server.url()).unwrap() {
        return;
    }
    let direct = play(&gateway.direct).await;
    assert_eq!(play(&gateway.through).await, direct);
    gateway.joins();
}
