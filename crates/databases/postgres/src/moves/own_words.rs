//! Reads errors that the server cannot send, because their messages have no form in UTF-8.

use windrow_core::moves::{Part, Refused};

use super::mover::PgMover;
use super::unreadable::is_unreadable;
use crate::talk::{Ask, talk};

impl PgMover {
    /// Asks again why a row is refused, if the server could not send its error because the message
    /// holds a text that has no form in UTF-8. This time the message comes in the database's own
    /// encoding, and bytes that are not UTF-8 are replaced in it.
    pub(super) async fn in_own_words(&mut self, parts: &[Part<'_>], refused: Refused) -> Refused {
        let ([part], true) = (parts, is_unreadable(&refused.fault)) else {
            return refused;
        };
        let text = self.texts.transfer(part.to);
        let encoding = self.wire.parameter("server_encoding").unwrap_or_default();
        // SQL_ASCII passes all bytes on. In another encoding, characters of the statement beyond
        // ASCII would be misread.
        let is_readable = encoding == "SQL_ASCII" || text.is_ascii();
        if part.rows.len() != 1 || encoding.is_empty() || !is_readable {
            return refused;
        }
        let own = Ask::of(format!("SET LOCAL client_encoding = '{encoding}'"));
        let mut asks = Vec::new();
        self.save(&mut asks);
        asks.push(own);
        asks.push(self.named(Ask::of(text), &part.rows.iter().copied()));
        asks.push(Ask::of("SET CONSTRAINTS ALL IMMEDIATE"));
        let answered = talk(&mut self.wire, &asks, false, &mut |_, _| {}).await;
        self.undo().await;
        match answered {
            Ok(()) => refused,
            Err(failed) => Refused {
                at: 0,
                fault: failed.fault,
            },
        }
    }
}
