//! Sends each request to the broker that leads the partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    DeleteRecordsRequest, DescribeConfigsRequest, FetchRequest, InitProducerIdRequest,
    ListOffsetsRequest, MetadataRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::{Request, StrBytes};
use parking_lot::Mutex;

use crate::address::Address;
use crate::dial::Ways;
use crate::failure::Failure;
use crate::wire::Wire;

/// The time that a broker waits for the replicas.
const REPLICATED: Duration = Duration::from_secs(10);

/// The time that a broker waits for entries to read.
const FOLLOWED: Duration = Duration::from_millis(500);

/// Bytes that are read at once, unless a single batch is larger.
const FETCHED: i32 = 1 << 20;

/// The number in requests for "unknown epoch" and "no session".
const NONE: i32 = -1;

/// The offsets that stand for the beginning and the end of a log.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// A cluster, and the topic in it.
pub(crate) struct Cluster {
    address: Address,
    ways: Ways,
    /// Brokers that may be asked: those of the address, and those that they have named.
    brokers: Mutex<Vec<(String, u16)>>,
    /// The number of the next broker to be asked.
    turn: AtomicUsize,
}

/// The cluster's metadata of the topic.
pub(crate) struct Topic {
    pub(crate) cluster: Option<StrBytes>,
    pub(crate) topic: MetadataResponseTopic,
    brokers: Vec<(i32, String, u16)>,
    asked: Wire,
}

impl Cluster {
    pub(crate) fn new(address: Address) -> Result<Self, String> {
        Ok(Self {
            ways: Ways::new(&address)?,
            brokers: Mutex::new(address.brokers.clone()),
            turn: AtomicUsize::new(0),
            address,
        })
    }

    fn name(&self) -> TopicName {
        TopicName(StrBytes::from_string(self.address.topic.clone()))
    }

    /// Asks one broker after the other for the topic, until one answers.
    pub(crate) async fn topic(&self) -> Result<Topic, Failure> {
        let brokers = self.brokers.lock().clone();
        let mut last = Failure::unsent("no broker is named");
        for _ in 0..brokers.len() {
            let turn = self.turn.load(Ordering::Relaxed) % brokers.len().max(1);
            let Some((host, port)) = brokers.get(turn) else {
                break;
            };
            match self.topic_from(host, *port).await {
                Ok(topic) => return Ok(topic),
                Err(failure) => last = failure,
            }
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        Err(last)
    }

    async fn topic_from(&self, host: &str, port: u16) -> Result<Topic, Failure> {
        let mut wire = self.ways.dial(host, port).await?;
        let wanted = MetadataRequestTopic::default().with_name(Some(self.name()));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![wanted]))
            .with_allow_auto_topic_creation(false);
        let answer = wire.ask(&request, 10).await?;
        let brokers: Vec<_> = answer
            .brokers
            .iter()
            .filter_map(|broker| {
                let port = u16::try_from(broker.port).ok()?;
                Some((broker.node_id.0, broker.host.to_string(), port))
            })
            .collect();
        self.learn(&brokers);
        let topic = answer.topics.into_iter().next();
        let topic = topic.ok_or_else(|| Failure::lost("a broker says nothing of the topic"))?;
        Failure::check(topic.error_code)?;
        Ok(Topic {
            cluster: answer.cluster_id,
            topic,
            brokers,
            asked: wire,
        })
    }

    /// Adds the brokers that the cluster reports. The brokers of the address stay, because a user
    /// may correct them.
    fn learn(&self, brokers: &[(i32, String, u16)]) {
        let mut known = self.brokers.lock();
        known.clone_from(&self.address.brokers);
        for (_, host, port) in brokers {
            let broker = (host.clone(), *port);
            if !known.contains(&broker) {
                known.push(broker);
            }
        }
    }
}

impl Topic {
    /// Returns the cluster's metadata of a partition.
    fn partition(&self, number: i32) -> Result<&MetadataResponsePartition, Failure> {
        let mut partitions = self.topic.partitions.iter();
        let found = partitions.find(|partition| partition.partition_index == number);
        let found = found.ok_or(Failure::Said(ResponseError::UnknownTopicOrPartition))?;
        match found.leader_id.0 < 0 {
            true => Err(Failure::Said(ResponseError::LeaderNotAvailable)),
            false => Ok(found),
        }
    }

    /// Returns the topic's configuration.
    pub(crate) async fn configuration(
        &mut self,
        keys: &[&'static str],
    ) -> Result<Vec<DescribeConfigsResourceResult>, Failure> {
        const TOPIC: i8 = 2;
        let name = self.topic.name.clone().unwrap_or_default();
        let keys = keys.iter().map(|key| StrBytes::from_static_str(key));
        let resource = DescribeConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(name.0)
            .with_configuration_keys(Some(keys.collect()));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let answer = self.asked.ask(&request, 1).await?;
        let result = answer.results.into_iter().next();
        let result = result.ok_or_else(|| Failure::lost("a broker says nothing of the topic"))?;
        Failure::check(result.error_code)?;
        Ok(result.configs)
    }
}

/// The result of a fetch.
pub(crate) struct Fetched {
    /// The first offset that exists.
    pub(crate) first: i64,
    /// The offset after the last record that all replicas in sync have.
    pub(crate) end: i64,
    pub(crate) records: Bytes,
}

/// A connection to the broker that leads a partition. Opened by the first request, and again after
/// a failure.
pub(crate) struct Line {
    cluster: Arc<Cluster>,
    partition: i32,
    wire: Option<Wire>,
}

impl Line {
    pub(crate) fn new(cluster: Arc<Cluster>, partition: i32) -> Self {
        Self {
            cluster,
            partition,
            wire: None,
        }
    }

    /// Returns the number of replicas in sync, as the cluster reports it now.
    pub(crate) async fn in_sync(&self) -> Result<usize, Failure> {
        let topic = self.cluster.topic().await?;
        Ok(topic.partition(self.partition)?.isr_nodes.len())
    }

    /// Sends a request and returns its answer. After any error, or if the future is dropped, the
    /// connection is dropped too: a late answer must not be taken for that of another request.
    async fn ask<R: Request>(
        &mut self,
        request: &R,
        version: i16,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, Failure> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => self.connect().await?,
        };
        let answer = wire.ask(request, version).await?;
        Failure::check(code(&answer))?;
        self.wire = Some(wire);
        Ok(answer)
    }

    async fn connect(&self) -> Result<Wire, Failure> {
        let topic = self.cluster.topic().await;
        let topic = topic.map_err(Failure::before_sending)?;
        let leader = topic.partition(self.partition);
        let leader = leader.map_err(Failure::before_sending)?.leader_id.0;
        let mut brokers = topic.brokers.iter();
        let Some((_, host, port)) = brokers.find(|(id, ..)| *id == leader) else {
            return Err(Failure::unsent("the broker that leads is not known yet"));
        };
        self.cluster.ways.dial(host, *port).await
    }

    /// Returns a new producer's number, and its epoch.
    pub(crate) async fn producer(&mut self) -> Result<(i64, i16), Failure> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(i32::MAX);
        let answer = self.ask(&request, 1, |answer| answer.error_code).await;
        let answer = answer.map_err(Failure::before_sending)?;
        Ok((answer.producer_id.0, answer.producer_epoch))
    }

    /// Appends a batch. Returns the offset of its first record once the replicas have it.
    pub(crate) async fn produce(&mut self, records: Bytes) -> Result<i64, Failure> {
        const ALL: i16 = -1;
        let data = PartitionProduceData::default()
            .with_index(self.partition)
            .with_records(Some(records));
        let topic = TopicProduceData::default()
            .with_name(self.cluster.name())
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_acks(ALL)
            .with_timeout_ms(millis(REPLICATED))
            .with_topic_data(vec![topic]);
        let of = |answer: &kafka_protocol::messages::ProduceResponse| {
            let partition = answer.responses.first()?.partition_responses.first()?;
            Some((partition.error_code, partition.base_offset))
        };
        let code = |answer: &_| of(answer).map_or(UNKNOWN, |(code, _)| code);
        let answer = self.ask(&request, 8, code).await?;
        Ok(of(&answer).map_or(0, |(_, offset)| offset))
    }

    /// Reads from an offset on. Returns nothing if no records arrive for a while. Only the leader
    /// answers, because from version 11 on another replica might, which may lack records.
    pub(crate) async fn fetch(&mut self, from: i64) -> Result<Fetched, Failure> {
        let partition = FetchPartition::default()
            .with_partition(self.partition)
            .with_current_leader_epoch(NONE)
            .with_fetch_offset(from)
            .with_partition_max_bytes(FETCHED);
        let topic = FetchTopic::default()
            .with_topic(self.cluster.name())
            .with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_max_wait_ms(millis(FOLLOWED))
            .with_min_bytes(1)
            .with_max_bytes(FETCHED)
            .with_session_epoch(NONE)
            .with_topics(vec![topic]);
        let of = |answer: &kafka_protocol::messages::FetchResponse| {
            answer.responses.first()?.partitions.first().cloned()
        };
        let code = |answer: &kafka_protocol::messages::FetchResponse| match answer.error_code {
            0 => of(answer).map_or(UNKNOWN, |partition| partition.error_code),
            code => code,
        };
        let answer = self.ask(&request, 10, code).await?;
        let found = of(&answer).ok_or_else(|| Failure::lost("a broker says nothing"))?;
        Ok(Fetched {
            first: found.log_start_offset,
            end: found.high_watermark,
            records: found.records.unwrap_or_default(),
        })
    }

    /// Returns the first offset, and the one after the last record that all replicas in sync have.
    pub(crate) async fn bounds(&mut self) -> Result<(i64, i64), Failure> {
        Ok((self.offset(EARLIEST).await?, self.offset(LATEST).await?))
    }

    async fn offset(&mut self, which: i64) -> Result<i64, Failure> {
        let partition = ListOffsetsPartition::default()
            .with_partition_index(self.partition)
            .with_current_leader_epoch(NONE)
            .with_timestamp(which);
        let topic = ListOffsetsTopic::default()
            .with_name(self.cluster.name())
            .with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(NONE.into())
            .with_topics(vec![topic]);
        let of = |answer: &kafka_protocol::messages::ListOffsetsResponse| {
            let partition = answer.topics.first()?.partitions.first()?;
            Some((partition.error_code, partition.offset))
        };
        let code = |answer: &_| of(answer).map_or(UNKNOWN, |(code, _)| code);
        let answer = self.ask(&request, 4, code).await?;
        Ok(of(&answer).map_or(0, |(_, offset)| offset))
    }

    /// Deletes all records before an offset. Returns the first offset that is left.
    pub(crate) async fn delete(&mut self, upto: i64) -> Result<i64, Failure> {
        let partition = DeleteRecordsPartition::default()
            .with_partition_index(self.partition)
            .with_offset(upto);
        let topic = DeleteRecordsTopic::default()
            .with_name(self.cluster.name())
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(millis(REPLICATED));
        let of = |answer: &kafka_protocol::messages::DeleteRecordsResponse| {
            let partition = answer.topics.first()?.partitions.first()?;
            Some((partition.error_code, partition.low_watermark))
        };
        let code = |answer: &_| of(answer).map_or(UNKNOWN, |(code, _)| code);
        let answer = self.ask(&request, 1, code).await?;
        Ok(of(&answer).map_or(0, |(_, low)| low))
    }
}

/// The code of an unexpected error, which is used for an answer without the partition.
const UNKNOWN: i16 = -1;

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
