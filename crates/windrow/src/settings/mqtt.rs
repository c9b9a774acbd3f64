//! The topics of an MQTT broker that are written as rows.

use std::time::Duration;

use anyhow::{Context, ensure};
use percent_encoding::percent_decode_str;
use url::Url;
use windrow_core::{OnConflict, TableName};
use windrow_http::Ack;
use windrow_mqtt::{Broker, MqttConfig, TopicConfig};

use super::faults::Faults;
use super::file::{File, MqttTopic, WrittenAck, WrittenConflict};
use super::shown;
use super::size::bytes;

/// The gateway's name at the broker. Two gateways need different names.
const CLIENT_ID: &str = "windrow";

/// The time for which the broker keeps the session: longer than a weekend.
const KEEP_SESSION: Duration = Duration::from_secs(72 * 3600);

/// The number of messages that may be unacknowledged: more than brokers send at once by default,
/// and few enough to be sent again.
const WINDOW: u16 = 1000;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 1 << 20;

/// The largest share of the memory for one message, as a divisor.
const OF_MEMORY: usize = 8;

/// The checked section `[mqtt]`.
#[derive(Clone)]
pub struct MqttSettings {
    /// The frontend's own settings.
    pub config: MqttConfig,
    /// The broker's URL as it may be shown.
    shown: String,
}

impl MqttSettings {
    /// Describes which topics of which broker are written.
    pub fn greeting(&self) -> String {
        let topics = self.config.topics.iter();
        let topics: Vec<_> = topics
            .map(|topic| format!("{} into {}", topic.pattern, topic.table))
            .collect();
        format!("mqtt subscribes at {}: {}", self.shown, topics.join(", "))
    }

    /// Connects to the broker and disconnects. Subscribes to nothing. Cancel safe.
    ///
    /// # Errors
    /// The reason why the broker cannot be reached or refuses this client.
    pub async fn try_connect(&self) -> Result<(), String> {
        let tried = windrow_mqtt::check(&self.config).await;
        tried.map_err(|why| format!("{}: {why}", self.shown))
    }
}

/// Returns the section; `None` if no broker is named. `memory` is the budget, `ack` the default
/// moment of success.
pub(super) fn settings(
    file: &File,
    has_spool: bool,
    (memory, ack): (usize, Ack),
    faults: &mut Faults,
) -> Option<MqttSettings> {
    let written = &file.mqtt;
    let topics = written.topics.iter();
    let topics: Vec<_> = topics
        .filter_map(|(name, topic)| {
            let read = topic_config(topic, has_spool, ack);
            faults.note(read.with_context(|| format!("mqtt.topics.{name}")))
        })
        .collect();
    let url = written.url.as_ref()?;
    let broker = broker(url.reveal(), written).context("mqtt.url");
    let broker = faults.note(broker)?;
    let max = bytes("mqtt.max_message", written.max_message, MAX_MESSAGE);
    let config = MqttConfig {
        broker,
        client_id: written
            .client_id
            .clone()
            .unwrap_or_else(|| CLIENT_ID.into()),
        keep_session: written.keep_session.unwrap_or(KEEP_SESSION),
        window: written.window.unwrap_or(WINDOW),
        max_message: faults.or(max, MAX_MESSAGE),
        topics,
    };
    let has_topics = !written.topics.is_empty();
    faults.note(checked(&config, has_topics, memory));
    let shown = shown::url(url.reveal());
    Some(MqttSettings { config, shown })
}

fn checked(config: &MqttConfig, has_topics: bool, memory: usize) -> anyhow::Result<()> {
    ensure!(
        has_topics,
        "mqtt.url is set, but no topic is: write a section [mqtt.topics.NAME] with topic and table"
    );
    ensure!(config.window > 0, "mqtt.window must be at least 1");
    ensure!(
        !config.client_id.is_empty(),
        "mqtt.client_id is empty: the broker needs a name to keep messages for this gateway"
    );
    ensure!(
        config.max_message <= memory / OF_MEMORY,
        "mqtt.max_message must be at most an eighth of limits.memory"
    );
    Ok(())
}

fn topic_config(topic: &MqttTopic, has_spool: bool, usual: Ack) -> anyhow::Result<TopicConfig> {
    let pattern = topic.topic.as_ref();
    let pattern = pattern.context("topic is missing, such as \"devices/{device}/readings\"")?;
    let table = topic.table.as_ref();
    let table = table.context("table is missing: name the table that rows are inserted into")?;
    let spooled = match topic.ack {
        None => usual == Ack::Spool,
        Some(ack) => matches!(ack, WrittenAck::Spool),
    };
    ensure!(
        has_spool || !spooled,
        "ack is \"spool\", but there is no spool: name a directory for it in spool.directory"
    );
    Ok(TopicConfig {
        pattern: pattern.parse()?,
        table: TableName::parse(table)?,
        on_conflict: match topic.on_conflict {
            None | Some(WrittenConflict::Ignore) => OnConflict::Ignore,
            Some(WrittenConflict::Update) => OnConflict::Update,
            Some(WrittenConflict::Error) => OnConflict::Error,
        },
        spooled,
    })
}

fn broker(url: &str, written: &super::file::MqttSection) -> anyhow::Result<Broker> {
    let url = Url::parse(url).context("it is no URL such as mqtt://USER:PASSWORD@HOST:1883")?;
    let (port, encrypted) = match url.scheme() {
        "mqtt" => (1883, false),
        "mqtts" => (8883, true),
        _ => anyhow::bail!("write mqtt://HOST, or mqtts://HOST for TLS"),
    };
    ensure!(
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none(),
        "nothing may follow the port: topics stand in sections [mqtt.topics.NAME]"
    );
    ensure!(
        encrypted || written.ca.is_none(),
        "mqtt.ca is about mqtts://, and the URL begins with mqtt://"
    );
    let host = url.host_str().filter(|host| !host.is_empty());
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let name = decoded(url.username());
    let password = url.password().map(decoded).unwrap_or_default();
    let tls = encrypted.then(|| windrow_sockets::trusting(written.ca.as_deref(), "mqtt.ca"));
    Ok(Broker {
        host: host
            .context("it names no host")?
            .trim_matches(['[', ']'])
            .to_owned(),
        port: url.port().unwrap_or(port),
        tls: tls.transpose().map_err(anyhow::Error::msg)?,
        login: (!name.is_empty()).then(|| (name, password.into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn read(text: &str) -> anyhow::Result<Option<MqttSettings>> {
        Settings::new(&toml::from_str(text)?).map(|settings| settings.mqtt)
    }

    const TOPIC: &str = "[mqtt.topics.r]\ntopic = 'd/{device}'\ntable = 'readings'\n";

    #[test]
    fn it_is_off_unless_a_broker_is_named_and_shows_no_password() {
        assert!(read(TOPIC).unwrap().is_none());
        let text = format!("[mqtt]\nurl = 'mqtt://me:s3%20cret@b'\n{TOPIC}");
        let settings = read(&text).unwrap().unwrap();
        let broker = &settings.config.broker;
        assert_eq!((&*broker.host, broker.port), ("b", 1883));
        let (name, password) = broker.login.as_ref().unwrap();
        assert_eq!((&**name, password.reveal()), ("me", "s3 cret"));
        let greeting = settings.greeting();
        assert!(greeting.ends_with("d/+ into readings"), "{greeting}");
        assert!(!greeting.contains("cret"), "{greeting}");
        let topic = &settings.config.topics[0];
        assert!(topic.on_conflict == OnConflict::Ignore && !topic.spooled);
        let spool = format!("{text}ack = 'spool'\n[spool]\ndirectory = 'd'");
        assert!(read(&spool).unwrap().unwrap().config.topics[0].spooled);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_do() {
        let url = "url = 'mqtt://b'\n";
        for (mqtt, more, word) in [
            (url, "", "[mqtt.topics.NAME]"),
            ("url = 'b:1883'\n", TOPIC, "mqtt://HOST"),
            ("url = 'http://b'\n", TOPIC, "mqtts://HOST"),
            ("url = 'mqtt://b/topic'\n", TOPIC, "[mqtt.topics.NAME]"),
            ("url = 'mqtt://b'\nca = 'x.pem'\n", TOPIC, "mqtts://"),
            ("url = 'mqtts://b'\nca = 'no.pem'\n", TOPIC, "no.pem"),
            ("url = 'mqtt://b'\nwindow = 0\n", TOPIC, "mqtt.window"),
            (
                "url = 'mqtt://b'\nclient_id = ''\n",
                TOPIC,
                "mqtt.client_id",
            ),
            (
                "url = 'mqtt://b'\nmax_message = '64MiB'\n",
                TOPIC,
                "limits.memory",
            ),
            (
                url,
                "[mqtt.topics.r]\ntopic = 'a/#/b'\ntable = 't'",
                "mqtt.topics.r",
            ),
            (url, "[mqtt.topics.r]\ntopic = 'a'", "table is missing"),
            (url, "[mqtt.topics.r]\ntable = 'a'", "topic is missing"),
            (url, &format!("{TOPIC}ack = 'spool'"), "spool.directory"),
        ] {
            let refused = read(&format!("[mqtt]\n{mqtt}{more}")).map(|_| ());
            let error = format!("{:#}", refused.unwrap_err());
            assert!(error.contains(word), "{mqtt}{more}: {error}");
        }
    }
}
