//! The lanes that sessions have open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use windrow_core::{Fault, FaultClass, LanePorts, SourceId};
use windrow_pgwire::target::Credential;

use crate::client::Identity;
use crate::rows_ahead::RowsAhead;
use crate::services::{LaneKey, Lanes};
use crate::session_info::Interrupt;

/// Why there is no lane for a session.
pub(crate) const UNSHARED: &str = "settings that no other session has";

/// Lanes that are opened for any client, if its session has only the settings that it started with.
const MAX_FREE_LANES: usize = 8;

/// All lanes that are open, and who wants to be in one.
pub(crate) struct LaneBook {
    lanes: Arc<dyn Lanes>,
    open: Mutex<HashMap<LaneKey, Weak<Lane>>>,
    interests: Mutex<HashMap<LaneKey, Weak<LaneInterest>>>,
}

/// The wish of a session for a lane. All sessions that want the same lane share it.
#[derive(Debug)]
pub(crate) struct LaneInterest(());

/// A lane as sessions share it.
pub(crate) struct Lane {
    /// A number that no other lane of this process has.
    pub(crate) number: u64,
    /// The way in.
    pub(crate) ports: LanePorts,
    /// Whose turn it is to ask the lane's database what a statement means. One at a time: when a
    /// thousand sessions send a new text at once, the database is asked once.
    pub(crate) asking: tokio::sync::Mutex<()>,
    /// Rows whose computed columns were asked for before a session needs them.
    pub(crate) ahead: RowsAhead,
}

/// A session among those who hand units to a lane.
pub(crate) struct LaneSource {
    pub(crate) lane: Arc<Lane>,
    pub(crate) id: SourceId,
}

impl LaneSource {
    /// Returns the interrupt of a cancel request while the session has something in its lane.
    pub(crate) fn interrupt(&self) -> Interrupt {
        Interrupt::Lane(self.lane.ports.intake.clone(), self.id)
    }
}

impl Lane {
    /// A lane that was just opened.
    pub(crate) fn new(ports: LanePorts) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ports,
            asking: tokio::sync::Mutex::default(),
            ahead: RowsAhead::default(),
        })
    }
}

impl LaneBook {
    /// A book in which no lane is open. `lanes`: those of the process.
    pub(crate) fn new(lanes: Arc<dyn Lanes>) -> Self {
        Self {
            lanes,
            open: Mutex::default(),
            interests: Mutex::default(),
        }
    }

    /// Notes that a session wants to be in the lane of a key, as long as it keeps what this gives.
    pub(crate) fn interest(&self, key: &LaneKey) -> Arc<LaneInterest> {
        let mut interests = lock(&self.interests);
        if let Some(interest) = interests.get(key).and_then(Weak::upgrade) {
            return interest;
        }
        interests.retain(|_, interest| interest.strong_count() > 0);
        let interest = Arc::new(LaneInterest(()));
        interests.insert(key.clone(), Arc::downgrade(&interest));
        interest
    }

    /// Returns true if settings are those of one session alone, so that a lane for them would join
    /// nothing.
    fn is_unshared(&self, key: &LaneKey, interest: &Arc<LaneInterest>) -> bool {
        let freely = key.settings.set.is_empty() && lock(&self.open).len() < MAX_FREE_LANES;
        !freely && Arc::strong_count(interest) < 2
    }

    /// The lane of a key; it is opened if no session has it open. `interest`: that this one wants
    /// it. `is_due`: also where nobody else has these settings. Cancel safe.
    ///
    /// # Errors
    /// Those of [`Lanes::open`]; [`FaultClass::Overloaded`] where nobody else has
    /// these settings.
    pub(crate) async fn open(
        &self,
        key: &LaneKey,
        interest: &Arc<LaneInterest>,
        is_due: bool,
    ) -> Result<Arc<Lane>, Fault> {
        if let Some(lane) = lock(&self.open).get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        if !is_due && self.is_unshared(key, interest) {
            return Err(Fault::new(FaultClass::Overloaded, "53400", UNSHARED));
        }
        let lane = Lane::new(self.lanes.open(key).await?);
        let mut open = lock(&self.open);
        // Another task may have been faster.
        if let Some(lane) = open.get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        open.retain(|_, lane| lane.strong_count() > 0);
        open.insert(key.clone(), Arc::downgrade(&lane));
        Ok(lane)
    }

    /// Forgets and ends the lanes of a role and a credential that are not let in any more.
    pub(crate) fn revoke(&self, identity: &Identity, credential: &Credential) {
        let other = |key: &LaneKey| key.identity != *identity || key.credential != *credential;
        lock(&self.open).retain(|key, _| other(key));
        self.lanes.revoke(identity, credential);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A task that panicked while it held the lock left a whole map.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
