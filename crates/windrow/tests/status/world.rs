//! The program with all that it can have: clients of both protocols, a spool, a replica.

use std::path::Path;

use serde_json::Value as Json;
use tempfile::TempDir;
use windrow_testkit::postgres::{self, PostgresDatabase, psql};
use windrow_testkit::process::Windrow;

const TABLE: &str = "create table events (id int primary key, n int not null)";

pub struct World {
    pub program: Windrow,
    pg: String,
    client: reqwest::Client,
    _databases: [PostgresDatabase; 2],
    _folder: TempDir,
}

impl World {
    pub fn start() -> Self {
        let databases = [postgres::shared().unwrap(), postgres::shared().unwrap()];
        for database in &databases {
            database.exec(TABLE).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let [primary, replica] = databases.each_ref().map(PostgresDatabase::url);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let text = format!(
            "[pg]\nlisten = '127.0.0.1:0'\n[pg.tls]\ncertificate = {:?}\nkey = {:?}\n[spool]\ndirectory = {:?}\n[replicas]\ndirectory = {:?}\n\
             [[replica]]\nname = 'second'\nurl = {replica:?}\n",
            path("cert.pem"),
            path("key.pem"),
            path("spool"),
            path("replicas"),
        );
        std::fs::write(path("windrow.toml"), text).unwrap();
        let config = path("windrow.toml");
        let arguments = ["--to", primary, "--config", config.to_str().unwrap()];
        let binary = Path::new(env!("CARGO_BIN_EXE_windrow"));
        let program = Windrow::serve(binary, &arguments).unwrap();
        let client = program.pg_address().unwrap();
        let (start, database) = primary.rsplit_once('/').unwrap();
        let user = start.rsplit_once('@').map_or(start, |(user, _)| user);
        let pg = format!("{user}@{client}/{database}");
        Self {
            program,
            pg,
            client: reqwest::Client::new(),
            _databases: databases,
            _folder: folder,
        }
    }

    pub async fn post(&self, parameters: &str, row: &str) -> u16 {
        let path = format!("/v1/tables/events/rows{parameters}");
        let sent = self.client.post(self.program.url(&path));
        let sent = sent.header("content-type", "application/json");
        let sent = sent.body(row.to_owned()).send().await.unwrap();
        sent.status().as_u16()
    }

    /// One of everything that is counted, with numbers that nobody has had.
    pub async fn use_all(&self, number: u32) {
        let row = |id: u32| format!("{{\"id\":{id},\"n\":1}}");
        let [first, second, third] = [3 * number, 3 * number + 1, 3 * number + 2];
        assert_eq!(self.post("", &row(first)).await, 201);
        assert_eq!(self.post("", &row(first)).await, 409);
        assert_eq!(self.post("?ack=spool", &row(second)).await, 202);
        let pg = self.pg.clone();
        let statements = format!("insert into events values ({third}, 1); select 1");
        tokio::task::spawn_blocking(move || psql(&pg, &statements).unwrap())
            .await
            .unwrap();
        let insert = format!("insert into events values ({}, 1)", 1_000_000 + third);
        let pg = self.pg.clone();
        tokio::task::spawn_blocking(move || psql(&pg, &insert).unwrap())
            .await
            .unwrap();
    }

    pub async fn metrics(&self) -> String {
        let answer = self.client.get(self.program.url("/metrics"));
        answer.send().await.unwrap().text().await.unwrap()
    }
}

/// All queries of the dashboard, with the panel of each.
pub fn dashboard() -> Vec<(String, String)> {
    let text = include_str!("../../../../contrib/grafana/windrow.json");
    let dashboard: Json = serde_json::from_str(text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let texts = [&panel["title"], &target["expr"]];
            let [title, expression] = texts.map(|text| text.as_str().unwrap().to_owned());
            queries.push((title, expression));
        }
    }
    assert!(queries.len() > 20, "the dashboard is not what it was");
    queries
}

pub const RULES: &str = include_str!("../../../../contrib/prometheus/windrow.rules.yml");
