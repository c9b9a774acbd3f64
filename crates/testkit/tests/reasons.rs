//! Each reason for which a write is not joined has advice of its own. The reasons are found in the
//! sources: the phrases that stand behind what makes one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use windrow_core::advice::specific_advice;
use windrow_testkit::tree::{self, is_test};

/// The folders of sources that give reasons.
const FOLDERS: [&str; 7] = [
    "sql/src",
    "proof/src",
    "frontends/pg/src",
    "frontends/mysql/src",
    "databases/postgres/src",
    "databases/postgres/src/calls",
    "databases/mysql/src",
];

/// The folders in which each refusal of a statement is a reason.
const REFUSING: [&str; 2] = ["sql/src", "databases/postgres/src/calls"];

/// The code before a reason.
const OPENINGS: [&str; 12] = [
    "Apart::of(",
    "NotDescribed::of(",
    "NotJoined::For(",
    "For(",
    "Relay(",
    "Refusal = ",
    "reason: ",
    "let phrase = ",
    "relay_for(",
    "relay(",
    "unproven(",
    "apart(",
];

/// The code before a refusal of a statement.
const REFUSALS: [&str; 6] = [
    "Err(",
    "ok_or(",
    "Unknown(",
    "then_some(",
    "return Some(",
    "map(|_| ",
];

/// A text behind such code that names an object.
const OBJECT: &str = "the statement";

/// Returns the text of the literal at the start.
fn literal(code: &str) -> Option<&str> {
    let (text, _) = code.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(text)
}

/// Returns the name of the constant at the start, without its path.
fn constant(code: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let code = code.trim_start();
    let path = code.split(|c: char| !is_part(c)).next()?;
    let name = path.rsplit("::").next()?;
    let is_constant = |c: char| c.is_ascii_uppercase() || c == '_';
    (name.len() > 1 && name.chars().all(is_constant)).then_some(name)
}

/// Returns the texts of constants, by name.
fn constants(sources: &[String]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, code) in sources.iter().flat_map(|text| pieces(text, "const ")) {
        let text = code.split_once(" = ").and_then(|(_, value)| literal(value));
        if let (Some(name), Some(text)) = (constant(code), text) {
            found.entry(name).or_default().insert(text);
        }
    }
    found
}

/// Returns the pieces of a text behind each occurrence of a word that no name ends with.
fn pieces<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.match_indices(word).filter_map(move |(at, _)| {
        let (before, behind) = text.split_at(at);
        let is_part = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        Some((at, behind.strip_prefix(word)?)).filter(|_| !is_part)
    })
}

/// Returns the code of a folder's sources, without tests.
fn sources(name: &str) -> Vec<String> {
    let folder = tree::root().join("crates").join(name);
    let files = tree::files(&folder, "rs").unwrap();
    let is_code = |path: &&std::path::PathBuf| !is_test(path) && !path.ends_with("trial.rs");
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap()
            .to_owned()
    };
    files
        .iter()
        .filter(is_code)
        .map(|path| read(path))
        .collect()
}

/// Returns the reasons that the sources of a folder give.
fn reasons(name: &str) -> BTreeSet<String> {
    let sources = sources(name);
    let constants = constants(&sources);
    let refusals = REFUSALS.iter().filter(|_| REFUSING.contains(&name));
    let openings: Vec<&&str> = OPENINGS.iter().chain(refusals).collect();
    let mut found = BTreeSet::new();
    for (source, opening) in sources
        .iter()
        .flat_map(|s| openings.iter().map(move |o| (s, o)))
    {
        for (_, code) in pieces(source, opening) {
            found.extend(literal(code).map(str::to_owned));
            let named = constant(code).and_then(|name| constants.get(name));
            found.extend(named.into_iter().flatten().map(|text| (*text).to_owned()));
        }
    }
    found
}

#[test]
fn each_has_advice() {
    let mut count = 0;
    for name in FOLDERS {
        for reason in reasons(name) {
            // Those of transactions have theirs beside them.
            if reason.starts_with("in a transaction: ") || reason == OBJECT {
                continue;
            }
            count += 1;
            assert!(
                specific_advice(&reason).is_some(),
                "{name}: {reason:?} has no advice in crates/core/src/advice.rs"
            );
        }
    }
    assert!(count > 120, "the reasons are not where they were: {count}");
}
