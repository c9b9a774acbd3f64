//! The settings of the frontend.

use std::sync::Arc;
use std::time::Duration;

use windrow_core::{OnConflict, Secret, TableName};

use crate::pattern::Pattern;

/// The broker, as the URL names it.
#[derive(Clone, Debug)]
pub struct Broker {
    /// The name or address of its host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The settings of TLS; `None` if the connection is not encrypted.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The name and the password of this client, if it has any.
    pub login: Option<(String, Secret)>,
}

/// The settings of the frontend.
#[derive(Clone, Debug)]
pub struct MqttConfig {
    /// The broker.
    pub broker: Broker,
    /// The name of this client, by which the broker finds its session.
    pub client_id: String,
    /// The time for which the broker keeps messages while this client is not connected. Sent in
    /// whole seconds.
    pub keep_session: Duration,
    /// The most messages that are not acknowledged.
    pub window: u16,
    /// The most bytes of a message. The broker does not send a longer one.
    pub max_message: usize,
    /// The topics. A message goes by the first that fits.
    pub topics: Vec<TopicConfig>,
}

/// The table of the messages of some topics.
#[derive(Clone, Debug)]
pub struct TopicConfig {
    /// The topics.
    pub pattern: Pattern,
    /// The table that rows are inserted into.
    pub table: TableName,
    /// The treatment of a row whose key is there.
    pub on_conflict: OnConflict,
    /// True if a message is acknowledged once its rows stand in the spool.
    pub spooled: bool,
}
