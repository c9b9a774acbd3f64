//! The reasons, other than those of tables, why a transaction needs a server connection, with
//! advice for the operator.

use windrow_core::Doubt;

/// The advice to use settings by which changes in a transaction are joined, with their cost.
const CHANGE: &str = "SET windrow.transactions = 'late' for the session, role or database, if it gives the primary key and errors may come with COMMIT; or autocommit, only if the transaction is this one statement: SQLAlchemy isolation_level='AUTOCOMMIT', Django without ATOMIC_REQUESTS, GORM SkipDefaultTransaction, TypeORM transaction: false, MikroORM implicitTransactions: false, ActiveRecord update_all and delete; each statement is final then, and a rollback takes nothing back";

pub(crate) const UPDATE: Doubt = Doubt {
    phrase: "in a transaction: an UPDATE",
    advice: CHANGE,
};
pub(crate) const DELETE: Doubt = Doubt {
    phrase: "in a transaction: a DELETE",
    advice: CHANGE,
};
pub(crate) const READ: Doubt = Doubt {
    phrase: "in a transaction: a SELECT before the first write",
    advice: "SET windrow.transactions = 'late' for the session, role or database, if errors may come with COMMIT; or read before the transaction begins, if nothing relies on the rows staying as they are",
};
pub(crate) const READ_LATER: Doubt = Doubt {
    phrase: "in a transaction: a SELECT after a write",
    advice: "RETURNING in place of a SELECT of what was inserted; IDENTITY in place of SELECT nextval (Hibernate GenerationType)",
};
pub(crate) const SETTING: Doubt = Doubt {
    phrase: "in a transaction: a setting",
    advice: "SET before the transaction, or ALTER ROLE .. SET, in place of SET LOCAL",
};
pub(crate) const DESCRIBED: Doubt = Doubt {
    phrase: "in a transaction: a prepared statement that is described again",
    advice: "a driver that describes a statement when it prepares it, and keeps the answer",
};
pub(crate) const UNCERTAIN: Doubt = Doubt {
    phrase: "in a transaction: a value that is not certain before COMMIT",
    advice: "now() in place of the text 'now', plain values in place of expressions",
};
pub(crate) const UNKNOWN: Doubt = Doubt {
    phrase: "in a transaction: a value that is asked for after one that nobody knows before COMMIT",
    advice: "SET windrow.transactions = 'exact' for this transaction, or INSERTs with RETURNING before those without",
};
pub(crate) const REFUSED: Doubt = Doubt {
    phrase: "in a transaction: a row that the server may refuse",
    advice: "nothing: the server says what is wrong with the row",
};
pub(crate) const TOO_MUCH: Doubt = Doubt {
    phrase: "in a transaction: more than max_pending bytes before COMMIT",
    advice: "a greater max_pending, or smaller transactions",
};
pub(crate) const SEVERAL_ROWS: Doubt = Doubt {
    phrase: "in a transaction: several rows that are not kept one by one",
    advice: "rows of plain values with parameters, or one INSERT for each",
};
pub(crate) const NO_ROOM: Doubt = Doubt {
    phrase: "in a transaction: no memory or lane at that moment",
    advice: "a greater limits.memory, if that happens often",
};
pub(crate) const JOIN_OFF: Doubt = Doubt {
    phrase: "in a transaction: windrow.join is off",
    advice: "SET windrow.join = on, or join = true of the database",
};
pub(crate) const KEY: Doubt = Doubt {
    phrase: "in a transaction: an idempotency key",
    advice: "a key for writes outside of transactions only",
};
pub(crate) const SPOOL: Doubt = Doubt {
    phrase: "in a transaction: windrow.ack is spool",
    advice: "SET windrow.ack = 'commit' for sessions that write in transactions",
};
pub(crate) const ASKS: Doubt = Doubt {
    phrase: "in a transaction: what a sequence gave",
    advice: "RETURNING in place of currval() and lastval()",
};
pub(crate) const FOLLOWED: Doubt = Doubt {
    phrase: "in a transaction: a database that replicas follow",
    advice: "nothing: replicas get what lanes write in autocommit",
};
pub(crate) const OTHER: Doubt = Doubt {
    phrase: "in a transaction: a statement that is not joined in autocommit either",
    advice: "the statement has a line here, or its table a reason in GET /v1/lanes and in windrow doctor",
};

/// All reasons other than those of tables.
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
pub(crate) fn known(phrase: &str) -> Option<&'static Doubt> {
    let mut all = ALL.into_iter().chain(Doubt::ALL);
    all.find(|doubt| doubt.phrase == phrase)
}

/// Returns the advice for a reason for which statements are not joined; never empty.
pub fn advice(reason: &str) -> &'static str {
    known(reason).map_or_else(|| windrow_core::advice(reason), |doubt| doubt.advice)
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
