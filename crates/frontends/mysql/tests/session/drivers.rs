//! A driver's ordinary work.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, TxOpts};

use crate::support::Stand;

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_writes_and_reads() {
    let stand = Stand::new().await;
    let mut client = stand.client().await;
    let create = "create table t (id int primary key auto_increment, v varchar(20) unique)";
    client.query_drop(create).await.unwrap();
    client
        .exec_drop("insert into t (v) values (?)", ("a",))
        .await
        .unwrap();
    assert_eq!(
        (client.last_insert_id(), client.affected_rows()),
        (Some(1), 1)
    );
    let again = client
        .exec_drop("insert into t (v) values (?)", ("a",))
        .await;
    assert!(matches!(again, Err(Error::Server(error)) if error.code == 1062));
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    transaction
        .query_drop("insert into t (v) values ('b')")
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    let rows: Vec<(u32, String)> = client.query("select id, v from t").await.unwrap();
    assert_eq!(rows, [(1, "a".to_owned())]);
    assert!(client.reset().await.unwrap());
    assert_eq!(stand.database.exec("select count(*) from t").unwrap(), "1");
    client.disconnect().await.unwrap();
    stand.until_connections(1).await;
    let metrics = stand.metrics();
    assert!(metrics.contains("windrow_mysql_clients 0"), "{metrics}");
    assert!(
        metrics.contains("windrow_mysql_logins_total{outcome=\"ok\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_uses_the_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let stand = Stand::with(|config| config.unix_socket = Some(path.clone())).await;
    let opts = stand.opts().socket(Some(path.to_str().unwrap()));
    let mut client = Conn::new(opts).await.unwrap();
    assert_eq!(client.query_first("select 7").await.unwrap(), Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_killed_by_the_number_that_its_client_knows() {
    let stand = Stand::new().await;
    let (mut one, mut other) = (stand.client().await, stand.client().await);
    let sleeping = tokio::spawn(async move {
        let id = one.id();
        (one.query_drop("select sleep(1000)").await, one, id)
    });
    let question = "select count(*) from information_schema.processlist where info like '%sleep(1000)%' and id <> connection_id()";
    while other.query_first::<u64, _>(question).await.unwrap() == Some(0) {}
    // The numbers are counted up.
    let id = other.id() - 1;
    other.query_drop(format!("KILL QUERY {id}")).await.unwrap();
    let (slept, mut one, one_id) = sleeping.await.unwrap();
    assert_eq!(one_id, id);
    // A sleep that is interrupted returns 1, another statement an error.
    drop(slept);
    assert_eq!(one.query_first("select 7").await.unwrap(), Some(7));
    other.query_drop(format!("KILL {id}")).await.unwrap();
    assert!(one.query_drop("select 7").await.is_err());
    assert!(stand.metrics().contains("windrow_mysql_kills_total 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_killed_by_a_text_of_several_and_by_a_prepared_statement() {
    let stand = Stand::new().await;
    let mut killer = stand.client().await;
    let mut killed = stand.client().await;
    let text = format!("kill {}; select 7", killed.id());
    killer.query_drop(text).await.unwrap();
    assert!(killed.query_drop("do 1").await.is_err());
    let mut killed = stand.client().await;
    let text = format!("kill {}", killed.id());
    killer.exec_drop(text, ()).await.unwrap();
    assert!(killed.query_drop("do 1").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_counted_if_the_configuration_joins_none() {
    let stand = Stand::with(|config| config.join = false).await;
    let mut client = stand.client().await;
    client.query_drop("create table t (id int)").await.unwrap();
    client.query_drop("insert into t values (1)").await.unwrap();
    client
        .exec_drop("insert into t values (?)", (2,))
        .await
        .unwrap();
    let count = "windrow_mysql_bypass_total{reason=\"mysql.join is false\"} 2";
    assert!(stand.metrics().contains(count), "{}", stand.metrics());
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_windrow_itself_are_counted() {
    let stand = Stand::new().await;
    let unavailable = "windrow_mysql_refusals_total{class=\"unavailable\"}";
    assert!(stand.metrics().contains(&format!("{unavailable} 0")));
    let mut client = stand.client().await;
    assert!(
        client
            .query_drop("set @windrow_ack = 'never'")
            .await
            .is_err()
    );
    // The server's own errors are not counted.
    assert!(client.query_drop("select nothing").await.is_err());
    let invalid = "windrow_mysql_refusals_total{class=\"invalid\"} 1";
    assert!(stand.metrics().contains(invalid), "{}", stand.metrics());
    stand.stop.cancel();
    // A statement that came before the session has seen the stop is answered.
    while client.query_drop("select 1").await.is_ok() {}
    let counted = format!("{unavailable} 1");
    assert!(stand.metrics().contains(&counted), "{}", stand.metrics());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_changes_its_user() {
    let stand = Stand::new().await;
    let mut client = stand.client().await;
    client.query_drop("set @x = 7").await.unwrap();
    client
        .change_user(mysql_async::ChangeUserOpts::default())
        .await
        .unwrap();
    let left: Option<Option<u32>> = client.query_first("select @x").await.unwrap();
    assert_eq!(left, Some(None));
    stand.until_connections(2).await;
}
