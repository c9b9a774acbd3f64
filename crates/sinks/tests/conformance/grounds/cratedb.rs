//! CrateDB: the stand-in, which reads neither NOT NULL nor anything that CrateDB does not have.

use std::any::Any;

use async_trait::async_trait;
use windrow_testkit::cratedb::CrateDb;

use super::{Ground, create, host, post};
use crate::words::{Column, Table, Type};

struct Crate(CrateDb);

/// Tables of a database that others use as well would meet: so always the stand-in.
pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    Some(Box::new(Crate(CrateDb::start(4).await.unwrap())))
}

#[async_trait]
impl Ground for Crate {
    fn url(&self) -> String {
        self.0.url()
    }

    async fn lay(&self, table: &Table) {
        let bare = |column: &Column| Column {
            must: false,
            unique: false,
            refers: None,
            ..*column
        };
        let table = Table {
            name: table.name,
            columns: table.columns.iter().map(bare).collect(),
        };
        let sql = create(&table, |of| match of {
            Type::Int => "bigint",
            Type::Bool => "boolean",
            Type::Serial => "text default gen_random_text_uuid()",
            Type::Text | Type::Number | Type::Bytes | Type::Json => "text",
        });
        let at = format!("http://{}/_sql", host(&self.0.url()).unwrap());
        post(&at, &serde_json::json!({ "stmt": sql })).await;
    }

    fn wire(&self) -> Option<String> {
        host(&self.0.url())
    }

    async fn lock(&self, _: &str, _: i64) -> Option<Box<dyn Any + Send>> {
        None
    }
}
