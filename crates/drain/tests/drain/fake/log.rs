//! A spool in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;
use windrow_spool::{
    Batch, Cursor, Entry, Log, LogStatus, Origin, Position, Spool, SpoolFault, SpoolId,
};

/// A spool with one log, in memory.
#[derive(Clone, Debug)]
pub(crate) struct FakeLog {
    pub(crate) inner: Arc<Inner>,
    logs: [Arc<dyn Log>; 1],
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) entries: Mutex<Vec<Bytes>>,
    end: watch::Sender<u64>,
    trimmed: AtomicU64,
    /// Who has written all of it.
    pub(crate) gateway: AtomicU64,
    /// Why it takes nothing more.
    pub(crate) refused: Mutex<Option<Arc<str>>>,
    /// How far it was ever read.
    pub(crate) read: AtomicU64,
}

impl FakeLog {
    pub(crate) const ID: SpoolId = SpoolId(77);

    pub(crate) fn new() -> Self {
        let inner = Arc::new(Inner {
            entries: Mutex::default(),
            end: watch::Sender::new(0),
            trimmed: AtomicU64::new(0),
            gateway: AtomicU64::new(1),
            refused: Mutex::default(),
            read: AtomicU64::new(0),
        });
        let log = OneLog(Arc::clone(&inner));
        Self {
            inner,
            logs: [Arc::new(log)],
        }
    }

    pub(crate) fn push(&self, entry: impl Into<Bytes>) {
        let mut entries = self.inner.entries.lock().unwrap();
        entries.push(entry.into());
        self.inner.end.send_replace(entries.len() as u64);
    }

    pub(crate) fn trimmed(&self) -> u64 {
        self.inner.trimmed.load(Ordering::Relaxed)
    }

    pub(crate) fn trim_to(&self, position: u64) {
        self.inner.trimmed.fetch_max(position, Ordering::Relaxed);
    }
}

#[async_trait]
impl Spool for FakeLog {
    fn id(&self) -> SpoolId {
        Self::ID
    }

    fn logs(&self) -> &[Arc<dyn Log>] {
        &self.logs
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.inner.refused.lock().unwrap().clone()
    }

    async fn close(&self) -> Result<(), SpoolFault> {
        Ok(())
    }
}

#[derive(Debug)]
struct OneLog(Arc<Inner>);

#[async_trait]
impl Log for OneLog {
    fn partition(&self) -> u32 {
        0
    }

    async fn append(&self, _: Batch) -> Result<Position, SpoolFault> {
        Err(SpoolFault::Closed)
    }

    fn end(&self) -> Position {
        Position(*self.0.end.borrow())
    }

    fn refuse(&self, why: &str) {
        *self.0.refused.lock().unwrap() = Some(why.into());
    }

    fn cursor(&self, from: Position) -> Result<Box<dyn Cursor>, SpoolFault> {
        let first = Position(self.0.trimmed.load(Ordering::Relaxed));
        let (partition, asked, end) = (0, from, self.end());
        if from < first {
            return Err(SpoolFault::Trimmed {
                partition,
                asked,
                first,
            });
        }
        if from > end {
            return Err(SpoolFault::Beyond {
                partition,
                asked,
                end,
            });
        }
        Ok(Box::new(FakeCursor {
            log: Arc::clone(&self.0),
            end: self.0.end.subscribe(),
            next: from.0,
        }))
    }

    async fn trim(&self, upto: Position) -> Result<(), SpoolFault> {
        self.0.trimmed.fetch_max(upto.0, Ordering::Relaxed);
        Ok(())
    }

    async fn status(&self) -> Result<LogStatus, SpoolFault> {
        Ok(LogStatus {
            first: Position(self.0.trimmed.load(Ordering::Relaxed)),
            end: self.end(),
            bytes: 0,
            age: None,
        })
    }
}

#[derive(Debug)]
struct FakeCursor {
    log: Arc<Inner>,
    end: watch::Receiver<u64>,
    next: u64,
}

#[async_trait]
impl Cursor for FakeCursor {
    fn position(&self) -> Position {
        Position(self.next)
    }

    async fn next(&mut self, most_bytes: usize) -> Result<Vec<Entry>, SpoolFault> {
        let next = self.next;
        self.end.wait_for(|end| *end > next).await.unwrap();
        let entries = self.log.entries.lock().unwrap();
        let (mut found, mut bytes) = (Vec::new(), 0);
        for payload in &entries[next as usize..] {
            bytes += payload.len();
            if bytes > most_bytes && !found.is_empty() {
                break;
            }
            found.push(Entry {
                position: Position(self.next),
                origin: Origin {
                    gateway: self.log.gateway.load(Ordering::Relaxed),
                    sequence: self.next,
                },
                written: SystemTime::UNIX_EPOCH,
                payload: payload.clone(),
            });
            self.next += 1;
        }
        self.log.read.fetch_max(self.next, Ordering::Relaxed);
        Ok(found)
    }
}
