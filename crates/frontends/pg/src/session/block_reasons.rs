//! The reasons why a transaction goes to a server connection, with what would have it joined.
//!
//! The relay counts each transaction that writes under one of them, at its first write. Reasons
//! that belong to a table are those of [`Doubt`].

use windrow_core::Doubt;

use super::state::{LANE_ENDED, NO_MEMORY, Session, UnsentBlock};
use super::{keys, spool};

/// The settings by which a change in a transaction is joined, with the price.
const CHANGE: &str = "SET windrow.transactions = 'late' for the session, role or database, if it gives the primary key and errors may come with COMMIT; or autocommit, only if the transaction is this one statement: SQLAlchemy isolation_level='AUTOCOMMIT', Django without ATOMIC_REQUESTS, GORM SkipDefaultTransaction, TypeORM transaction: false, MikroORM implicitTransactions: false, ActiveRecord update_all and delete; each statement is final then, and a rollback takes nothing back";

pub(super) const UPDATE: Doubt = Doubt {
    phrase: "in a transaction: an UPDATE",
    advice: CHANGE,
};
pub(super) const DELETE: Doubt = Doubt {
    phrase: "in a transaction: a DELETE",
    advice: CHANGE,
};
const READ: Doubt = Doubt {
    phrase: "in a transaction: a SELECT before the first write",
    advice: "SET windrow.transactions = 'late' for the session, role or database, if errors may come with COMMIT; or read before the transaction begins, if nothing relies on the rows staying as they are",
};
const READ_LATER: Doubt = Doubt {
    phrase: "in a transaction: a SELECT after a write",
    advice: "RETURNING in place of a SELECT of what was inserted; IDENTITY in place of SELECT nextval (Hibernate GenerationType)",
};
const SETTING: Doubt = Doubt {
    phrase: "in a transaction: a setting",
    advice: "SET before the transaction, or ALTER ROLE .. SET, in place of SET LOCAL",
};
pub(super) const DESCRIBED: Doubt = Doubt {
    phrase: "in a transaction: a prepared statement that is described again",
    advice: "a driver that describes a statement when it prepares it, and keeps the answer",
};
pub(super) const UNCERTAIN: Doubt = Doubt {
    phrase: "in a transaction: a value that is not certain before COMMIT",
    advice: "now() in place of the text 'now', plain values in place of expressions",
};
pub(super) const UNKNOWN: Doubt = Doubt {
    phrase: "in a transaction: a value that is asked for after one that nobody knows before COMMIT",
    advice: "SET windrow.transactions = 'exact' for this transaction, or INSERTs with RETURNING before those without",
};
pub(super) const REFUSED: Doubt = Doubt {
    phrase: "in a transaction: a row that the server may refuse",
    advice: "nothing: the server says what is wrong with the row",
};
pub(super) const TOO_MUCH: Doubt = Doubt {
    phrase: "in a transaction: more than max_pending bytes before COMMIT",
    advice: "a greater max_pending, or smaller transactions",
};
pub(super) const SEVERAL_ROWS: Doubt = Doubt {
    phrase: "in a transaction: several rows that are not kept one by one",
    advice: "rows of plain values with parameters, or one INSERT for each",
};
const NO_ROOM: Doubt = Doubt {
    phrase: "in a transaction: no memory or lane at that moment",
    advice: "a greater limits.memory, if that happens often",
};
const JOIN_OFF: Doubt = Doubt {
    phrase: "in a transaction: windrow.join is off",
    advice: "SET windrow.join = on, or join = true of the database",
};
const KEY: Doubt = Doubt {
    phrase: "in a transaction: an idempotency key",
    advice: "a key for writes outside of transactions only",
};
const SPOOL: Doubt = Doubt {
    phrase: "in a transaction: windrow.ack is spool",
    advice: "SET windrow.ack = 'commit' for sessions that write in transactions",
};
const ASKS: Doubt = Doubt {
    phrase: "in a transaction: what a sequence gave",
    advice: "RETURNING in place of currval() and lastval()",
};
const FOLLOWED: Doubt = Doubt {
    phrase: "in a transaction: a database that replicas follow",
    advice: "nothing: replicas get what lanes write in autocommit",
};
const OTHER: Doubt = Doubt {
    phrase: "in a transaction: a statement that is not joined in autocommit either",
    advice: "the statement has a line here, or its table a reason in GET /v1/lanes and in windrow doctor",
};

/// All reasons that do not belong to a table.
const ALL: [&Doubt; 18] = [
    &UPDATE,
    &DELETE,
    &READ,
    &READ_LATER,
    &SETTING,
    &DESCRIBED,
    &UNCERTAIN,
    &UNKNOWN,
    &REFUSED,
    &TOO_MUCH,
    &SEVERAL_ROWS,
    &NO_ROOM,
    &JOIN_OFF,
    &KEY,
    &SPOOL,
    &ASKS,
    &FOLLOWED,
    &OTHER,
];

/// Returns the reason that has a phrase.
pub(super) fn known(phrase: &str) -> Option<&'static Doubt> {
    let mut all = ALL.into_iter().chain(Doubt::ALL);
    all.find(|doubt| doubt.phrase == phrase)
}

/// Returns the reason why a block goes to a server connection. `phrase`: that of the message that
/// goes there first.
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

/// Returns the reason why a session keeps no writes of a block that it begins now; `None` if it may
/// keep them.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_a_phrase_of_its_own_and_advice() {
        let all = || ALL.into_iter().chain(Doubt::ALL);
        for doubt in all() {
            assert!(doubt.phrase.starts_with("in a transaction: "), "{doubt:?}");
            assert!(!doubt.advice.is_empty(), "{doubt:?}");
        }
        let phrases: HashSet<&str> = all().map(|doubt| doubt.phrase).collect();
        assert_eq!(phrases.len(), all().count());
    }
}
