//! One connection as a source of writes. What its client asks for keeps its order, although some of
//! it goes by the lane and some by the spool, which know nothing of each other: while writes are
//! under way by one of them, nothing is handed to the other.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windrow_core::{SourceId, SpoolPlace};

use crate::ack::Ack;
use crate::services::Services;

/// How long one request waits for the database to apply what is in the spool, in all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The writes of one connection: who it is for the lane and for the spool, what is under way, and
/// what the database may not have yet.
pub(crate) struct WriteSource {
    lane: SourceId,
    /// `None` where there is no spool.
    spool: Option<SourceId>,
    state: Mutex<State>,
    /// Told when nothing is under way any more by one of the two.
    changed: Notify,
}

#[derive(Default)]
struct State {
    committing: usize,
    spooling: usize,
    /// Behind all that was acknowledged by the spool; `None` once the database has it.
    place: Option<Arc<SpoolPlace>>,
    /// How long the request under way may still wait for the database.
    patience: Duration,
}

impl State {
    fn under_way(&mut self, ack: Ack) -> &mut usize {
        match ack {
            Ack::Commit => &mut self.committing,
            Ack::Spool => &mut self.spooling,
        }
    }
}

impl WriteSource {
    /// A source that nobody else has.
    pub(crate) fn new(services: &Services) -> Self {
        let spool = services.spool.as_ref();
        Self {
            lane: services.intake.new_source(),
            spool: spool.map(|spool| spool.intake().new_source()),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Who asks, for the one or the other.
    pub(crate) fn id(&self, ack: Ack) -> SourceId {
        match ack {
            Ack::Commit => self.lane,
            Ack::Spool => self.spool.unwrap_or(self.lane),
        }
    }

    /// A request has come: it may wait as long as any.
    pub(crate) fn begin_request(&self) {
        if self.spool.is_some() {
            self.state().patience = PATIENCE;
        }
    }

    /// What is left of [`PATIENCE`].
    pub(crate) fn patience(&self) -> Duration {
        self.state().patience
    }

    /// Takes the time that was waited off what is left.
    pub(crate) fn has_waited(&self, waited: Duration) {
        let mut state = self.state();
        state.patience = state.patience.saturating_sub(waited);
    }

    /// A pass for writes that are answered so: once all that went the other way is answered, and at
    /// once for `free` reads, which need not see what is in the spool. Cancel safe.
    pub(crate) async fn pass(&self, ack: Ack, free: bool) -> Pass<'_> {
        if let Some(pass) = self.try_pass(ack, free) {
            return pass;
        }
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(pass) = self.try_pass(ack, free) {
                return pass;
            }
            changed.await;
        }
    }

    fn try_pass(&self, ack: Ack, free: bool) -> Option<Pass<'_>> {
        let mut state = self.state();
        let others = match ack {
            Ack::Commit => state.spooling,
            Ack::Spool => state.committing,
        };
        if others > 0 && !free {
            return None;
        }
        *state.under_way(ack) += 1;
        Some(Pass { source: self, ack })
    }

    /// The place that the database must have reached before anything else of this client's is
    /// executed; `None` where it has.
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

/// Held while writes are under way by the lane or by the spool.
#[derive(Debug)]
pub(crate) struct Pass<'s> {
    source: &'s WriteSource,
    ack: Ack,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.source.state();
        let left = state.under_way(self.ack);
        *left = left.saturating_sub(1);
        if *left == 0 && self.source.spool.is_some() {
            self.source.changed.notify_waiters();
        }
    }
}
