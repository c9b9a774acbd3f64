//! The lanes that sessions have open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use windrow_core::{Fault, FaultClass, LanePorts, SourceId};
use windrow_pgwire::target::Credential;

use crate::client::Identity;
use crate::rows_ahead::RowsAhead;
use crate::services::{LaneKey, Lanes};
use crate::session_info::Interrupt;

/// The reason why a session has no lane.
pub(crate) const UNSHARED: &str = "settings that no other session has";

/// The number of open lanes up to which a lane is opened for any client whose session has only its
/// start settings.
const MAX_FREE_LANES: usize = 8;

/// All open lanes, and the sessions that want to use one.
pub(crate) struct LaneBook {
    lanes: Arc<dyn Lanes>,
    open: Mutex<HashMap<LaneKey, Weak<Lane>>>,
    interests: Mutex<HashMap<LaneKey, Weak<LaneInterest>>>,
}

/// A session's interest in a lane. All sessions that want the same lane share it.
#[derive(Debug)]
pub(crate) struct LaneInterest(());

/// A lane shared by sessions.
pub(crate) struct Lane {
    /// A number that no other lane of this process has.
    pub(crate) number: u64,
    /// The ports of the lane.
    pub(crate) ports: LanePorts,
    /// Locked by the session that asks the lane's database about a statement. When a thousand
    /// sessions send a new text at once, the database is asked once.
    pub(crate) asking: tokio::sync::Mutex<()>,
    /// Rows whose computed columns were requested before a session needs them.
    pub(crate) ahead: RowsAhead,
}

/// A session as a source of a lane.
pub(crate) struct LaneSource {
    pub(crate) lane: Arc<Lane>,
    pub(crate) id: SourceId,
}

impl LaneSource {
    /// Returns the interrupt for a cancel request while the session has units in its lane.
    pub(crate) fn interrupt(&self) -> Interrupt {
        Interrupt::Lane(self.lane.ports.intake.clone(), self.id)
    }
}

impl Lane {
    /// Returns a lane that was just opened.
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
    /// Returns a book without open lanes. `lanes`: those of the process.
    pub(crate) fn new(lanes: Arc<dyn Lanes>) -> Self {
        Self {
            lanes,
            open: Mutex::default(),
            interests: Mutex::default(),
        }
    }

    /// Notes that a session wants to use the lane of a key, until it drops the result.
    pub(crate) fn interest(&self, key: &LaneKey) -> Arc<LaneInterest> {
        let mut interests = self.interests.lock();
        if let Some(interest) = interests.get(key).and_then(Weak::upgrade) {
            return interest;
        }
        interests.retain(|_, interest| interest.strong_count() > 0);
        let interest = Arc::new(LaneInterest(()));
        interests.insert(key.clone(), Arc::downgrade(&interest));
        interest
    }

    /// Returns true if only one session has these settings, so that a lane for them would join
    /// nothing.
    fn is_unshared(&self, key: &LaneKey, interest: &Arc<LaneInterest>) -> bool {
        let freely = key.settings.set.is_empty() && self.open.lock().len() < MAX_FREE_LANES;
        !freely && Arc::strong_count(interest) < 2
    }

    /// Returns the lane of a key, and opens it if needed. `interest`: the session's own. `is_due`:
    /// true if the lane is opened even for one session. Cancel safe.
    ///
    /// # Errors
    /// Those of [`Lanes::open`]; [`FaultClass::Overloaded`] if no other session has these settings.
    pub(crate) async fn open(
        &self,
        key: &LaneKey,
        interest: &Arc<LaneInterest>,
        is_due: bool,
    ) -> Result<Arc<Lane>, Fault> {
        if let Some(lane) = self.open.lock().get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        if !is_due && self.is_unshared(key, interest) {
            return Err(Fault::new(FaultClass::Overloaded, "53400", UNSHARED));
        }
        let lane = Lane::new(self.lanes.open(key).await?);
        let mut open = self.open.lock();
        // Another task may have been faster.
        if let Some(lane) = open.get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        open.retain(|_, lane| lane.strong_count() > 0);
        open.insert(key.clone(), Arc::downgrade(&lane));
        Ok(lane)
    }

    /// Removes and ends the lanes of a role and a credential whose login was revoked.
    pub(crate) fn revoke(&self, identity: &Identity, credential: &Credential) {
        let other = |key: &LaneKey| key.identity != *identity || key.credential != *credential;
        self.open.lock().retain(|key, _| other(key));
        self.lanes.revoke(identity, credential);
    }
}
