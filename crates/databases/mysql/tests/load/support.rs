//! A database, a sink on it, its loaders, and its lane's own way beside them.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Bulk, Fault, Field, Key, LoadFault, LoadPlan, Loader, Name, OnConflict, Op, Returning, Rows,
    Shape, Sink, TableName, Unit, Verdict, Write,
};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::{Database, shared};

pub(crate) struct Bed {
    pub(crate) database: Database,
    pub(crate) sink: Arc<dyn Sink>,
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
        match self.bulk.loader(plan).await {
            Ok(_) => panic!("there is a loader"),
            Err(fault) => fault,
        }
    }

    /// Writes a row as a lane does: alone.
    pub(crate) async fn alone(
        &self,
        plan: &LoadPlan,
        rows: &[Vec<Field<'_>>],
    ) -> Vec<Option<Fault>> {
        let shape = Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: plan.table.clone(),
            columns: plan.columns.clone(),
            key: plan.key.clone(),
            on_conflict: plan.on_conflict,
            returning: Returning::Nothing,
        }));
        let unit = |row: &Vec<Field<'_>>| {
            let values: Vec<_> = row.iter().map(Field::value).collect();
            Unit::one(Write::new(shape.clone(), values))
        };
        let units: Vec<Unit> = rows.iter().map(unit).collect();
        let mut executor = self.sink.connect(Purpose::Batches).await.unwrap();
        let report = executor.execute(&units).await;
        let told = |verdict| match verdict {
            Verdict::Told(outcome) => outcome.err().map(|fault| fault.fault),
            other => panic!("not told: {other:?}"),
        };
        report.verdicts.into_iter().map(told).collect()
    }

    /// All that a query gives, byte for byte.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<mysql_async::Value>> {
        let mut conn = session(self.database.url()).await;
        let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
        conn.disconnect().await.unwrap();
        rows.into_iter().map(mysql_async::Row::unwrap).collect()
    }
}

pub(crate) async fn session(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.unwrap()
}

pub(crate) fn plan(table: &str, columns: &[&str]) -> LoadPlan {
    LoadPlan {
        table: TableName::parse(table).unwrap(),
        columns: columns.iter().map(|name| Name::from(*name)).collect(),
        on_conflict: OnConflict::Error,
        key: Key::Primary,
    }
}

pub(crate) fn ignoring(table: &str, columns: &[&str]) -> LoadPlan {
    LoadPlan {
        on_conflict: OnConflict::Ignore,
        ..plan(table, columns)
    }
}

pub(crate) fn updating(table: &str, columns: &[&str]) -> LoadPlan {
    LoadPlan {
        on_conflict: OnConflict::Update,
        ..plan(table, columns)
    }
}

/// A portion.
pub(crate) fn portion(rows: &[Vec<Field<'_>>]) -> Rows {
    let mut portion = Rows::new(rows.first().map_or(0, Vec::len));
    for (at, row) in rows.iter().enumerate() {
        assert!(portion.push(at as u64 + 1, row.iter().copied()));
    }
    portion
}

/// Rows of texts as CSV gives them; `NULL` is NULL.
pub(crate) fn texts(rows: &[&[&str]]) -> Rows {
    let mut portion = Rows::new(rows.first().map_or(0, |row| row.len()));
    for (at, row) in rows.iter().enumerate() {
        let fields = row.iter().map(|text| match *text {
            "NULL" => Field::Null,
            text => Field::Plain(text),
        });
        assert!(portion.push(at as u64 + 1, fields));
    }
    portion
}

pub(crate) fn refused(outcome: Result<windrow_core::Loaded, LoadFault>) -> Fault {
    match outcome {
        Err(LoadFault::Refused(fault)) => fault,
        other => panic!("not refused: {other:?}"),
    }
}

/// The first field of a row.
pub(crate) fn id_of<'a>(row: &[Field<'a>]) -> &'a str {
    match row[0] {
        Field::Plain(id) => id,
        _ => panic!("an id is plain"),
    }
}
