//! Writes pieces of a portion by the database's bulk form, and tries again if that may help.

use std::sync::Arc;

use windrow_core::{
    Bulk, Claim, Contents, Fault, FaultClass, Filtered, LoadFault, LoadPlan, Loaded, Loader, Span,
};

use super::LoadError;
use super::retries::Retries;
use super::shared::Shared;

/// One connection that loads, opened when a piece needs it.
pub(super) struct BulkWriter {
    bulk: Arc<dyn Bulk>,
    plan: LoadPlan,
    loader: Option<Box<dyn Loader>>,
    shared: Arc<Shared>,
}

/// Rows to be written together, and the mark that they get.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) contents: Contents<'a>,
    /// The record of each row; empty if no row can be left out.
    pub(super) records: &'a [u64],
    /// The part of the file that is done once the rows are written.
    pub(super) span: Span,
}

/// The outcome of a piece.
#[derive(Debug)]
pub(super) enum BulkOutcome {
    /// The piece is written, but for the rows that were left out.
    Loaded(Filtered),
    /// Nothing is written. The rows must be written in another form.
    Refused(Fault),
    /// The bulk form does not read records. They must be split into fields.
    Unread,
    /// The bulk form cannot do what the load needs. All rows must be written through a lane.
    Unsupported(Fault),
}

impl BulkWriter {
    pub(super) fn new(bulk: Arc<dyn Bulk>, plan: LoadPlan, shared: Arc<Shared>) -> Self {
        Self {
            bulk,
            plan,
            loader: None,
            shared,
        }
    }

    /// Writes all of a piece, or nothing.
    pub(super) async fn load(
        &mut self,
        piece: Piece<'_>,
        place: impl Fn() -> String,
    ) -> Result<BulkOutcome, LoadError> {
        let shared = Arc::clone(&self.shared);
        let marking = shared.marking.as_ref();
        let mark = marking.map(|marking| marking.mark(piece.span));
        let records = piece.records;
        let claim = mark.as_ref().map(|mark| Claim { mark, records });
        let mut retries = shared.retries();
        // True once the answer to a commit was lost, so that the rows may be written.
        let mut doubtful = false;
        loop {
            let mut loader = match self.loader.take() {
                Some(loader) => loader,
                None => match open(&shared, &*self.bulk, &self.plan, &place).await? {
                    Ok(loader) => loader,
                    Err(fault) => return Ok(BulkOutcome::Unsupported(fault)),
                },
            };
            if let Contents::Csv(csv) = piece.contents
                && !loader.passes(csv.style)
            {
                self.loader = Some(loader);
                return Ok(BulkOutcome::Unread);
            }
            let fault = match loader.write(piece.contents, claim.as_ref()).await {
                Ok(loaded) => {
                    self.loader = Some(loader);
                    return Ok(BulkOutcome::Loaded(loaded));
                }
                Err(LoadFault::Refused(fault)) => {
                    self.loader = Some(loader);
                    if doubtful
                        && let Some(loaded) = self.is_in(piece, &mut retries, &place).await?
                    {
                        return Ok(BulkOutcome::Loaded(loaded));
                    }
                    return Ok(BulkOutcome::Refused(fault));
                }
                Err(LoadFault::Hopeless(fault)) => {
                    let place = place();
                    return Err(LoadError::Database { place, fault });
                }
                Err(LoadFault::Again(fault)) => fault,
                Err(LoadFault::Unknown(fault)) if claim.is_none() => {
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
            retries.wait(fault, &place).await?;
            if doubtful && let Some(loaded) = self.is_in(piece, &mut retries, &place).await? {
                return Ok(BulkOutcome::Loaded(loaded));
            }
        }
    }

    /// Returns the outcome of a piece whose answer was lost, or `None` if nothing was written. Its
    /// marks and its rows were committed together; rows without a mark were left out.
    async fn is_in(
        &mut self,
        piece: Piece<'_>,
        retries: &mut Retries<'_>,
        place: impl Fn() -> String,
    ) -> Result<Option<Filtered>, LoadError> {
        let Some(marking) = &self.shared.marking else {
            return Ok(None);
        };
        let done = marking.read(retries, place).await?;
        if done.holds_none(piece.span) {
            return Ok(None);
        }
        let open = |(_, record): &(usize, &u64)| !done.holds(**record);
        let records = piece.records.iter().enumerate();
        let left: Vec<usize> = records.filter(open).map(|(place, _)| place).collect();
        // The number of keys that existed before cannot be known any more.
        let loaded = Loaded {
            written: (piece.contents.count() - left.len()) as u64,
            ignored: 0,
        };
        Ok(Some(Filtered { loaded, left }))
    }

    pub(super) async fn close(self) {
        if let Some(loader) = self.loader {
            loader.close().await;
        }
    }
}

/// Opens a loader, or returns the reason why the bulk form cannot do what the load needs.
async fn open(
    shared: &Shared,
    bulk: &dyn Bulk,
    plan: &LoadPlan,
    place: impl Fn() -> String,
) -> Result<Result<Box<dyn Loader>, Fault>, LoadError> {
    let opening = || async {
        match bulk.loader(plan).await {
            Err(fault) if fault.class == FaultClass::Unsupported => Ok(Err(fault)),
            opened => opened.map(Ok),
        }
    };
    shared.retries().call(place, opening).await
}
