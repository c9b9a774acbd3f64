//! The ends that a process and a machine can come to.

use super::{Disk, Faults};

impl Disk {
    /// The process is killed: what the system has in memory stays. The next one starts on a disk
    /// that works.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.boot += 1;
        state.locks.clear();
        state.faults = Faults::default();
    }

    /// Power is lost, and comes back: anything that was not synced may be lost.
    pub(crate) fn power_loss(&self) {
        self.kill();
        let mut state = self.state();
        let state = &mut *state;
        state.names.lose(&mut state.random);
        for node in state.nodes.values_mut() {
            node.lose(&mut state.random);
        }
    }
}
