//! What a client sends later is applied later: children find their parents, also over restarts.

use serde_json::json;

use crate::support::{Db, Gateway, spool};

const TABLES: &str = "create table parents (id int primary key);
    create table children (id int primary key, parent int not null, foreign key (parent) references parents (id));";

async fn parents_come_first(db: Db) {
    db.sql(TABLES);
    let directory = spool();
    for start in 0..4 {
        let gateway = Gateway::start(&db.url(), directory.path());
        for id in start * 40..(start + 1) * 40 {
            let (status, answer) = gateway.rows("parents", &[json!({"id": id})]).await;
            assert_eq!(status, 202, "{answer}");
            let children = [0, 1].map(|n| json!({"id": 2 * id + n, "parent": id}));
            let (status, answer) = gateway.rows("children", &children).await;
            assert_eq!(status, 202, "{answer}");
        }
        match start % 2 {
            0 => gateway.kill9(),
            _ => drop(gateway.stop()),
        }
    }
    let gateway = Gateway::start(&db.url(), directory.path());
    gateway.level().await;
    gateway.stop();
    assert_eq!(db.sql("select count(*) from parents"), "160");
    assert_eq!(db.sql("select count(*) from children"), "320");
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn children_find_their_parents_in_postgresql() {
    parents_come_first(Db::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_find_their_parents_in_mariadb() {
    parents_come_first(Db::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_find_their_parents_in_sqlite() {
    parents_come_first(Db::sqlite()).await;
}
