//! One connection as a source of writes. Its requests keep their order, although they use the lane,
//! the spool and the lane for reads, which are independent of each other: while requests are under
//! way in one of them, no request is submitted to another.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use windrow_core::{SourceId, SpoolPlace};

use crate::services::Services;

/// The time that one request may wait, in total, for the database to apply the spool.
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

/// The writes of one connection: its source numbers, the requests under way, and the part of the
/// spool that the database may not have yet.
pub(crate) struct WriteSource {
    lane: SourceId,
    /// The source number in the spool; `None` if there is no spool.
    spool: Option<SourceId>,
    /// The source number in the lane for reads; `None` if there is none.
    reads: Option<SourceId>,
    state: Mutex<State>,
    /// Notified when no request is under way in one of the ways any more.
    changed: Notify,
}

#[derive(Default)]
struct State {
    committing: usize,
    spooling: usize,
    reading: usize,
    /// The place after all writes acknowledged by the spool; `None` once the database has them.
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
    /// Returns a new source.
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

    /// Returns the source number of this connection on one of the ways.
    pub(crate) fn id(&self, way: Way) -> SourceId {
        match way {
            Way::Lane => None,
            Way::Spool => self.spool,
            Way::Reads => self.reads,
        }
        .unwrap_or(self.lane)
    }

    /// Begins a request, which may wait for the full time.
    pub(crate) fn begin_request(&self) {
        if self.spool.is_some() {
            self.state.lock().time_left = SPOOL_TIMEOUT;
        }
    }

    /// Returns the time left of [`SPOOL_TIMEOUT`].
    pub(crate) fn time_left(&self) -> Duration {
        self.state.lock().time_left
    }

    /// Subtracts the time waited from the time left.
    pub(crate) fn has_waited(&self, waited: Duration) {
        let mut state = self.state.lock();
        state.time_left = state.time_left.saturating_sub(waited);
    }

    /// Waits for a pass until everything that went another way is answered. `free` reads, which
    /// need not see writes in the spool, do not wait for it. Reads go through the lane while writes
    /// of this client are under way there, and follow those. Cancel safe.
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
        let mut state = self.state.lock();
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

    /// Returns the place that the database must reach before anything else of this client is
    /// executed; `None` if it has.
    pub(crate) fn place(&self) -> Option<Arc<SpoolPlace>> {
        self.state.lock().place.clone()
    }

    /// Notes that the spool has accepted writes, all of which are before the place.
    pub(crate) fn has_spooled(&self, place: &Arc<SpoolPlace>) {
        self.state.lock().place = Some(Arc::clone(place));
    }

    /// Notes that the database has everything before the place.
    pub(crate) fn has_reached(&self, place: &Arc<SpoolPlace>) {
        let mut state = self.state.lock();
        if state.place.as_ref().is_some_and(|p| Arc::ptr_eq(p, place)) {
            state.place = None;
        }
    }
}

impl fmt::Debug for WriteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteSource").field(&self.lane).finish()
    }
}

/// A pass, held while requests are under way on one of the ways.
#[derive(Debug)]
pub(crate) struct WayPass<'s> {
    source: &'s WriteSource,
    way: Way,
}

impl WayPass<'_> {
    /// Returns the way of the pass.
    pub(crate) fn way(&self) -> Way {
        self.way
    }
}

impl Drop for WayPass<'_> {
    fn drop(&mut self) {
        let mut state = self.source.state.lock();
        let left = state.under_way(self.way);
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.source.changed.notify_waiters();
        }
    }
}
