//! Decides if a statement may be joined with others, from the server's description of it. Reasons
//! against that are counted by their phrases.

use windrow_core::{Apart, Expression, Name, Op, ParsedStatement, REFUSED};
use windrow_proof::{Level, Trusted, Words};

use super::describe::{Description, Function, Relation};
use crate::catalog::table::{Facts, NOT_ASKED};
use crate::statement::defaults::{takes, used_defaults};
use crate::statement::level;
use crate::statement::parsed::has_word;
use crate::statement::set::GeneratedColumn;

/// Words that look like functions but are SQL grammar.
const GRAMMAR: [&str; 8] = [
    "coalesce", "nullif", "greatest", "least", "row", "array", "grouping", "cast",
];

/// Returns the reason why the statement's calls share only a transaction; `None` if they may share
/// a statement.
///
/// # Errors
/// The reason why the statement goes to the server by itself.
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
    // A reason that involves unproven code goes first: it demands more than the others.
    let found = found
        .into_iter()
        .chain(proven.as_ref().err().cloned())
        .chain(of_functions(parsed, description, trusted))
        .chain(of_operators(parsed, facts))
        .chain(of_key(parsed, facts).map(Apart::of))
        .chain(of_defaults(parsed, facts).map(Apart::of));
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

/// Returns the restriction that follows from the code that the table runs for the statement.
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

/// Returns the reason why values from sequences could not be returned to their own clients.
fn of_defaults(parsed: &ParsedStatement, facts: &Facts) -> Option<&'static str> {
    let used = match used_defaults(parsed, facts) {
        Ok(used) => used,
        Err(reason) => return Some(reason),
    };
    let mut taking = used.into_iter().filter(|column| takes(column));
    if parsed.op != Op::Insert {
        return taking
            .next()
            .map(|_| "DEFAULT from a sequence in an UPDATE");
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
    let column = taking.next()?;
    match taking.next() {
        Some(_) => Some("several generated columns"),
        None => (column.sequence == 0).then_some("a default that takes from a sequence"),
    }
}

/// Returns the column that an insert takes from a sequence.
pub(super) fn generated_column(parsed: &ParsedStatement, facts: &Facts) -> Option<GeneratedColumn> {
    if parsed.op != Op::Insert {
        return None;
    }
    let used = used_defaults(parsed, facts).unwrap_or_default();
    let column = used.into_iter().find(|column| takes(column))?;
    let source = column.default.as_deref().filter(|default| {
        let argument = default
            .strip_prefix("nextval('")
            .and_then(|rest| rest.strip_suffix("'::regclass)"));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        argument.is_some_and(is_number) && column.may_take && column.may_look
    });
    Some(GeneratedColumn {
        name: column.name.clone(),
        sequence: column.sequence,
        source: source.map(Box::from),
        is_reported: column.may_look,
    })
}
