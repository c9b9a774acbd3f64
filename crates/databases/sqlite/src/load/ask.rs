//! Work for the writer's thread.

use windrow_core::Fault;

use crate::ladder::writer::{Database, Lost, Writer};

/// Has the writer do something.
pub(super) async fn ask<T: Send + 'static>(
    writer: &Writer,
    work: impl FnOnce(&mut Database) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match writer.ask(work).await {
        Ok(answer) => answer,
        Err(Lost::NotBegun | Lost::HalfWay) => Err(Fault::unavailable("SQLite's writer broke off")),
    }
}
