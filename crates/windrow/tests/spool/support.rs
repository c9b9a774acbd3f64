//! The program before a database, and what both say.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Client;
use rusqlite::types::Value;
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
pub use windrow_testkit::command::number;
use windrow_testkit::command::{self, CommandOutput};
pub use windrow_testkit::process::TEST_TIMEOUT;
use windrow_testkit::process::Windrow;
use windrow_testkit::{mariadb, postgres};

/// A database for one test.
pub enum Db {
    Postgres(postgres::PostgresDatabase),
    Maria(mariadb::MariaDbDatabase),
    Sqlite(TempDir),
    /// A database of a server that the test has started, by its URL.
    At(String),
}

impl Db {
    pub fn postgres() -> Self {
        Self::Postgres(postgres::shared().unwrap())
    }

    pub fn mariadb() -> Self {
        Self::Maria(mariadb::shared().unwrap())
    }

    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url().to_owned(),
            Self::Maria(database) => database.url().to_owned(),
            Self::Sqlite(_) => format!("sqlite:{}", self.file().display()),
            Self::At(url) => url.clone(),
        }
    }

    fn file(&self) -> PathBuf {
        match self {
            Self::Sqlite(folder) => folder.path().join("test.db"),
            _ => panic!("a server has no file"),
        }
    }

    /// A connection to the file of SQLite.
    pub fn open(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection.busy_timeout(TEST_TIMEOUT).unwrap();
        connection
            .pragma_update(None, "journal_mode", "wal")
            .unwrap();
        connection
            .pragma_update(None, "foreign_keys", "on")
            .unwrap();
        connection
    }

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    #[track_caller]
    pub fn sql(&self, text: &str) -> String {
        let answer = match self {
            Self::Postgres(database) => database.exec(text).unwrap(),
            Self::Maria(database) => database.exec(text).unwrap(),
            Self::Sqlite(_) => sqlite(&self.open(), text),
            Self::At(url) if url.starts_with("mysql:") => mariadb::sql(url, text).unwrap(),
            Self::At(url) => postgres::psql(url, text).unwrap(),
        };
        answer.trim_end().to_owned()
    }

    /// How many rows of a table have each number.
    pub fn counts(&self, table: &str, column: &str) -> Vec<(u64, u64)> {
        let text = self.sql(&format!(
            "select {column}, count(*) from {table} group by {column} order by {column}"
        ));
        let pair = |line: &str| {
            let (id, count) = line.split_once('|').unwrap();
            (id.parse().unwrap(), count.parse().unwrap())
        };
        text.lines().map(pair).collect()
    }
}

fn sqlite(connection: &rusqlite::Connection, text: &str) -> String {
    if !text.trim_start().starts_with("select") {
        connection.execute_batch(text).unwrap();
        return String::new();
    }
    let mut statement = connection.prepare(text).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut lines = String::new();
    while let Some(row) = rows.next().unwrap() {
        let cells = (0..columns).map(|at| match row.get(at).unwrap() {
            Value::Null => String::new(),
            Value::Integer(n) => n.to_string(),
            Value::Real(n) => n.to_string(),
            Value::Text(text) => text,
            Value::Blob(bytes) => format!("{bytes:?}"),
        });
        lines.push_str(&cells.collect::<Vec<_>>().join("|"));
        lines.push('\n');
    }
    lines
}

/// The program.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_windrow"))
}

/// A directory for a spool.
pub fn spool() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs a command of the program to its end.
pub fn windrow(arguments: &[&str]) -> CommandOutput {
    command::run(command::command(program()).args(arguments))
}

/// `windrow serve --drain-only`, not started.
pub fn draining(url: &str, spool: &Path) -> Command {
    let mut draining = command::command(program());
    draining
        .args(["serve", "--drain-only", "--to", url, "--spool"])
        .arg(spool);
    draining
}

/// A running `windrow serve` with a spool, which acknowledges by it unless a request says
/// otherwise.
pub struct Gateway {
    pub process: Windrow,
    client: Client,
}

impl Gateway {
    pub fn start(url: &str, spool: &Path) -> Self {
        Self::with(url, spool, &[])
    }

    pub fn with(url: &str, spool: &Path, more: &[&str]) -> Self {
        let mut arguments = vec!["--to", url, "--spool", spool.to_str().unwrap()];
        if !more.contains(&"--ack") {
            arguments.extend(["--ack", "spool"]);
        }
        arguments.extend(more);
        Self {
            process: Windrow::serve(program(), &arguments).unwrap(),
            client: client(),
        }
    }

    /// Sends a body and gives status and answer.
    pub async fn send(&self, method: &str, path: &str, kind: &str, body: String) -> (u16, Json) {
        let asked = self
            .client
            .request(method.parse().unwrap(), self.process.url(path));
        let asked = asked.header("content-type", kind).body(body);
        let answer = asked.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let read = serde_json::from_str(&text);
        (status, read.unwrap_or(Json::String(text)))
    }

    /// Waits until a scrape has this text.
    pub async fn shows_metric(&self, text: &str) {
        let scrape = || self.client.get(self.process.url("/metrics")).send();
        while !scrape().await.unwrap().text().await.unwrap().contains(text) {}
    }

    pub async fn get(&self, path: &str) -> (u16, Json) {
        self.send("GET", path, "application/json", String::new())
            .await
    }

    /// Sends rows as NDJSON, or one as JSON.
    pub async fn rows(&self, table_and_query: &str, rows: &[Json]) -> (u16, Json) {
        let path = match table_and_query.split_once('?') {
            Some((table, query)) => format!("/v1/tables/{table}/rows?{query}"),
            None => format!("/v1/tables/{table_and_query}/rows"),
        };
        let kind = match rows.len() {
            1 => "application/json",
            _ => "application/x-ndjson",
        };
        let body: String = rows.iter().map(|row| format!("{row}\n")).collect();
        self.send("POST", &path, kind, body).await
    }

    /// What the spool is doing.
    pub async fn spool(&self) -> Json {
        let (_, lanes) = self.get("/v1/lanes").await;
        lanes["spool"]["partitions"][0].clone()
    }

    /// Waits until the database has all that is in the spool.
    pub async fn level(&self) {
        self.spool_until("the database is level", |spool| {
            spool["applied"] == spool["end"]
        })
        .await;
    }

    /// Waits until the spool is as it is expected to be.
    pub async fn spool_until(&self, what: &str, is_so: impl Fn(&Json) -> bool) {
        let start = std::time::Instant::now();
        loop {
            let spool = self.spool().await;
            if is_so(&spool) {
                return;
            }
            let log = || self.process.log();
            assert!(start.elapsed() < TEST_TIMEOUT, "{what}: {spool}\n{}", log());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Ends it in an orderly way, and gives what it has said.
    pub fn stop(mut self) -> String {
        self.process.terminate().unwrap();
        let status = self.process.wait().unwrap();
        let log = self.process.log();
        assert!(status.success(), "{status}\n{log}");
        log
    }

    pub fn kill9(mut self) {
        self.process.kill9().unwrap();
    }
}

/// A client.
pub fn client() -> Client {
    Client::builder()
        .pool_max_idle_per_host(1)
        .timeout(TEST_TIMEOUT)
        .build()
        .unwrap()
}

/// One connection, on which one request follows the other.
pub struct Line(BufReader<TcpStream>);

impl Line {
    pub async fn to(gateway: &Gateway) -> Self {
        let stream = TcpStream::connect(gateway.process.address()).await;
        Self(BufReader::new(stream.unwrap()))
    }

    /// Sends a request and gives status, place in the spool and answer.
    pub async fn send(&mut self, method: &str, path: &str, body: &Json) -> (u16, String, Json) {
        let body = match body {
            Json::Null => String::new(),
            body => body.to_string(),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).await.unwrap() > 0, "{head}");
        }
        let header = |name: &str| {
            let found = head.lines().find_map(|line| line.strip_prefix(name));
            found.unwrap_or_default().trim().to_owned()
        };
        let mut answer = vec![0; header("content-length:").parse().unwrap()];
        self.0.read_exact(&mut answer).await.unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let answer = serde_json::from_slice(&answer).unwrap();
        (status, header("windrow-place:"), answer)
    }
}
