//! The statements and portals of a session at the console.

use std::collections::HashMap;

use windrow_core::{Fault, FaultClass};

use super::command::Command;
use crate::codec::message::Kind;

/// The most statements, and the most portals, of one session.
const MAX_PREPARED: usize = 64;

/// The statements that a session has prepared and bound, by name.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) statements: HashMap<Box<[u8]>, Command>,
    pub(super) portals: HashMap<Box<[u8]>, Command>,
}

impl Prepared {
    /// Returns all of a kind.
    pub(super) fn of(&mut self, kind: Kind) -> &mut HashMap<Box<[u8]>, Command> {
        match kind {
            Kind::Statement => &mut self.statements,
            Kind::Portal => &mut self.portals,
        }
    }

    /// Adds one.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn put(&mut self, kind: Kind, name: &[u8], command: Command) -> Result<(), Fault> {
        let all = self.of(kind);
        if all.len() >= MAX_PREPARED && !all.contains_key(name) {
            let text = format!(
                "the console keeps at most {MAX_PREPARED} statements and portals: close some"
            );
            return Err(Fault::new(FaultClass::TooLarge, "54000", text));
        }
        all.insert(name.into(), command);
        Ok(())
    }
}

/// Returns the fault of a name that does not exist.
pub(super) fn unknown(kind: Kind, name: &[u8]) -> Fault {
    let name = String::from_utf8_lossy(name);
    match kind {
        Kind::Statement => {
            let text = format!("prepared statement \"{name}\" does not exist");
            Fault::new(FaultClass::Invalid, "26000", text)
        }
        Kind::Portal => {
            let text = format!("portal \"{name}\" does not exist");
            Fault::new(FaultClass::Invalid, "34000", text)
        }
    }
}
