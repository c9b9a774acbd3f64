//! PostgreSQL: a database on a real server.

use std::any::Any;

use async_trait::async_trait;
use windrow_testkit::postgres::{PostgresDatabase, shared};

use super::{Ground, create, host};
use crate::words::{Table, Type};

struct Postgres(PostgresDatabase);

pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    Some(Box::new(Postgres(shared().unwrap())))
}

/// Types of PostgreSQL, which CockroachDB knows as well.
pub(super) fn type_of(of: Type) -> &'static str {
    match of {
        Type::Int => "bigint",
        Type::Text => "text",
        Type::Bool => "boolean",
        Type::Number => "numeric",
        Type::Bytes => "bytea",
        Type::Json => "jsonb",
        Type::Serial => "bigserial",
    }
}

/// Locks a row by a session of its own.
pub(super) async fn lock(url: &str, table: &str, id: i64) -> Box<dyn Any + Send> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let sql = format!("begin; select * from {table} where id = {id} for update");
    client.batch_execute(&sql).await.unwrap();
    Box::new(client)
}

#[async_trait]
impl Ground for Postgres {
    fn url(&self) -> String {
        self.0.url().to_owned()
    }

    async fn lay(&self, table: &Table) {
        self.0.exec(&create(table, type_of)).unwrap();
    }

    fn wire(&self) -> Option<String> {
        host(self.0.url())
    }

    async fn lock(&self, table: &str, id: i64) -> Option<Box<dyn Any + Send>> {
        Some(lock(self.0.url(), table, id).await)
    }
}
