//! Packs a batch, sends it to the writer and awaits its report.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Executor, Fault, Report, RowDone, RowWrite, Unit, Verdict};

use super::writer::{Database, Lost, Writer};
use crate::values::packed::Packed;

/// A way to the writer. Several may be had; their batches go one after another.
#[derive(Debug)]
pub(crate) struct SqliteExecutor {
    writer: Arc<Writer>,
    /// The buffers of the batch before.
    spare: Packed,
}

impl SqliteExecutor {
    pub(crate) fn new(writer: Arc<Writer>) -> Self {
        let spare = Packed::default();
        Self { writer, spare }
    }
}

#[async_trait]
impl Executor<RowWrite> for SqliteExecutor {
    async fn execute(&mut self, units: &[Unit<RowWrite>]) -> Report<RowDone> {
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

fn execute(database: &mut Database, packed: Packed) -> (Report<RowDone>, Packed) {
    let report = match database.session() {
        Ok(session) => session.execute(&packed),
        Err(fault) => Report::broken(packed.units(), &Verdict::RolledBack(fault)),
    };
    if !report.usable {
        database.discard();
    }
    (report, packed)
}
