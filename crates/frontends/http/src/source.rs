//! One connection as a source of writes. What its client asks for keeps its order, although some of
//! it goes by the lane, some by the spool and some by the lane of reads, which know nothing of each
//! other: while requests are under way by one of them, nothing is handed to another.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windrow_core::{SourceId, SpoolPlace};

use crate::services::Services;

/// The time that one request may wait, in all, for the database to apply what is in the spool.
pub(crate) const SPOOL_TIMEOUT: Duration = Duration::from_secs(60);

/// A way from a connection to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The lane, which takes writes and reads.
    Lane,
    /// The spool, which takes writes.
    Spool,
    /// The lane of reads, which waits for no write.
    Reads,
}

/// The writes of one connection: who it is for the lane and for the spool, what is under way, and
/// what the database may not have yet.
pub(crate) struct WriteSource {
    lane: SourceId,
    /// `None` if there is no spool.
    spool: Option<SourceId>,
    /// `None` if there is no lane of reads.
    reads: Option<SourceId>,
    state: Mutex<State>,
    /// Notified when nothing is under way any more by one of the ways.
    changed: Notify,
}

#[derive(Default)]
struct State {
    committing: usize,
    spooling: usize,
    reading: usize,
    /// Behind all that was acknowledged by the spool; `None` once the database has it.
    place: Option<Arc<SpoolPlace>>,
    /// The time that the request under way may still wait for the database.
    time_left: Duration,
}

impl State {
    fn under_way(&mut self, way: Way) -> &mut usize {
        match way {
            Way::Lane => &mut self.committing,
            Way::Spool => &mut self.spooling,
            Way::Reads => &mut self.reading,
        }
    }
}

impl WriteSource {
    /// Makes a source that nobody else has.
    pub(crate) fn new(services: &Services) -> Self {
        let (spool, reads) = (services.spool.as_ref(), services.reads.as_ref());
        Self {
            lane: services.intake.new_source(),
            spool: spool.map(|spool| spool.intake().new_source()),
            reads: reads.map(|reads| reads.new_source()),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Returns the identity of this connection on one of the ways.
    pub(crate) fn id(&self, way: Way) -> SourceId {
        match way {
            Way::Lane => None,
            Way::Spool => self.spool,
            Way::Reads => self.reads,
        }
        .unwrap_or(self.lane)
    }

    /// A request has come: it may wait as long as any.
    pub(crate) fn begin_request(&self) {
        if self.spool.is_some() {
            self.state().time_left = SPOOL_TIMEOUT;
        }
    }

    /// Returns the time left of [`SPOOL_TIMEOUT`].
    pub(crate) fn time_left(&self) -> Duration {
        self.state().time_left
    }

    /// Takes the time that was waited off what is left.
    pub(crate) fn has_waited(&self, waited: Duration) {
        let mut state = self.state();
        state.time_left = state.time_left.saturating_sub(waited);
    }

    /// Waits for a pass until all that went another way is answered. `free` reads, which need not
    /// see what is in the spool, do not wait for it. Reads go by the lane while writes of this
    /// client are under way there: behind those. Cancel safe.
    pub(crate) async fn pass(&self, way: Way, free: bool) -> WayPass<'_> {
        if let Some(pass) = self.try_pass(way, free) {
            return pass;
        }
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(pass) = self.try_pass(way, free) {
                return pass;
            }
            changed.await;
        }
    }

    fn try_pass(&self, way: Way, free: bool) -> Option<WayPass<'_>> {
        let mut state = self.state();
        let way = match way {
            Way::Reads if state.committing > 0 => Way::Lane,
            way => way,
        };
        let others = match way {
            Way::Lane => state.spooling + state.reading,
            Way::Spool => state.committing + state.reading,
            Way::Reads => state.spooling,
        };
        if others > 0 && !free {
            return None;
        }
        *state.under_way(way) += 1;
        Some(WayPass { source: self, way })
    }

    /// Returns the place that the database must have reached before anything else of this client's
    /// is executed; `None` if it has.
    pub(crate) fn place(&self) -> Option<Arc<SpoolPlace>> {
        self.state().place.clone()
    }

    /// The spool has taken writes; all of them stand before the place.
    pub(crate) fn has_spooled(&self, place: &Arc<SpoolPlace>) {
        self.state().place = Some(Arc::clone(place));
    }

    /// The database has all that stands before the place.
    pub(crate) fn has_reached(&self, place: &Arc<SpoolPlace>) {
        let mut state = self.state();
        if state.place.as_ref().is_some_and(|p| Arc::ptr_eq(p, place)) {
            state.place = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WriteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteSource").field(&self.lane).finish()
    }
}

/// Held while requests are under way by one of the ways.
#[derive(Debug)]
pub(crate) struct WayPass<'s> {
    source: &'s WriteSource,
    way: Way,
}

impl WayPass<'_> {
    /// Returns the way that is free.
    pub(crate) fn way(&self) -> Way {
        self.way
    }
}

impl Drop for WayPass<'_> {
    fn drop(&mut self) {
        let mut state = self.source.state();
        let left = state.under_way(self.way);
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.source.changed.notify_waiters();
        }
    }
}
