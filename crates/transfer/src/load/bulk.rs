//! Pieces of a portion by the database's bulk form, tried again where that may help.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::{
    Bulk, Fault, FaultClass, LoadFault, LoadPlan, Loaded, Loader, Mark, Rows, Span,
};

use super::LoadError;
use super::marking::Marking;
use super::patience::{Patience, is_passing};

/// One connection that loads, opened when it is needed.
pub(super) struct Press {
    bulk: Arc<dyn Bulk>,
    plan: LoadPlan,
    loader: Option<Box<dyn Loader>>,
    marking: Option<Marking>,
    away_wait: Duration,
}

/// What became of a piece.
#[derive(Debug)]
pub(super) enum Pressed {
    /// It is in.
    Loaded(Loaded),
    /// Its rows are to go through a lane.
    Refused(Fault),
    /// All rows are to go through a lane: the bulk form cannot do what is asked for.
    Unsupported(Fault),
}

impl Press {
    pub(super) fn new(
        bulk: Arc<dyn Bulk>,
        plan: LoadPlan,
        marking: Option<Marking>,
        away_wait: Duration,
    ) -> Self {
        Self {
            bulk,
            plan,
            loader: None,
            marking,
            away_wait,
        }
    }

    /// Writes a piece whole or not at all.
    pub(super) async fn load(
        &mut self,
        rows: &Rows,
        span: Span,
        halt: &CancellationToken,
        place: impl Fn() -> String,
    ) -> Result<Pressed, LoadError> {
        let mark = self.marking.as_ref().map(|marking| marking.mark(span));
        let mut patience = Patience::new(self.away_wait, halt);
        // True once a commit may have taken place that nobody has heard of.
        let mut doubtful = false;
        loop {
            let mut loader = match self.loader.take() {
                Some(loader) => loader,
                None => match self.bulk.loader(&self.plan).await {
                    Ok(loader) => loader,
                    Err(fault) if fault.class == FaultClass::Unsupported => {
                        return Ok(Pressed::Unsupported(fault));
                    }
                    Err(fault) if is_passing(&fault) => {
                        patience.wait(fault, &place).await?;
                        continue;
                    }
                    Err(fault) => {
                        let place = place();
                        return Err(LoadError::Database { place, fault });
                    }
                },
            };
            let fault = match loader.load(rows, mark.as_ref()).await {
                Ok(loaded) => {
                    self.loader = Some(loader);
                    return Ok(Pressed::Loaded(loaded));
                }
                Err(LoadFault::Refused(fault)) => {
                    self.loader = Some(loader);
                    if doubtful && self.is_in(mark.as_ref(), &mut patience, &place).await? {
                        return Ok(Pressed::Loaded(whole(rows)));
                    }
                    return Ok(Pressed::Refused(fault));
                }
                Err(LoadFault::Hopeless(fault)) => {
                    let place = place();
                    return Err(LoadError::Database { place, fault });
                }
                Err(LoadFault::Again(fault)) => fault,
                Err(LoadFault::Unknown(fault)) if mark.is_none() => {
                    let place = place();
                    return Err(LoadError::Unknown { place, fault });
                }
                Err(LoadFault::Unknown(fault)) => {
                    doubtful = true;
                    fault
                }
            };
            drop(loader);
            tracing::debug!(%fault, doubtful, "a portion is tried again");
            patience.wait(fault, &place).await?;
            if doubtful && self.is_in(mark.as_ref(), &mut patience, &place).await? {
                return Ok(Pressed::Loaded(whole(rows)));
            }
        }
    }

    /// Whether the mark of a piece is in the database, and with it the piece.
    async fn is_in(
        &mut self,
        mark: Option<&Mark>,
        patience: &mut Patience<'_>,
        place: impl Fn() -> String,
    ) -> Result<bool, LoadError> {
        let (Some(marking), Some(mark)) = (&self.marking, mark) else {
            return Ok(false);
        };
        let done = marking.read(patience, place).await?;
        Ok(done.hold_all(mark.span))
    }

    pub(super) async fn close(self) {
        if let Some(loader) = self.loader {
            loader.close().await;
        }
    }
}

/// What is taken for granted of a piece whose answer was lost.
fn whole(rows: &Rows) -> Loaded {
    Loaded {
        written: rows.len() as u64,
        ignored: 0,
    }
}
