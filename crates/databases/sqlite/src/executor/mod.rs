//! Executes a batch: from units to statements, and from answers to verdicts.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | packs a batch, sends it to the writer, awaits its report |
//! | `writer`, `session` | the thread that owns the connection; the state of its database between batches |
//! | `plan`, `sql` | plan: a shape joined with its table; its statement |
//! | `send` | send: executes the writes of a unit |
//! | `settle` | settle: the transactions of a batch, and the verdict of each unit |
//! | `isolate` | isolate: what runs again, and how small, when a transaction fails |
//! | `grow` | creates and extends tables for units that need it |
//! | `deferred_sync` | several commits and one wait for the disk |
//! | `moments` | keys that contain the time of the write |

mod deferred_sync;
mod grow;
mod isolate;
mod moments;
pub(crate) mod plan;
mod send;
pub(crate) mod session;
mod settle;
pub(crate) mod sql;
pub(crate) mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Executor, Fault, Report, Unit, Verdict};

use self::writer::{Database, Lost, Writer};
use crate::values::packed::Packed;

/// A handle of the writer. The batches of several run one after another.
#[derive(Debug)]
pub(crate) struct SqliteExecutor {
    writer: Arc<Writer>,
    /// The buffers of the last batch, to be used again.
    spare: Packed,
}

impl SqliteExecutor {
    pub(crate) fn new(writer: Arc<Writer>) -> Self {
        let spare = Packed::default();
        Self { writer, spare }
    }
}

#[async_trait]
impl Executor for SqliteExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut packed = std::mem::take(&mut self.spare);
        packed.fill(units);
        match self.writer.ask(|database| execute(database, packed)).await {
            Ok((report, packed)) => {
                self.spare = packed;
                report
            }
            Err(Lost::NotBegun) => {
                let fault = Fault::unavailable("SQLite's writer has ended");
                Report::broken(units.len(), &Verdict::RolledBack(fault))
            }
            Err(Lost::HalfWay) => {
                let fault = Fault::unknown(
                    "SQLite's writer broke off; it cannot be known whether this was written",
                );
                Report::broken(units.len(), &Verdict::Final(Err(fault.into())))
            }
        }
    }
}

fn execute(database: &mut Database, packed: Packed) -> (Report, Packed) {
    let report = match database.session() {
        Ok(session) => session.execute(&packed),
        Err(fault) => Report::broken(packed.units(), &Verdict::RolledBack(fault)),
    };
    if !report.usable {
        database.discard();
    }
    (report, packed)
}
