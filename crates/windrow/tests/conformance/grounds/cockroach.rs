//! CockroachDB: a real one where it is given, else the stand-in.

use std::any::Any;

use async_trait::async_trait;
use windrow_testkit::cockroachdb::{CockroachDatabase, shared};

use super::postgres::{lock, type_of};
use super::{Ground, create, host};
use crate::words::{Table, Type};

struct Cockroach(CockroachDatabase);

pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    Some(Box::new(Cockroach(shared().await.unwrap())))
}

#[async_trait]
impl Ground for Cockroach {
    fn url(&self) -> String {
        self.0.url().replacen("postgres", "cockroachdb", 1)
    }

    async fn lay(&self, table: &Table) {
        let sql = create(table, |of| match of {
            // What SERIAL stands for there.
            Type::Serial => "bigint not null default unique_rowid()",
            of => type_of(of),
        });
        self.0.exec(&sql).unwrap();
    }

    fn wire(&self) -> Option<String> {
        host(self.0.url())
    }

    async fn lock(&self, table: &str, id: i64) -> Option<Box<dyn Any + Send>> {
        Some(lock(self.0.url(), table, id).await)
    }
}
