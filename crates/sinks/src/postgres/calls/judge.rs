//! May a statement be joined with others, given what the server says of it? Every reason is counted by its words.

use windrow_core::statement::{Expression, Piece};
use windrow_core::{Draft, Name, Op};

use super::describe::{ColumnDefault, Relation, Sight};
use crate::postgres::table::Facts;

/// Volatile functions whose every value stands for itself, whoever asks.
const FREE: [&str; 8] = [
    "random",
    "random_normal",
    "gen_random_uuid",
    "uuidv4",
    "uuidv7",
    "clock_timestamp",
    "timeofday",
    "gen_random_bytes",
];

/// Functions that are not volatile, but mean a session or a transaction.
const OF_THE_SESSION: [&str; 17] = [
    "current_query",
    "inet_client_addr",
    "inet_client_port",
    "pg_backend_pid",
    "pg_current_snapshot",
    "pg_current_xact_id",
    "pg_current_xact_id_if_assigned",
    "pg_is_other_temp_schema",
    "pg_listening_channels",
    "pg_my_temp_schema",
    "pg_snapshot_xmin",
    "pg_trigger_depth",
    "txid_current",
    "txid_current_if_assigned",
    "txid_current_snapshot",
    "pg_notification_queue_usage",
    "pg_export_snapshot",
];

/// Words that look like functions and are none.
const GRAMMAR: [&str; 8] = [
    "coalesce", "nullif", "greatest", "least", "row", "array", "grouping", "cast",
];

/// A value that a call takes from a sequence because it gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taking {
    pub(super) column: Name,
    pub(super) sequence: u32,
    /// The expression that takes it, where it may be evaluated by itself.
    pub(super) source: Option<Box<str>>,
}

/// Why the statement goes to the server by itself, if so.
pub(super) fn apart(draft: &Draft, sight: &Sight) -> Option<&'static str> {
    let (Some(relation), Some(facts)) = (&sight.relation, &sight.facts) else {
        return Some("the server refuses it");
    };
    of_relation(relation)
        .or_else(|| of_functions(draft, sight))
        .or_else(|| match draft.op {
            Op::Insert => None,
            _ if covers_a_key(draft, facts) => None,
            _ => Some("not a unique key"),
        })
        .or_else(|| of_reach(draft, relation))
        .or_else(|| of_defaults(draft, sight, facts))
}

fn of_relation(relation: &Relation) -> Option<&'static str> {
    match relation.kind {
        b'r' | b'p' => {}
        b'v' | b'm' => return Some("a view"),
        b'f' => return Some("a foreign table"),
        _ => return Some("not a table"),
    }
    if relation.has_rules {
        return Some("a table with rules");
    }
    if relation.read_only {
        return Some("a read-only session");
    }
    if &*relation.first_schema != "pg_catalog" {
        return Some("pg_catalog is not searched first");
    }
    (&*relation.encoding != "UTF8").then_some("client_encoding is not UTF8")
}

/// What a write does beyond its own row comes back to nobody.
fn of_reach(draft: &Draft, relation: &Relation) -> Option<&'static str> {
    if relation.triggers_reach {
        return Some("a trigger that reaches beyond its row");
    }
    if draft.op == Op::Insert {
        return None;
    }
    if relation.has_heirs {
        return Some("a table that others inherit from");
    }
    relation
        .cascades
        .then_some("a cascade into a table with triggers")
}

fn of_functions(draft: &Draft, sight: &Sight) -> Option<&'static str> {
    draft.functions.iter().find_map(|function| {
        let name = &*function.table;
        let qualified = function.schema.as_deref();
        if qualified.is_some_and(|schema| schema != "pg_catalog") {
            return Some("a function that is not built in");
        }
        let named = || sight.functions.iter().filter(|f| &*f.name == name);
        let mut meant = named().filter(|f| f.built_in || qualified.is_none());
        if meant.clone().any(|f| !f.built_in) {
            Some("a function that is not built in")
        } else if meant.clone().next().is_none() {
            (!GRAMMAR.contains(&name)).then_some("a function that is not known")
        } else if OF_THE_SESSION.contains(&name) {
            Some("a function of the session")
        } else if meant.clone().any(|f| f.is_odd) {
            Some("a function of sets")
        } else {
            let volatile = meant.any(|f| f.volatile == b'v');
            (volatile && !FREE.contains(&name)).then_some("a volatile function")
        }
    })
}

fn covers_a_key(draft: &Draft, facts: &Facts) -> bool {
    facts.uniques.iter().any(|unique| {
        let mut names = unique.columns.iter().map(|place| facts.columns.get(*place));
        unique.immediate
            && names.all(|c| c.is_some_and(|c| draft.keys.iter().any(|(name, _)| *name == c.name)))
    })
}

/// The columns that an insert gives values to, with the expressions; `None`: they are not known one by one.
pub(super) fn given<'a>(
    draft: &'a Draft,
    facts: &'a Facts,
) -> Option<Vec<(&'a Name, &'a Expression)>> {
    if !draft.set_based {
        return None;
    }
    let names: Vec<&Name> = match &draft.columns {
        Some(names) => names.iter().collect(),
        None => facts.columns.iter().map(|c| &c.name).collect(),
    };
    let given = names.into_iter().zip(&*draft.values);
    Some(
        given
            .filter(|(_, value)| **value != Expression::Default)
            .collect(),
    )
}

/// What comes from sequences must come back to its own client.
fn of_defaults(draft: &Draft, sight: &Sight, facts: &Facts) -> Option<&'static str> {
    if draft.op != Op::Insert {
        let defaults = |name: &Name| {
            sight
                .defaults
                .iter()
                .any(|d| *d.column == **name && takes(d))
        };
        let mut set = draft.assignments.iter();
        return set
            .any(|(name, value)| *value == Expression::Default && defaults(name))
            .then_some("DEFAULT from a sequence in an UPDATE");
    }
    let overriding = draft.overriding.as_deref().unwrap_or_default();
    if has_word(overriding, &["user"]) {
        return Some("OVERRIDING USER VALUE");
    }
    let update = draft.conflict.as_ref().filter(|conflict| conflict.update);
    if update.is_some_and(|conflict| mentions(&conflict.sql, "default")) {
        return Some("DEFAULT in ON CONFLICT");
    }
    let used = match used_defaults(draft, sight, facts) {
        Ok(used) => used,
        Err(reason) => return Some(reason),
    };
    if used.iter().any(|d| d.is_foreign) {
        return Some("a default that calls a volatile function");
    }
    if used
        .iter()
        .any(|d| has_word(&d.sql, &["currval", "lastval", "setval"]))
    {
        return Some("a default of the session");
    }
    let taking: Vec<_> = used.iter().filter(|d| takes(d)).collect();
    if taking.len() > 1 {
        return Some("several generated columns");
    }
    let unclear = taking.iter().any(|d| d.sequence == 0);
    unclear.then_some("a default that takes from a sequence")
}

/// The defaults that an insert makes use of.
fn used_defaults<'a>(
    draft: &Draft,
    sight: &'a Sight,
    facts: &Facts,
) -> Result<Vec<&'a ColumnDefault>, &'static str> {
    if let Some(given) = given(draft, facts) {
        let left_out = |d: &&ColumnDefault| !given.iter().any(|(name, _)| ***name == *d.column);
        return Ok(sight.defaults.iter().filter(left_out).collect());
    }
    // Of several rows any may say DEFAULT.
    let Some(named) = &draft.columns else {
        return match sight.defaults.iter().any(takes) {
            true => Err("several rows with generated values"),
            false => Ok(sight.defaults.iter().collect()),
        };
    };
    let is_named = |d: &ColumnDefault| named.iter().any(|name| **name == *d.column);
    if sight.defaults.iter().any(|d| takes(d) && is_named(d)) {
        return Err("several rows with generated values");
    }
    Ok(sight.defaults.iter().collect())
}

/// What the insert takes from a sequence.
pub(super) fn taking(draft: &Draft, sight: &Sight, facts: &Facts) -> Option<Taking> {
    if draft.op != Op::Insert {
        return None;
    }
    let used = used_defaults(draft, sight, facts).unwrap_or_default();
    let default = used.into_iter().find(|d| takes(d))?;
    let plain = default
        .sql
        .strip_prefix("nextval('")
        .and_then(|rest| rest.strip_suffix("'::regclass)"));
    // A second quote that is not doubled would end the name, and begin something else.
    let plain = plain.is_some_and(|name| !name.replace("''", "").contains('\''));
    Some(Taking {
        column: (*default.column).into(),
        sequence: default.sequence,
        source: (plain && default.may_take).then(|| default.sql.clone()),
    })
}

fn takes(default: &ColumnDefault) -> bool {
    default.sequence != 0 || has_word(&default.sql, &["nextval"])
}

fn has_word(sql: &str, words: &[&str]) -> bool {
    let sql = sql.to_ascii_lowercase();
    words.iter().any(|word| sql.contains(word))
}

/// Whether a word stands anywhere in an expression.
pub(super) fn mentions(expression: &Expression, word: &str) -> bool {
    let Expression::Sql(pieces) = expression else {
        return word == "default";
    };
    pieces.iter().any(|piece| match piece {
        Piece::Text(sql) => has_word(sql, &[word]),
        Piece::Parameter(_) => false,
    })
}
