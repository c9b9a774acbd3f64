//! Writes that wait for another session's lock: they wait alone, and as long as their own session
//! says.

use tokio::sync::oneshot;

use crate::raw::{Packets, RawClient, error, first_row, success};
use crate::support::Gateway;

const TABLES: &str = "create table t (id int primary key, v int); \
    create table u (id int primary key, v int); insert into t values (1, 0), (2, 0)";

/// Sends a statement that waits. The receiver gets the answer and the session.
fn waiting(mut client: RawClient, text: &'static str) -> oneshot::Receiver<(RawClient, Packets)> {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let answer = client.query(text).await.unwrap();
        sender.send((client, answer)).ok();
    });
    receiver
}

/// Waits until the server has so many statements that wait for a lock.
async fn until_waiting(gateway: &Gateway, text: &str) {
    let question = format!(
        "select count(*) from information_schema.processlist where info like '{text}%' \
         and command <> 'Sleep'"
    );
    while gateway.exec(&question) == "0" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_go_on_while_a_write_waits() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let mut holder = gateway.direct().await;
    let mut other = gateway.client().await;
    for (lock, unlock) in [
        ("begin; update t set v = 5 where id = 1", "commit"),
        ("lock tables t write", "unlock tables"),
    ] {
        holder.ok(lock).await;
        let waiter = waiting(
            gateway.client().await,
            "update t set v = v + 1 where id = 1",
        );
        until_waiting(&gateway, "update t").await;
        for id in 0..20 {
            other.ok(&format!("replace into u values ({id}, 1)")).await;
        }
        holder.ok(unlock).await;
        let (_, answer) = waiter.await.unwrap();
        assert_eq!(success(&answer).unwrap().affected, 1);
    }
    assert_eq!(gateway.exec("select v from t where id = 1"), "7");
    gateway.joins();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_as_long_as_it_says() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let mut holder = gateway.direct().await;
    holder.ok("begin; update t set v = 5 where id = 1").await;
    let mut direct = gateway.direct().await;
    direct.ok("set innodb_lock_wait_timeout = 1").await;
    let alone = direct
        .query("update t set v = 6 where id = 1")
        .await
        .unwrap();
    let mut client = gateway.client().await;
    client.ok("set innodb_lock_wait_timeout = 1").await;
    client.ok("update t set v = 6 where id = 2").await;
    let through = client
        .query("update t set v = 6 where id = 1")
        .await
        .unwrap();
    assert_eq!(error(&through).unwrap().number, 1205);
    assert_eq!(through, alone);
    for question in ["show warnings", "select row_count()"] {
        assert_eq!(client.ok(question).await, direct.ok(question).await);
    }
    holder.ok("rollback").await;
    client.ok("update t set v = 6 where id = 1").await;
    gateway.joins();
}

/// A session that waits can be killed by its server's number, as without Windrow.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_can_be_killed() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let mut holder = gateway.direct().await;
    holder.ok("begin; update t set v = 5 where id = 1").await;
    let mut client = gateway.client().await;
    let id = first_row(&client.ok("select connection_id()").await).remove(0);
    let waiter = waiting(client, "update t set v = 6 where id = 1");
    until_waiting(&gateway, "update t").await;
    let mut killer = gateway.client().await;
    killer.ok(&format!("kill query {id}")).await;
    let (client, answer) = waiter.await.unwrap();
    assert_eq!(error(&answer).unwrap().number, 1317);
    let waiter = waiting(client, "update t set v = 6 where id = 1");
    until_waiting(&gateway, "update t").await;
    let id = gateway.exec(
        "select id from information_schema.processlist where info like 'update t%' \
         and command <> 'Sleep'",
    );
    gateway.exec(&format!("kill query {id}"));
    let (mut client, answer) = waiter.await.unwrap();
    assert_eq!(error(&answer).unwrap().number, 1317);
    holder.ok("rollback").await;
    client.ok("update t set v = 6 where id = 1").await;
}
