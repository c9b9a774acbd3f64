//! The state that requests with keys share: the lane, the tables, and the requests that have not
//! ended.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use windrow_bookkeeping::{Executed, IDEMPOTENCY, KeyPart, prepare_keys};
use windrow_core::{Bookkeeping, Fault, FaultClass, Intake, SourceId, Unit, UnitOutcome};

use crate::fingerprint::Fingerprint;
use crate::key::IdempotencyKey;

/// The number of keys that the spool has accepted whose fingerprints are kept: at most some
/// megabytes.
const REMEMBERED: usize = 16_384;

/// The state that requests with keys share.
pub(crate) struct Shared {
    /// The lane of all units, and of reads and writes about them.
    pub(crate) lane: Intake,
    /// The source of reads and writes beside the units.
    pub(crate) source: SourceId,
    tables: Arc<dyn Bookkeeping>,
    /// True if the table is known to exist.
    prepared: AtomicBool,
    under_way: Mutex<HashSet<IdempotencyKey>>,
    spooled: Mutex<Remembered>,
}

/// The fingerprints of the last requests that the spool has accepted.
#[derive(Default)]
struct Remembered {
    by_key: HashMap<IdempotencyKey, Fingerprint>,
    oldest: VecDeque<IdempotencyKey>,
}

impl Shared {
    pub(crate) fn new(lane: Intake, tables: Arc<dyn Bookkeeping>) -> Self {
        Self {
            source: lane.new_source(),
            lane,
            tables,
            prepared: AtomicBool::new(false),
            under_way: Mutex::default(),
            spooled: Mutex::default(),
        }
    }

    /// Creates the table of keys, unless that was done.
    pub(crate) async fn prepare(&self) -> Result<(), Fault> {
        if !self.prepared.load(Ordering::Relaxed) {
            prepare_keys(&*self.tables).await?;
            self.prepared.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Examines a fault: if the table of keys was dropped, it is created again before the next
    /// request.
    pub(crate) fn noticed(&self, fault: &Fault) {
        let is_of_keys =
            || fault.table() == Some(IDEMPOTENCY) || fault.message.contains(IDEMPOTENCY);
        if fault.class == FaultClass::NoTable && is_of_keys() {
            self.prepared.store(false, Ordering::Relaxed);
        }
    }

    /// True if the first unit of a request for the spool is that of the last request with its key,
    /// or if the key is not known.
    pub(crate) fn is_same(&self, key: &IdempotencyKey, first: Fingerprint) -> bool {
        let mut spooled = self.spooled.lock();
        if let Some(known) = spooled.by_key.get(key) {
            return *known == first;
        }
        if spooled.oldest.len() >= REMEMBERED
            && let Some(oldest) = spooled.oldest.pop_front()
        {
            spooled.by_key.remove(&oldest);
        }
        spooled.oldest.push_back(key.clone());
        spooled.by_key.insert(key.clone(), first);
        true
    }

    /// Returns the record of a part.
    pub(crate) async fn read(&self, part: &KeyPart) -> Result<Option<Executed>, Fault> {
        found(self.lane.run(self.source, Unit::one(part.read())).await)
    }
}

/// Returns the record from the outcome of a read.
pub(crate) fn found(outcome: UnitOutcome) -> Result<Option<Executed>, Fault> {
    let dones = outcome.map_err(|failed| failed.fault)?;
    dones.first().map_or(Ok(None), KeyPart::found)
}

/// A key whose request has not ended.
pub(crate) struct UnderWay {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: IdempotencyKey,
    /// True for a key of the gateway's own, which no client will repeat.
    pub(crate) own: bool,
    /// True if a part of the request was executed before.
    pub(crate) replayed: AtomicBool,
}

impl UnderWay {
    /// Begins the request of a key; `None` if another one with the key has not ended.
    pub(crate) fn begin(shared: &Arc<Shared>, key: IdempotencyKey) -> Option<Self> {
        let is_new = shared.under_way.lock().insert(key.clone());
        is_new.then(|| Self {
            shared: Arc::clone(shared),
            key,
            own: false,
            replayed: AtomicBool::new(false),
        })
    }

    /// Begins a request under a key of the gateway's own, which no other has.
    pub(crate) fn begin_own(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            key: IdempotencyKey::own(),
            own: true,
            replayed: AtomicBool::new(false),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.shared.under_way.lock().remove(&self.key);
    }
}
