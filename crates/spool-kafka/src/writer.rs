//! Appends one group after another.
//!
//! While a group is under way, other appends wait, and then share the next batch. A group is sent
//! repeatedly until its outcome is known, as long as its first append may wait.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use windrow_core::Backoff;
use windrow_spool::{Batch, Origin, Position, SpoolFault};

use crate::cluster::Line;
use crate::failure::Failure;
use crate::record::{self, PER_BATCH, PER_RECORD, Producer};
use crate::state::{Bounds, Common};

/// Timeout for an append.
pub(crate) const APPEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The delay before the second attempt, and the longest.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The end of sequences. Another producer's number is asked for long before the largest number.
const LAST_SEQUENCE: i32 = i32::MAX - (1 << 24);

/// An append under way.
pub(crate) struct Request {
    pub(crate) batch: Batch,
    pub(crate) deadline: Instant,
    pub(crate) reply: oneshot::Sender<Result<Position, SpoolFault>>,
}

/// The writer of a partition.
pub(crate) struct Writer {
    common: Arc<Common>,
    bounds: Arc<Bounds>,
    line: Line,
    requests: mpsc::Receiver<Request>,
    /// A request that was taken but was too large for the last group.
    held: Option<Request>,
    /// The producer; `None` if the next batch needs another one.
    producer: Option<Producer>,
    /// The sequence number of the next entry.
    sequence: u64,
}

impl Writer {
    pub(crate) fn new(
        common: Arc<Common>,
        bounds: Arc<Bounds>,
        partition: i32,
        requests: mpsc::Receiver<Request>,
    ) -> Self {
        Self {
            line: Line::new(Arc::clone(&common.cluster), partition),
            common,
            bounds,
            requests,
            held: None,
            producer: None,
            sequence: 0,
        }
    }

    /// Writes until the last sender is gone.
    pub(crate) async fn run(mut self) {
        while let Some(group) = self.group().await {
            let written = self.write(&group).await;
            let away = match &written {
                Ok(_) => None,
                Err(fault) => Some(fault.to_string().into()),
            };
            self.bounds.set_away(away);
            self.answer(group, &written);
        }
    }

    /// Returns the appends that share the next batch.
    async fn group(&mut self) -> Option<Vec<Request>> {
        let first = match self.held.take() {
            Some(held) => held,
            None => self.next().await?,
        };
        let limit = self.common.batch.min(self.common.options.group_bytes);
        let mut bytes = PER_BATCH + size(&first.batch);
        let mut group = vec![first];
        while let Ok(request) = self.requests.try_recv() {
            bytes += size(&request.batch);
            if bytes > limit {
                self.held = Some(request);
                break;
            }
            group.push(request);
        }
        // Their callers have gone, and nothing of them was sent.
        group.retain(|request| !request.reply.is_closed());
        Some(group)
    }

    /// Waits for an append. While the brokers are unreachable, it tries them now and then to notice
    /// when they answer again.
    async fn next(&mut self) -> Option<Request> {
        while self.bounds.away().is_some() {
            match tokio::time::timeout(LONGEST_DELAY, self.requests.recv()).await {
                Ok(request) => return request,
                Err(_) => self.probe().await,
            }
        }
        self.requests.recv().await
    }

    async fn probe(&mut self) {
        let reached = self.line.bounds().await.is_ok();
        let in_sync = self.line.in_sync().await.unwrap_or_default();
        if reached && in_sync >= self.common.in_sync {
            self.bounds.set_away(None);
        }
    }

    /// Sends a group until its outcome is known, or its time is over.
    async fn write(&mut self, group: &[Request]) -> Result<Position, SpoolFault> {
        let Some(deadline) = group.iter().map(|request| request.deadline).min() else {
            return Ok(self.bounds.end());
        };
        let (mut encoded, mut is_open, mut backoff) =
            (None, false, Backoff::new(FIRST_DELAY, LONGEST_DELAY));
        loop {
            let failure = match self.attempt(group, &mut encoded).await {
                Ok(position) => return Ok(position),
                Err(failure) => failure,
            };
            is_open |= !failure.did_nothing();
            let is_forgotten = !is_open && is_of_producer(&failure);
            if is_forgotten {
                // The brokers have forgotten the producer, as they do after a day without a batch.
                (self.producer, encoded) = (None, None);
            }
            let is_final = !is_forgotten && !failure.may_pass();
            let delay = backoff.delay();
            if is_final || Instant::now() + delay > deadline {
                return Err(self.give_up(&failure, is_open));
            }
            tracing::debug!(%failure, "an append is tried again");
            tokio::time::sleep(delay).await;
        }
    }

    /// Sends the batch once. Each attempt sends the same bytes with the same sequence, so a batch
    /// that is in the log already is not appended again.
    async fn attempt(
        &mut self,
        group: &[Request],
        encoded: &mut Option<Bytes>,
    ) -> Result<Position, Failure> {
        let entries: usize = group.iter().map(|request| request.batch.len()).sum();
        let producer = match self.producer {
            Some(producer) => producer,
            None => self.renew().await?,
        };
        let records = match encoded {
            Some(records) => records.clone(),
            None => encoded.insert(self.encode(group, producer)?).clone(),
        };
        let offset = self.line.produce(records).await?;
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        let sequence = producer.sequence.saturating_add(count);
        self.producer = (sequence < LAST_SEQUENCE).then_some(Producer {
            sequence,
            ..producer
        });
        self.sequence += entries as u64;
        self.bounds.note(0, offset.saturating_add(i64::from(count)));
        Ok(Position(u64::try_from(offset).unwrap_or_default()))
    }

    async fn renew(&mut self) -> Result<Producer, Failure> {
        let (id, epoch) = self.line.producer().await?;
        let producer = Producer {
            id,
            epoch,
            sequence: 0,
        };
        self.producer = Some(producer);
        Ok(producer)
    }

    fn encode(&self, group: &[Request], producer: Producer) -> Result<Bytes, Failure> {
        let first = Origin {
            gateway: self.common.gateway,
            sequence: self.sequence,
        };
        let batches = group.iter().map(|request| &request.batch);
        let now = self.common.options.clock.now();
        record::encode(batches, producer, first, now).map_err(Failure::unsent)
    }

    /// Gives up a batch that was not appended, or whose outcome is unknown. Then neither the
    /// producer nor the sequences are used again.
    fn give_up(&mut self, failure: &Failure, is_open: bool) -> SpoolFault {
        if !is_open {
            return failure.fault("nothing can be appended");
        }
        self.producer = None;
        // Larger than the number of entries of any group.
        self.sequence += 1 << 32;
        SpoolFault::Unsettled {
            why: failure.to_string().into(),
        }
    }

    fn answer(&self, group: Vec<Request>, written: &Result<Position, SpoolFault>) {
        let mut before = 0;
        for request in group {
            let answer = written.clone().map(|first| first.plus(before));
            before += request.batch.len() as u64;
            // The caller may have stopped waiting.
            request.reply.send(answer).ok();
        }
    }
}

/// Returns the largest number of bytes of a batch in the log, without the head of its group.
pub(crate) fn size(batch: &Batch) -> usize {
    batch.bytes() + batch.len() * PER_RECORD
}

/// Returns true if the brokers do not know the producer's number, or expect another sequence.
fn is_of_producer(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Said(
            ResponseError::UnknownProducerId
                | ResponseError::OutOfOrderSequenceNumber
                | ResponseError::InvalidProducerEpoch
                | ResponseError::InvalidProducerIdMapping
        )
    )
}
