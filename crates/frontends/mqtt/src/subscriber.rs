//! Messages under way, and their acknowledgements.

use std::future::Future;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rumqttc::v5::AsyncClient;
use rumqttc::v5::mqttbytes::v5::Publish;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};
use windrow_bookkeeping::DeadLetter;
use windrow_core::intake::{Receipt, Units};
use windrow_core::retry::BackgroundRetry;
use windrow_core::{
    Bookkeeping, Fault, FaultClass, Intake, Outcomes, Permit, Retry, RetryPolicy, SourceId,
    Spooling, Unit, Write,
};

use crate::acknowledgements::{Messages, OpenConnection};
use crate::config::MqttConfig;
use crate::connection::{Arrival, Connection};
use crate::letters::{self, Letters};
use crate::metrics::MqttMetrics;
use crate::pattern::filters_of;
use crate::rows::{MessageRows, Rows};

/// Sources of writes. The messages of a topic belong to one of them, so they keep their order.
const SOURCES: usize = 64;

/// Messages between the connection and the subscriber: only what is handed over is charged for its
/// rows.
const ARRIVALS: usize = 1;

/// The time for which a stopping subscriber waits for rows under way. The broker sends the messages
/// again that are not acknowledged by then.
const LAST_ROWS: Duration = Duration::from_secs(2);

/// The time for which it waits for the broker's side of the end.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The longest delays before a dead letter is written again that the database did not take.
const LETTER_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// The shortest time between the ends of subscriptions of two topics.
const UNSUBSCRIBE_INTERVAL: Duration = Duration::from_secs(1);

/// The ports of the frontend.
pub struct Services {
    /// The lane.
    pub intake: Intake,
    /// The spool, if there is one.
    pub spool: Option<Arc<dyn Spooling>>,
    /// The database's tables of Windrow's own, for dead letters.
    pub tables: Arc<dyn Bookkeeping>,
    /// The metrics.
    pub metrics: MqttMetrics,
}

/// A client of a broker that writes the messages of its topics.
pub struct MqttSubscriber {
    rows: Vec<Rows>,
    way: Arc<WayIn>,
    connection: Connection,
    messages: Messages,
    arrivals: mpsc::Receiver<Arrival>,
    window: usize,
}

/// The way of rows to the database.
struct WayIn {
    client: AsyncClient,
    open: OpenConnection,
    /// True while subscriptions of one topic are being ended.
    is_unsubscribing: AtomicBool,
    lane: Intake,
    spool: Option<Intake>,
    sources: [SourceId; SOURCES],
    hasher: foldhash::fast::RandomState,
    letters: Letters,
    metrics: MqttMetrics,
}

/// A message whose rows are under way.
type UnderWay = Pin<Box<dyn Future<Output = (Publish, bool)> + Send>>;

impl MqttSubscriber {
    /// Returns a subscriber that does not connect before it runs.
    pub fn new(config: &MqttConfig, services: Services) -> Self {
        let Services {
            intake,
            spool,
            tables,
            metrics,
        } = services;
        // A message that was not acknowledged may come twice anyway.
        let policy = RetryPolicy::persistent();
        let lane = intake.with_policy(policy);
        let spool = spool.map(|spool| spool.intake().with_policy(policy));
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        let budget = lane.budget().clone();
        let open = OpenConnection::default();
        let (connection, client) =
            Connection::new(config, sender, open.clone(), budget, metrics.clone());
        Self {
            rows: config.topics.iter().cloned().map(Rows::new).collect(),
            messages: Messages::default(),
            way: Arc::new(WayIn {
                client,
                open,
                is_unsubscribing: AtomicBool::new(false),
                sources: std::array::from_fn(|_| lane.new_source()),
                hasher: foldhash::fast::RandomState::default(),
                letters: Letters::new(lane.clone(), tables),
                lane,
                spool,
                metrics,
            }),
            connection,
            arrivals,
            window: config.window.into(),
        }
    }

    /// Writes messages until `stop` is cancelled. Then it waits a moment for the rows under way,
    /// and leaves the rest to the broker.
    pub async fn run(self, stop: CancellationToken) {
        let Self {
            mut rows,
            way,
            connection,
            mut messages,
            mut arrivals,
            window,
        } = self;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection.run()));
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(Ok((ticket, (message, is_safe)))) = under_way.join_next() => {
                    way.end(&mut messages, ticket, message, is_safe);
                }
                arrival = arrivals.recv(), if under_way.len() < window => match arrival {
                    Some(Arrival::Connected { resumed }) => messages.connected(resumed),
                    Some(Arrival::Message(message, permit)) => {
                        if let Some(ticket) = messages.begin(&message) {
                            way.show(&messages);
                            let begun = way.begin(&mut rows, *message, permit);
                            // It may wait for memory that only the database gives back.
                            let Some(begun) = stop.run_until_cancelled(begun).await else { break };
                            under_way.spawn(async move { (ticket, begun.await) });
                        }
                    }
                    None => break,
                },
            }
        }
        // What comes now stays with the broker.
        arrivals.close();
        let rest = async {
            while let Some(Ok((ticket, (message, is_safe)))) = under_way.join_next().await {
                way.end(&mut messages, ticket, message, is_safe);
            }
        };
        if timeout(LAST_ROWS, rest).await.is_err() {
            let left = messages.count();
            info!(
                left,
                "rows are still under way; the MQTT broker sends their messages again"
            );
        }
        way.client.try_disconnect().ok();
        timeout(LAST_WORD, connection).await.ok();
    }
}

impl WayIn {
    /// Hands the rows of a message over; what is given ends once they are safe.
    async fn begin(
        self: &Arc<Self>,
        rows: &mut [Rows],
        message: Publish,
        permit: Permit,
    ) -> UnderWay {
        let topic = String::from_utf8_lossy(&message.topic).into_owned();
        let found = rows.iter_mut().find_map(|rows| {
            let of_topic = rows.topic().pattern.values(&topic)?;
            Some((rows, of_topic))
        });
        let Some((rows, of_topic)) = found else {
            return self.unwanted(topic, message, permit);
        };
        let table = rows.topic().table.to_string();
        let MessageRows { writes, refused } = rows.read(&message.payload, &of_topic);
        let letter =
            |(text, fault): &(Box<[u8]>, Fault)| letters::of_message(&topic, &table, text, fault);
        let refused: Vec<_> = refused.iter().map(letter).collect();
        let submitted = match writes.is_empty() && !refused.is_empty() {
            true => None,
            false => Some(self.submit(rows.topic().spooled, &topic, &writes).await),
        };
        let way = Arc::clone(self);
        Box::pin(async move {
            let is_safe = way.settle(&topic, &writes, submitted, &refused).await;
            drop(permit);
            (message, is_safe)
        })
    }

    /// Keeps a message of a topic that no setting names, and ends the subscription that it came by:
    /// the broker's session has it from an earlier configuration.
    fn unwanted(self: &Arc<Self>, topic: String, message: Publish, permit: Permit) -> UnderWay {
        let fault = Fault::invalid(format!(
            "no [mqtt.topics] names the topic {topic}, to which the broker's session is subscribed since an earlier start"
        ));
        error!(
            topic,
            "{}; the message becomes a dead letter", fault.message
        );
        self.unsubscribe(&topic);
        let way = Arc::clone(self);
        Box::pin(async move {
            let letter = letters::of_message(&topic, "", &message.payload, &fault);
            let is_safe = way.settle(&topic, &[], None, &[letter]).await;
            drop(permit);
            (message, is_safe)
        })
    }

    /// Ends all subscriptions that a topic fits. One topic at a time: its requests stand in a queue
    /// with acknowledgements, and one subscription often brings many topics.
    fn unsubscribe(self: &Arc<Self>, topic: &str) {
        if self.is_unsubscribing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (way, filters) = (Arc::clone(self), filters_of(topic));
        tokio::spawn(async move {
            for filter in filters {
                // An error says that the connection's task has ended.
                way.client.unsubscribe(filter).await.ok();
            }
            tokio::time::sleep(UNSUBSCRIBE_INTERVAL).await;
            way.is_unsubscribing.store(false, Ordering::Release);
        });
    }

    /// Returns the source of a topic's messages.
    fn source(&self, topic: &str) -> SourceId {
        let hash = self.hasher.hash_one(topic) % SOURCES as u64;
        let place = usize::try_from(hash).unwrap_or_default();
        let [first, ..] = self.sources;
        self.sources.get(place).copied().unwrap_or(first)
    }

    /// Hands rows over, each a unit of its own. They are tried until they are written or refused.
    async fn submit(&self, spooled: bool, topic: &str, writes: &[Write]) -> Result<Receipt, Fault> {
        let units: Units = writes.iter().cloned().map(Unit::one).collect();
        let bytes = units.iter().map(Unit::bytes).sum();
        let spool = self.spool.as_ref().filter(|_| spooled);
        let intake = spool.unwrap_or(&self.lane);
        let permit = intake.budget().take(bytes).await?;
        intake.submit(self.source(topic), units, permit).await
    }

    /// Waits until all rows are written or dead letters; false if the message has to stay with the
    /// broker.
    async fn settle(
        &self,
        topic: &str,
        writes: &[Write],
        submitted: Option<Result<Receipt, Fault>>,
        refused: &[DeadLetter],
    ) -> bool {
        let outcomes = match submitted {
            Some(Ok(receipt)) => receipt.await,
            Some(Err(fault)) => Outcomes::from_elem(Err(fault.into()), writes.len()),
            None => Outcomes::new(),
        };
        let mut count = Count::default();
        for (write, outcome) in writes.iter().zip(outcomes) {
            let Err(failed) = outcome else {
                count.written += 1;
                continue;
            };
            // Any other fault is one of a lane or a spool that has ended.
            let is_own = matches!(failed.fault.retry(), Retry::Never | Retry::Soon);
            if !is_own
                || !self
                    .keep(&letters::of_row(topic, write, &failed.fault))
                    .await
            {
                return false;
            }
            count.refused += 1;
        }
        for letter in refused {
            if !self.keep(letter).await {
                return false;
            }
            count.refused += 1;
        }
        self.count(&count);
        true
    }

    /// Keeps a dead letter, and tries again until the database takes it; false once the lane has
    /// ended, so that the message has to stay with the broker.
    async fn keep(&self, letter: &DeadLetter) -> bool {
        let source = &*letter.source;
        let mut retry = BackgroundRetry::new(LETTER_DELAYS[0], LETTER_DELAYS[1]);
        let mut is_reported = false;
        loop {
            let fault = match self.letters.write(letter).await {
                Ok(()) => break,
                Err(fault) if fault.class == FaultClass::Cancelled => return false,
                Err(fault) => fault,
            };
            if !std::mem::replace(&mut is_reported, true) {
                error!(source, %fault, "a dead letter cannot be written, so its message is not acknowledged; Windrow tries again");
            }
            tokio::time::sleep(retry.delay(&fault)).await;
        }
        let (code, message) = (&*letter.code, &*letter.message);
        warn!(
            source,
            code, message, "a message or a row of it became a dead letter"
        );
        true
    }

    /// Acknowledges what has waited for the end of a message.
    fn end(&self, messages: &mut Messages, ticket: u64, message: Publish, is_safe: bool) {
        if !is_safe {
            self.metrics.messages_again.inc();
        }
        let ended = messages.end(ticket, message, is_safe);
        self.open.acknowledge(&self.client, ended);
        self.show(messages);
    }

    fn show(&self, messages: &Messages) {
        let count = i64::try_from(messages.count()).unwrap_or(i64::MAX);
        self.metrics.unacknowledged.set(count);
    }

    fn count(&self, count: &Count) {
        self.metrics.rows_written.inc_by(count.written);
        self.metrics.rows_refused.inc_by(count.refused);
        match count.refused {
            0 => self.metrics.messages_written.inc(),
            _ => self.metrics.messages_refused.inc(),
        };
    }
}

/// The number of rows of a message, by outcome.
#[derive(Debug, Default)]
struct Count {
    written: u64,
    refused: u64,
}
