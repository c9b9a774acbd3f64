//! Commands of the console that change something.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use windrow_core::{Fault, FaultClass};

use crate::session_info::State;
use crate::shared::Shared;

/// The interval at which the console looks if work under way has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Holds work back, and waits until none is under way. Dropped before, it lets all go on again.
pub(super) async fn pause(shared: &Shared, database: Option<&str>) -> Result<(), Fault> {
    check(shared, database)?;
    shared.gate.pause(database);
    let undo = UndoPause { shared, database };
    // Sessions do not say when they are done, so that nothing stands on the way of a write.
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

/// Lets it go on.
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

/// Returns false once another session at the console has let the work go on.
fn is_held(shared: &Shared, database: Option<&str>) -> bool {
    let mut databases = shared.databases.configured.iter();
    match database {
        Some(name) => shared.gate.is_paused(name),
        None => databases.all(|database| shared.gate.is_paused(&database.name)),
    }
}

fn is_quiet(shared: &Shared, database: Option<&str>) -> bool {
    // A session that waits at the gate shows that there is one.
    let waiting = shared.gate.waiting(database);
    let busy = |state| matches!(state, State::Joining | State::Relaying | State::Waiting);
    let sessions = shared.register.list();
    let busy = sessions
        .iter()
        .filter(|info| database.is_none_or(|name| *info.identity.database == *name))
        .filter(|info| busy(info.state()));
    busy.count() <= waiting
}

/// Reads the configuration again, as far as it can change while clients are in.
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
