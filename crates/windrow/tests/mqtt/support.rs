//! A gateway that subscribes, and a device that publishes.

use std::path::Path;
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::Packet;
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use serde_json::Value as Json;
use tempfile::TempDir;
use windrow_testkit::left_out;
use windrow_testkit::mosquitto::{self, Mosquitto};
use windrow_testkit::process::{TEST_TIMEOUT, Windrow};

/// Messages that a device sends before it waits for an acknowledgement.
const SENT_AT_ONCE: usize = 50;

/// A broker; `None` with a note where none is installed.
pub(crate) fn broker() -> Option<Mosquitto> {
    if !mosquitto::is_installed() {
        left_out::note("mosquitto is not installed: MQTT");
        return None;
    }
    Some(Mosquitto::start().unwrap())
}

/// A gateway with its folder.
pub(crate) struct Gateway {
    pub(crate) program: Windrow,
    folder: TempDir,
    url: String,
}

impl Gateway {
    /// Starts a gateway in a folder of its own. `more`: TOML behind `[mqtt]`.
    pub(crate) fn start(broker: &Mosquitto, url: Option<&str>, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedded = format!("sqlite:{}", folder.path().join("windrow.db").display());
        configure(folder.path(), broker, more);
        let url = url.unwrap_or(&embedded).to_owned();
        Self {
            program: serve(folder.path(), &url),
            folder,
            url,
        }
    }

    /// Starts it again with other TOML behind `[mqtt]`.
    pub(crate) fn start_with(&mut self, broker: &Mosquitto, more: &str) {
        self.program.terminate().unwrap();
        self.program.wait().unwrap();
        configure(self.folder.path(), broker, more);
        self.start_again();
    }

    /// Starts it again with the same configuration.
    pub(crate) fn start_again(&mut self) {
        self.program = serve(self.folder.path(), &self.url);
    }

    /// Waits until a metric has this value.
    pub(crate) async fn until_metric(&self, line: &str) {
        let shown = async || {
            let answer = reqwest::get(self.program.url("/metrics")).await.unwrap();
            answer.text().await.unwrap().lines().any(|l| l == line)
        };
        until(line, shown).await;
    }

    /// Returns the value of a metric without labels; 0 if it is not there.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let answer = reqwest::get(self.program.url("/metrics")).await.unwrap();
        let text = answer.text().await.unwrap();
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        let value = values.find_map(|value| value.trim().parse().ok());
        value.unwrap_or_default()
    }

    /// Returns the rows of a table in the order of a column; none if it is not there.
    pub(crate) async fn rows(&self, table: &str, order: &str) -> Vec<Json> {
        let path = format!("/v1/tables/{table}/rows?limit=1000&order={order}");
        let answer = reqwest::get(self.program.url(&path)).await.unwrap();
        if !answer.status().is_success() {
            return Vec::new();
        }
        let text = answer.text().await.unwrap();
        let page: Json = serde_json::from_str(&text).unwrap();
        page["rows"].as_array().unwrap().clone()
    }

    /// Returns the source and the row of each dead letter in the embedded database.
    pub(crate) fn letters(&self) -> Vec<(String, String)> {
        let path = self.folder.path().join("windrow.db");
        let database = rusqlite::Connection::open(path).unwrap();
        let query = "SELECT source, row FROM windrow_rejected ORDER BY id";
        let mut statement = database.prepare(query).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// Drops the table of dead letters in the embedded database.
    pub(crate) fn drop_letters(&self) {
        let path = self.folder.path().join("windrow.db");
        let database = rusqlite::Connection::open(path).unwrap();
        database.execute("DROP TABLE windrow_rejected", ()).unwrap();
    }

    /// Waits until a table has so many rows, and returns them.
    pub(crate) async fn until_rows(&self, table: &str, order: &str, count: usize) -> Vec<Json> {
        until(table, async || self.rows(table, order).await.len() >= count).await;
        self.rows(table, order).await
    }
}

/// Writes the configuration into a folder.
fn configure(folder: &Path, broker: &Mosquitto, more: &str) {
    let mqtt = format!("[mqtt]\nurl = 'mqtt://{}'\n{more}", broker.address());
    std::fs::write(folder.join("windrow.toml"), mqtt).unwrap();
}

fn serve(folder: &Path, url: &str) -> Windrow {
    let config = folder.join("windrow.toml");
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    let arguments = [
        "--config",
        config.to_str().unwrap(),
        "--to",
        url,
        "--create-tables",
    ];
    Windrow::serve(program, &arguments).unwrap()
}

/// Waits for something that comes true.
pub(crate) async fn until(what: &str, is_true: impl AsyncFn() -> bool) {
    let found = async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(TEST_TIMEOUT, found).await;
    assert!(found.is_ok(), "in vain: {what}");
}

/// Publishes messages, and waits until the broker has all of them.
pub(crate) async fn publish(
    broker: &Mosquitto,
    messages: impl IntoIterator<Item = (&str, String)>,
) {
    let messages: Vec<_> = messages.into_iter().collect();
    let address = broker.address();
    let options = MqttOptions::new("device", address.ip().to_string(), address.port());
    let (client, mut events) = AsyncClient::new(options, SENT_AT_ONCE);
    let count = messages.len();
    let sender = async {
        for (topic, payload) in messages {
            client
                .publish(topic, QoS::AtLeastOnce, false, payload)
                .await
                .unwrap();
        }
    };
    let receiver = async {
        let mut acknowledged = 0;
        while acknowledged < count {
            if let Ok(Event::Incoming(Packet::PubAck(_))) = events.poll().await {
                acknowledged += 1;
            }
        }
    };
    tokio::join!(sender, receiver);
}
