//! The queries of the dashboard and the alerts, run by a real Prometheus that scrapes the program.
//! Left out where that is not installed.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::support::TEST_TIMEOUT;
use crate::world::{RULES, World, dashboard};

struct Prometheus {
    child: Child,
    base: String,
    _folder: TempDir,
}

impl Prometheus {
    /// One that scrapes an address every second; `None` where it is not installed.
    fn start(target: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("rules.yml"), RULES).unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [rules.yml]\n\
             scrape_configs:\n- job_name: windrow\n  static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        std::fs::write(path("prometheus.yml"), config).unwrap();
        // A port that is free now: Prometheus does not tell which one it found.
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let child = Command::new("prometheus")
            .arg(format!(
                "--config.file={}",
                path("prometheus.yml").display()
            ))
            .arg(format!("--storage.tsdb.path={}", path("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self {
            child,
            base: format!("http://{address}/api/v1/"),
            _folder: folder,
        })
    }

    /// The data of an answer; null while there is none.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Json {
        let mut url = format!("{}{path}?", self.base)
            .parse::<reqwest::Url>()
            .unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let Ok(answer) = reqwest::get(url).await else {
            return Json::Null;
        };
        let text = answer.text().await.unwrap();
        let mut answer: Json = serde_json::from_str(&text).unwrap_or_default();
        assert_ne!(answer["status"], "error", "{query:?}: {answer}");
        answer["data"].take()
    }

    async fn has_data(&self, query: &str) -> bool {
        let found = self.get("query", &[("query", query)]).await;
        let found = found["result"].as_array();
        found.is_some_and(|series| {
            let is_figure = |one: &Json| one["value"][1].as_str().is_some_and(|v| v != "NaN");
            series.iter().any(is_figure)
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_of_the_dashboard_returns_data() {
    let world = World::start();
    let target = world.program.address().to_string();
    let Some(prometheus) = Prometheus::start(&target) else {
        eprintln!("left out: Prometheus is not installed (apt-get install prometheus)");
        return;
    };
    let filled = |query: &str| {
        query
            .replace("$__rate_interval", "10s")
            .replace("$instance", ".*")
    };
    let mut open: Vec<(String, String)> = dashboard();
    let begun = Instant::now();
    for number in 1.. {
        world.use_all(number).await;
        let mut left = Vec::new();
        for (panel, query) in open {
            if !prometheus.has_data(&filled(&query)).await {
                left.push((panel, query));
            }
        }
        open = left;
        if open.is_empty() {
            break;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "no data: {open:#?}");
    }
    alerts_are_evaluated(&prometheus).await;
}

/// Each alert is evaluated without an error, and the metrics that it names have series.
async fn alerts_are_evaluated(prometheus: &Prometheus) {
    let found = prometheus.get("rules", &[]).await;
    let rules = found["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), RULES.matches("- alert:").count());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        assert_ne!(rule["state"], "firing", "{rule}");
        // Without its limit, the expression says how far from that it is.
        let query = rule["query"].as_str().unwrap();
        let (value, _) = query.rsplit_once([' ']).unwrap();
        let value = value.trim_end_matches(['=', '>', '<', ' ']);
        let value = value.replace("[5m]", "[20s]").replace("[10m]", "[20s]");
        assert!(prometheus.has_data(&value).await, "{value}");
    }
}
