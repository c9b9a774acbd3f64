//! Roles that change while their sessions are in.

use std::time::Instant;

use tokio_postgres::{Client, NoTls};
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::Postgres;

use crate::load::TABLE;
use crate::support::{Gateway, TEST_TIMEOUT};

/// A client with a password, whose connection lives in the background.
async fn client(gateway: &Gateway, user: &str) -> Result<Client, tokio_postgres::Error> {
    let Address {
        socket, database, ..
    } = &gateway.address;
    let url = format!("postgres://{user}@{socket}/{database}");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn insert(client: &Client, id: i64) -> Result<u64, tokio_postgres::Error> {
    let sql = "insert into readings (id, note) values ($1, 'x')";
    client.execute(sql, &[&id]).await
}

/// Writes until that is refused, and a newcomer's writes are too; what is there then stays all
/// there is.
async fn is_ended(gateway: &Gateway, user: &str, inside: &Client, first: i64) {
    let (begun, mut id) = (Instant::now(), first);
    while insert(inside, id).await.is_ok() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{user} goes on");
        id += 1;
    }
    let written = gateway.exec("select count(*) from readings");
    if let Ok(newcomer) = client(gateway, user).await {
        assert!(insert(&newcomer, id + 1).await.is_err(), "{user} is back");
    }
    assert_eq!(gateway.exec("select count(*) from readings"), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_may_not_log_in_any_more_stop_writing() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    gateway.exec("create role a login; create role b login; create role c login");
    gateway.exec("grant all on readings to a, b, c");
    let (a, b, c) = tokio::join!(
        client(&gateway, "a"),
        client(&gateway, "b"),
        client(&gateway, "c")
    );
    let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
    for (n, one) in (0..).zip([&a, &b, &c]) {
        insert(one, n).await.unwrap();
    }
    // A right that is lost is lost at once: the server looks at each statement.
    gateway.exec("revoke insert on readings from b");
    let refused = insert(&b, 10).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    gateway.exec("alter role a nologin");
    is_ended(&gateway, "a", &a, 1_000).await;
    gateway.exec("revoke all on readings from b; drop role b");
    is_ended(&gateway, "b", &b, 100_000).await;
    // Others are not concerned.
    insert(&c, 20).await.unwrap();
    gateway.exec("alter role a login");
    insert(&client(&gateway, "a").await.unwrap(), 30)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_password_stops_writing() {
    let server = Postgres::builder()
        .hba("host all one 127.0.0.1/32 scram-sha-256")
        .hba("host all two 127.0.0.1/32 scram-sha-256");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windrow.toml");
    // One is asked for at the server, the other one has a verifier here.
    let query = "select rolname, rolpassword from pg_authid where rolname = $1";
    let write = |users: &str| {
        let text = format!("[pg]\nauth_query = \"{query}\"\nadmins = ['one']\n{users}");
        std::fs::write(&file, text).unwrap();
    };
    write("");
    let options = ["--config", file.to_str().unwrap()];
    let gateway = Gateway::with(server, &options);
    gateway.exec(TABLE);
    let password = |role: &str, word: &str| {
        gateway.exec(&format!(
            "set password_encryption = 'scram-sha-256'; alter role {role} password '{word}'"
        ));
    };
    gateway.exec("create role one login; create role two login");
    gateway.exec("grant all on readings to one, two");
    password("one", "old");
    password("two", "old");
    let one = client(&gateway, "one:old").await.unwrap();
    insert(&one, 1).await.unwrap();
    password("one", "new");
    // Who comes is asked for the new one at once, and has a way of his own into the server.
    assert!(client(&gateway, "one:old").await.is_err());
    let again = client(&gateway, "one:new").await.unwrap();
    insert(&again, 2).await.unwrap();
    is_ended(&gateway, "one:old", &one, 1_000).await;
    let verifier = gateway.exec("select rolpassword from pg_authid where rolname = 'two'");
    write(&format!("[pg.users.two]\nverifier = \"{verifier}\"\n"));
    let again = client(&gateway, "one:new").await.unwrap();
    insert(&again, 3).await.unwrap();
    let Address { socket, .. } = &gateway.address;
    let console = format!("postgres://one:new@{socket}/windrow");
    windrow_testkit::postgres::psql(&console, "reload").unwrap();
    let two = client(&gateway, "two:old").await.unwrap();
    insert(&two, 4).await.unwrap();
    // What is configured here is old by now, and opens Windrow, but not the server.
    password("two", "new");
    is_ended(&gateway, "two:old", &two, 100_000).await;
}
