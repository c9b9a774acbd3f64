//! Asking a lane what a statement means.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::Fault;

use super::state::Session;
use crate::lanes::UNSHARED;
use crate::session_info::Interrupt;
use crate::statements::{Answer, CachedStatement};

impl Session {
    /// Asks the lane what a statement means.
    ///
    /// # Errors
    /// Why it goes to a server connection.
    pub(super) async fn describe(
        &mut self,
        cached: &Arc<CachedStatement>,
    ) -> Result<Answer, &'static str> {
        let parsed = cached.parsed().ok_or("not a write")?;
        self.enter_lane().await.map_err(|fault| away(&fault))?;
        let Some(source) = &self.source else {
            return Err("its lane has ended");
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
            return Err("cancelled before it was known");
        };
        let answer = answer.map_err(|fault| away(&fault))?;
        if let Some(apart) = answer.apart() {
            let database = &self.who.identity.database;
            self.shared.bypass.learn(database, apart);
        }
        Ok(answer)
    }
}

/// Why a lane's refusal sends a statement to a server connection.
fn away(fault: &Fault) -> &'static str {
    if *fault.message == *UNSHARED {
        return UNSHARED;
    }
    tracing::warn!(%fault, "a lane does not answer");
    "its lane does not answer"
}
