//! The databases that the suite runs on, and how a table is made there.

pub(crate) mod arangodb;
pub(crate) mod cockroach;
pub(crate) mod cratedb;
pub(crate) mod mariadb;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::Database;

use crate::words::{Table, Type};

/// A database of the test's own.
#[async_trait]
pub(crate) trait Ground: Send + Sync {
    /// Its URL.
    fn url(&self) -> String;

    /// Makes a table. What the database does not have (foreign keys, for one) is left out.
    async fn lay(&self, table: &Table);

    /// Its `host:port`, where it is reached over a wire that can be cut.
    fn wire(&self) -> Option<String>;

    /// A lock that somebody else holds on a row of a table, or on more, until it is dropped;
    /// `None`: there is no such thing.
    async fn lock(&self, table: &str, id: i64) -> Option<Box<dyn Any + Send>>;

    /// A sink on this database, spoken to in the words of the rules: where its keys have a name
    /// that is given, that one.
    fn in_words(&self, sink: Arc<dyn Database>) -> Arc<dyn Database> {
        sink
    }
}

/// Sends JSON to a database's own HTTP endpoint.
pub(crate) async fn post(at: &str, body: &serde_json::Value) {
    let request = reqwest::Client::new()
        .post(at)
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let said = answer.text().await.unwrap();
    assert!(status.is_success(), "{body}: {said}");
}

/// The statement that makes a table.
pub(crate) fn create(table: &Table, type_of: impl Fn(Type) -> &'static str) -> String {
    let mut parts = Vec::new();
    for column in &table.columns {
        let must = if column.must { " not null" } else { "" };
        parts.push(format!("{} {}{must}", column.name, type_of(column.of)));
    }
    parts.push(format!("primary key ({})", table.columns[0].name));
    for column in &table.columns {
        if column.unique {
            parts.push(format!("unique ({})", column.name));
        }
        if let Some(other) = column.refers {
            parts.push(format!(
                "foreign key ({}) references {other} (id)",
                column.name
            ));
        }
    }
    format!("create table {} ({})", table.name, parts.join(", "))
}

/// The `host:port` of a URL.
pub(crate) fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?;
    host.contains(':').then(|| host.to_owned())
}
