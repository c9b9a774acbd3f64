//! What a text alone tells of what its statements leave behind.

use windrow_core::Apart;
use windrow_sql::{Effect, Names};

/// Statements whose names tell all that they run, by their first words.
const READABLE: [&str; 50] = [
    "abort",
    "alter",
    "analyse",
    "analyze",
    "begin",
    "call",
    "checkpoint",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "drop",
    "end",
    "execute",
    "explain",
    "fetch",
    "grant",
    "import",
    "insert",
    "listen",
    "lock",
    "merge",
    "move",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "security",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
    "values",
];

/// Statements that change the catalog, by their first words.
const DDL: [&str; 10] = [
    "alter", "comment", "create", "drop", "grant", "import", "reassign", "refresh", "revoke",
    "security",
];

/// Statements that run no code, by their first words. What a transaction has to do at its end comes
/// of statements before.
const SILENT: [&str; 22] = [
    "abort",
    "begin",
    "checkpoint",
    "close",
    "commit",
    "deallocate",
    "discard",
    "end",
    "fetch",
    "listen",
    "lock",
    "move",
    "notify",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "show",
    "start",
    "unlisten",
    "vacuum",
];

const ADVICE_CODE: &str =
    "what it leaves behind cannot be told; use unproven = \"reset\" where nothing of it is needed";

/// Why a statement is unproven, as far as its text tells. `None`: that depends on what its names
/// mean.
pub(crate) fn of_text(names: Option<&Names>, effect: &Effect) -> Option<Apart> {
    let unproven = |phrase| Some(Apart::of(phrase).advised(ADVICE_CODE).unproven());
    let Some(names) = names else {
        return unproven("a text that cannot be read");
    };
    if names.begins_with(&["do"]) {
        return unproven("a DO block");
    }
    if names.has_late_change {
        return unproven("a text that may change what it has run");
    }
    let readable = |verb: &str| READABLE.binary_search(&verb).is_ok() || verb == "with";
    if !names.verbs.iter().all(|verb| readable(verb)) {
        return unproven("a statement that is not known");
    }
    // Seeding the generator of random numbers cannot be taken back.
    let is_unknown = match effect {
        Effect::Several(effects) => effects.contains(&Effect::Unknown),
        effect => *effect == Effect::Unknown,
    };
    if names.begins_with(&["set"]) && is_unknown && names.has("seed") {
        return unproven("a seed for random numbers");
    }
    if names.has("pg_settings") && names.has("update") {
        return unproven("an UPDATE of pg_settings");
    }
    None
}

/// True where a statement may leave something that a session can be asked for: temporary objects,
/// PREPARE, LISTEN, cursors, advisory locks, settings.
pub(crate) fn keeps(names: &Names) -> bool {
    const VERBS: [&str; 9] = [
        "close",
        "deallocate",
        "discard",
        "execute",
        "listen",
        "prepare",
        "reset",
        "set",
        "unlisten",
    ];
    let word = |name: &str| {
        matches!(name, "temp" | "temporary" | "hold")
            || name.starts_with("pg_temp")
            || name.starts_with("pg_advisory_")
            || name.starts_with("pg_try_advisory_")
    };
    names.begins_with(&VERBS) || names.all.iter().any(|name| word(name))
}

/// True where a statement may change what others were told of the catalog.
pub(crate) fn changes_catalog(names: &Names) -> bool {
    names.begins_with(&DDL) || names.begins_with(&["call", "do"])
}

/// True for `DROP DATABASE` and its kin, which want nobody else in the database.
pub(crate) fn is_about_database(names: &Names) -> bool {
    names.begins_with(&["alter", "create", "drop"]) && names.has("database")
}

/// True for DDL, which event triggers hear of.
pub(super) fn is_ddl(names: &Names) -> bool {
    names.begins_with(&DDL)
}

/// True where a text may write.
pub(crate) fn writes(names: &Names) -> bool {
    const READING: [&str; 7] = [
        "declare", "explain", "prepare", "select", "table", "values", "with",
    ];
    let reads = |verb: &str| READING.contains(&verb);
    let writing = ["insert", "update", "delete", "merge"];
    let writes = |word: &&str| names.reaches(word);
    !names.verbs.iter().all(|verb| reads(verb)) || writing.iter().any(writes)
}

/// True where all statements of a text are of a kind that calls nothing.
pub(crate) fn runs_nothing(names: &Names) -> bool {
    let silent = |verb: &str| SILENT.binary_search(&verb).is_ok();
    names.called.is_empty() && names.verbs.iter().all(|verb| silent(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(text: &str) -> Option<&'static str> {
        let effect = windrow_sql::read(text, &[]).effect();
        of_text(windrow_sql::names(text).as_ref(), &effect).map(|apart| apart.phrase)
    }

    #[test]
    fn who_writes_is_told_from_who_reads() {
        for text in [
            "select 1",
            "(table t)",
            "with a as (select 1) select * from a",
        ] {
            assert!(!writes(&windrow_sql::names(text).unwrap()), "{text}");
        }
        for text in [
            "with a as (delete from t returning 1) select * from a",
            "select * from t for update",
            "insert into t values (1)",
            "copy t to stdout",
        ] {
            assert!(writes(&windrow_sql::names(text).unwrap()), "{text}");
        }
    }

    #[test]
    fn what_says_nothing_of_what_it_runs_is_unproven() {
        assert!(READABLE.is_sorted() && SILENT.is_sorted());
        for (text, said) in [
            ("do $$ begin end $$", Some("a DO block")),
            ("load 'x'", Some("a statement that is not known")),
            ("select 'open", Some("a text that cannot be read")),
            ("set seed = 0.5", Some("a seed for random numbers")),
            (
                "set seed = 0.5; set timezone = 'UTC'",
                Some("a seed for random numbers"),
            ),
            (
                "update pg_settings set setting = 'x' where name = 'y'",
                Some("an UPDATE of pg_settings"),
            ),
            ("select * from pg_settings", None),
            ("with a as (select 1) select * from a", None),
            ("(select 1)", None),
            ("begin; insert into t values (1); commit", None),
            (
                "select f(); drop function f",
                Some("a text that may change what it has run"),
            ),
        ] {
            assert_eq!(phrase(text), said, "{text}");
        }
    }

    #[test]
    fn what_a_session_can_be_asked_for_is_found() {
        for text in [
            "create temp table t ()",
            "create table pg_temp.t ()",
            "select pg_try_advisory_lock(1)",
            "declare c cursor with hold for select 1",
            "listen c",
            "prepare p as select 1",
        ] {
            assert!(keeps(&windrow_sql::names(text).unwrap()), "{text}");
        }
        for text in ["select count(*) from t", "insert into t values (1)"] {
            assert!(!keeps(&windrow_sql::names(text).unwrap()), "{text}");
        }
    }
}
