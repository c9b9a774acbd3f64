//! What SQL clients write.

use tokio_postgres::{Client, NoTls};

use crate::support::{Db, Gateway, Place, check};

/// A client of Windrow.
pub async fn client(gateway: &Gateway, url: &str) -> Client {
    let address = gateway.process.pg_address().unwrap();
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    // Where the server is, is the primary's: only the database and the role are wanted.
    let (user, database) = (config.get_user().unwrap(), config.get_dbname().unwrap());
    let text = format!(
        "host=127.0.0.1 port={} user={user} dbname={database}",
        address.port()
    );
    let password = config.get_password().map(<[u8]>::to_vec);
    config = text.parse().unwrap();
    if let Some(password) = password {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn metric(gateway: &Gateway, name: &str) -> u64 {
    let (_, text) = gateway.send("GET", "/metrics", String::new()).await;
    let text = text.as_str().unwrap();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    assert!(line.is_some(), "{name}\n{text}");
    line.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_name_their_row_are_replicated() {
    let primary = Db::postgres();
    let (near, far) = (Db::postgres(), Db::mariadb());
    primary.sql(
        "create table t (k int primary key, v text);
         create table u (a text, b bigint, v int, primary key (b, a));
         create table s (id bigserial primary key, v text default 'none')",
    );
    near.sql(
        "create table t (k int primary key, v text);
         create table u (a text, b bigint, v int, primary key (b, a));
         create table s (id bigint primary key, v text)",
    );
    far.sql("create table t (k int primary key, v text)");
    far.sql("create table u (a varchar(50), b bigint, v int, primary key (b, a))");
    far.sql("create table s (id bigint primary key, v text)");
    let replicas = [("near", &*near.url()), ("far", &*far.url())];
    let place = Place::of("all", &replicas, "");
    let gateway = place.start(&primary.url(), &["--pg", "127.0.0.1:0"]);
    gateway.level().await;
    let client = client(&gateway, &primary.url()).await;
    // Simple queries, and prepared statements, many at once: what is answered is on all replicas.
    client
        .simple_query("insert into t values (1, 'one')")
        .await
        .unwrap();
    client
        .simple_query("insert into t (v, k) values ('two', 2)")
        .await
        .unwrap();
    assert_eq!(near.sql("select count(*) from t"), "2");
    let insert = client
        .prepare("insert into t (k, v) values ($1, $2)")
        .await
        .unwrap();
    let texts: Vec<String> = (0..300).map(|k| format!("v{k}")).collect();
    let writes = texts.iter().zip(100_i32..).map(|(text, k)| {
        let (client, insert) = (&client, &insert);
        async move { client.execute(insert, &[&k, text]).await }
    });
    futures_util::future::try_join_all(writes).await.unwrap();
    assert_eq!(
        far.sql("select count(*), min(k), max(k) from t"),
        "302|1|399"
    );
    let upsert = "insert into u (a, b, v) values ($1, $2, $3) on conflict (a, b) do update set v = u.v + excluded.v";
    for _ in 0..3 {
        client
            .execute(upsert, &[&"x", &7_i64, &2_i32])
            .await
            .unwrap();
    }
    let update = "update u set v = v + 1 where a = $1 and b = $2 and v > 0";
    client.execute(update, &[&"x", &7_i64]).await.unwrap();
    assert_eq!(near.sql("select v from u"), "7");
    client
        .execute("delete from t where k = $1", &[&1_i32])
        .await
        .unwrap();
    client
        .simple_query("delete from t where k = 2 returning v")
        .await
        .unwrap();
    assert_eq!(far.sql("select count(*) from t"), "300");
    // Keys that the database counts up, given back to the client or not.
    let writes = (0..50).map(|_| client.execute("insert into s default values", &[]));
    futures_util::future::try_join_all(writes).await.unwrap();
    let writes = texts.iter().map(|text| {
        let client = &client;
        async move {
            client
                .query("insert into s (v) values ($1) returning id", &[text])
                .await
        }
    });
    futures_util::future::try_join_all(writes).await.unwrap();
    client
        .simple_query("insert into s (v) values ('simple')")
        .await
        .unwrap();
    assert_eq!(far.sql("select count(*) from s"), "351");
    // A statement that fails is told of as ever, and no row comes of it.
    assert!(
        client
            .execute(&insert, &[&100_i32, &"again"])
            .await
            .is_err()
    );
    for replica in &replicas {
        check(&primary.url(), replica.1, &[]).ends(0);
    }
    assert_eq!(metric(&gateway, "windrow_replica_untold_total").await, 0);
    assert_eq!(metric(&gateway, "windrow_pg_relayed_writes_total").await, 0);
    assert!(!gateway.stop().contains("is compared"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_replicated_is_counted() {
    let (primary, replica) = (Db::postgres(), Db::postgres());
    for db in [&primary, &replica] {
        db.sql("create table t (k int primary key, u int unique, v int)");
    }
    let place = Place::of("all", &[("one", &replica.url())], "");
    let gateway = place.start(&primary.url(), &["--pg", "127.0.0.1:0"]);
    gateway.level().await;
    let client = client(&gateway, &primary.url()).await;
    let counts = async || {
        let untold = metric(&gateway, "windrow_replica_untold_total").await;
        let relayed = metric(&gateway, "windrow_pg_relayed_writes_total").await;
        (untold, relayed)
    };
    let run = async |sql: &str, number: i32| {
        client.execute(sql, &[&number]).await.unwrap();
    };
    run("insert into t values ($1, 10, 1)", 1).await;
    assert_eq!(counts().await, (0, 0));
    // It names its row by another key, or gives it another key.
    run("update t set v = 2 where u = $1", 10).await;
    run("update t set k = 2 where k = $1", 1).await;
    assert_eq!(counts().await, (2, 0));
    run("update t set v = 3 where u = $1", 77).await;
    assert_eq!(counts().await, (2, 0), "it changed nothing");
    // It may change many rows.
    run("update t set v = 4 where v = $1", 2).await;
    assert_eq!(counts().await, (2, 1));
    // A transaction that arrives whole, and one with another statement.
    client
        .batch_execute("begin; insert into t values (3, 3, 3); commit")
        .await
        .unwrap();
    assert_eq!(counts().await, (2, 1));
    client
        .batch_execute("begin; insert into t values (4, 4, 4); select 1; commit")
        .await
        .unwrap();
    let (untold, relayed) = counts().await;
    assert!(untold == 2 && relayed > 1, "{untold} {relayed}");
    client.query("select * from t", &[]).await.unwrap();
    assert_eq!(counts().await, (untold, relayed), "a read");
    let (_, lanes) = gateway.send("GET", "/v1/lanes", String::new()).await;
    assert_eq!(lanes["replicas"][0]["untold"], 2);
    check(&primary.url(), &replica.url(), &[]).ends(1);
    check(&primary.url(), &replica.url(), &["--repair"]).ends(0);
    assert_eq!(
        replica.sql("select * from t order by k"),
        "2|10|4\n3|3|3\n4|4|4"
    );
    gateway.stop();
}
