//! One request with a key: its parts, and their execution.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use windrow_bookkeeping::KeyPart;
use windrow_core::{Fault, Outcomes, Permit, SourceId, Unit, Units};

use crate::commit::Commit;
use crate::fingerprint::Fingerprint;
use crate::part::Part;
use crate::refused::Refused;
use crate::stored::Stored;
use crate::under_way::UnderWay;

/// The number of the part of a request that is one unit, or of the record of a whole request with
/// several, which comes after all others.
const WHOLE: u64 = 0;

/// The position of the next part within the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of the request.
    Alone,
    /// More follows.
    More,
    /// The last part; others came before.
    Last,
}

/// A request with a key. Its parts are submitted one after the other.
pub struct KeyedRequest {
    under_way: Arc<UnderWay>,
    progress: Mutex<Progress>,
}

/// The progress of a request.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The number of parts so far, without the record of the whole.
    parts: u64,
    /// True if the whole request is one part.
    alone: bool,
    /// The fingerprint of all units so far.
    fingerprint: Fingerprint,
    /// The number of parts of an earlier request with the key; `None` before it was looked for.
    earlier: Option<Earlier>,
}

/// An earlier request of several units with the same key.
#[derive(Clone, Copy)]
enum Earlier {
    /// The earlier request has not ended, or does not exist.
    Open,
    /// The earlier request had this many parts.
    Ended(u64),
}

impl KeyedRequest {
    pub(crate) fn new(under_way: UnderWay) -> Self {
        Self {
            under_way: Arc::new(under_way),
            progress: Mutex::default(),
        }
    }

    /// Returns the source for requests whose frontend has none.
    pub fn source(&self) -> SourceId {
        self.under_way.shared.source
    }

    /// True once a part of the request was found to be executed before.
    pub fn is_replayed(&self) -> bool {
        !self.is_own() && self.under_way.replayed.load(Ordering::Relaxed)
    }

    /// True for a key of the gateway's own, because the client has given none.
    pub fn is_own(&self) -> bool {
        self.under_way.own
    }

    /// Commits the units that were not committed before. Returns the outcomes of all units, in
    /// order. `permit` is the memory of the units. Dropping the future stops nothing: the units are
    /// executed, and a client that returns finds the outcomes.
    ///
    /// Where the connection to the database is lost, the units are tried again for half a minute:
    /// so an outcome that is not known is rare.
    ///
    /// # Errors
    /// [`Refused::Mismatch`] for another request than the first with this key. Faults of a unit
    /// alone are its outcome.
    pub async fn commit(
        &self,
        source: SourceId,
        units: impl IntoIterator<Item = Unit>,
        permit: Permit,
        extent: Extent,
    ) -> Result<Outcomes, Refused> {
        let shared = &self.under_way.shared;
        shared.prepare().await?;
        if extent != Extent::Alone {
            self.look_for_earlier().await?;
        }
        let parts = self.parts("commit", units, extent);
        self.check_length()?;
        let outcomes = match parts.is_empty() {
            true => Outcomes::new(),
            false => self.run(source, parts, permit).await?,
        };
        if extent == Extent::Last {
            self.end().await?;
        }
        Ok(outcomes)
    }

    async fn run(
        &self,
        source: SourceId,
        parts: Vec<Part>,
        permit: Permit,
    ) -> Result<Outcomes, Refused> {
        let commit = Commit {
            under_way: Arc::clone(&self.under_way),
            source,
        };
        let run = tokio::spawn(commit.run(parts, permit));
        let ended = |e| Fault::unknown(format!("executing a request has ended badly: {e}"));
        run.await.map_err(ended)?
    }

    /// Adds to each unit the row that prevents the drain from applying the unit twice. The spool's
    /// answer then has one success more for each unit: that of the row.
    ///
    /// # Errors
    /// [`Refused::Mismatch`] for another request than the one that was remembered with this key.
    pub fn spooled(
        &self,
        units: impl IntoIterator<Item = Unit>,
        extent: Extent,
    ) -> Result<Units, Refused> {
        let is_first = self.progress.lock().parts == 0;
        let parts = self.parts("spool", units, extent);
        if is_first && let Some(first) = parts.first() {
            let UnderWay { shared, key, .. } = &*self.under_way;
            if !shared.is_same(key, first.fingerprint) {
                return Err(Refused::mismatch());
            }
        }
        Ok(parts.iter().map(Part::marked).collect())
    }

    /// Returns units as parts with their numbers.
    fn parts(&self, way: &str, units: impl IntoIterator<Item = Unit>, extent: Extent) -> Vec<Part> {
        let mut progress = self.progress.lock();
        let is_whole = extent == Extent::Alone && progress.parts == 0 && !progress.alone;
        let mut place = |unit: Unit| {
            progress.fingerprint = progress.fingerprint.with(way, unit.writes());
            let part = match is_whole {
                true => {
                    progress.alone = true;
                    WHOLE
                }
                false => {
                    progress.parts += 1;
                    progress.parts
                }
            };
            let key = self.under_way.key.as_str().into();
            Part {
                id: KeyPart { key, part },
                fingerprint: progress.fingerprint,
                unit,
            }
        };
        units.into_iter().map(&mut place).collect()
    }

    /// Finds, once, the number of parts of an earlier request that was answered as a whole.
    async fn look_for_earlier(&self) -> Result<(), Refused> {
        if self.is_own() || self.progress.lock().earlier.is_some() {
            return Ok(());
        }
        let found = self.under_way.shared.read(&self.whole()).await?;
        let earlier = match found {
            None => Earlier::Open,
            Some(executed) => match executed.outcome.as_deref().map(Stored::read) {
                Some(Ok(Stored::Parts(parts))) => Earlier::Ended(parts),
                // The earlier request was one unit.
                _ => return Err(Refused::mismatch()),
            },
        };
        self.progress.lock().earlier = Some(earlier);
        Ok(())
    }

    /// Checks that there are no more parts than in the earlier request.
    fn check_length(&self) -> Result<(), Refused> {
        let Progress { parts, earlier, .. } = *self.progress.lock();
        match earlier {
            Some(Earlier::Ended(before)) if parts > before => Err(Refused::mismatch()),
            _ => Ok(()),
        }
    }

    /// Stores the number of parts, or compares it with the earlier request's.
    async fn end(&self) -> Result<(), Refused> {
        if self.is_own() {
            return Ok(());
        }
        let Progress {
            parts,
            fingerprint,
            earlier,
            ..
        } = *self.progress.lock();
        if let Some(Earlier::Ended(before)) = earlier {
            return match before == parts {
                true => Ok(()),
                false => Err(Refused::mismatch()),
            };
        }
        let stored = Stored::Parts(parts).bytes();
        let mark = self.whole().insert(&fingerprint.to_string(), Some(&stored));
        let shared = &self.under_way.shared;
        if let Err(failed) = shared.lane.run(shared.source, Unit::one(mark)).await {
            // This only means that a longer request with the same key would be refused.
            tracing::debug!(fault = %failed.fault, "the end of a request with a key was not stored");
        }
        Ok(())
    }

    fn whole(&self) -> KeyPart {
        KeyPart {
            key: self.under_way.key.as_str().into(),
            part: WHOLE,
        }
    }
}

impl fmt::Debug for KeyedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRequest")
            .field("key", &self.under_way.key)
            .finish_non_exhaustive()
    }
}
