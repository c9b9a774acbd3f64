//! SQLite: a file.

use std::any::Any;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{Ground, create};
use crate::words::{Table, Type};

struct Sqlite(TempDir);

pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    Some(Box::new(Sqlite(tempfile::tempdir().unwrap())))
}

impl Sqlite {
    fn open(&self) -> Connection {
        Connection::open(self.0.path().join("t.db")).unwrap()
    }
}

#[async_trait]
impl Ground for Sqlite {
    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("t.db").display())
    }

    async fn lay(&self, table: &Table) {
        let sql = create(table, |of| match of {
            Type::Int | Type::Serial => "integer",
            Type::Text => "text",
            Type::Bool => "boolean",
            Type::Number => "numeric",
            Type::Bytes => "blob",
            Type::Json => "json",
        });
        self.open().execute_batch(&sql).unwrap();
    }

    fn wire(&self) -> Option<String> {
        None
    }

    /// There is one lock, for the whole file.
    async fn lock(&self, _: &str, _: i64) -> Option<Box<dyn Any + Send>> {
        let other = self.open();
        other.execute_batch("begin immediate").unwrap();
        Some(Box::new(other))
    }
}
