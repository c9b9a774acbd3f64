//! Going over to a server connection, and coming back.

use windrow_core::Fault;

use super::relay;
use super::state::{End, Session};
use crate::client::Settings;
use crate::session_info::Interrupt;

impl Session {
    /// Goes over to a server connection with what is in the inbox, until nothing of the session is
    /// left there.
    pub(super) async fn relay(&mut self, reason: &'static str) -> Result<(), End> {
        self.drain().await?;
        // A cancelled write gets the error of that.
        if !self.cancel_requested
            && let Some(fault) = self.refused_front_for_key()
        {
            self.segment.clear();
            return Box::pin(relay::refuse(self, &fault)).await;
        }
        if self.waits_for_spool()
            && let Err(fault) = Box::pin(self.reach()).await?
        {
            self.segment.clear();
            self.after_relay(&self.who.settings.clone()).await;
            return Box::pin(relay::refuse(self, &fault)).await;
        }
        let answered = self.segment.answered;
        self.segment.clear();
        let settings = self.who.settings.clone();
        let end = Box::pin(relay::run(self, answered, reason)).await;
        self.after_relay(&settings).await;
        end
    }

    /// Goes over to a server connection because of something that passes: `fault` says of what. A
    /// write that has to be joined, for its key, for replicas or for the spool, is refused instead,
    /// and can be sent again. On a server connection it would come before older rows in the spool.
    pub(super) async fn relay_for_now(
        &mut self,
        reason: &'static str,
        fault: &Fault,
    ) -> Result<(), End> {
        if !self.has_to_join() {
            return self.relay(reason).await;
        }
        self.drain().await?;
        self.segment.clear();
        Box::pin(relay::refuse(self, fault)).await
    }

    /// True if nothing that can be joined may go another way.
    pub(super) fn has_to_join(&self) -> bool {
        self.own.key.is_some() || self.own.spool || self.is_followed()
    }

    /// True if replicas follow what the lanes of its database write.
    pub(super) fn is_followed(&self) -> bool {
        let databases = &self.shared.databases;
        let database = databases.find(&self.who.identity.database);
        database.is_some_and(|database| database.followed)
    }

    async fn after_relay(&mut self, before: &Settings) {
        if self.who.settings != *before {
            self.source = None;
        }
        let interrupt = match &self.source {
            Some(source) => source.interrupt(),
            None => Interrupt::Nothing,
        };
        self.info.set_interrupt(interrupt).await;
    }
}
