//! Queries of the catalog about the names in a text: everything that any of them may mean, and all
//! code that it runs in turn.

use windrow_core::Apart;
use windrow_pgwire::wire::{Broken, ServerError, TextRows, Wire};
use windrow_proof::{Catalog, TEXT, Trusted};
use windrow_sql::{Names, Property};

use super::verdict::{Scope, Verdict};
use crate::pool::literal;

const EVENT_TRIGGERS: &str =
    "SELECT evtname FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' LIMIT 1";

/// A further query, for the sequences that tables and views name in defaults, identity columns and
/// queries.
const SEQUENCES: &str = include_str!("sequences.sql");

/// The first column of its rows.
const SEQUENCE: &str = "q";

const ADVICE: &str =
    "what it leaves behind is not known; if nothing of it is needed, use unproven = \"reset\"";

/// State that the session has on its connection while the catalog is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    /// The session's SET statements that decide which objects its names mean.
    pub(crate) set: &'a [&'a str],
    /// True if the session has a transaction open, which must not fail or change.
    pub(crate) in_transaction: bool,
}

/// Replaces the schemas that the session searches by `pg_catalog`: its own operators and functions
/// must not answer.
const SAFELY: &str = "SET LOCAL search_path TO pg_catalog, pg_temp";

/// Stores the schemas that are searched, or all, for the query after it.
const SEARCHED: &str = "SELECT pg_catalog.set_config('windrow.schemas', \
     pg_catalog.array_to_string(pg_catalog.current_schemas(true), pg_catalog.chr(1)), true)";
const ALL: &str = "SELECT pg_catalog.set_config('windrow.schemas', \
     pg_catalog.string_agg(nspname, pg_catalog.chr(1)), true) FROM pg_catalog.pg_namespace";

/// Returns a value that changes with every change of the catalog that matters to such queries;
/// `None` if it cannot be asked.
pub(super) async fn stamp(wire: &mut Wire, asking: Asking<'_>) -> Result<Option<Box<str>>, Broken> {
    let rows = aside(wire, asking, &[SAFELY, include_str!("stamp.sql")]).await?;
    let rows = rows.ok().and_then(|mut answers| answers.pop());
    let mut values = rows.into_iter().flatten().flatten().flatten();
    Ok(values.next().map(String::into_boxed_str))
}

/// Queries the catalog. Nothing may be under way on the connection.
///
/// The names are looked up in the schemas of the session's own SETs, even if code that it has run
/// has changed them since.
pub(super) async fn ask(
    wire: &mut Wire,
    (names, scope): (&Names, Scope),
    asking: Asking<'_>,
    trusted: &Trusted,
) -> Result<Verdict, Broken> {
    let mut statements = Vec::new();
    match scope {
        Scope::Any => statements.push(ALL),
        Scope::Of(_) => {
            let unset = [
                "RESET SESSION AUTHORIZATION",
                "RESET ROLE",
                "RESET search_path",
            ];
            statements.extend(unset);
            statements.extend(asking.set);
            statements.push(SEARCHED);
        }
    }
    // In a database of many tables the server would compile this query for seconds.
    statements.extend([SAFELY, "SET LOCAL jit = off"]);
    let events = names.any(Property::Defines).then_some(EVENT_TRIGGERS);
    statements.extend(events);
    let runs = !names.reached.is_empty() || !names.operators.is_empty();
    let question = runs.then(|| question(names));
    statements.extend(question.as_deref());
    if events.is_none() && question.is_none() {
        return Ok(Verdict::Clean {
            sequences: [].into(),
            runs_hidden: false,
        });
    }
    let mut answers = match aside(wire, asking, &statements).await? {
        Err(error) => return Ok(unknown(&error)),
        Ok(answers) => answers,
    };
    let rows = question.is_some().then(|| answers.pop()).flatten();
    let event = events.and_then(|_| answers.pop());
    if let Some(name) = event.into_iter().flatten().flatten().flatten().next() {
        let apart = Apart::of("an event trigger").by(format!("event trigger {name}"));
        return Ok(Verdict::Unproven(apart.advised(ADVICE).unproven().into()));
    }
    Ok(verdict(&rows.unwrap_or_default(), names, trusted))
}

/// Runs statements in one round trip, in a transaction of their own or after a savepoint that is
/// rolled back. Returns the rows of each, or the first error.
async fn aside(
    wire: &mut Wire,
    asking: Asking<'_>,
    statements: &[&str],
) -> Result<Result<Vec<TextRows>, ServerError>, Broken> {
    let (begin, end) = match asking.in_transaction {
        true => (
            "SAVEPOINT windrow_asks",
            "ROLLBACK TO windrow_asks; RELEASE windrow_asks",
        ),
        false => ("BEGIN", "ROLLBACK"),
    };
    let all = std::iter::once(begin)
        .chain(statements.iter().copied())
        .chain([end]);
    let mut answers = wire.simple_each(all).await?;
    answers.pop();
    Ok(answers.into_iter().skip(1).collect())
}

fn unknown(error: &ServerError) -> Verdict {
    tracing::debug!(%error, "the catalog cannot be asked what a statement runs");
    let apart = Apart::of("the catalog cannot be asked").by(error.message.clone());
    Verdict::Unproven(apart.unproven().into())
}

fn verdict(rows: &TextRows, names: &Names, trusted: &Trusted) -> Verdict {
    let mut catalog = Catalog::default();
    let mut sequences = Vec::new();
    for row in rows {
        let column = |place: usize| row.get(place)?.as_deref();
        match column(0) {
            Some(SEQUENCE) => sequences.extend(column(2).and_then(|oid| oid.parse::<u32>().ok())),
            _ => catalog.take(column),
        }
    }
    match catalog.leaves(names.writes(), trusted) {
        None if catalog.takes(trusted) => Verdict::Takes(sequences.into()),
        None => Verdict::Clean {
            sequences: sequences.into(),
            runs_hidden: catalog.runs_hidden(),
        },
        Some(apart) => Verdict::Unproven(apart),
    }
}

fn question(names: &Names) -> String {
    let sent = names.reached.iter().filter(|name| !is_known(name, names));
    // The statement may have run as another role, so policies count for all roles.
    let text = TEXT.replace("pg_catalog.row_security_active(r.oid)", "true");
    let text = [&text, SEQUENCES].concat();
    // An operator contains no `$`, but a name may.
    text.replace("$3", "current_setting('windrow.schemas')")
        .replace("$2", &literal(&joined(names.operators.iter())))
        .replace("$1", &literal(&joined(sent)))
}

fn joined<'a>(names: impl Iterator<Item = &'a Box<str>>) -> String {
    let names: Vec<&str> = names.map(|name| &**name).collect();
    names.join("\u{1}")
}

/// Returns true for built-in functions whose effects are followed or asked for.
fn is_known(name: &str, names: &Names) -> bool {
    let local = name == "set_config" && !names.calls(name);
    local || name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_")
}
