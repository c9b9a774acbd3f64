//! May a statement be joined with others, given what the server says of it? Every reason is counted
//! by its words.

use windrow_calls::{Expression, ParsedStatement, REFUSED};
use windrow_core::{Apart, Name, Op};
use windrow_proof::{Level, Trusted, Words};

use super::describe::{ColumnDefault, Description, Function, Relation};
use crate::catalog::table::{Facts, NOT_ASKED};
use crate::statement::clock_use::UsedDefault;
use crate::statement::level;
use crate::statement::parsed::{given, has_word};
use crate::statement::set::GeneratedColumn;

/// Words that look like functions and are none.
const GRAMMAR: [&str; 8] = [
    "coalesce", "nullif", "greatest", "least", "row", "array", "grouping", "cast",
];

/// What the statement's calls may share: a transaction, for this reason, or a statement.
///
/// # Errors
/// Why it goes to the server by itself.
pub(super) fn judge(
    parsed: &ParsedStatement,
    description: &Description,
    trusted: &Trusted,
) -> Result<Option<Apart>, Apart> {
    let (Some(relation), Some(facts)) = (&description.relation, &description.facts) else {
        return Err(Apart::of(REFUSED));
    };
    let proven = of_proof(parsed, facts, trusted);
    let found = of_session(relation).map(Apart::of);
    // What runs unproven code is said first: it asks for more than the others do.
    let found = found
        .into_iter()
        .chain(proven.as_ref().err().cloned())
        .chain(of_functions(parsed, description, trusted))
        .chain(of_operators(parsed, facts))
        .chain(of_key(parsed, facts).map(Apart::of))
        .chain(of_defaults(parsed, description, facts).map(Apart::of));
    match found.min_by_key(|apart| !apart.unproven) {
        Some(apart) => Err(apart),
        None => proven,
    }
}

fn of_session(relation: &Relation) -> Option<&'static str> {
    if relation.read_only {
        return Some("a read-only session");
    }
    if &*relation.first_schema != "pg_catalog" {
        return Some("pg_catalog is not searched first");
    }
    (&*relation.encoding != "UTF8").then_some("client_encoding is not UTF8")
}

/// What the table runs for it.
fn of_proof(
    parsed: &ParsedStatement,
    facts: &Facts,
    trusted: &Trusted,
) -> Result<Option<Apart>, Apart> {
    match level::of_statement(parsed, facts, trusted) {
        Level::Fused => Ok(level::of_table(facts)),
        Level::Grouped(why) => Ok(Some((*why).clone())),
        Level::Apart(apart) => Err((*apart).clone()),
    }
}

fn of_functions(
    parsed: &ParsedStatement,
    description: &Description,
    trusted: &Trusted,
) -> Option<Apart> {
    parsed.functions.iter().find_map(|function| {
        let name = &*function.table;
        let meant = |f: &&Function| {
            let found = match &function.schema {
                Some(schema) => **schema == *f.schema,
                None => f.is_visible,
            };
            found && &*f.name == name
        };
        let mut meant = description.functions.iter().filter(meant).peekable();
        if meant.peek().is_none() {
            let is_grammar = function.schema.is_none() && GRAMMAR.contains(&name);
            return (!is_grammar).then(|| Apart::of("a function that is not known"));
        }
        meant.find_map(|function| of_function(function, &parsed.text, trusted))
    })
}

fn of_function(function: &Function, text: &str, trusted: &Trusted) -> Option<Apart> {
    if function.is_odd {
        return Some(Apart::of("a function of sets"));
    }
    let name = format!("{}.{}", function.schema, function.name);
    let found = windrow_proof::Function {
        name: name.into(),
        built_in: function.built_in,
        language: function.language.clone(),
        volatility: function.volatile,
    };
    found.apart("the statement", text, trusted)
}

fn of_operators(parsed: &ParsedStatement, facts: &Facts) -> Option<Apart> {
    let Some(words) = Words::of(&parsed.text, true) else {
        return Some(Apart::of("a name in Unicode escapes"));
    };
    match &facts.proof {
        Some(proof) => proof.operator_apart(&words),
        None => Some(Apart::of(NOT_ASKED)),
    }
}

fn of_key(parsed: &ParsedStatement, facts: &Facts) -> Option<&'static str> {
    let found = parsed.op == Op::Insert || covers_a_key(parsed, facts);
    (!found).then_some("not a unique key")
}

fn covers_a_key(parsed: &ParsedStatement, facts: &Facts) -> bool {
    let uniques = facts.uniques.iter().filter(|unique| unique.immediate);
    let uniques = uniques.map(|unique| &*unique.columns);
    let temporal = facts.temporal_keys.iter().map(|columns| &**columns);
    uniques.chain(temporal).any(|columns| {
        let mut columns = columns.iter().map(|place| facts.columns.get(*place));
        columns.all(|c| c.is_some_and(|c| parsed.keys.iter().any(|(name, _)| *name == c.name)))
    })
}

/// What comes from sequences must come back to its own client.
fn of_defaults(
    parsed: &ParsedStatement,
    description: &Description,
    facts: &Facts,
) -> Option<&'static str> {
    if parsed.op != Op::Insert {
        let defaults = |name: &Name| {
            description
                .defaults
                .iter()
                .any(|d| *d.column == **name && takes(d))
        };
        let mut set = parsed.assignments.iter();
        return set
            .any(|(name, value)| *value == Expression::Default && defaults(name))
            .then_some("DEFAULT from a sequence in an UPDATE");
    }
    let overriding = parsed.overriding.as_deref().unwrap_or_default();
    if has_word(overriding, &["user"]) {
        return Some("OVERRIDING USER VALUE");
    }
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    let is_default = |(_, value): &(Name, Expression)| *value == Expression::Default;
    if update.is_some_and(|conflict| conflict.assignments.iter().any(is_default)) {
        return Some("DEFAULT in ON CONFLICT");
    }
    let used = match used_defaults(parsed, description, facts) {
        Ok(used) => used,
        Err(reason) => return Some(reason),
    };
    let taking: Vec<_> = used.iter().filter(|d| takes(d)).collect();
    if taking.len() > 1 {
        return Some("several generated columns");
    }
    let unclear = taking.iter().any(|d| d.sequence == 0);
    unclear.then_some("a default that takes from a sequence")
}

/// The defaults that an insert makes use of.
pub(super) fn used_defaults<'a>(
    parsed: &ParsedStatement,
    description: &'a Description,
    facts: &Facts,
) -> Result<Vec<&'a ColumnDefault>, &'static str> {
    if let Some(given) = given(parsed, facts) {
        let left_out = |d: &&ColumnDefault| !given.iter().any(|(name, _)| ***name == *d.column);
        return Ok(description.defaults.iter().filter(left_out).collect());
    }
    // Of several rows any may say DEFAULT.
    let Some(named) = &parsed.columns else {
        return match description.defaults.iter().any(takes) {
            true => Err("several rows with generated values"),
            false => Ok(description.defaults.iter().collect()),
        };
    };
    let is_named = |d: &ColumnDefault| named.iter().any(|name| **name == *d.column);
    if description.defaults.iter().any(|d| takes(d) && is_named(d)) {
        return Err("several rows with generated values");
    }
    Ok(description.defaults.iter().collect())
}

/// Lists the defaults that a statement's calls make use of: those of columns that an insert gives
/// no value, and those that an update asks for by the word.
pub(super) fn clock_defaults<'a>(
    parsed: &'a ParsedStatement,
    description: &'a Description,
    facts: &Facts,
) -> impl Iterator<Item = UsedDefault<'a>> {
    let to_default = |d: &&ColumnDefault| {
        let mut set = parsed.assignments.iter();
        set.any(|(name, value)| **name == *d.column && *value == Expression::Default)
    };
    let used = match parsed.op {
        Op::Insert => used_defaults(parsed, description, facts).unwrap_or_default(),
        _ => description.defaults.iter().filter(to_default).collect(),
    };
    used.into_iter().map(|default| UsedDefault {
        column: &default.column,
        sql: &default.sql,
        may_give: default.may_give,
    })
}

/// What the insert takes from a sequence.
pub(super) fn generated_column(
    parsed: &ParsedStatement,
    description: &Description,
    facts: &Facts,
) -> Option<GeneratedColumn> {
    if parsed.op != Op::Insert {
        return None;
    }
    let used = used_defaults(parsed, description, facts).unwrap_or_default();
    let default = used.into_iter().find(|d| takes(d))?;
    let plain = default
        .sql
        .strip_prefix("nextval('")
        .and_then(|rest| rest.strip_suffix("'::regclass)"));
    // A second quote that is not doubled would end the name, and begin something else.
    let plain = plain.is_some_and(|name| !name.replace("''", "").contains('\''));
    Some(GeneratedColumn {
        name: (*default.column).into(),
        sequence: default.sequence,
        // By its number: its name may be another sequence's by the time this is sent.
        source: (plain && default.sequence != 0 && default.may_take && default.may_look)
            .then(|| format!("nextval('{}'::regclass)", default.sequence).into()),
        told: default.may_look,
    })
}

fn takes(default: &ColumnDefault) -> bool {
    default.sequence != 0 || has_word(&default.sql, &["nextval"])
}
