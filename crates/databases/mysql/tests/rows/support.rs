//! What the tests share: a database, a sink on it, and short words for writes.

use windrow_database::{Driver, Options};
use windrow_mysql::Mysql;
use windrow_testkit::batches::Batches;
use windrow_testkit::mariadb::{MariaDbDatabase, shared};
pub(crate) use windrow_testkit::writes::{
    Make, delete, eventually, fault, get, insert, json, number, rung, told, unit, update, write,
};

/// A database with one connection for batches.
pub(crate) struct Bed {
    pub(crate) database: MariaDbDatabase,
    batches: Batches,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &Options::default()).await
    }

    pub(crate) async fn with(sql: &str, options: &Options) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let sink = Driver::open(&Mysql, database.url(), options).await.unwrap();
        Self {
            database,
            batches: Batches::on(sink).await,
        }
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
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

/// Returns true while one other statement has been under way for longer than any that does not
/// wait. (InnoDB's own views are not renewed as long as they are looked at again and again.)
pub(crate) fn waits(bed: &Bed) -> bool {
    // MySQL counts whole seconds.
    let long = match server(bed).0 {
        true => "time_ms > 300",
        false => "time > 0",
    };
    let waiting = bed.sql(&format!(
        "select count(*) from information_schema.processlist \
         where db = database() and command <> 'Sleep' and id <> connection_id() and {long}"
    ));
    waiting == "1"
}
