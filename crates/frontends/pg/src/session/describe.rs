//! Asking a lane what a statement means.

use tokio_util::sync::CancellationToken;
use windrow_core::{Described, Fault};

use super::lane::UNSHARED;
use super::state::Session;
use crate::session_info::Interrupt;
use crate::statements::Prepared;

impl Session {
    /// Asks the lane what a statement means.
    ///
    /// # Errors
    /// Why it goes to a server connection.
    pub(super) async fn describe(&mut self, prepared: &Prepared) -> Result<(), &'static str> {
        let parsed = prepared.parsed().ok_or("not a write")?;
        self.enter_lane().await.map_err(|fault| away(&fault))?;
        let Some(source) = &self.source else {
            return Err("its lane has ended");
        };
        let (info, idle) = (&self.info, self.pending.is_empty());
        let asked = CancellationToken::new();
        if idle {
            // Nothing else can be meant: this may wait for a table's lock.
            let interrupt = Interrupt::Waiting(asked.clone());
            info.set_interrupt(interrupt).await;
        }
        let described = tokio::select! {
            described = source.lane.describe(prepared.number, parsed) => Some(described),
            () = asked.cancelled() => None,
        };
        if idle {
            info.set_interrupt(source.interrupt()).await;
        }
        let Some(described) = described else {
            self.called_back = true;
            return Err("cancelled before it was known");
        };
        if let Ok(Described::Apart(apart)) = &described {
            let database = &self.who.identity.database;
            self.shared.bypass.learn(database, apart);
        }
        self.fresh = Some((
            source.lane.number,
            prepared.number,
            described.map_err(|fault| away(&fault))?,
        ));
        Ok(())
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
