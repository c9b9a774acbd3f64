//! Commands of the console that change the gateway.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use windrow_core::{Fault, FaultClass};

use crate::session_info::State;
use crate::shared::Shared;

/// The interval at which the console checks if work under way has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Pauses a database, or all, and waits until no work is under way. If the future is dropped, work
/// goes on.
pub(super) async fn pause(shared: &Shared, database: Option<&str>) -> Result<(), Fault> {
    check(shared, database)?;
    shared.gate.pause(database);
    let undo = UndoPause { shared, database };
    // Sessions do not report that they are done, because that would slow down every write.
    let mut look = interval(POLL_INTERVAL);
    loop {
        look.tick().await;
        if is_quiet(shared, database) || !is_held(shared, database) {
            break;
        }
    }
    std::mem::forget(undo);
    Ok(())
}

/// Resumes a database, or all.
pub(super) fn resume(shared: &Shared, database: Option<&str>) -> Result<(), Fault> {
    check(shared, database)?;
    shared.gate.resume(database);
    Ok(())
}

struct UndoPause<'a> {
    shared: &'a Shared,
    database: Option<&'a str>,
}

impl Drop for UndoPause<'_> {
    fn drop(&mut self) {
        self.shared.gate.resume(self.database);
    }
}

fn check(shared: &Shared, database: Option<&str>) -> Result<(), Fault> {
    match database {
        Some(name) if shared.databases.find(name).is_none() => {
            let text = format!("database \"{name}\" is not configured");
            let hint = "SHOW DATABASES lists those that are.";
            Err(Fault::new(FaultClass::Invalid, "3D000", text).with_hint(Some(hint)))
        }
        _ => Ok(()),
    }
}

/// Returns false once another session at the console has resumed the work.
fn is_held(shared: &Shared, database: Option<&str>) -> bool {
    let mut databases = shared.databases.configured.iter();
    match database {
        Some(name) => shared.gate.is_paused(name),
        None => databases.all(|database| shared.gate.is_paused(&database.name)),
    }
}

fn is_quiet(shared: &Shared, database: Option<&str>) -> bool {
    // Sessions that wait at the gate show that the database exists.
    let waiting = shared.gate.waiting(database);
    let busy = |state| matches!(state, State::Joining | State::Relaying | State::Waiting);
    let sessions = shared.register.list();
    let busy = sessions
        .iter()
        .filter(|info| database.is_none_or(|name| *info.identity.database == *name))
        .filter(|info| busy(info.state()));
    busy.count() <= waiting
}

/// Reads those parts of the configuration again that can change while clients are connected.
pub(super) async fn reload(shared: &Shared) -> Result<(), Fault> {
    let reload = Arc::clone(&shared.console.reload);
    let read = tokio::task::spawn_blocking(move || reload()).await;
    let roles = read.map_err(|error| Fault::internal(error.to_string()))?;
    let replaced = roles.and_then(|roles| shared.access.replace(roles));
    replaced.map_err(|why| Fault::invalid(format!("nothing was changed: {why}")))
}

/// Ends the process.
pub(super) fn shutdown(shared: &Shared) {
    tracing::info!("SHUTDOWN at the console");
    shared.console.shutdown.cancel();
    shared.stop.cancel();
}
