//! What a parsed statement means to the server, as far as executing its calls depends on it.

use std::borrow::Cow;
use std::sync::Arc;

use windrow_core::statement::Formats;
use windrow_core::{Apart, ParsedStatement, Signature};
use windrow_proof::Trusted;

use super::describe::Sight;
use super::judge::{self, Taking};
use super::key::{Keys, keys};
use crate::catalog::table::{Facts, Table};

/// A parsed statement joined with its table. Kept in [`windrow_core::Statement::facts`] as an
/// `Arc`.
#[derive(Debug)]
pub(crate) struct Meaning {
    pub(super) table: Arc<Table>,
    /// The types of its parameters and rows.
    pub(super) signature: Arc<Signature>,
    /// How many columns its rows have.
    pub(super) width: u16,
    /// What each call takes from a sequence.
    pub(super) taking: Option<Taking>,
    /// Why its calls do not become one statement; `None`: they may, if their values allow it.
    pub(super) grouped: Option<Apart>,
    /// What it runs besides itself is proven for each row.
    pub(super) proven: bool,
    /// The unique keys that it gives, where all values are text, and where all are binary.
    keys: [Keys; 2],
}

impl Meaning {
    /// The unique keys that the statement gives with values in these formats.
    pub(super) fn keys(&self, parsed: &ParsedStatement, formats: &Formats) -> Cow<'_, Keys> {
        let [text, binary] = &self.keys;
        match formats {
            Formats::Text => Cow::Borrowed(text),
            Formats::Binary => Cow::Borrowed(binary),
            Formats::Each(_) => Cow::Owned(keys(
                parsed,
                &self.table,
                &self.signature.parameters,
                formats,
            )),
        }
    }
}

/// What is said of a parsed statement that may be joined.
pub(super) fn meaning(
    parsed: &ParsedStatement,
    sight: &Sight,
    trusted: &Trusted,
    put: impl FnOnce(u32, Facts) -> Arc<Table>,
) -> Result<Meaning, Apart> {
    let unproven = judge::judge(parsed, sight, trusted)?;
    let Sight {
        relation: Some(relation),
        facts: Some(facts),
        ..
    } = sight
    else {
        return Err(Apart::of("the server refuses it"));
    };
    let taking = judge::taking(parsed, sight, facts);
    // A later snapshot than that of the first statement sees what came between: only so the check
    // is one.
    let reads_anew =
        &*relation.isolation == "read committed" || &*relation.isolation == "read uncommitted";
    let parts = facts.print.as_ref().map_or(0, |print| print.oids.len());
    let proven = unproven.is_none();
    let otherwise = [
        (!parsed.set_based).then_some("a form of statement that cannot be taken apart"),
        (!reads_anew).then_some("an isolation level above read committed"),
        (parts > MOST_PARTS).then_some("a table of many partitions"),
    ];
    let grouped = unproven.or_else(|| otherwise.into_iter().flatten().next().map(Apart::of));
    let signature = Arc::new(sight.signature());
    let table = put(relation.oid, facts.clone());
    let given = |formats| keys(parsed, &table, &signature.parameters, &formats);
    Ok(Meaning {
        keys: [given(Formats::Text), given(Formats::Binary)],
        width: sight.width,
        taking,
        grouped,
        proven,
        table,
        signature,
    })
}

/// The most partitions that are looked at behind each batch.
const MOST_PARTS: usize = 32;
