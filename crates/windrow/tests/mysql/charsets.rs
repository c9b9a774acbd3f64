//! Strings of executions, and the character set in which they are.

use windrow_mysqlwire::command;

use crate::raw::{error, execute};
use crate::support::Gateway;

/// Returns an execution with two texts, by the types of the execution before.
fn again(id: [u8; 4], texts: [&str; 2]) -> Vec<u8> {
    let mut content = [&[command::STMT_EXECUTE], &id[..], &[0, 1, 0, 0, 0, 0, 0]].concat();
    for text in texts {
        content.push(u8::try_from(text.len()).unwrap());
        content.extend(text.as_bytes());
    }
    content
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_of_an_older_character_set_are_not_read_in_the_new_one() {
    let gateway = Gateway::start();
    let mut client = gateway.client().await;
    client
        .ok("create table words (id int primary key, word varchar(9) character set utf8mb4)")
        .await;
    let text = b"insert into words (id, word) values (?, ?)";
    client.prepare(0, text).await.unwrap();
    let id = client.id(0).unwrap();
    let answer = client.ask(&execute(id, &["1", "é"])).await.unwrap();
    assert_eq!(error(&answer), None);
    gateway.joins();
    client.ok("set names latin1").await;
    for _ in 0..2 {
        let answer = client.ask(&again(id, ["2", "é"])).await.unwrap();
        let refused = error(&answer).unwrap();
        assert!(refused.message.contains("utf8mb4"), "{refused}");
    }
    // In the old character set, and with types, they are read as they are.
    client.ok("set names utf8mb4").await;
    let answer = client.ask(&again(id, ["3", "é"])).await.unwrap();
    assert_eq!(error(&answer), None);
    client.ok("set names latin1").await;
    let answer = client.ask(&execute(id, &["4", "e"])).await.unwrap();
    assert_eq!(error(&answer), None);
    let rows = gateway.exec("select id, hex(word) from words order by id");
    assert_eq!(rows, "1|C3A9\n3|C3A9\n4|65");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_keep_the_collation_of_the_login() {
    let gateway = Gateway::start();
    let mut client = gateway.client().await;
    let mut beside = gateway.client().await;
    client
        .ok("create table pairs (id int primary key, is_same int)")
        .await;
    let text = b"insert into pairs (id, is_same) values (?, ? = ?)";
    let mut write = async |setting: &str, ids: [&str; 2]| {
        for (client, id) in [&mut client, &mut beside].into_iter().zip(ids) {
            client.ok(setting).await;
            client.prepare(0, text).await.unwrap();
            let statement = client.id(0).unwrap();
            let values = execute(statement, &[id, "abc", "ABC"]);
            assert_eq!(error(&client.ask(&values).await.unwrap()), None);
        }
    };
    write("set collation_connection = utf8mb4_bin", ["1", "2"]).await;
    write("set names utf8mb4 collate utf8mb4_bin", ["3", "4"]).await;
    gateway.joins();
    let rows = gateway.exec("select id, is_same from pairs order by id");
    assert_eq!(rows, "1|1\n2|1\n3|0\n4|0");
}
