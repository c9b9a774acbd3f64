//! The gateway before MariaDB: many clients at once, each told its own.

use std::collections::HashSet;

use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use serde_json::json;

use crate::support::{Gateway, code};

#[tokio::test]
async fn rows_of_many_clients_go_to_mariadb_and_each_is_told_its_own() {
    let database = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap())
        .await
        .unwrap();
    let table =
        "create table readings (id bigint auto_increment primary key, device varchar(20) unique,
        level int check (level < 100), at timestamp(3) null)";
    database.exec(table).unwrap();
    let gateway = Gateway::to(database.url()).await;
    let row = |n: usize| match n {
        17 => json!({"device": "device 17", "level": 1000}),
        n => {
            json!({"device": format!("device {}", n % 190), "level": n % 90, "at": "2026-01-01T00:00:00.5Z"})
        }
    };
    let post = async |n: usize| {
        let path = "/v1/tables/readings/rows?returning=id";
        gateway.send("POST", path, Some(row(n).to_string())).await
    };
    let answers = join_all((0..200).map(post)).await;
    let mut numbers = HashSet::new();
    let mut failed = Vec::new();
    for (status, answer) in &answers {
        match status {
            201 => assert!(
                numbers.insert(answer["returned"]["id"].as_i64().unwrap()),
                "{answer}"
            ),
            _ => failed.push((*status, code(answer).to_owned())),
        }
    }
    failed.sort();
    let mut expected = vec![(409, "23505".to_owned()); 10];
    expected.push((422, "23514".to_owned()));
    assert_eq!(failed, expected);
    assert_eq!(
        database.exec("select count(*) from readings").unwrap(),
        "189"
    );
    let id = numbers.iter().next().unwrap();
    let path = format!("/v1/tables/readings/rows/{id}");
    let (status, answer) = gateway
        .send("PATCH", &path, Some(r#"{"level": 99}"#.into()))
        .await;
    assert_eq!((status, &answer["rows"]), (200, &json!(1)));
    let (status, answer) = gateway.send("GET", &path, None).await;
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer.to_string().contains("\"level\":99") && answer.to_string().contains("00:00:00.5Z"),
        "{answer}"
    );
    let (status, answer) = gateway.send("DELETE", &path, None).await;
    assert_eq!((status, &answer["rows"]), (200, &json!(1)));
    let (status, _) = gateway.send("GET", &path, None).await;
    assert_eq!(status, 404);
    gateway.stop().await;
}

#[tokio::test]
async fn mysql_clients_and_http_see_the_same_rows() {
    let database = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap())
        .await
        .unwrap();
    let table = "create table readings (id int auto_increment primary key, level int)";
    database.exec(table).unwrap();
    let gateway = Gateway::with(database.url(), "[mysql]\nlisten = '127.0.0.1:0'").await;
    let opts = OptsBuilder::from_opts(Opts::from_url(database.url()).unwrap())
        .ip_or_hostname("127.0.0.1")
        .tcp_port(gateway.mysql.unwrap().port())
        .prefer_socket(false);
    let mut client = Conn::new(opts).await.unwrap();
    let insert = "insert into readings (level) values (?)";
    client.exec_drop(insert, (7,)).await.unwrap();
    let path = format!(
        "/v1/tables/readings/rows/{}",
        client.last_insert_id().unwrap()
    );
    let (status, answer) = gateway.send("GET", &path, None).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.to_string().contains("\"level\":7"), "{answer}");
    let change = r#"{"level": 8}"#;
    let (status, answer) = gateway.send("PATCH", &path, Some(change.into())).await;
    assert_eq!(status, 200, "{answer}");
    let level = client.query_first("select level from readings").await;
    assert_eq!(level.unwrap(), Some(8));
}
