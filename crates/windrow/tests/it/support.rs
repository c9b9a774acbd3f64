//! A gateway in the test's own process, and a client for it.

use reqwest::Client;
use serde_json::Value as Json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow::serve::{Finished, Server};
use windrow::settings::{File, Settings};
use windrow_testkit::postgres;
pub use windrow_testkit::process::TEST_TIMEOUT;

/// A server that listens on a free port until it is stopped.
pub struct Gateway {
    base: String,
    /// Where MySQL clients connect.
    pub mysql: Option<std::net::SocketAddr>,
    client: Client,
    stop: CancellationToken,
    task: JoinHandle<Option<Finished>>,
}

impl Gateway {
    /// Serves a database with defaults.
    pub async fn to(url: &str) -> Self {
        Self::with(url, "").await
    }

    /// Serves a database with a configuration (TOML without `database.url` and `http.listen`).
    pub async fn with(url: &str, toml: &str) -> Self {
        let mut file: File = toml::from_str(toml).unwrap();
        file.database.url = Some(url.into());
        file.http.listen = Some("127.0.0.1:0".into());
        let reread = || anyhow::bail!("there is no file");
        let settings = Settings::new(&file).unwrap();
        let server = Server::bind(&settings, std::sync::Arc::new(reread))
            .await
            .unwrap();
        let base = format!("http://{}", server.http_addr().unwrap());
        let mysql = server.mysql_addr();
        let stop = CancellationToken::new();
        let task = tokio::spawn(server.run(stop.clone()));
        // A pooled connection that the server closes for idleness must not fail a test: none is
        // that old.
        let client = Client::builder()
            .pool_max_idle_per_host(256)
            .timeout(TEST_TIMEOUT)
            .build()
            .unwrap();
        Self {
            base,
            mysql,
            client,
            stop,
            task,
        }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sends a JSON body (or none) and gives status and JSON answer.
    pub async fn send(&self, method: &str, path: &str, body: Option<String>) -> (u16, Json) {
        self.try_send(method, path, "application/json", body)
            .await
            .unwrap()
    }

    /// As [`Gateway::send`], with a content type, and an error if there is no whole answer.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<String>,
    ) -> reqwest::Result<(u16, Json)> {
        let mut request = self.client.request(method.parse().unwrap(), self.url(path));
        if let Some(body) = body {
            request = request.header("content-type", content_type).body(body);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let text = answer.text().await?;
        Ok((
            status,
            serde_json::from_str(&text).unwrap_or(Json::String(text)),
        ))
    }

    /// Inserts one row given as JSON.
    pub async fn insert(&self, table: &str, row: &str) -> (u16, Json) {
        self.send(
            "POST",
            &format!("/v1/tables/{table}/rows"),
            Some(row.into()),
        )
        .await
    }

    /// Stops in an orderly way.
    pub async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(TEST_TIMEOUT, self.task)
            .await
            .expect("the server ends when told to")
            .unwrap();
    }
}

/// The `code` of an error answer.
pub fn code(answer: &Json) -> &str {
    answer["error"]["code"].as_str().unwrap_or("")
}

/// A database for one test: its URL, SQL to prepare and inspect it directly, beside the gateway.
pub enum Db {
    Postgres {
        database: Box<postgres::PostgresDatabase>,
        client: tokio_postgres::Client,
    },
    Sqlite {
        folder: tempfile::TempDir,
        connection: rusqlite::Connection,
    },
}

impl Db {
    pub async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(|| postgres::shared().unwrap())
            .await
            .unwrap();
        let client = connect(database.url()).await;
        let database = Box::new(database);
        Self::Postgres { database, client }
    }

    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = rusqlite::Connection::open(folder.path().join("test.db")).unwrap();
        connection
            .pragma_update(None, "journal_mode", "wal")
            .unwrap();
        connection
            .pragma_update(None, "foreign_keys", "on")
            .unwrap();
        connection.busy_timeout(TEST_TIMEOUT).unwrap();
        Self::Sqlite { folder, connection }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Postgres { database, .. } => database.url().to_owned(),
            Self::Sqlite { folder, .. } => {
                format!("sqlite:{}", folder.path().join("test.db").display())
            }
        }
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    /// Runs statements; the error's text if one fails.
    pub async fn try_run(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Postgres { client, .. } => client
                .batch_execute(sql)
                .await
                .map_err(|e| format!("{e:?}")),
            Self::Sqlite { connection, .. } => {
                connection.execute_batch(sql).map_err(|e| e.to_string())
            }
        }
    }

    /// All rows of a query as texts, NULL as `None`.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        match self {
            Self::Postgres { client, .. } => postgres_rows(client, sql).await,
            Self::Sqlite { connection, .. } => sqlite_rows(connection, sql),
        }
    }

    /// The single number that a query gives.
    pub async fn number(&self, sql: &str) -> i64 {
        self.rows(sql).await[0][0]
            .as_ref()
            .unwrap()
            .parse()
            .unwrap()
    }
}

/// A direct connection, driven in the background.
pub async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

async fn postgres_rows(client: &tokio_postgres::Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).await.unwrap();
    let row = |message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(
            (0..row.len())
                .map(|i| row.get(i).map(str::to_owned))
                .collect(),
        ),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

fn sqlite_rows(connection: &rusqlite::Connection, sql: &str) -> Vec<Vec<Option<String>>> {
    use rusqlite::types::ValueRef;
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Null => None,
        ValueRef::Integer(n) => Some(n.to_string()),
        ValueRef::Real(x) => Some(x.to_string()),
        ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
        ValueRef::Blob(b) => Some(format!("{b:02x?}")),
    };
    let rows = statement
        .query_map([], |row| {
            (0..columns).map(|i| row.get_ref(i).map(text)).collect()
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}
