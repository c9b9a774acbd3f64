//! Pieces of a portion by the database's bulk form, tried again where that may help.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::{
    Bulk, Claim, CsvText, Fault, FaultClass, Filtered, LoadFault, LoadPlan, Loaded, Loader, Mark,
    Rows, Span,
};

use super::LoadError;
use super::marking::Marking;
use super::patience::{Patience, is_passing};

/// One connection that loads, opened when it is needed.
pub(super) struct BulkWriter {
    bulk: Arc<dyn Bulk>,
    plan: LoadPlan,
    loader: Option<Box<dyn Loader>>,
    marking: Option<Marking>,
    away_wait: Duration,
}

/// Rows, or what they are made of.
#[derive(Clone, Copy)]
pub(super) enum Contents<'a> {
    Rows(&'a Rows),
    Csv(CsvText<'a>),
}

/// Rows that are to be written together.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) contents: Contents<'a>,
    /// Their records; none where nothing can be left out.
    pub(super) records: &'a [u64],
    /// What is done of the file once they are.
    pub(super) span: Span,
}

impl Contents<'_> {
    fn rows(self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Csv(csv) => csv.records,
        }
    }
}

/// Whether rows may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Whole,
    Filter,
}

/// What became of a piece.
#[derive(Debug)]
pub(super) enum BulkOutcome {
    /// It is in, but for what was left out.
    Loaded(Filtered),
    /// Its rows are to go through a lane.
    Refused(Fault),
    /// Records are to be split into fields: the bulk form does not read them.
    Unread,
    /// All rows are to go through a lane: the bulk form cannot do what is asked for.
    Unsupported(Fault),
}

impl BulkWriter {
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

    /// True if it may leave rows out.
    pub(super) fn filters(&self) -> bool {
        self.bulk.filters()
    }

    /// Writes a piece, or nothing of it.
    pub(super) async fn load(
        &mut self,
        piece: Piece<'_>,
        manner: Manner,
        halt: &CancellationToken,
        place: impl Fn() -> String,
    ) -> Result<BulkOutcome, LoadError> {
        let mark = self
            .marking
            .as_ref()
            .map(|marking| marking.mark(piece.span));
        let mark = mark.as_ref();
        let mut patience = Patience::new(self.away_wait, halt);
        // True once a commit may have taken place that nobody has heard of.
        let mut doubtful = false;
        loop {
            let mut loader = match self.loader.take() {
                Some(loader) => loader,
                None => match self.bulk.loader(&self.plan).await {
                    Ok(loader) => loader,
                    Err(fault) if fault.class == FaultClass::Unsupported => {
                        return Ok(BulkOutcome::Unsupported(fault));
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
            if let Contents::Csv(csv) = piece.contents
                && !loader.passes(csv.style)
            {
                self.loader = Some(loader);
                return Ok(BulkOutcome::Unread);
            }
            let fault = match write(&mut *loader, piece, manner, mark).await {
                Ok(loaded) => {
                    self.loader = Some(loader);
                    return Ok(BulkOutcome::Loaded(loaded));
                }
                Err(LoadFault::Refused(fault)) => {
                    self.loader = Some(loader);
                    if doubtful
                        && let Some(loaded) = self.is_in(piece, &mut patience, &place).await?
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
            if doubtful && let Some(loaded) = self.is_in(piece, &mut patience, &place).await? {
                return Ok(BulkOutcome::Loaded(loaded));
            }
        }
    }

    /// What the marks say of a piece whose answer was lost: they came into the database together
    /// with its rows, or not at all. What they leave open was left out.
    async fn is_in(
        &mut self,
        piece: Piece<'_>,
        patience: &mut Patience<'_>,
        place: impl Fn() -> String,
    ) -> Result<Option<Filtered>, LoadError> {
        let Some(marking) = &self.marking else {
            return Ok(None);
        };
        let done = marking.read(patience, place).await?;
        if done.gaps(piece.span) == [piece.span] {
            return Ok(None);
        }
        let open = |(_, record): &(usize, &u64)| !done.holds(**record);
        let records = piece.records.iter().enumerate();
        let left: Vec<usize> = records.filter(open).map(|(place, _)| place).collect();
        // How many were there before cannot be known any more.
        let loaded = Loaded {
            written: (piece.contents.rows() - left.len()) as u64,
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

async fn write(
    loader: &mut dyn Loader,
    piece: Piece<'_>,
    manner: Manner,
    mark: Option<&Mark>,
) -> Result<Filtered, LoadFault> {
    let whole = |loaded| Filtered {
        loaded,
        left: Vec::new(),
    };
    match (piece.contents, manner) {
        (Contents::Csv(csv), _) => loader.pass(csv, mark).await.map(whole),
        (Contents::Rows(rows), Manner::Whole) => loader.load(rows, mark).await.map(whole),
        (Contents::Rows(rows), Manner::Filter) => {
            let records = piece.records;
            let claim = mark.map(|mark| Claim { mark, records });
            loader.filter(rows, claim.as_ref()).await
        }
    }
}
