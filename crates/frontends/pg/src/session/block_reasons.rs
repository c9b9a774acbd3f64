//! The reason why a transaction needs a server connection.
//!
//! The relay counts each transaction that writes under one of them, at its first write. Reasons
//! that belong to a table are those of [`Doubt`].

use windrow_core::Doubt;

use super::state::{LANE_ENDED, NO_MEMORY, Session, UnsentBlock};
use super::{keys, spool};
use crate::block_doubts::{
    ASKS, FOLLOWED, JOIN_OFF, KEY, NO_ROOM, OTHER, READ, READ_LATER, SETTING, SPOOL, known,
};
pub(super) use crate::block_doubts::{
    DELETE, DESCRIBED, REFUSED, SEVERAL_ROWS, TOO_MUCH, UNCERTAIN, UNKNOWN, UPDATE,
};

/// Returns the reason why a block needs a server connection. `phrase`: that of the first message
/// that is sent there.
pub(super) fn of(session: &Session, block: &UnsentBlock, phrase: &str) -> &'static Doubt {
    if !block.keeps {
        return of_session(session).unwrap_or(&Doubt::ISOLATION);
    }
    match phrase {
        "SELECT" | "TABLE" | "VALUES" if block.kept.has_writes() => &READ_LATER,
        "SELECT" | "TABLE" | "VALUES" => &READ,
        "SET" | "RESET" => &SETTING,
        "what a sequence gave" => &ASKS,
        LANE_ENDED | NO_MEMORY => &NO_ROOM,
        phrase => known(phrase).unwrap_or(&OTHER),
    }
}

/// Returns the reason why a session cannot keep writes of a block that it begins now; `None` if it
/// can.
pub(super) fn of_session(session: &Session) -> Option<&'static Doubt> {
    let own = &session.own;
    match () {
        () if !own.join => Some(&JOIN_OFF),
        () if own.key.is_some() || keys::has_own(session) => Some(&KEY),
        () if own.spool || spool::is_ahead(session) => Some(&SPOOL),
        () if session.asks => Some(&ASKS),
        () if session.is_followed() => Some(&FOLLOWED),
        () => None,
    }
}
