//! CrateDB: the stand-in, which reads neither NOT NULL nor anything that CrateDB does not have; or
//! a real cluster.

use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use windrow_testkit::cratedb::CrateDb;

use super::{Ground, create, host, post};
use crate::words::{Column, Table, Type};

/// The stand-in, or a schema of the test's own on a cluster that runs already.
struct Crate {
    base: String,
    schema: String,
    laid: Mutex<Vec<&'static str>>,
    stand_in: Option<CrateDb>,
}

pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (base, stand_in) = match std::env::var("WINDROW_TEST_CRATEDB") {
        Ok(url) => (url.trim_end_matches('/').to_owned(), None),
        Err(_) => {
            let stand_in = CrateDb::start(4).await.unwrap();
            (stand_in.url(), Some(stand_in))
        }
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Some(Box::new(Crate {
        base,
        schema: format!("w_{}_{number}", std::process::id()),
        laid: Mutex::default(),
        stand_in,
    }))
}

impl Crate {
    fn at(&self) -> String {
        format!("http://{}/_sql", host(&self.base).unwrap())
    }
}

impl Drop for Crate {
    /// A cluster that others use as well keeps nothing of it.
    fn drop(&mut self) {
        let laid = std::mem::take(&mut *self.laid.lock().unwrap());
        if self.stand_in.is_some() || std::thread::panicking() {
            return;
        }
        let (at, schema) = (self.at(), self.schema.clone());
        let drops = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            for table in laid {
                let sql = format!("drop table {schema}.{table}");
                runtime.block_on(post(&at, &serde_json::json!({ "stmt": sql })));
            }
        });
        drops.join().unwrap();
    }
}

#[async_trait]
impl Ground for Crate {
    fn url(&self) -> String {
        format!("{}/{}", self.base, self.schema)
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
        let whole = format!("create table {}.{} ", self.schema, table.name);
        let sql = sql.replacen(&format!("create table {} ", table.name), &whole, 1);
        post(&self.at(), &serde_json::json!({ "stmt": sql })).await;
        self.laid.lock().unwrap().push(table.name);
    }

    fn wire(&self) -> Option<String> {
        host(&self.base)
    }

    async fn lock(&self, _: &str, _: i64) -> Option<Box<dyn Any + Send>> {
        None
    }
}
