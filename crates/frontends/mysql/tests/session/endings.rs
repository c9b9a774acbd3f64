//! The ends of sessions.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, TxOpts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Stand;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_leaves_nothing() {
    let stand = Stand::new().await;
    let client = stand.client().await;
    stand.until_connections(2).await;
    drop(client);
    stand.until_connections(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_server_connection() {
    let stand = Stand::new().await;
    let mut client = stand.client().await;
    let id: Option<u32> = client.query_first("select connection_id()").await.unwrap();
    stand
        .database
        .exec(&format!("kill {}", id.unwrap()))
        .unwrap();
    stand.until_connections(1).await;
    let Err(ended) = client.query_drop("do 1").await else {
        panic!("the session lives on");
    };
    assert!(
        ended.is_fatal() || matches!(ended, Error::Server(_)),
        "{ended}"
    );
    // The next session is a new one.
    stand.client().await.query_drop("do 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_finished_before_the_end() {
    let mut stand = Stand::new().await;
    stand
        .database
        .exec("create table t (id int primary key)")
        .unwrap();
    let (mut idle, mut busy) = (stand.client().await, stand.client().await);
    let mut transaction = busy.start_transaction(TxOpts::default()).await.unwrap();
    transaction
        .query_drop("insert into t values (1)")
        .await
        .unwrap();
    stand.stop.cancel();
    while idle.query_drop("do 1").await.is_ok() {}
    transaction
        .query_drop("insert into t values (2)")
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    (&mut stand.running).await.unwrap();
    assert!(busy.query_drop("do 1").await.is_err());
    assert_eq!(stand.database.exec("select count(*) from t").unwrap(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_ends_a_connection_and_nothing_else() {
    let stand = Stand::new().await;
    for nonsense in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x04\0\0\x01abcd",
        b"\xff\xff\xff\x01",
        b"\0\0\0\x01",
        b"\x20\0\0\x01\0\x0a\0\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        let mut socket = TcpStream::connect(stand.front).await.unwrap();
        socket.write_all(nonsense).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // A connection that is reset has ended as well.
        drop(socket.read_to_end(&mut answer).await);
        assert!(answer.len() > 4);
    }
    stand.client().await.query_drop("do 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_turned_away() {
    let stand = Stand::with(|config| config.login_timeout = Duration::from_millis(50)).await;
    let mut socket = TcpStream::connect(stand.front).await.unwrap();
    let mut heard = Vec::new();
    socket.read_to_end(&mut heard).await.unwrap();
    let said = String::from_utf8_lossy(&heard);
    assert!(said.contains("login_timeout"), "{said}");
}
