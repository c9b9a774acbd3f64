//! Giving the server connection of a session back.

use std::sync::Arc;

use super::server_state::ServerState;
use super::state::{Relay, lost};
use crate::pool::GivenBack;
use crate::session::state::End;
use crate::session_info::Interrupt;

impl<'s> Relay<'s> {
    /// True where the connection may be given back.
    pub(super) fn may_give_back(&mut self) -> bool {
        if !self.is_at_rest() {
            return false;
        }
        if self.server_state.for_good || self.server_state.listens {
            return false;
        }
        if self.server_state.unproven.is_some() || !self.server_state.unjudged.is_empty() {
            return true;
        }
        // DISCARD ALL and its kin show in the probe; what is kept for anything else is kept until
        // then.
        if self.server_state.pinned.is_some() {
            return self.server_state.unknown;
        }
        if (!self.session.own.join || self.session.asks) && self.server_state.generates {
            // Without joining, and for who asks in any way, what the server's lastval() and
            // currval() say is the session's own business.
            self.pin("sequence values");
            return false;
        }
        true
    }

    /// Gives the connection back. Gives the relay where it has to be kept.
    pub(super) async fn give_back(mut self) -> Result<Option<Self>, End> {
        let info = Arc::clone(&self.session.info);
        // A cancel request that is on its way must not meet the next session's statement.
        info.set_interrupt(Interrupt::Nothing).await;
        if !self.loan.wire.settle() {
            return Err(End::Fatal(lost()));
        }
        let generates = self.server_state.generates;
        let (known, clean) = (!self.server_state.unknown, self.server_state.is_clean());
        let settings = self.session.who.settings.clone();
        let sequences = self.drawn_from();
        let back = match self.server_state.unproven {
            Some(_) => self.loan.reset(&settings, &sequences).await,
            None => {
                let sequences = (generates || !clean).then_some(&*sequences);
                (*self.loan).give_back(&settings, sequences, clean).await
            }
        };
        let values = &mut self.session.values;
        info.set_pinned("", "");
        match back {
            GivenBack::Free(drawn) => {
                if !values.note_drawn(&drawn) || self.server_state.sequences.has_others() {
                    values.note_unknown();
                }
                Ok(None)
            }
            GivenBack::Lost if known => Ok(None),
            GivenBack::Lost => Err(End::Fatal(lost())),
            GivenBack::Kept(mut loan, why) => {
                loan.wire.take_over();
                let key = loan.wire.cancel_key();
                info.set_interrupt(Interrupt::Server(key)).await;
                let mut relay = Self {
                    loan,
                    server_state: ServerState::of_sequences(generates, self.server_state.sequences),
                    ..self
                };
                relay.pin(why);
                Ok(Some(relay))
            }
        }
    }

    /// The client has left: gives the connection back if nothing is under way on it.
    pub(super) async fn end(mut self) {
        self.session.info.set_interrupt(Interrupt::Nothing).await;
        if self.is_at_rest() && self.loan.wire.settle() {
            let settings = self.session.who.settings.clone();
            let server_state = &self.server_state;
            let judged = server_state.unproven.is_none() && server_state.unjudged.is_empty();
            if server_state.for_good || server_state.listens || !judged {
                return self.loan.wire.terminate().await;
            }
            let clean = server_state.is_clean() && server_state.pinned.is_none();
            // Nobody asks any more what sequences gave.
            let drawn_from = server_state.generates.then_some(&[][..]);
            let back = (*self.loan).give_back(&settings, drawn_from, clean);
            if let GivenBack::Kept(loan, _) = back.await {
                loan.wire.terminate().await;
            }
        } else {
            self.loan.wire.terminate().await;
        }
    }
}
