//! A spool in a topic.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use windrow_spool::{Log, Options, Spool, SpoolFault, SpoolId};

use crate::address::Address;
use crate::check::{self, Risk};
use crate::cluster::{Cluster, Topic};
use crate::failure::Failure;
use crate::log::KafkaLog;
use crate::record::{PER_BATCH, PER_RECORD};
use crate::state::Common;

/// Timeout for a cluster to have leaders for all partitions.
const LEADERS_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay after a failed attempt.
const REST: Duration = Duration::from_millis(500);

/// The most partitions, as for a spool in files.
const MOST_PARTITIONS: usize = 256;

/// A spool in a topic of a cluster. Any number of gateways may open it at the same time.
pub struct KafkaSpool {
    id: SpoolId,
    common: Arc<Common>,
    kafka: Vec<Arc<KafkaLog>>,
    logs: Vec<Arc<dyn Log>>,
}

impl KafkaSpool {
    /// Opens a topic, which must exist. Its partitions are the spool's, whatever the options are.
    /// Needs a Tokio runtime. Cancel safe: nothing is changed.
    ///
    /// # Errors
    /// [`SpoolFault::Option`] if the topic could lose acknowledged entries in a way that is not in
    /// `allowed`; [`SpoolFault::Unreached`] if no broker answers, or the topic does not exist.
    pub async fn open(
        address: &Address,
        options: Options,
        allowed: &[Risk],
    ) -> Result<Self, SpoolFault> {
        let refuse = |what: String| SpoolFault::Option(what.into());
        let cluster = Arc::new(Cluster::new(address.clone()).map_err(refuse)?);
        let unreached = |e: Failure| e.fault(&format!("the topic {address} cannot be used"));
        let opening = Instant::now();
        let mut topic = loop {
            match cluster.topic().await {
                Ok(topic) => break topic,
                Err(failure) if passes(&failure, opening) => tokio::time::sleep(REST).await,
                Err(failure) => return Err(unreached(failure)),
            }
        };
        let terms = check::check(&mut topic, allowed).await?;
        let id = id(&topic).ok_or_else(|| refuse(format!("{address}: {NO_NAME}")))?;
        let partitions = topic.topic.partitions.len();
        if partitions > MOST_PARTITIONS {
            return Err(refuse(format!(
                "the topic {address} has {partitions} partitions; {MOST_PARTITIONS} are the most"
            )));
        }
        let options = fitting(options, terms.batch);
        let common = Common::new(cluster, options, (terms.in_sync, terms.batch));
        let mut spool = Self {
            id,
            common: Arc::new(common),
            kafka: Vec::new(),
            logs: Vec::new(),
        };
        for partition in (0..).take(partitions) {
            let log = loop {
                match KafkaLog::start(Arc::clone(&spool.common), partition).await {
                    Ok(log) => break Arc::new(log),
                    Err(failure) if passes(&failure, opening) => tokio::time::sleep(REST).await,
                    Err(failure) => return Err(unreached(failure)),
                }
            };
            spool.logs.push(Arc::clone(&log) as Arc<dyn Log>);
            spool.kafka.push(log);
        }
        Ok(spool)
    }

    /// Returns the options that are in effect: the topic may accept less at once.
    pub fn options(&self) -> &Options {
        &self.common.options
    }
}

const NO_NAME: &str = "the cluster gives itself or the topic no id; Kafka 2.8 or later does";

/// Returns true if another attempt may succeed.
fn passes(failure: &Failure, since: Instant) -> bool {
    failure.may_pass() && since.elapsed() < LEADERS_TIMEOUT
}

/// Returns the name of the spool. All gateways of a topic get the same name, and a topic that is
/// created again has another one.
fn id(topic: &Topic) -> Option<SpoolId> {
    let cluster = topic.cluster.as_ref().filter(|id| !id.is_empty())?;
    let made = topic.topic.topic_id;
    if made.is_nil() {
        return None;
    }
    let mut hash = Sha256::new();
    hash.update(cluster.as_bytes());
    hash.update(made.as_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    let (first, _) = hash.split_first_chunk::<16>()?;
    Some(SpoolId(u128::from_be_bytes(*first)))
}

/// Reduces the limit of an append. The caller counts [`Options::PER_ENTRY`] for each entry, but a
/// record needs more; with the lower limit no append of several entries is too large.
fn fitting(mut options: Options, batch: usize) -> Options {
    let room = batch.saturating_sub(PER_BATCH);
    let per_entry = Options::PER_ENTRY.min(PER_RECORD);
    options.max_append = options.max_append.min(room / PER_RECORD * per_entry);
    options
}

#[async_trait]
impl Spool for KafkaSpool {
    fn id(&self) -> SpoolId {
        self.id
    }

    fn logs(&self) -> &[Arc<dyn Log>] {
        &self.logs
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.common.refused()
    }

    fn away(&self) -> Option<Arc<str>> {
        self.kafka.iter().find_map(|log| log.away())
    }

    async fn close(&self) -> Result<(), SpoolFault> {
        for log in &self.kafka {
            log.shut();
        }
        for log in &self.kafka {
            log.closed().await;
        }
        self.common.close();
        self.common.check()
    }
}

impl fmt::Debug for KafkaSpool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaSpool({})", self.id)
    }
}
