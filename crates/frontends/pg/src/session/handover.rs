//! Going over to a server connection, and coming back.

use super::keyed::runs_without_key;
use super::relay;
use super::state::{End, Session};
use crate::client::Settings;
use crate::session_info::Interrupt;

impl Session {
    /// Goes over to a server connection with what is in the inbox, until nothing of the session is
    /// left there.
    pub(super) async fn relay(&mut self, reason: &'static str) -> Result<(), End> {
        self.drain().await?;
        if !self.front_is(runs_without_key)
            && let Some(fault) = self.refused_for_key()
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
