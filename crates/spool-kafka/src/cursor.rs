//! Reads ahead.
//!
//! Another task fetches, so that a reader whose future is dropped while it waits loses neither an
//! answer nor a connection. The task holds at most two answers, each of a megabyte or a single
//! batch, and the reader holds a third.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kafka_protocol::ResponseError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windrow_spool::{Cursor, Entry, Position, SpoolFault};

use crate::cluster::Line;
use crate::failure::Failure;
use crate::record;
use crate::state::{Bounds, Common};

/// The time that a reader waits for unreachable brokers before it reports them.
const REPORT_DELAY: Duration = Duration::from_secs(10);

/// The delay after a failed attempt.
const REST: Duration = Duration::from_millis(200);

type Read = Result<Vec<Entry>, SpoolFault>;

/// Reads a partition.
pub(crate) struct KafkaCursor {
    common: Arc<Common>,
    bounds: Arc<Bounds>,
    partition: u32,
    position: Position,
    ready: VecDeque<Entry>,
    /// The task; `None` before the first read, and after a fault.
    ahead: Option<Ahead>,
}

/// The task that reads ahead. It ends when this is dropped.
struct Ahead {
    read: mpsc::Receiver<Read>,
    task: JoinHandle<()>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KafkaCursor {
    pub(crate) fn new(
        common: Arc<Common>,
        bounds: Arc<Bounds>,
        partition: u32,
        from: Position,
    ) -> Result<Self, SpoolFault> {
        let first = bounds.first();
        if from < first {
            return Err(SpoolFault::Trimmed {
                partition,
                asked: from,
                first,
            });
        }
        Ok(Self {
            common,
            bounds,
            partition,
            position: from,
            ready: VecDeque::new(),
            ahead: None,
        })
    }

    fn ahead(&mut self) -> Result<&mut Ahead, SpoolFault> {
        if self.ahead.is_none() {
            self.ahead = Some(self.start()?);
        }
        self.ahead.as_mut().ok_or(SpoolFault::Closed)
    }

    fn start(&self) -> Result<Ahead, SpoolFault> {
        let beyond = |_| SpoolFault::Option("a position is larger than an offset can be".into());
        let partition = i32::try_from(self.partition).map_err(beyond)?;
        let fetcher = Fetcher {
            line: Line::new(Arc::clone(&self.common.cluster), partition),
            bounds: Arc::clone(&self.bounds),
            partition: self.partition,
            from: i64::try_from(self.position.0).map_err(beyond)?,
        };
        let (sender, read) = mpsc::channel(1);
        let task = tokio::spawn(fetcher.run(sender));
        Ok(Ahead { read, task })
    }

    /// Takes the entries that have been read, up to `most_bytes`.
    fn take(&mut self, most_bytes: usize) -> Vec<Entry> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(entry) = self.ready.front() {
            bytes += entry.payload.len();
            if !taken.is_empty() && bytes > most_bytes {
                break;
            }
            taken.extend(self.ready.pop_front());
        }
        if let Some(last) = taken.last() {
            self.position = last.position.plus(1);
        }
        taken
    }
}

#[async_trait]
impl Cursor for KafkaCursor {
    fn position(&self) -> Position {
        self.position
    }

    async fn next(&mut self, most_bytes: usize) -> Read {
        if self.ready.is_empty() {
            let common = Arc::clone(&self.common);
            let read = tokio::select! {
                biased;
                read = self.ahead()?.read.recv() => read,
                () = common.closed() => return Err(SpoolFault::Closed),
            };
            match read {
                Some(Ok(entries)) => self.ready.extend(entries),
                Some(Err(fault)) => {
                    self.ahead = None;
                    return Err(fault);
                }
                // The task ends only after a fault, or with the runtime.
                None => return Err(SpoolFault::Closed),
            }
        }
        Ok(self.take(most_bytes))
    }
}

impl fmt::Debug for KafkaCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaCursor({} at {})", self.partition, self.position)
    }
}

/// Fetches one answer after the other.
struct Fetcher {
    line: Line,
    bounds: Arc<Bounds>,
    partition: u32,
    from: i64,
}

impl Fetcher {
    async fn run(mut self, out: mpsc::Sender<Read>) {
        loop {
            let read = self.read().await;
            let ends = read.is_err();
            // The reader is gone.
            if out.send(read).await.is_err() || ends {
                return;
            }
        }
    }

    /// Returns the next entries.
    async fn read(&mut self) -> Read {
        let mut since = None;
        loop {
            let failure = match self.line.fetch(self.from).await {
                Ok(fetched) => {
                    since = None;
                    self.bounds.note(fetched.first, fetched.end);
                    let found = record::decode(fetched.records, self.from);
                    self.from = found.next;
                    if !found.entries.is_empty() {
                        return Ok(found.entries);
                    }
                    if let Some((offset, what)) = found.strange {
                        return Err(SpoolFault::Strange {
                            position: Position(u64::try_from(offset).unwrap_or_default()),
                            what: what.into(),
                        });
                    }
                    continue;
                }
                Err(Failure::Said(ResponseError::OffsetOutOfRange)) => self.out_of_range().await?,
                Err(failure) => failure,
            };
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() > REPORT_DELAY || !failure.may_pass() {
                return Err(failure.fault("nothing can be read"));
            }
            tokio::time::sleep(REST).await;
        }
    }

    /// Handles an offset that is not in the log. A broker that does not know yet that it is no
    /// longer the leader may report that wrongly. So an offset beyond the end is asked for again,
    /// and only one before the beginning counts as deleted.
    async fn out_of_range(&mut self) -> Result<Failure, SpoolFault> {
        let (first, end) = match self.line.bounds().await {
            Ok(bounds) => bounds,
            Err(failure) => return Ok(failure),
        };
        self.bounds.note(first, end);
        if self.from < first {
            return Err(SpoolFault::Trimmed {
                partition: self.partition,
                asked: Position(u64::try_from(self.from).unwrap_or_default()),
                first: self.bounds.first(),
            });
        }
        Ok(Failure::lost(format!(
            "position {} is beyond the end of partition {}, which is {end}: entries that were \
             acknowledged are missing, or the broker is not up to date",
            self.from, self.partition
        )))
    }
}
