//! The work of one connection: batch after batch, until no rows are left or the move is to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use windrow_core::moves::Mover;
use windrow_core::{Backoff, Fault, Moves, RetryPolicy};

use super::across::Across;
use super::batch::Batch;
use super::counts::{Counts, Ration};
use super::news::Bell;
use super::order::{Elsewhere, Order};
use super::trouble::{MoveError, Trouble, is_retried};
use super::within::Within;

/// The longest wait for rows that other sessions have locked, or for an unreachable database.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The first and the longest delay between two looks, and between two attempts.
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The least number of attempts of a batch before the move gives up: one attempt may take as long
/// as a connection that cannot be opened.
const MIN_ATTEMPTS: u32 = 5;

pub(super) struct Worker {
    pub(super) moves: Arc<dyn Moves>,
    pub(super) order: Arc<Order>,
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) counts: Arc<Counts>,
    pub(super) ration: Arc<Ration>,
    pub(super) bell: Arc<Bell>,
    pub(super) stop: CancellationToken,
}

/// A connection that moves rows within a database or across two.
enum Way {
    Within(Within),
    Across(Box<Across>),
}

/// The attempts without success since the last success.
struct Failures {
    since: Instant,
    backoff: Backoff,
}

impl Failures {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
        }
    }
}

impl Worker {
    pub(super) async fn run(self) -> Result<(), MoveError> {
        let mut rings = self.bell.subscribe();
        let mut way = None;
        let (mut troubles, mut idle) = (Failures::new(), Failures::new());
        while !self.stop.is_cancelled() {
            let ration = self.ration.take(self.order.batch_rows);
            if ration == 0 {
                break;
            }
            rings.mark_unchanged();
            let done = self.batch(&mut way, ration).await;
            let used = done.as_ref().map_or(0, |b| b.moved + b.rejected);
            self.ration
                .give_back(ration.saturating_sub(usize::try_from(used).unwrap_or(ration)));
            match done {
                Ok(batch) => {
                    troubles = Failures::new();
                    if used > 0 {
                        self.counts.committed(batch.moved, batch.rejected);
                        idle = Failures::new();
                    }
                    if !self.order.follow && (used == 0 || batch.last) {
                        match self.is_done(&mut way, &idle).await {
                            Ok(true) => break,
                            Ok(false) => {}
                            Err(Trouble::Stop(error)) => return Err(error),
                            Err(Trouble::Retry(_)) => way = None,
                        }
                    }
                    if used == 0 {
                        self.pause(idle.backoff.delay(), Some(&mut rings)).await;
                    }
                }
                Err(Trouble::Stop(error)) => return Err(error),
                Err(Trouble::Retry(fault)) => {
                    way = None;
                    self.wait_to_retry(&mut troubles, fault).await?;
                }
            }
        }
        if let Some(mut way) = way {
            if let Way::Across(across) = &mut way {
                across.finish(&self.stop).await;
            }
            way.into_mover().close().await;
        }
        Ok(())
    }

    async fn batch(&self, way: &mut Option<Way>, rows: usize) -> Result<Batch, Trouble> {
        let source = || self.order.plan.source.to_string();
        let way = match way {
            Some(way) => way,
            None => {
                let mover = self.moves.mover(&self.order.plan).await;
                let mover = mover.map_err(|fault| Trouble::of(source(), fault))?;
                way.insert(match &self.elsewhere {
                    None => Way::Within(Within::new(mover)),
                    Some(elsewhere) => Way::Across(Box::new(Across::new(mover, elsewhere.clone()))),
                })
            }
        };
        match way {
            Way::Within(within) => within.batch(&self.order, rows).await,
            Way::Across(across) => across.batch(&self.order, rows).await,
        }
    }

    /// Returns true if no rows are left in the source, after a batch found no rows that it could
    /// lock.
    async fn is_done(&self, way: &mut Option<Way>, idle: &Failures) -> Result<bool, Trouble> {
        let Some(way) = way else { return Ok(false) };
        let source = || self.order.plan.source.to_string();
        let left = way.mover().left().await;
        if !left.map_err(|fault| Trouble::of(source(), fault))? {
            return Ok(true);
        }
        if idle.since.elapsed() < MAX_WAIT {
            return Ok(false);
        }
        Err(Trouble::Stop(MoveError::Held {
            source_table: source().into(),
            waited: MAX_WAIT.as_secs(),
        }))
    }

    /// Waits before another attempt, or gives up. A move that follows never gives up.
    async fn wait_to_retry(&self, troubles: &mut Failures, fault: Fault) -> Result<(), MoveError> {
        tracing::debug!(%fault, "a batch is tried again");
        let failures = troubles.backoff.failures();
        let waited = match failures < MIN_ATTEMPTS {
            true => Duration::ZERO,
            false => troubles.since.elapsed(),
        };
        let policy = RetryPolicy::relocation(MAX_WAIT);
        let goes_on = self.order.follow || policy.allows(fault.retry(), failures, waited, MAX_WAIT);
        if !goes_on || !is_retried(&fault) {
            return Err(MoveError::Database {
                place: self.order.plan.source.to_string().into(),
                fault,
            });
        }
        self.pause(troubles.backoff.delay(), None).await;
        Ok(())
    }

    /// Waits until the time is over, a notification of new rows arrives, or the move must stop.
    async fn pause(&self, pause: Duration, rings: Option<&mut tokio::sync::watch::Receiver<u64>>) {
        let news = async {
            let rung = match rings {
                Some(rings) => rings.changed().await.is_ok(),
                None => false,
            };
            if !rung {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = news => {}
            () = self.stop.cancelled() => {}
        }
    }
}

impl Way {
    fn mover(&mut self) -> &mut Box<dyn Mover> {
        match self {
            Self::Within(within) => within.mover(),
            Self::Across(across) => across.mover(),
        }
    }

    fn into_mover(self) -> Box<dyn Mover> {
        match self {
            Self::Within(within) => within.into_mover(),
            Self::Across(across) => across.into_mover(),
        }
    }
}
