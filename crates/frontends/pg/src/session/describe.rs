//! Asking a lane what a statement means.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::Fault;

use super::retryable::lane_ended;
use super::state::Session;
use crate::lanes::UNSHARED;
use crate::session_info::Interrupt;
use crate::statements::{Answer, CachedStatement};

/// Why it is not known what a statement means.
pub(super) struct NotDescribed {
    /// Why the statement goes to a server connection.
    pub(super) reason: &'static str,
    /// The lane's error, if the reason may pass.
    pub(super) passing: Option<Fault>,
}

impl NotDescribed {
    /// A reason that does not pass by itself.
    pub(super) fn of(reason: &'static str) -> Self {
        let passing = None;
        Self { reason, passing }
    }
}

impl Session {
    /// Asks the lane what a statement means.
    ///
    /// # Errors
    /// Why it goes to a server connection.
    pub(super) async fn describe(
        &mut self,
        cached: &Arc<CachedStatement>,
    ) -> Result<Answer, NotDescribed> {
        let described = self.ask_lane(cached).await;
        match described {
            // A lane's connection that was lost is replaced.
            Err(NotDescribed {
                passing: Some(_), ..
            }) if self.has_to_join() => self.ask_lane(cached).await,
            other => other,
        }
    }

    async fn ask_lane(&mut self, cached: &Arc<CachedStatement>) -> Result<Answer, NotDescribed> {
        let parsed = cached.parsed().ok_or(NotDescribed::of("not a write"))?;
        self.enter_lane().await.map_err(away)?;
        let Some(source) = &self.source else {
            return Err(NotDescribed {
                reason: "its lane has ended",
                passing: Some(lane_ended()),
            });
        };
        let (info, idle) = (&self.info, self.pending.is_empty());
        let cancelled = CancellationToken::new();
        if idle {
            // Nothing else can be meant: this may wait for a table's lock.
            let interrupt = Interrupt::Waiting(cancelled.clone());
            info.set_interrupt(interrupt).await;
        }
        let answer = tokio::select! {
            answer = self.shared.cache.describe(&source.lane, cached, parsed) => Some(answer),
            () = cancelled.cancelled() => None,
        };
        if idle {
            info.set_interrupt(source.interrupt()).await;
        }
        let Some(answer) = answer else {
            self.cancel_requested = true;
            return Err(NotDescribed::of("cancelled before it was known"));
        };
        let answer = answer.map_err(away)?;
        if let Some(apart) = answer.apart() {
            let database = &self.who.identity.database;
            self.shared.bypass.learn(database, apart);
        }
        Ok(answer)
    }
}

/// Why a lane's refusal sends a statement to a server connection.
fn away(fault: Fault) -> NotDescribed {
    if *fault.message == *UNSHARED {
        return NotDescribed::of(UNSHARED);
    }
    tracing::warn!(%fault, "a lane does not answer");
    NotDescribed {
        reason: "its lane does not answer",
        passing: Some(fault),
    }
}
