//! Shared by the tests: a server's session, and random texts.

use std::cell::RefCell;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::{Builder, Runtime};
use windrow_sql::mysql::{LiftedText, Modes};
use windrow_testkit::mariadb::{MariaDbDatabase, is_mysql, shared};

/// The values of `sql_mode` in which texts are tried.
pub(crate) const SQL_MODES: [&str; 4] = [
    "",
    "ANSI_QUOTES,STRICT_ALL_TABLES",
    "NO_BACKSLASH_ESCAPES",
    "ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE",
];

/// A session of a fresh database.
pub(crate) struct Session {
    runtime: Runtime,
    conn: RefCell<Conn>,
    pub(crate) is_mariadb: bool,
    _database: MariaDbDatabase,
}

impl Session {
    pub(crate) fn new(schema: &[&str]) -> Self {
        let database = shared().unwrap();
        let is_mariadb = !is_mysql(database.url()).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let conn = runtime.block_on(Conn::from_url(database.url())).unwrap();
        let session = Self {
            runtime,
            conn: RefCell::new(conn),
            is_mariadb,
            _database: database,
        };
        for sql in schema {
            session.rows(sql).unwrap();
        }
        session
    }

    /// Sets `sql_mode` and returns how texts are read under it.
    pub(crate) fn mode(&self, sql_mode: &str) -> Modes {
        self.rows(&format!("set sql_mode = '{sql_mode}'")).unwrap();
        Modes::of(sql_mode, self.is_mariadb).unwrap()
    }

    /// Runs a text and returns its rows, or the number of the error.
    pub(crate) fn rows(&self, text: &str) -> Result<Vec<Row>, u16> {
        let mut conn = self.conn.borrow_mut();
        let found = self.runtime.block_on(conn.query(text));
        found.map_err(code)
    }

    /// Runs a text and returns the number of rows that it changed.
    pub(crate) fn changed(&self, text: &str) -> Result<u64, u16> {
        self.rows(text)?;
        Ok(self.conn.borrow().affected_rows())
    }

    /// Executes a prepared text.
    pub(crate) fn execute(&self, text: &str, values: Vec<Value>) -> Result<Vec<Row>, u16> {
        let mut conn = self.conn.borrow_mut();
        let values = match values.is_empty() {
            true => mysql_async::Params::Empty,
            false => mysql_async::Params::Positional(values),
        };
        let found = self.runtime.block_on(conn.exec(text, values));
        found.map_err(code)
    }

    /// Returns the one value of a query as text.
    pub(crate) fn one(&self, text: &str) -> Result<Value, u16> {
        let row = self.rows(text)?.pop().unwrap();
        Ok(row.unwrap().pop().unwrap())
    }

    pub(crate) fn table(&self, query: &str) -> Vec<Vec<Value>> {
        let rows = self.rows(query).unwrap();
        rows.into_iter().map(Row::unwrap).collect()
    }
}

/// The number of a server's error; 0 for an error of the client's.
fn code(error: mysql_async::Error) -> u16 {
    match error {
        mysql_async::Error::Server(error) => error.code,
        mysql_async::Error::Driver(_) => 0,
        error => panic!("{error}"),
    }
}

/// Tries random values, and as many as `PROPTEST_CASES` says, eight times.
pub(crate) fn try_all<S: Strategy>(strategy: &S, check: impl Fn(S::Value)) {
    let config = ProptestConfig {
        cases: 8 * ProptestConfig::default().cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(strategy, |value| {
        check(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Puts the literals of a text back into the lifted text.
pub(crate) fn put_back(text: &str, lifted: &LiftedText) -> String {
    let mut parts = split_at_parameters(&lifted.text).into_iter();
    let mut out = parts.next().unwrap();
    for (literal, part) in lifted.literals.iter().zip(parts) {
        out.push_str(&text[literal.clone()]);
        out.push_str(&part);
    }
    out
}

/// Cuts a lifted text at its parameters: names may hold `?` too.
pub(crate) fn split_at_parameters(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for char in text.chars() {
        match (quote, char) {
            (None, '?') => {
                parts.push(String::new());
                continue;
            }
            (None, '`' | '"' | '\'') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            _ => {}
        }
        parts.last_mut().unwrap().push(char);
    }
    parts
}
