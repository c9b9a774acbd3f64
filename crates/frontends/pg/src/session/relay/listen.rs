//! Sessions that listen to channels: what they are told may come at any time, so that nothing can
//! be asked beside it. Once they listen to none any more, they are as others are.

use super::expect::What;
use super::rewrite;
use super::state::Relay;

const CHANNELS: &[u8] = b"SELECT FROM pg_catalog.pg_listening_channels() LIMIT 1";

impl Relay<'_> {
    /// Asks whether the session still listens, once it has ended to listen to something. True: the
    /// question is sent.
    pub(super) fn asks_for_channels(&mut self) -> bool {
        let server_state = &self.server_state;
        if !server_state.listens || !server_state.unlistened || !self.is_at_rest() {
            return false;
        }
        self.server_state.unlistened = false;
        // It stays so if a channel is told, or anything goes wrong.
        self.server_state.still_listens = false;
        self.loan.names.unnamed = None;
        rewrite::query(self.loan.wire.out(), CHANNELS);
        self.queue.push(What::Channels, true);
        true
    }

    /// Takes an answer to that question. False: it is none.
    pub(super) fn is_about_channels(&mut self, tag: u8) -> bool {
        let asked = self
            .queue
            .front()
            .is_some_and(|front| matches!(front.what, What::Channels));
        if !asked || matches!(tag, b'A' | b'N' | b'S') {
            return false;
        }
        self.muted = true;
        self.server_state.still_listens |= matches!(tag, b'D' | b'E');
        if tag == b'Z' {
            self.queue.pop_if(|what| matches!(what, What::Channels));
            self.server_state.listens = self.server_state.still_listens;
            // Whether anything else is left is found out when the connection is given back.
            self.server_state.unknown |= !self.server_state.listens;
        }
        true
    }
}
