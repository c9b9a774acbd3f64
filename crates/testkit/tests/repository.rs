//! Rules of the repository that no lint checks.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::fs;
use std::path::PathBuf;

use windrow_testkit::tree::{files, is_test, root};

/// The most lines of code of a source file before its tests. Most have fewer than 300; one that
/// tells a single actor's story may have more, for a story that is cut is harder to follow than a
/// long one.
const LINES: usize = 440;

/// The widest line of a comment.
const COLUMNS: usize = 100;

/// All Rust sources below `crates` with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    let paths = files(&root().join("crates"), "rs").unwrap();
    let found: Vec<_> = paths.into_iter().map(read).collect();
    assert!(found.len() > 20, "the sources are not where they were");
    found
}

/// Lines that break a rule, as `file:line: text`.
fn offenders(breaks: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, text) in sources() {
        for (at, line) in text.lines().enumerate() {
            if breaks(line.trim()) {
                lines.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    lines
}

#[test]
fn source_files_are_small() {
    let long: Vec<_> = sources()
        .iter()
        .filter(|(path, _)| !is_test(path))
        .filter_map(|(path, text)| {
            let code = text.lines().take_while(|l| l.trim() != "#[cfg(test)]");
            let lines = code.filter(|l| !l.trim().starts_with("//")).count();
            (lines > LINES).then(|| format!("{}: {lines}", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "more than {LINES} lines: {long:#?}");
}

/// A comment that is too wide to be read beside another window. Links cannot be broken, and tables,
/// drawings and examples (set off by two blanks) have lines of their own.
fn is_wide_comment(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']);
    let is_comment = line.trim_start().starts_with("//");
    let may_be_wide = line.contains("://") || text.starts_with("  ") || text.starts_with(" |");
    is_comment && !may_be_wide && line.chars().count() > COLUMNS
}

#[test]
fn comments_are_not_wide() {
    let mut wide = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().enumerate();
        for (at, _) in lines.filter(|(_, line)| is_wide_comment(line)) {
            wide.push(format!("{}:{}", path.display(), at + 1));
        }
    }
    assert!(wide.is_empty(), "more than {COLUMNS} columns: {wide:#?}");
}

#[test]
fn no_test_is_switched_off() {
    let attribute = concat!("#[", "ignore");
    let found = offenders(|line| line.starts_with(attribute));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_check_is_thrown_away() {
    let found = offenders(|line| line.starts_with("matches!(") && line.ends_with(");"));
    assert!(found.is_empty(), "matches! without assert!: {found:#?}");
}

#[test]
fn nothing_is_left_to_be_done() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    let found = offenders(|line| marks.iter().any(|mark| line.contains(mark)));
    assert!(found.is_empty(), "{found:#?}");
}

/// Files that open connections for batches. All others submit to a lane, or use the background
/// connection of `core`.
const CONNECTING: [&str; 4] = [
    "core/src/background.rs",
    // The default of durable connections.
    "core/src/database.rs",
    "lanes/src/connection.rs",
    "lanes/src/lock_wait.rs",
];

#[test]
fn only_lanes_and_background_connections_own_executors() {
    let crates = root().join("crates");
    let mut found = Vec::new();
    for (path, text) in sources() {
        let name = path.strip_prefix(&crates).unwrap().display().to_string();
        let is_product = name.contains("/src/") && !is_test(&path);
        let is_helper = name.starts_with("testkit/") || name.starts_with("bench/");
        if !is_product || is_helper || CONNECTING.contains(&name.as_str()) {
            continue;
        }
        let code = text.lines().take_while(|l| l.trim() != "#[cfg(test)]");
        let connects = |line: &&str| line.contains("connect(") && line.contains("Purpose::");
        found.extend(code.filter(connects).map(|line| format!("{name}: {line}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The crates of the workspace that a manifest names, outside of its dev-dependencies.
fn arrows(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if section == "[dependencies]" && name.starts_with("windrow") {
            names.push(name.to_owned());
        }
    }
    names
}

#[test]
fn crates_import_only_what_they_may() {
    let allowed = |folder: &str| -> &[&str] {
        match folder {
            "core" => &[],
            "bench" => &["windrow", "windrow-testkit"],
            "frontends/envelopes" => &[],
            "frontends/http" => &[
                "windrow-core",
                "windrow-envelopes",
                "windrow-idempotency",
                "windrow-sockets",
            ],
            "pgwire" | "mysqlwire" | "databases/common" => &["windrow-core", "windrow-sockets"],
            // Extensions of the HTTP frontend.
            "frontends/arango" | "frontends/influx" | "frontends/status" => {
                &["windrow-core", "windrow-http"]
            }
            // What writes into the tables of Windrow's own imports what they hold.
            "idempotency" => &["windrow-bookkeeping", "windrow-core"],
            "testkit" => &["windrow-bookkeeping", "windrow-core"],
            // The proof reads the bodies of functions.
            "proof" => &["windrow-core", "windrow-sql"],
            // What speaks PostgreSQL's protocol may import its words, and what the proof says of
            // its catalog.
            "databases/postgres" => &[
                "windrow-bookkeeping",
                "windrow-core",
                "windrow-database",
                "windrow-pgwire",
                "windrow-proof",
            ],
            // The databases that keep tables of Windrow's own.
            "databases/mysql" => &[
                "windrow-bookkeeping",
                "windrow-core",
                "windrow-database",
                "windrow-mysqlwire",
            ],
            "databases/sqlite" => &["windrow-bookkeeping", "windrow-core", "windrow-database"],
            folder if folder.starts_with("databases/") => &["windrow-core", "windrow-database"],
            "frontends/mqtt" => &["windrow-bookkeeping", "windrow-core", "windrow-http"],
            "frontends/mysql" => &[
                "windrow-core",
                "windrow-idempotency",
                "windrow-mysqlwire",
                "windrow-sockets",
                "windrow-sql",
            ],
            "frontends/pg" => &[
                "windrow-core",
                "windrow-idempotency",
                "windrow-pgwire",
                "windrow-proof",
                "windrow-sockets",
                "windrow-sql",
            ],
            _ => &["windrow-core"],
        }
    };
    for folder in [
        "core",
        "lanes",
        "spool",
        "bookkeeping",
        "idempotency",
        "sockets",
        "pgwire",
        "mysqlwire",
        "sql",
        "proof",
        "databases/common",
        "databases/postgres",
        "databases/mysql",
        "databases/sqlite",
        "databases/cratedb",
        "databases/arangodb",
        "frontends/envelopes",
        "frontends/http",
        "frontends/arango",
        "frontends/influx",
        "frontends/mqtt",
        "frontends/mysql",
        "frontends/pg",
        "frontends/status",
        "testkit",
        "bench",
    ] {
        let path = root().join("crates").join(folder).join("Cargo.toml");
        let manifest = fs::read_to_string(path).unwrap();
        for arrow in arrows(&manifest) {
            assert!(
                allowed(folder).contains(&arrow.as_str()),
                "{folder} -> {arrow}"
            );
        }
    }
}

#[test]
fn arrows_are_read_from_dependencies_only() {
    let manifest = "[package]\nname = \"windrow-x\"\n[dependencies]\nwindrow-core.workspace = true\n\
                    windrow-lanes = { path = \"..\" }\n[dev-dependencies]\nwindrow-testkit.workspace = true\n";
    assert_eq!(arrows(manifest), ["windrow-core", "windrow-lanes"]);
}
