//! Many clients insert rows whose keys the server generates: each has its own.

use std::collections::HashSet;

use tokio::task::JoinSet;
use windrow_testkit::mariadb::{MariaDb, MariaDbBuilder};

use crate::raw::{RawClient, execute, first_row, success};
use crate::support::Gateway;

const CLIENTS: usize = 200;
const ROUNDS: usize = 4;

/// Inserts a row and returns the number that the answer says.
async fn insert(client: &mut RawClient, round: usize, value: &str) -> u64 {
    let answer = match round % 2 {
        0 => {
            let text = format!("insert into events (value) values ('{value}')");
            client.query(&text).await.unwrap()
        }
        _ => {
            let id = client.id(0).unwrap();
            client.ask(&execute(id, &[value])).await.unwrap()
        }
    };
    let success = success(&answer).unwrap_or_else(|| panic!("{answer:?}"));
    assert_eq!((success.affected, success.warnings), (1, 0));
    success.insert_id
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_has_its_own_number() {
    each_has_its_own(MariaDb::builder(), CLIENTS).await;
}

/// The server's ways to hand out numbers: one statement at a time, or with gaps as several servers
/// that write to each other need.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_right_in_each_mode() {
    for mode in ["0", "1", "2"] {
        let server = MariaDb::builder().set("innodb-autoinc-lock-mode", mode);
        each_has_its_own(server, CLIENTS / 5).await;
    }
    let server = MariaDb::builder()
        .set("auto-increment-increment", "7")
        .set("auto-increment-offset", "3");
    each_has_its_own(server, CLIENTS / 5).await;
}

async fn each_has_its_own(server: MariaDbBuilder, clients: usize) {
    let gateway = Gateway::with(server, &[]);
    gateway.exec("create table events (id bigint auto_increment primary key, value varchar(20))");
    let mut running = JoinSet::new();
    for number in 0..clients {
        let mut client = gateway.client().await;
        running.spawn(async move {
            let prepared = b"insert into events (value) values (?)";
            client.prepare(0, prepared).await.unwrap();
            let mut ids = Vec::new();
            for round in 0..ROUNDS {
                let value = format!("{number}-{round}");
                let id = insert(&mut client, round, &value).await;
                let last = client.ok("select last_insert_id()").await;
                assert_eq!(first_row(&last), [id.to_string()]);
                let row = format!("select value from events where id = {id}");
                assert_eq!(first_row(&client.ok(&row).await), [value]);
                ids.push(id);
            }
            ids
        });
    }
    let ids: Vec<u64> = running.join_all().await.into_iter().flatten().collect();
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), clients * ROUNDS);
    let stored = gateway.exec("select count(*), count(distinct value) from events");
    assert_eq!(stored, format!("{0}|{0}", clients * ROUNDS));
    gateway.joins();
}
