//! What the tests share: a database, a sink on it, and short words for writes.

use std::sync::atomic::{AtomicU32, Ordering};

use windrow_database::{Driver, Options};
use windrow_testkit::batches::Batches;
use windrow_testkit::cratedb::CrateDb;
use windrow_testkit::writes;
pub(crate) use windrow_testkit::writes::{
    Make, brief, fault, json, number, returned, rung, told, verdicts,
};

/// A table name that no other test has.
pub(crate) fn table() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("w_{}_{number}", std::process::id())
}

/// A database with one connection.
pub(crate) struct Bed {
    pub(crate) stand_in: Option<CrateDb>,
    pub(crate) url: String,
    batches: Batches,
    /// The table of the test.
    pub(crate) table: String,
    http: reqwest::Client,
}

impl Bed {
    /// `columns`: those of the table, or nothing for no table.
    pub(crate) async fn new(columns: &str) -> Self {
        match std::env::var("WINDROW_TEST_CRATEDB") {
            Ok(url) => Self::at(url, None, columns, &Options::default()).await,
            Err(_) => Self::stand_in(columns).await,
        }
    }

    /// In which tables are made from rows.
    pub(crate) async fn creating(columns: &str) -> Self {
        let options = Options {
            create_tables: true,
            extend_tables: true,
            ..Options::default()
        };
        match std::env::var("WINDROW_TEST_CRATEDB") {
            Ok(url) => Self::at(url, None, columns, &options).await,
            Err(_) => {
                let stand_in = CrateDb::start(4).await.unwrap();
                Self::at(stand_in.url(), Some(stand_in), columns, &options).await
            }
        }
    }

    /// On the stand-in in any case.
    pub(crate) async fn stand_in(columns: &str) -> Self {
        let stand_in = CrateDb::start(4).await.unwrap();
        Self::at(stand_in.url(), Some(stand_in), columns, &Options::default()).await
    }

    async fn at(url: String, stand_in: Option<CrateDb>, columns: &str, options: &Options) -> Self {
        let sink = Driver::open(&windrow_cratedb::CrateDb, &url, options)
            .await
            .unwrap();
        let bed = Self {
            stand_in,
            url,
            batches: Batches::on(sink).await,
            table: table(),
            http: reqwest::Client::new(),
        };
        if !columns.is_empty() {
            let (table, columns) = (&bed.table, columns.replace("dynamic", ""));
            let dynamic = if columns.ends_with(';') {
                " WITH (column_policy = 'dynamic')"
            } else {
                ""
            };
            let columns = columns.trim_end_matches(';');
            bed.sql(&format!("CREATE TABLE {table} ({columns}){dynamic}"))
                .await;
        }
        bed
    }

    pub(crate) fn kit(&self) -> &CrateDb {
        self.stand_in.as_ref().unwrap()
    }

    /// Says a statement past the sink.
    pub(crate) async fn sql(&self, sql: &str) -> serde_json::Value {
        let at = url::Url::parse(&self.url).unwrap();
        let at = format!(
            "http://{}:{}/_sql",
            at.host_str().unwrap(),
            at.port().unwrap_or(4200)
        );
        let body = serde_json::json!({ "stmt": sql }).to_string();
        let request = self
            .http
            .post(at)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.unwrap();
        assert!(
            answer.status().is_success(),
            "{sql}: {}",
            answer.text().await.unwrap()
        );
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    /// How many rows the table has.
    pub(crate) async fn count(&self) -> usize {
        self.sql(&format!("REFRESH TABLE {}", self.table)).await;
        let rows = self.sql(&format!("SELECT id FROM {}", self.table)).await;
        rows["rows"].as_array().unwrap().len()
    }

    pub(crate) fn insert(&self, columns: &[&str]) -> Make {
        writes::insert(&self.table, columns)
    }

    pub(crate) fn update(&self, columns: &[&str]) -> Make {
        writes::update(&self.table, columns)
    }

    pub(crate) fn delete(&self) -> Make {
        writes::delete(&self.table)
    }

    pub(crate) fn get(&self) -> Make {
        writes::get(&self.table)
    }
}

impl std::ops::Deref for Bed {
    type Target = Batches;

    fn deref(&self) -> &Batches {
        &self.batches
    }
}

impl std::ops::DerefMut for Bed {
    fn deref_mut(&mut self) -> &mut Batches {
        &mut self.batches
    }
}
