//! The progress of a spool, for operators and for requests that wait for it.

use std::sync::Arc;

use windrow_core::{Fault, SpoolPlace};
use windrow_spool::SpoolId;

use crate::partition::Partition;
use crate::status::DrainStatus;

/// The progress of a spool on its way into the database. Cheap to clone; stays valid when the drain
/// has ended.
#[derive(Clone, Debug)]
pub struct Progress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spool: SpoolId,
    partitions: Vec<Arc<Partition>>,
}

impl Progress {
    pub(crate) fn new(spool: SpoolId, partitions: Vec<Arc<Partition>>) -> Self {
        Self(Arc::new(Inner { spool, partitions }))
    }

    pub(crate) fn spool(&self) -> SpoolId {
        self.0.spool
    }

    pub(crate) fn partitions(&self) -> &[Arc<Partition>] {
        &self.0.partitions
    }

    /// Returns the place after all durable entries of the spool.
    pub fn end(&self) -> SpoolPlace {
        let partitions = self.0.partitions.iter();
        SpoolPlace {
            spool: self.0.spool.0,
            positions: partitions.map(|part| part.log.end().0).collect(),
        }
    }

    /// Returns the place after all entries that the database is known to have; `None` before it was
    /// asked.
    pub fn level(&self) -> Option<SpoolPlace> {
        let partitions = self.0.partitions.iter();
        let positions: Option<_> = partitions.map(|part| part.position()).collect();
        Some(SpoolPlace {
            spool: self.0.spool.0,
            positions: positions?,
        })
    }

    /// Waits until the database has everything before a place. Cancel safe.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] for a place of another spool, or one that no answer
    /// contained; [`windrow_core::FaultClass::Unavailable`] if nothing more will be applied before
    /// the next start.
    pub async fn applied(&self, place: &SpoolPlace) -> Result<(), Fault> {
        self.check(place)?;
        for (partition, position) in self.0.partitions.iter().zip(&place.positions) {
            partition.wait(*position).await?;
        }
        Ok(())
    }

    fn check(&self, place: &SpoolPlace) -> Result<(), Fault> {
        let end = self.end();
        if place.spool != end.spool {
            return Err(Fault::invalid(format!(
                "{place} is a place in another spool; this one is {}",
                self.0.spool
            )));
        }
        let mut each = place.positions.iter().zip(&end.positions);
        let there = place.positions.len() == end.positions.len() && each.all(|(at, end)| at <= end);
        match there {
            true => Ok(()),
            false => Err(Fault::invalid(format!(
                "{place} is no place in this spool, which ends at {end}"
            ))),
        }
    }

    /// Returns the state of the drain at this moment. Cheap: nothing is read from files or the
    /// database. Cancel safe.
    pub async fn status(&self) -> DrainStatus {
        let mut partitions = Vec::new();
        for partition in &self.0.partitions {
            partitions.push(partition.status().await);
        }
        DrainStatus {
            spool: self.0.spool,
            partitions,
        }
    }

    /// Returns the reason why a partition will not be applied before the next start; `None` if all
    /// are applied, or tried again and again.
    pub fn stopped(&self) -> Option<Arc<str>> {
        self.0.partitions.iter().find_map(|part| part.stopped())
    }
}
