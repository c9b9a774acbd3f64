//! The connection to the broker, opened again when it breaks.

use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    Filter, Packet, Publish, RetainForwardRule, SubAck, SubscribeReasonCode,
};
use rumqttc::v5::{AsyncClient, ConnectionError, Event, EventLoop, MqttOptions};
use rumqttc::{Outgoing, TlsConfiguration, Transport};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{error, info, warn};
use windrow_core::{Backoff, Budget, Permit};

use crate::acknowledgements::OpenConnection;
use crate::config::MqttConfig;
use crate::metrics::MqttMetrics;
use crate::pattern::MAX_FILTERS;

/// A sign of life goes to the broker so often.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The time limit of a connection, in seconds.
const CONNECT_SECONDS: u64 = 10;

/// The delays before the connection is opened again.
const DELAYS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(15)];

/// A connection that lasted so long was a good one: the delays begin again.
const LASTING: Duration = Duration::from_secs(30);

/// Requests to the broker besides acknowledgements.
const REQUESTS: usize = 16;

/// Bytes of a PUBLISH besides its payload: the topic and the properties.
const AROUND: usize = 128 << 10;

/// A message of the connection to the subscriber.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The connection is open. `resumed`: the broker has kept the session, so it sends again what
    /// is not acknowledged, under the same numbers.
    Connected { resumed: bool },
    /// A message, with the memory that it takes.
    Message(Box<Publish>, Permit),
}

/// The connection to the broker.
pub(crate) struct Connection {
    events: EventLoop,
    client: AsyncClient,
    filters: Vec<Filter>,
    arrivals: mpsc::Sender<Arrival>,
    open: OpenConnection,
    /// Connections that were opened so far.
    count: u64,
    budget: Budget,
    metrics: MqttMetrics,
    backoff: Backoff,
    opened: Option<Instant>,
}

impl Connection {
    /// Returns a connection that is not open, and the handle by which messages are acknowledged.
    pub(crate) fn new(
        config: &MqttConfig,
        arrivals: mpsc::Sender<Arrival>,
        open: OpenConnection,
        budget: Budget,
        metrics: MqttMetrics,
    ) -> (Self, AsyncClient) {
        // None of the acknowledgements is left out, however many messages the broker sends at once.
        let requests = usize::from(u16::MAX) + MAX_FILTERS + REQUESTS;
        let (client, events) = AsyncClient::new(options(config), requests);
        let filter = |topic: &crate::config::TopicConfig| Filter {
            // A retained message came when the topic was subscribed to for the first time.
            retain_forward_rule: RetainForwardRule::OnNewSubscribe,
            ..Filter::new(topic.pattern.filter(), QoS::AtLeastOnce)
        };
        let connection = Self {
            events,
            client: client.clone(),
            filters: config.topics.iter().map(filter).collect(),
            arrivals,
            open,
            count: 0,
            budget,
            metrics,
            backoff: Backoff::new(DELAYS[0], DELAYS[1]),
            opened: None,
        };
        (connection, client)
    }

    /// Runs until the client has asked for the end and the broker has got that.
    pub(crate) async fn run(mut self) {
        loop {
            match self.events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(answer))) => {
                    self.connected(answer.session_present).await;
                }
                Ok(Event::Incoming(Packet::SubAck(answer))) => self.subscribed(&answer),
                Ok(Event::Incoming(Packet::Publish(message))) => self.hand_over(message).await,
                Ok(Event::Outgoing(Outgoing::Disconnect)) => break,
                Ok(_) => {}
                Err(ConnectionError::RequestsDone) => break,
                Err(fault) => self.lost(&fault).await,
            }
        }
        self.metrics.connected.set(0);
    }

    async fn connected(&mut self, resumed: bool) {
        info!(resumed, "connected to the MQTT broker");
        self.metrics.connected.set(1);
        self.opened = Some(Instant::now());
        self.count += 1;
        self.open.set(self.count);
        // An error says that nobody listens any more.
        self.arrivals
            .send(Arrival::Connected { resumed })
            .await
            .ok();
        if let Err(fault) = self.client.try_subscribe_many(self.filters.clone()) {
            error!(%fault, "the topics cannot be asked for");
        }
    }

    fn subscribed(&self, answer: &SubAck) {
        for (filter, code) in self.filters.iter().zip(&answer.return_codes) {
            if !matches!(code, SubscribeReasonCode::Success(_)) {
                let topic = &filter.path;
                error!(
                    topic,
                    ?code,
                    "the MQTT broker refuses this topic; may this client read it?"
                );
            }
        }
    }

    /// Hands a message over, once there is memory for it. Meanwhile nothing is read.
    async fn hand_over(&mut self, message: Publish) {
        let bytes = message.payload.len() + message.topic.len();
        match self.budget.take(bytes).await {
            Ok(permit) => {
                let arrival = Arrival::Message(Box::new(message), permit);
                // One that is stopping takes no more: the broker keeps the message.
                self.arrivals.send(arrival).await.ok();
            }
            Err(fault) => {
                error!(%fault, "a message is larger than all memory; it is not acknowledged");
            }
        }
    }

    async fn lost(&mut self, fault: &ConnectionError) {
        self.metrics.connected.set(0);
        self.open.set(0);
        // The broker sends again what was read and what is not acknowledged. On another connection
        // these acknowledgements would be of other messages.
        self.events.clean();
        self.events.state.events.clear();
        if self
            .opened
            .take()
            .is_some_and(|opened| opened.elapsed() >= LASTING)
        {
            self.backoff.reset();
        }
        let delay = self.backoff.delay();
        warn!(%fault, ?delay, "no connection to the MQTT broker");
        tokio::time::sleep(delay).await;
    }
}

/// Returns the options of a client of MQTT 5.
fn options(config: &MqttConfig) -> MqttOptions {
    let broker = &config.broker;
    let mut options = MqttOptions::new(&config.client_id, &broker.host, broker.port);
    let most = config.max_message.saturating_add(AROUND);
    let keep = u32::try_from(config.keep_session.as_secs()).unwrap_or(u32::MAX);
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_connection_timeout(CONNECT_SECONDS)
        .set_manual_acks(true)
        .set_clean_start(false)
        .set_session_expiry_interval(Some(keep))
        .set_receive_maximum(Some(config.window))
        .set_max_packet_size(Some(u32::try_from(most).unwrap_or(u32::MAX)))
        // Nothing is published.
        .set_outgoing_inflight_upper_limit(1);
    if let Some((name, password)) = &broker.login {
        options.set_credentials(name, password.reveal());
    }
    if let Some(tls) = &broker.tls {
        options.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(
            tls.clone(),
        )));
    }
    options
}

/// Connects to the broker once under another name, and leaves again. Subscribes to nothing, so
/// messages stay where they are. Cancel safe.
///
/// # Errors
/// Why the broker cannot be reached, or why it refuses this client.
pub async fn check(config: &MqttConfig) -> Result<(), String> {
    let mut config = config.clone();
    config.client_id.push_str("-check");
    config.keep_session = Duration::ZERO;
    let (client, mut events) = AsyncClient::new(options(&config), REQUESTS);
    let answered = async {
        loop {
            if let Event::Incoming(Packet::ConnAck(_)) = events.poll().await? {
                client.try_disconnect().ok();
            } else {
                return Ok::<(), ConnectionError>(());
            }
        }
    };
    answered.await.map_err(|fault| fault.to_string())
}
