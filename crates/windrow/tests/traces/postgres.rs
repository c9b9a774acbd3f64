//! A database of the tests' PostgreSQL, and a way through a gateway before it.

use tokio_postgres::{Client, NoTls};
use windrow_testkit::postgres::{PostgresDatabase, shared};

use crate::gateway::Gateway;

pub async fn database() -> PostgresDatabase {
    let database = tokio::task::spawn_blocking(|| shared().unwrap());
    database.await.unwrap()
}

/// A client of the database itself.
pub async fn direct(database: &PostgresDatabase) -> Client {
    connect(database.url()).await
}

/// A client of the gateway before it.
pub async fn through(gateway: &Gateway, database: &PostgresDatabase) -> Client {
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let (user, name) = (config.get_user().unwrap(), config.get_dbname().unwrap());
    let address = gateway.pg.expect("it listens for PostgreSQL");
    connect(&format!("postgres://{user}@{address}/{name}")).await
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
