//! The answer of `GET /readyz`.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Intake};
use windrow_http::{Ack, Readiness};
use windrow_lanes::LaneWatch;

use super::replicas::ReplicaWatch;
use super::spool::SpoolWatch;

/// Checks that the gateway can do what clients usually ask for.
pub(super) struct Ready {
    database: Arc<dyn Database>,
    /// The lane of writes, and its intake.
    lane: (LaneWatch, Intake),
    spool: Option<SpoolWatch>,
    replicas: Option<ReplicaWatch>,
    /// The moment of success for clients, unless a request says otherwise.
    ack: Ack,
}

impl Ready {
    pub(super) fn new(
        database: Arc<dyn Database>,
        lane: (LaneWatch, Intake),
        (spool, replicas): (Option<SpoolWatch>, Option<ReplicaWatch>),
        ack: Ack,
    ) -> Self {
        Self {
            database,
            lane,
            spool,
            replicas,
            ack,
        }
    }
}

#[async_trait]
impl Readiness for Ready {
    /// Checks all parts. A gateway that acknowledges by its spool is ready while the database is
    /// away: it takes writes all the same. A spool that has failed, or is not applied any more,
    /// makes it unready in any case, for nothing but a person will change that. A database that can
    /// only be read makes it unready too, and so does a lane that would refuse a write because the
    /// database has been away.
    async fn ready(&self) -> Result<(), Fault> {
        if let Some(replicas) = &self.replicas {
            replicas.healthy()?;
        }
        if let Some(spool) = &self.spool {
            spool.healthy()?;
            if self.ack == Ack::Spool {
                return Ok(());
            }
        }
        self.database.takes_writes().await?;
        let (lane, intake) = &self.lane;
        lane.takes_writes(|| intake.probed(Ok(()))).await
    }
}
