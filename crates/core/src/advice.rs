//! Advice for operators: what to do about each reason for which writes are not joined.
//!
//! The consoles and the status page show it beside the reason, unless the reason has advice of its
//! own. Reasons are the phrases of [`Apart`](crate::Apart) and of the SQL readers.

/// The advice for statements that are never joined: all but the writes of one row.
const NO_WRITE: &str = "nothing: only INSERT, UPDATE and DELETE of one row, or of listed rows, are joined; the server executes all else";

/// The advice for a reason that has no entry.
const OTHER: &str = "nothing is needed: the server executes the statement as it is; the pages of the frontends list the forms that are joined";

const PLAIN: &str = "single-row INSERT, UPDATE or DELETE of plain values and parameters, with the expression computed by the program";
const PARAMETERS: &str = "a prepared statement with parameters, of which each is one value";
const ONE_BY_ONE: &str = "one statement for each text or message";
const BY_KEY: &str = "a WHERE that names each column of a unique key, as in WHERE id = $1";
const PROTOCOL: &str =
    "a driver that sends Bind, Execute and Sync for each statement, as nearly all do";
const SESSION: &str =
    "leave the setting at the server's default, or set it for the role or database";
const PASSING: &str = "nothing, unless it happens often: the log says why the database or lane did not answer at that moment";
const MEMORY: &str = "a greater limits.memory, if that happens often";
const WAIT: &str = "nothing: the lock ends with the transaction that holds it";
const UNPROVEN: &str =
    "what it leaves behind is not known; use unproven = \"reset\" if nothing of it is needed";
const TABLE: &str = "windrow doctor names the object; a table without it, or writes to the table itself, are joined";
const VISIBLE: &str =
    "grant the role the right to see the table's definition and its triggers (SELECT, TRIGGER)";
const GENERATED: &str = "RETURNING in place of a question for what a sequence gave";
const TRIGGER: &str = "a default, a check or the program itself in place of the trigger; rows of such a table are joined into one transaction";
const NOTHING: &str = "nothing: such writes are executed one by one";

/// The reasons that share each advice.
const ADVICE: &[(&str, &[&str])] = &[
    (
        NO_WRITE,
        &[
            "a function call",
            "a read",
            "a text that cannot be read",
            "an unknown statement",
            "a statement that is not known",
            "a compound statement",
            "a temporary table",
            "locks of tables",
            "no write of rows",
            "not a write",
        ],
    ),
    (
        PLAIN,
        &[
            "DEFAULT inside of an expression",
            "IGNORE of an UPDATE or DELETE",
            "LOW_PRIORITY, DELAYED, HIGH_PRIORITY or QUICK",
            "ONLY or * behind the table",
            "PREPARE in a text",
            "RETURNING that MySQL does not have",
            "a column among the values",
            "a column of something else than the table",
            "a comment that the server executes",
            "a form that is not taken apart",
            "a function of sets",
            "a function of the session or transaction",
            "a function that depends on the session",
            "a function that is not known",
            "a function that may be stored",
            "a function that the server may not have itself",
            "a hint",
            "a name in Unicode escapes",
            "a name outside of ASCII without quotes",
            "a name that the server would change",
            "a parameter in RETURNING",
            "a parameter outside of $1 to $65535",
            "a reserved word as a name",
            "a subquery",
            "a system column",
            "a variable",
            "a window or aggregate function",
            "an argument with a name",
            "an element or a field as the target",
            "an escape in braces",
            "nested too deeply",
            "not understood",
            "LAST_INSERT_ID with a value",
            "DELETE .. USING",
            "INSERT .. SELECT",
            "ORDER BY",
            "PARTITION",
            "UPDATE .. FROM",
            "WHERE CURRENT OF",
            "DEFAULT from a sequence in an UPDATE",
            "DEFAULT in ON CONFLICT",
            "OVERRIDING USER VALUE",
            "a form of statement that cannot be taken apart",
            "statement_timestamp() in one of several statements",
        ],
    ),
    (
        PARAMETERS,
        &[
            "a backslash in a plain string",
            "a literal that means the moment at which it is read",
            "a long prepared statement",
            "a long text",
            "a statement with types of parameters",
            "a text longer than 1 MiB",
            "a text longer than 65,536 bytes",
            "a text with attributes, or not in UTF-8",
            "a value that was sent in parts",
            "an open quote or comment",
            "literals that are not lifted",
            "literals that do not fit",
            "not UTF-8",
        ],
    ),
    (
        ONE_BY_ONE,
        &[
            "several rows of VALUES",
            "several rows with generated values",
            "several statements in one text",
            "several tables",
            "statements prepared behind others",
            "together with a question for the session",
        ],
    ),
    (
        BY_KEY,
        &[
            "a condition that names no unique key",
            "no condition column = value",
            "not a unique key",
        ],
    ),
    (
        PROTOCOL,
        &[
            "COPY data without COPY",
            "Flush before Sync",
            "a function call, messages without Sync, or a Sync or Flush with a body",
            "a malformed message",
            "a portal that is not executed",
            "a portal that was used",
            "a row limit",
            "a statement of a name that is taken",
            "an execution with a cursor or attributes",
            "many names before Sync",
        ],
    ),
    (
        SESSION,
        &[
            "a character set that is not read",
            "a collation of parameters that SET NAMES did not set",
            "a read-only session",
            "a session that may not write",
            "an isolation level above read committed",
            "client_encoding is not UTF8",
            "pg_catalog is not searched first",
            "a setting of the next transaction",
            "an sql_mode that is not read",
            "prepared under other settings",
            "session_track_gtids or session_track_transaction_info",
            "settings that cannot be read",
            "settings that no other session has",
        ],
    ),
    (
        PASSING,
        &[
            "a statement whose table was changed",
            "a table that was not looked into",
            "cancelled before it was known",
            "its lane does not answer",
            "its lane has ended",
            "nothing is known of it any more",
            "nothing is known of the table",
            "the catalog cannot be asked",
            "the spool is gone",
        ],
    ),
    (
        MEMORY,
        &[
            "more than the memory budget holds",
            "the memory of limits.memory is full",
        ],
    ),
    (WAIT, &["a locked table"]),
    (
        UNPROVEN,
        &[
            "a DO block",
            "a change of what may have run before it",
            "a function called by its number",
            "a seed for random numbers",
            "a setting of a module in a prepared statement",
            "a text that may change what it has run",
            "an UPDATE of pg_settings",
            "an event trigger",
            "too many statements in one transaction",
        ],
    ),
    (
        TABLE,
        &[
            "a cascade into a table with triggers",
            "a definition that is not proven",
            "a foreign table",
            "a table that others inherit from",
            "a trigger that is not proven",
            "a version history",
            "a view",
            "an engine, a version history or a reference to itself",
            "not a table",
            "numbers of transactions",
            "a reference to itself",
            "a trigger, row security or a reference to itself",
        ],
    ),
    (
        VISIBLE,
        &[
            "a definition that cannot be seen",
            "a table that cannot be seen",
            "triggers that cannot be seen",
        ],
    ),
    (
        GENERATED,
        &[
            "a function of sequences",
            "a sequence",
            "what a sequence gave",
        ],
    ),
    (
        TRIGGER,
        &[
            "a trigger that may drop a row",
            "a trigger that may raise something",
            "a trigger that sets a key",
        ],
    ),
    (
        NOTHING,
        &[
            "CockroachDB's catalog cannot be checked behind a batch",
            "a default that takes from a sequence",
            "a key whose equal values may be spelled in several ways",
            "a table of many partitions",
            "a time of the transaction that something looks at",
            "a type without arrays",
            "a unique index that is deferrable, partial or over expressions",
            "an update of a unique key",
            "several generated columns",
        ],
    ),
    (
        "autocommit, if the transaction is this one statement; PostgreSQL clients may SET windrow.transactions = 'late'",
        &["autocommit is off", "in a transaction"],
    ),
    (
        "ALTER it to INITIALLY IMMEDIATE if it need not be checked at the commit",
        &["a deferred constraint", "a deferred foreign key"],
    ),
    (
        "a role with BYPASSRLS, or the table's owner without FORCE ROW LEVEL SECURITY, is joined",
        &["row security"],
    ),
    (
        "DROP the rule; a trigger can do nearly all that a rule does",
        &["a table with rules"],
    ),
    (
        "a trigger for each row, of a function that looks at its row only, is joined",
        &["a trigger for each statement"],
    ),
    (
        "if it depends on nothing but its row and leaves nothing behind, name its function in trusted_functions",
        &[
            "a function that is not proven",
            "a function that reads the connection's memory",
            "a trigger that is not proven harmless",
            "an operator that is not proven",
        ],
    ),
    (
        "ALTER TABLE .. ENGINE = InnoDB",
        &["another engine than InnoDB"],
    ),
    ("a primary key tells its rows apart", &["no unique key"]),
    ("mysql.join = true", &["mysql.join is false"]),
    (
        "a greater mysql.max_lanes, or fewer different roles and settings",
        &["more lanes than mysql.max_lanes"],
    ),
    (
        "fewer prepared statements at once, each closed after use",
        &["many prepared statements"],
    ),
    (
        "a greater pg.max_pending, or a Sync after fewer statements",
        &["more than max_pending bytes before Sync"],
    ),
    (
        "write in sessions without what the connection is kept for; or, if that is code whose traces nobody needs, unproven = \"reset\"",
        &["the session keeps a server connection"],
    ),
    (
        "SET windrow.join = on, or join = true of the database",
        &["windrow.join is off"],
    ),
];

/// Returns the advice for a reason; never empty.
pub fn advice(reason: &str) -> &'static str {
    specific_advice(reason).unwrap_or(OTHER)
}

/// Returns the advice for a reason that has an entry, or that is the name of a command, such as
/// `SELECT`.
pub fn specific_advice(reason: &str) -> Option<&'static str> {
    let has = |(_, reasons): &&(&str, &[&str])| reasons.contains(&reason);
    let found = ADVICE.iter().find(has).map(|(advice, _)| *advice);
    let is_command = !reason.contains(|c: char| c.is_ascii_lowercase());
    found.or(is_command.then_some(NO_WRITE))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_one_advice() {
        let all = || ADVICE.iter().flat_map(|(_, reasons)| *reasons);
        assert_eq!(all().collect::<HashSet<_>>().len(), all().count());
        assert_eq!(advice("a view"), TABLE);
        assert_eq!(advice("SELECT"), NO_WRITE);
        assert_eq!(advice("another reason"), OTHER);
    }
}
