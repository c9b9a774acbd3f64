//! Describes the reasons why a write is isolated.

use windrow_core::Apart;

const TRUST_TRIGGER: &str = "if its function looks at nothing but its own row and leaves nothing behind, name it in trusted_functions";
const TRUST: &str = "if its value depends on nothing but its arguments and it leaves nothing behind, name it in trusted_functions";

pub(crate) fn trigger(object: &str, why: &str) -> Apart {
    let phrase = "a trigger that is not proven harmless";
    Apart::of(phrase)
        .by(format!("{object}: {why}"))
        .advised(TRUST_TRIGGER)
        .unproven()
}

pub(crate) fn statement_trigger(object: &str) -> Apart {
    Apart::of("a trigger for each statement")
        .by(object)
        .advised("a trigger for each row, of a function that looks at its row only, is joined")
}

pub(crate) fn deferred(object: &str) -> Apart {
    Apart::of("a deferred constraint")
        .by(object)
        .advised("ALTER it to INITIALLY IMMEDIATE if it need not be checked at the commit")
}

pub(crate) fn function(object: &str, function: &str) -> Apart {
    Apart::of("a function that is not proven")
        .by(format!("{object}: function {function}"))
        .advised(TRUST)
        .unproven()
}

pub(crate) fn operator(operator: &str) -> Apart {
    Apart::of("an operator that is not proven")
        .by(format!("operator {operator}"))
        .advised("an operator whose function is written in C and immutable is joined")
        .unproven()
}

pub(crate) fn session_function(object: &str, function: &str) -> Apart {
    Apart::of("a function of the session or transaction")
        .by(format!("{object}: function {function}"))
}

pub(crate) fn sequence_function(object: &str, function: &str) -> Apart {
    Apart::of("a function of sequences").by(format!("{object}: function {function}"))
}

pub(crate) fn row_security(table: &str) -> Apart {
    Apart::of("row security").by(format!("table {table}"))
        .advised("a role with BYPASSRLS, or the table's owner without FORCE ROW LEVEL SECURITY, is joined")
}

pub(crate) fn rule(rule: &str, table: &str) -> Apart {
    Apart::of("a table with rules")
        .by(format!("rule {rule} on {table}"))
        .advised("DROP the rule; a trigger can do nearly all that a rule does")
}

pub(crate) fn kind(kind: u8, table: &str) -> Apart {
    let (phrase, word) = match kind {
        b'v' => ("a view", "view"),
        b'm' => ("a view", "materialized view"),
        b'f' => ("a foreign table", "foreign table"),
        _ => ("not a table", "relation"),
    };
    Apart::of(phrase).by(format!("{word} {table}"))
}

pub(crate) fn heir(table: &str) -> Apart {
    Apart::of("a table that others inherit from").by(format!("table {table}"))
}

pub(crate) fn cascade(object: &str) -> Apart {
    Apart::of("a cascade into a table with triggers").by(object)
}

pub(crate) fn unknown() -> Apart {
    Apart::of("nothing is known of the table")
}
