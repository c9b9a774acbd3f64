//! Connections that nothing needs are closed after a while.

use tokio::time::Instant;
use windrow_core::Work;

use super::state::Worker;

impl<W: Work> Worker<W> {
    /// A connection more is there to look after.
    pub(super) fn look_for_idle(&mut self, now: Instant) {
        if self.look_for_idle.is_none() {
            self.look_for_idle = now.checked_add(self.limits.idle_close);
        }
    }

    /// Closes connections that have been idle for too long, if it is time to look for them.
    pub(super) fn close_idle(&mut self) {
        let Some(at) = self.look_for_idle else { return };
        // Most turns end here: the time is read only where a timer may have been what began this
        // one.
        if !self.woken {
            return;
        }
        let now = Instant::now();
        if now >= at {
            self.look_for_idle = self.connections.close_idle(now, self.limits.idle_close);
        }
    }
}
