//! A lane's connection to the server.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, Name, Verdict};
use windrow_database::Options;

use super::cache::Catalog;
use super::settle::{Break, TRUSTED, Verified};
use crate::catalog::guard;
use crate::catalog::table::Table;
use crate::fault::{Scope, Trouble};
use crate::session::Session;
use crate::session::interrupt::Interrupt;

/// A lane's connection to the server.
pub(crate) struct Connection {
    pub(super) session: Session,
    pub(super) catalog: Arc<Catalog>,
    pub(super) purpose: Purpose,
    /// True if missing tables are created.
    pub(super) creates: bool,
    /// True if missing columns are added to tables that Windrow did not create.
    pub(super) extends: bool,
    /// The column of new tables for the moment of each row.
    pub(super) received_at: Option<Name>,
    pub(super) verified: Verified,
    pub(super) interrupt: Arc<Interrupt>,
    /// True if the session may hold a number that the server generated (`LAST_INSERT_ID()`).
    pub(super) is_numbered: bool,
}

impl Connection {
    /// Wraps a session that has executed nothing yet.
    pub(crate) fn new(
        (session, interrupt): (Session, Arc<Interrupt>),
        catalog: Arc<Catalog>,
        purpose: Purpose,
        options: &Options,
    ) -> Self {
        Self {
            session,
            interrupt,
            catalog,
            purpose,
            creates: options.create_tables,
            extends: options.extend_tables,
            received_at: options.received_at.clone(),
            verified: HashMap::new(),
            is_numbered: false,
        }
    }

    /// Returns the verdict of a write that met another session's lock.
    pub(super) fn waits(&self, fault: Fault) -> Verdict {
        match self.purpose {
            Purpose::Batches => Verdict::WaitsForLock(fault),
            Purpose::LockWait => Verdict::Final(Err(fault.into())),
        }
    }

    /// Checks that a table is as described, unless that was checked less than [`TRUSTED`] ago.
    pub(super) async fn verify(&mut self, table: &Arc<Table>) -> Result<(), Break> {
        let Some(expected) = &table.print else {
            return Ok(());
        };
        let at = self.verified.get(&table.version);
        if at.is_some_and(|at| at.elapsed() < TRUSTED) {
            return Ok(());
        }
        let mut sql = String::new();
        guard::push_all(&mut sql, &table.name);
        let (seen, ended) = self.session.looks(&sql).await;
        match ended {
            Ok(()) if guard::holds(expected, &seen) => {
                if self.verified.len() > 10_000 {
                    self.verified.clear();
                }
                self.verified.insert(table.version, Instant::now());
                Ok(())
            }
            Ok(()) => Err(Break::Stale),
            Err(Trouble::Refused(refusal)) => match refusal.scope {
                Scope::Statement => Err(Break::Stale),
                Scope::Lock => Err(Break::Locked(table.name.clone(), refusal.fault)),
                _ => Err(Trouble::Refused(refusal).into()),
            },
            Err(lost) => Err(lost.into()),
        }
    }
}
