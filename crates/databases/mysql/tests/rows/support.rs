//! What the tests share: a database, a sink on it, and short words for writes.

use windrow_database::{Driver, Options};
use windrow_mysql::Mysql;
use windrow_testkit::batches::Batches;
use windrow_testkit::mariadb::{Database, shared};
pub(crate) use windrow_testkit::writes::{
    Make, delete, eventually, fault, get, insert, json, number, rung, told, unit, update, write,
};

/// A database with one connection for batches.
pub(crate) struct Bed {
    pub(crate) database: Database,
    batches: Batches,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &Options::default()).await
    }

    pub(crate) async fn with(sql: &str, options: &Options) -> Self {
        let database = shared().unwrap();
        database.exec(&readable(&database, sql)).unwrap();
        let sink = Driver::open(&Mysql, database.url(), options).await.unwrap();
        Self {
            database,
            batches: Batches::on(sink).await,
        }
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(&readable(&self.database, sql)).unwrap()
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

/// Writes MariaDB's tables of numbers, such as `seq_1_to_100`, as the server reads them.
fn readable(database: &Database, sql: &str) -> String {
    let is_plain = !sql.contains("from seq_");
    if is_plain
        || database
            .exec("select version()")
            .unwrap()
            .contains("MariaDB")
    {
        return sql.to_owned();
    }
    let mut texts = sql.split("from seq_");
    let mut out = "set cte_max_recursion_depth = 1000000; ".to_owned();
    out.push_str(texts.next().unwrap_or_default());
    for text in texts {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (range, rest) = text.split_at(end.unwrap_or(text.len()));
        let (first, last) = range.split_once("_to_").unwrap();
        out.push_str(&format!(
            "from (with recursive s (seq) as (select {first} union all select seq + 1 from s where seq < {last}) \
             select seq from s) numbers{rest}"
        ));
    }
    out
}

/// A session of its own, for locks and kills.
pub(crate) async fn session(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.unwrap()
}

/// The server of a database: MariaDB, or else MySQL, and its version.
pub(crate) fn server(bed: &Bed) -> (bool, (u32, u32)) {
    let version = bed.sql("select version()");
    let mut numbers = version.split(['.', '-']).map(|part| part.parse().unwrap());
    let number = (numbers.next().unwrap(), numbers.next().unwrap());
    (version.contains("MariaDB"), number)
}
