//! What the catalog says of the names in a text: all that any of them may mean, with all that it
//! runs in turn.

use windrow_core::Apart;
use windrow_pgwire::wire::{Broken, ServerError, TextRows, Wire};
use windrow_proof::{Catalog, TEXT, Trusted};
use windrow_sql::Names;

use super::text::{is_ddl, writes};
use super::verdict::{Scope, Verdict};
use crate::pool::literal;

const EVENT_TRIGGERS: &str =
    "SELECT evtname FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' LIMIT 1";

/// Asks besides for the sequences that tables and views name in defaults, identity columns and
/// queries.
const SEQUENCES: &str = include_str!("sequences.sql");

/// The first column of its rows.
const SEQUENCE: &str = "q";

const ADVICE: &str =
    "what it leaves behind is not known; if nothing of it is needed, use unproven = \"reset\"";

/// What changes with everything that such questions are about. `None`: it cannot be asked.
pub(super) async fn stamp(wire: &mut Wire) -> Result<Option<Box<str>>, Broken> {
    let rows = wire.simple(include_str!("stamp.sql")).await?.ok();
    let mut values = rows.into_iter().flatten().flatten().flatten();
    Ok(values.next().map(String::into_boxed_str))
}

/// Asks over a connection that nothing is under way on.
pub(super) async fn ask(
    wire: &mut Wire,
    (names, scope): (&Names, Scope),
    trusted: &Trusted,
) -> Result<Verdict, Broken> {
    if is_ddl(names) {
        match wire.simple(EVENT_TRIGGERS).await? {
            Err(error) => return Ok(unknown(&error)),
            Ok(rows) => {
                if let Some(name) = rows.into_iter().flatten().flatten().next() {
                    let apart = Apart::of("an event trigger").by(format!("event trigger {name}"));
                    return Ok(Verdict::Unproven(apart.advised(ADVICE).unproven().into()));
                }
            }
        }
    }
    if names.reached.is_empty() && names.operators.is_empty() {
        return Ok(Verdict::Clean([].into()));
    }
    // In a database of many tables the server would take seconds to compile it.
    let question = format!("SET LOCAL jit = off; {}", question(names, scope));
    match wire.simple(&question).await? {
        Err(error) => Ok(unknown(&error)),
        Ok(rows) => Ok(verdict(&rows, names, trusted)),
    }
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
    match catalog.leaves(writes(names), trusted) {
        None if catalog.takes(trusted) => Verdict::Takes(sequences.into()),
        None => Verdict::Clean(sequences.into()),
        Some(apart) => Verdict::Unproven(apart),
    }
}

fn question(names: &Names, scope: Scope) -> String {
    let sent = names.reached.iter().filter(|name| !is_known(name, names));
    let mut words = literal(&joined(sent));
    if scope == Scope::Any {
        words.push_str(
            " || chr(1) || (SELECT string_agg(nspname, chr(1)) FROM pg_catalog.pg_namespace)",
        );
        words = format!("({words})");
    }
    // As which role the statement ran may be another matter, too: policies count for all.
    let text = TEXT.replace("pg_catalog.row_security_active(r.oid)", "true");
    let text = [&text, SEQUENCES].concat();
    // An operator holds no `$`, a name may.
    text.replace("$2", &literal(&joined(names.operators.iter())))
        .replace("$1", &words)
}

fn joined<'a>(names: impl Iterator<Item = &'a Box<str>>) -> String {
    let names: Vec<&str> = names.map(|name| &**name).collect();
    names.join("\u{1}")
}

/// True for built-in functions whose traces are followed or asked for.
fn is_known(name: &str, names: &Names) -> bool {
    let local = name == "set_config" && !names.calls(name);
    local || name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_")
}
