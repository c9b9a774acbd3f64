//! What the console does besides showing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use windrow_core::{Fault, FaultClass};

use crate::house::House;
use crate::presence::State;

/// How often it is looked whether work under way has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Holds work back, and waits until none is under way. Dropped before, it lets all go on again.
pub(super) async fn pause(house: &House, database: Option<&str>) -> Result<(), Fault> {
    check(house, database)?;
    house.gate.pause(database);
    let undo = Undo { house, database };
    // Sessions do not say when they are done, so that nothing stands on the way of a write.
    let mut look = interval(LOOK);
    loop {
        look.tick().await;
        if is_quiet(house, database) || !is_held(house, database) {
            break;
        }
    }
    std::mem::forget(undo);
    Ok(())
}

/// Lets it go on.
pub(super) fn resume(house: &House, database: Option<&str>) -> Result<(), Fault> {
    check(house, database)?;
    house.gate.resume(database);
    Ok(())
}

struct Undo<'a> {
    house: &'a House,
    database: Option<&'a str>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        self.house.gate.resume(self.database);
    }
}

fn check(house: &House, database: Option<&str>) -> Result<(), Fault> {
    let known = |name: &str| {
        house
            .config
            .databases
            .iter()
            .any(|database| database.name == name)
    };
    match database {
        Some(name) if !known(name) => {
            let text = format!("database \"{name}\" is not configured");
            let hint = "SHOW DATABASES lists those that are.";
            Err(Fault::new(FaultClass::Invalid, "3D000", text).with_hint(Some(hint)))
        }
        _ => Ok(()),
    }
}

/// False once somebody else has let it go on.
fn is_held(house: &House, database: Option<&str>) -> bool {
    let mut databases = house.config.databases.iter();
    match database {
        Some(name) => house.gate.is_paused(name),
        None => databases.all(|database| house.gate.is_paused(&database.name)),
    }
}

fn is_quiet(house: &House, database: Option<&str>) -> bool {
    // Whoever waits at the gate shows that it waits, too.
    let waiting = house.gate.waiting(database);
    let busy = |state| matches!(state, State::Joining | State::Relaying | State::Waiting);
    let sessions = house.register.list();
    let busy = sessions
        .iter()
        .filter(|presence| database.is_none_or(|name| *presence.identity.database == *name))
        .filter(|presence| busy(presence.state()));
    busy.count() <= waiting
}

/// Reads the configuration again, as far as it can change while clients are in.
pub(super) async fn reload(house: &House) -> Result<(), Fault> {
    let reload = Arc::clone(&house.console.reload);
    let read = tokio::task::spawn_blocking(move || reload()).await;
    let roles = read.map_err(|error| Fault::internal(error.to_string()))?;
    let replaced = roles.and_then(|roles| house.access.replace(roles));
    replaced.map_err(|why| Fault::invalid(format!("nothing was changed: {why}")))
}

/// Ends the process.
pub(super) fn shutdown(house: &House) {
    tracing::info!("SHUTDOWN at the console");
    house.console.shutdown.cancel();
    house.stop.cancel();
}
