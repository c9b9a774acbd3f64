//! MariaDB: a database on a real server.

use std::any::Any;

use async_trait::async_trait;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use windrow_testkit::mariadb::{MariaDbDatabase, is_installed, shared};

use super::{Ground, create, host};
use crate::words::{Table, Type};

struct MariaDb(MariaDbDatabase);

/// Nothing where no server is installed.
pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    if !is_installed() {
        return None;
    }
    Some(Box::new(MariaDb(shared().unwrap())))
}

#[async_trait]
impl Ground for MariaDb {
    fn url(&self) -> String {
        self.0.url().to_owned()
    }

    async fn lay(&self, table: &Table) {
        let sql = create(table, |of| match of {
            Type::Int => "bigint",
            Type::Text => "longtext",
            Type::Bool => "boolean",
            Type::Number => "decimal(65,30)",
            Type::Bytes => "longblob",
            Type::Json => "json",
            Type::Serial => "bigint auto_increment",
        });
        self.0.exec(&sql).unwrap();
    }

    fn wire(&self) -> Option<String> {
        host(self.0.url())
    }

    async fn lock(&self, table: &str, id: i64) -> Option<Box<dyn Any + Send>> {
        let mut other = Conn::from_url(self.0.url()).await.unwrap();
        other.query_drop("begin").await.unwrap();
        let sql = format!("select * from {table} where id = {id} for update");
        other.query_drop(sql).await.unwrap();
        Some(Box::new(other))
    }
}
