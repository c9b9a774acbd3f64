//! A primary, its replicas, and the program between them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::Value as Json;
use tempfile::TempDir;
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
            Self::Sqlite(folder) => {
                format!("sqlite:{}", folder.path().join("test.db").display())
            }
        }
    }

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    #[track_caller]
    pub fn sql(&self, text: &str) -> String {
        let answer = match self {
            Self::Postgres(database) => database.exec(text).unwrap(),
            Self::Maria(database) => database.exec(text).unwrap(),
            Self::Sqlite(folder) => sqlite(&folder.path().join("test.db"), text),
        };
        answer.trim_end().to_owned()
    }
}

fn sqlite(file: &Path, text: &str) -> String {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.busy_timeout(TEST_TIMEOUT).unwrap();
    connection
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    if !text.trim_start().starts_with("select") {
        connection.execute_batch(text).unwrap();
        return String::new();
    }
    let mut statement = connection.prepare(text).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut lines = String::new();
    while let Some(row) = rows.next().unwrap() {
        let cell = |at| match row.get(at).unwrap() {
            rusqlite::types::Value::Null => String::new(),
            rusqlite::types::Value::Integer(n) => n.to_string(),
            rusqlite::types::Value::Real(n) => n.to_string(),
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Blob(bytes) => format!("{bytes:?}"),
        };
        lines.push_str(&(0..columns).map(cell).collect::<Vec<_>>().join("|"));
        lines.push('\n');
    }
    lines
}

/// The program.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_windrow"))
}

/// Runs a command of the program to its end.
pub fn windrow(arguments: &[&str]) -> CommandOutput {
    command::run(command::command(program()).args(arguments))
}

/// `windrow replica check`.
pub fn check(primary: &str, replica: &str, more: &[&str]) -> CommandOutput {
    let ends = ["replica", "check", "--to", primary, "--replica", replica];
    windrow(&[&ends, more].concat())
}

/// Where the configuration and the logs of replicas are.
pub struct Place {
    folder: TempDir,
    config: PathBuf,
}

impl Place {
    /// For replicas of these names and URLs. `more`: of each replica.
    pub fn of(wait_for: &str, replicas: &[(&str, &str)], more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logs = format!("directory = {:?}", folder.path().join("logs"));
        Self::at(
            folder,
            &format!("wait_for = {wait_for:?}\n{logs}"),
            replicas,
            more,
        )
    }

    /// For replicas whose logs are topics, which begin with a name. One broker is enough.
    #[cfg(feature = "kafka")]
    pub fn of_topics(wait_for: &str, at: &str, replicas: &[(&str, &str)]) -> Self {
        let logs =
            format!("wait_for = {wait_for:?}\nat = {at:?}\nallow = ['replication', 'min-insync']");
        Self::at(tempfile::tempdir().unwrap(), &logs, replicas, "")
    }

    fn at(folder: TempDir, logs: &str, replicas: &[(&str, &str)], more: &str) -> Self {
        let config = folder.path().join("windrow.toml");
        let mut text = format!("[replicas]\n{logs}\n");
        for (name, url) in replicas {
            text.push_str(&format!(
                "[[replica]]\nname = {name:?}\nurl = {url:?}\n{more}\n"
            ));
        }
        std::fs::write(&config, text).unwrap();
        Self { folder, config }
    }

    /// Its configuration.
    #[cfg(feature = "kafka")]
    pub fn config(&self) -> &str {
        self.config.to_str().unwrap()
    }

    pub fn start(&self, primary: &str, more: &[&str]) -> Gateway {
        let config = self.config.to_str().unwrap();
        let arguments = [&["--config", config, "--to", primary], more].concat();
        assert!(self.folder.path().exists());
        Gateway {
            process: Windrow::serve(program(), &arguments).unwrap(),
            client: client(),
        }
    }
}

/// A running `windrow serve`.
pub struct Gateway {
    pub process: Windrow,
    client: Client,
}

impl Gateway {
    /// Sends a body and gives status and answer.
    pub async fn send(&self, method: &str, path: &str, body: String) -> (u16, Json) {
        let kind = match body.lines().count() {
            0 | 1 => "application/json",
            _ => "application/x-ndjson",
        };
        let asked = self
            .client
            .request(method.parse().unwrap(), self.process.url(path));
        let answer = asked.header("content-type", kind).body(body).send().await;
        let answer = answer.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let read = serde_json::from_str(&text);
        (status, read.unwrap_or(Json::String(text)))
    }

    /// Sends rows, of which each must be taken.
    #[track_caller]
    pub fn rows(&self, table: &str, rows: &[Json]) -> impl Future<Output = Json> {
        let path = match table.split_once('?') {
            Some((table, query)) => format!("/v1/tables/{table}/rows?{query}"),
            None => format!("/v1/tables/{table}/rows"),
        };
        let body: String = rows.iter().map(|row| format!("{row}\n")).collect();
        async move {
            let (status, answer) = self.send("POST", &path, body).await;
            assert!(status == 200 || status == 201, "{status} {answer}");
            answer
        }
    }

    /// How the replicas are.
    pub async fn replicas(&self) -> Vec<Json> {
        let (_, lanes) = self.send("GET", "/v1/lanes", String::new()).await;
        lanes["replicas"].as_array().unwrap().clone()
    }

    /// Waits until the replicas are as they are expected to be.
    pub async fn until(&self, what: &str, is_so: impl Fn(&[Json]) -> bool) {
        let start = Instant::now();
        loop {
            let replicas = self.replicas().await;
            if is_so(&replicas) {
                return;
            }
            let log = || self.process.log();
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "{what}: {replicas:?}\n{}",
                log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until all replicas have all.
    pub async fn level(&self) {
        self.until("all have all", |replicas| {
            let level = |r: &Json| {
                let is_level = r["copying"] == false && r["state"] == "level";
                is_level && r["lag"]["entries"] == 0 && r["others_behind"] == 0
            };
            replicas.iter().all(level)
        })
        .await;
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
