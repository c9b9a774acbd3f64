//! A gateway in the test's own process.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::{Client, RequestBuilder};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow::serve::{Finished, Server};
use windrow::settings::{File, Settings};
use windrow_testkit::process::TEST_TIMEOUT;

pub struct Gateway {
    base: String,
    pub pg: Option<SocketAddr>,
    pub mysql: Option<SocketAddr>,
    client: Client,
    stop: CancellationToken,
    task: JoinHandle<Option<Finished>>,
}

impl Gateway {
    /// Before a database, with a configuration (TOML without `database.url` and `http.listen`).
    pub async fn start(url: &str, toml: &str) -> Self {
        let mut file: File = toml::from_str(toml).unwrap();
        file.database.url = Some(url.into());
        file.http.listen = Some("127.0.0.1:0".into());
        let settings = Settings::new(&file).unwrap();
        let reread = || anyhow::bail!("there is no file");
        let server = Server::bind(&settings, Arc::new(reread)).await.unwrap();
        let base = format!("http://{}", server.http_addr().unwrap());
        let (pg, mysql) = (server.pg_addr(), server.mysql_addr());
        let stop = CancellationToken::new();
        let task = tokio::spawn(server.run(stop.clone()));
        let client = Client::builder().timeout(TEST_TIMEOUT).build().unwrap();
        Self {
            base,
            pg,
            mysql,
            client,
            stop,
            task,
        }
    }

    /// Before a database of its own that makes tables.
    pub async fn embedded(toml: &str) -> Self {
        let toml = format!("{toml}\n[database]\ncreate_tables = true");
        Self::start("sqlite::memory:", &toml).await
    }

    pub fn post(&self, path: &str, kind: &str, body: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", kind);
        request.body(body.to_owned())
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.base))
    }

    /// Inserts a row; the status of the answer.
    pub async fn insert(&self, table: &str, row: &str, traceparent: Option<&str>) -> u16 {
        let mut request = self.post(&format!("/v1/tables/{table}/rows"), "application/json", row);
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        request.send().await.unwrap().status().as_u16()
    }

    /// A line of the metrics that begins so, without that.
    pub async fn metric(&self, name: &str) -> String {
        let answer = self.get("/metrics").send().await.unwrap();
        let text = answer.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {text}"))
            .trim()
            .to_owned()
    }

    /// Stops in an orderly way: what has ended is sent.
    pub async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(TEST_TIMEOUT, self.task).await;
        ended.expect("the server ends when told to").unwrap();
    }
}

/// A configuration that sends to a collector, with so much of what nobody asks for.
pub fn traces(endpoint: &str, ratio: f64) -> String {
    format!("[traces]\nendpoint = '{endpoint}'\nratio = {ratio:?}\n")
}
