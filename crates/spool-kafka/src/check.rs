//! Checks that the topic's settings keep every acknowledged entry.

use std::fmt;

use windrow_spool::SpoolFault;

use crate::cluster::Topic;
use crate::failure::Failure;
use crate::wire::MOST_ANSWER;

/// A setting by which a topic could lose acknowledged entries. Each is refused unless the operator
/// allows it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// A partition has fewer than three replicas.
    Replication,
    /// Fewer than two replicas must have an entry when it is acknowledged.
    MinInsync,
    /// A replica that lacks entries may become the leader.
    Unclean,
    /// Entries are removed by another policy than their age.
    Cleanup,
    /// Entries are removed by their age or the topic's size, even if they are not applied.
    Retention,
}

impl Risk {
    /// All risks.
    pub const ALL: [Self; 5] = [
        Self::Replication,
        Self::MinInsync,
        Self::Unclean,
        Self::Cleanup,
        Self::Retention,
    ];

    /// Returns the risk with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.name() == name)
    }

    /// Returns the name by which it is allowed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replication => "replication",
            Self::MinInsync => "min-insync",
            Self::Unclean => "unclean",
            Self::Cleanup => "cleanup",
            Self::Retention => "retention",
        }
    }
}

/// The settings of a topic on which its durability depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The number of replicas that must have an entry when it is acknowledged.
    pub(crate) in_sync: usize,
    /// The most bytes of a batch.
    pub(crate) batch: usize,
}

const KEYS: [&str; 7] = [
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "compression.type",
    "max.message.bytes",
];

/// Refuses a topic that could lose acknowledged entries, unless that is allowed.
pub(crate) async fn check(topic: &mut Topic, allowed: &[Risk]) -> Result<Terms, SpoolFault> {
    let read = topic.configuration(&KEYS).await;
    let read = read.map_err(|failure| unasked(&failure))?;
    let of = |key: &str| -> &str {
        let found = read.iter().find(|one| &*one.name == key);
        found
            .and_then(|one| one.value.as_deref())
            .unwrap_or_default()
    };
    let replicas = topic.topic.partitions.iter();
    let replicas = replicas
        .map(|partition| partition.replica_nodes.len())
        .min();
    let mut found = FoundRisks(Vec::new());
    if replicas.unwrap_or_default() < 3 {
        found.add(
            Risk::Replication,
            format_args!(
                "has a replication factor of {}",
                replicas.unwrap_or_default()
            ),
            "3 or more",
        );
    }
    let in_sync: usize = of(KEYS[0]).parse().unwrap_or(1);
    if in_sync < 2 {
        found.set(Risk::MinInsync, KEYS[0], of(KEYS[0]), "2 or more");
    }
    if of(KEYS[1]) != "false" {
        found.set(Risk::Unclean, KEYS[1], of(KEYS[1]), "false");
    }
    if of(KEYS[2]) != "delete" {
        found.set(Risk::Cleanup, KEYS[2], of(KEYS[2]), "delete");
    }
    for key in [KEYS[3], KEYS[4]] {
        if of(key) != "-1" {
            found.set(Risk::Retention, key, of(key), "-1");
        }
    }
    found.0.retain(|(risk, _)| !allowed.contains(risk));
    refuse(topic, &found.0)?;
    if !matches!(of(KEYS[5]), "producer" | "uncompressed") {
        return Err(option(format_args!(
            "the topic {} has {} = {}; Windrow reads what is not compressed: set it to producer",
            name(topic),
            KEYS[5],
            of(KEYS[5])
        )));
    }
    let batch = of(KEYS[6]).parse().unwrap_or(1 << 20);
    if batch > MOST_ANSWER / 2 {
        return Err(option(format_args!(
            "the topic {} has {} = {batch}; Windrow takes {} at most",
            name(topic),
            KEYS[6],
            MOST_ANSWER / 2
        )));
    }
    Ok(Terms { in_sync, batch })
}

struct FoundRisks(Vec<(Risk, String)>);

impl FoundRisks {
    fn add(&mut self, risk: Risk, what: fmt::Arguments<'_>, better: &str) {
        let text = format!("it {what} ({better} is safe; or allow {:?})", risk.name());
        self.0.push((risk, text));
    }

    fn set(&mut self, risk: Risk, key: &str, value: &str, better: &str) {
        self.add(risk, format_args!("has {key} = {value}"), better);
    }
}

fn refuse(topic: &Topic, found: &[(Risk, String)]) -> Result<(), SpoolFault> {
    if found.is_empty() {
        return Ok(());
    }
    let texts: Vec<_> = found.iter().map(|(_, text)| &**text).collect();
    Err(option(format_args!(
        "the topic {} could lose what it has acknowledged: {}. Change the topic, or name it in \
         `allow`, beside the topic's URL in the configuration",
        name(topic),
        texts.join("; ")
    )))
}

fn unasked(failure: &Failure) -> SpoolFault {
    failure.fault("the topic's configuration cannot be read (DescribeConfigs)")
}

fn option(what: fmt::Arguments<'_>) -> SpoolFault {
    SpoolFault::Option(what.to_string().into())
}

fn name(topic: &Topic) -> &str {
    topic.topic.name.as_ref().map_or("", |name| &**name)
}
