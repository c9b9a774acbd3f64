//! Keeps the connection of one step of a move for the next, so that each step need not open its
//! own.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use windrow_core::TableName;
use windrow_pgwire::wire::Wire;

use super::facts::Facts;

/// The longest time that a connection is kept unused. After that, a device between here and the
/// server may have dropped the connection.
const MAX_IDLE: Duration = Duration::from_secs(10);

/// A connection on which no transaction is open.
pub(super) struct Visit {
    pub(super) wire: Wire,
    /// The table whose facts were read last on the connection.
    pub(super) known: Option<(TableName, Facts)>,
}

/// At most one unused connection.
#[derive(Default)]
pub(super) struct Spare {
    resting: Mutex<Option<(Visit, Instant)>>,
}

impl Spare {
    /// Takes the connection, if there is one that is still usable.
    pub(super) fn take(&self) -> Option<Visit> {
        let resting = self.resting.lock().take();
        let (mut visit, since) = resting?;
        if since.elapsed() < MAX_IDLE && visit.wire.is_alive() {
            return Some(visit);
        }
        part(visit);
        None
    }

    /// Leaves a connection to the next step.
    pub(super) fn leave(&self, visit: Visit) {
        let other = self.resting.lock().replace((visit, Instant::now()));
        if let Some((other, _)) = other {
            part(other);
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        let resting = self.resting.lock().take();
        if let Some((visit, _)) = resting {
            part(visit);
        }
    }
}

/// Closes a connection in the background. Without a runtime the connection is just dropped, which
/// ends it as well.
fn part(visit: Visit) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(visit.wire.terminate());
    }
}
