//! A database, a sink on it, its loaders, and its lane's own way beside them.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use windrow_core::{Bulk, Fault, Field, LoadPlan, Loader, OnConflict};
use windrow_database::{Driver, Options};
use windrow_mysql::Mysql;
use windrow_testkit::left_out;
use windrow_testkit::loads::{self, on_conflict};
pub(crate) use windrow_testkit::loads::{plan, portion, refused, texts};
use windrow_testkit::mariadb::{MariaDbDatabase, shared};

pub(crate) struct Bed {
    pub(crate) database: MariaDbDatabase,
    pub(crate) sink: Arc<dyn windrow_core::Database>,
    pub(crate) bulk: Arc<dyn Bulk>,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let options = Options::default();
        let sink = Driver::open(&Mysql, database.url(), &options)
            .await
            .unwrap();
        let bulk = sink.bulk().unwrap();
        Self {
            database,
            sink,
            bulk,
        }
    }

    /// The same database once this SQL has been run, for somebody who has never seen it.
    pub(crate) async fn renew(&mut self, sql: &str) {
        self.database.exec(sql).unwrap();
        let url = self.database.url();
        self.sink = Driver::open(&Mysql, url, &Options::default())
            .await
            .unwrap();
        self.bulk = self.sink.bulk().unwrap();
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    pub(crate) async fn loader(&self, plan: &LoadPlan) -> Box<dyn Loader> {
        self.bulk.loader(plan).await.unwrap()
    }

    /// The fault for which rows cannot be loaded.
    pub(crate) async fn no_loader(&self, plan: &LoadPlan) -> Fault {
        loads::no_loader(&*self.bulk, plan).await
    }

    /// Writes a row as a lane does: alone.
    pub(crate) async fn alone(
        &self,
        plan: &LoadPlan,
        rows: &[Vec<Field<'_>>],
    ) -> Vec<Option<Fault>> {
        loads::alone(&*self.sink, plan, rows).await
    }

    /// All that a query gives, byte for byte.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<mysql_async::Value>> {
        let mut conn = session(self.database.url()).await;
        let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
        conn.disconnect().await.unwrap();
        rows.into_iter().map(mysql_async::Row::unwrap).collect()
    }
}

/// Returns true if the server tells of every warning which row it is of. Notes if it does not:
/// then a portion in which something else is wrong than a value that does not fit is the lane's.
pub(crate) fn numbers_rows(bed: &Bed) -> bool {
    let version = bed.sql("select version()");
    let numbers: Vec<u32> = version
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect();
    let does = version.contains("MariaDB") && numbers >= vec![10, 7];
    if !does {
        left_out::note(
            "portions without the rows that a constraint refuses: the server does not number them",
        );
    }
    does
}

pub(crate) async fn session(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.unwrap()
}

pub(crate) fn ignoring(table: &str, columns: &[&str]) -> LoadPlan {
    on_conflict(plan(table, columns), OnConflict::Ignore)
}

pub(crate) fn updating(table: &str, columns: &[&str]) -> LoadPlan {
    on_conflict(plan(table, columns), OnConflict::Update)
}

/// The first field of a row.
pub(crate) fn id_of<'a>(row: &[Field<'a>]) -> &'a str {
    match row[0] {
        Field::Plain(id) => id,
        _ => panic!("an id is plain"),
    }
}
