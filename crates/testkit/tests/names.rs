//! A type has one name in its crate, and one place: what it does lies in at most three files.
//!
//! Names that are not unique yet stand in a list that only shrinks: a name that has become unique
//! has to leave it.
//!
//! Counted are types that other modules can see (`pub`, `pub(crate)` and so on), and `impl` blocks
//! without a trait. A file `no_NAME.rs` replaces `NAME.rs` in builds without a feature, so it may
//! define the same names.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use windrow_testkit::tree::{self, files, is_test, root};

/// Files that may hold the `impl` blocks of one type.
const MAX_FILES: usize = 3;

/// Names that more than one type of a crate has.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("databases/postgres", "Answers"),
    ("databases/postgres", "Facts"),
    ("databases/postgres", "Judge"),
    ("databases/postgres", "Moment"),
];

/// A name in a crate, and the files that define or implement it.
type Places = BTreeMap<(String, String), BTreeSet<String>>;

/// The first word of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len())).0
}

/// Text behind generic parameters, if it begins with some.
fn without_generics(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return match c {
                '>' => text[at + 1..].trim_start(),
                _ => text,
            };
        }
    }
    text
}

/// Returns the type of an `impl` block without a trait that begins in this line.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if !rest.starts_with([' ', '<']) || line.contains(" for ") {
        return None;
    }
    let name = word(without_generics(rest.trim_start()));
    (!name.is_empty()).then_some(name)
}

/// Returns the name of a type that other modules can see and that is defined in this line.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind);
    is_type.then(|| word(rest))
}

/// The files of each name that `find` finds in a line of a crate's product code.
fn places(find: impl Fn(&str) -> Option<&str>) -> Places {
    let crates = root().join("crates");
    let mut found = Places::new();
    for folder in tree::crates().unwrap() {
        let of = |path: &Path| path.strip_prefix(&folder).unwrap().display().to_string();
        let krate = folder.strip_prefix(&crates).unwrap().display().to_string();
        for path in files(&folder.join("src"), "rs").unwrap() {
            let file = path.file_name().unwrap().to_string_lossy();
            if is_test(&path) || file.ends_with("_tests.rs") || file.starts_with("no_") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for name in code.lines().filter_map(&find) {
                let files = found.entry((krate.clone(), name.to_owned())).or_default();
                files.insert(of(&path));
            }
        }
    }
    found
}

#[test]
fn the_impls_of_a_type_lie_in_few_files() {
    let found = places(implemented);
    let spread = found.iter().filter(|(_, files)| files.len() > MAX_FILES);
    let faults: Vec<String> = spread
        .map(|((krate, name), files)| format!("{krate}: {name} lies in {files:?}"))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_name_stands_for_one_type_of_its_crate() {
    let found = places(defined);
    let mut faults = Vec::new();
    for ((krate, name), files) in &found {
        let is_listed = SHARED_NAMES.iter().any(|(k, n)| k == krate && n == name);
        match (files.len() > 1, is_listed) {
            (true, false) => faults.push(format!("{krate}: {name} stands in {files:?}")),
            (false, true) => faults.push(format!("{krate}: {name} has to leave SHARED_NAMES")),
            _ => {}
        }
    }
    for (krate, name) in SHARED_NAMES {
        if !found.contains_key(&((*krate).to_owned(), (*name).to_owned())) {
            faults.push(format!("{krate}: {name} has to leave SHARED_NAMES"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn types_are_found_in_lines() {
    assert_eq!(implemented("impl Pump<'_, '_> {"), Some("Pump"));
    assert_eq!(implemented("impl<W: Work> Unit<W> {"), Some("Unit"));
    assert_eq!(implemented("impl<F: Fn() -> bool> Wait<F> {"), Some("Wait"));
    assert_eq!(implemented("impl Drop for Pump<'_> {"), None);
    assert_eq!(implemented("    impl Inner {"), None);
    assert_eq!(implemented("implement"), None);
    assert_eq!(defined("pub struct Unit<W> {"), Some("Unit"));
    assert_eq!(defined("    pub(super) enum Way {"), Some("Way"));
    assert_eq!(defined("pub(in crate::a) type Ran = ();"), Some("Ran"));
    assert_eq!(defined("struct Hidden;"), None);
    assert_eq!(defined("pub fn made() {"), None);
}
