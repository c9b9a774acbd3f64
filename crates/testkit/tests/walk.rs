//! The walks in ARCHITECTURE.md follow the calls of the code, and do not get longer. Its map and
//! tables name crates and files that exist.
//!
//! A line of a walk is a stop: a file, a function, a remark. Its indentation says which stop calls
//! it. `~ Message` says that the stop below it receives a message that a stop above it sends.
//!
//! A call counts if the body of the caller, or of a function of the same file that the caller
//! reaches, calls a function of that name, and the caller's file names something that the called
//! file defines: a type (also as a variable), a trait that it implements, or the module. Names of
//! methods are not resolved by types, so a call of another method of that name may be taken for it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use windrow_testkit::tree::{self, root};

/// Files that a row crosses from the HTTP client's socket to PostgreSQL's and back. The number only
/// shrinks: the target is 40.
const HTTP_FILES: usize = 51;

/// Files that an INSERT of a PostgreSQL client crosses. The number only shrinks: the target is 40.
const PG_FILES: usize = 53;

/// Words of ARCHITECTURE.md.
const MAX_WORDS: usize = 2000;

/// Files of the shared walk that only row writes cross; SQL clients' calls have their own.
const ONLY_ROWS: [&str; 3] = [
    "databases/postgres/src/row_statement.rs",
    "databases/postgres/src/values/",
    "databases/postgres/src/sink.rs",
];

fn page() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// A line of a walk.
#[derive(Debug, PartialEq)]
enum Line<'p> {
    Stop {
        depth: usize,
        file: &'p str,
        function: &'p str,
    },
    Message(&'p str),
}

fn line(text: &str) -> Line<'_> {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    if first == "~" {
        return Line::Message(second);
    }
    Line::Stop {
        depth: (text.len() - text.trim_start().len()) / 2,
        file: first,
        function: second,
    }
}

/// The walks of the page: the blocks of code below its heading.
fn walks(page: &str) -> Vec<Vec<Line<'_>>> {
    let (_, section) = page.split_once("\n## The two walks\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    blocks.map(stops).collect()
}

fn stops(block: &str) -> Vec<Line<'_>> {
    let lines = block.lines().filter(|text| !text.trim().is_empty());
    lines.map(line).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True if a text has a name as a whole word.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// True if a text calls a function, or passes it on by its path.
fn calls(text: &str, function: &str) -> bool {
    text.match_indices(function).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + function.len()..]);
        let is_part = before.chars().next_back().is_some_and(is_word)
            || after.chars().next().is_some_and(is_word);
        let is_called = after.starts_with('(') || after.starts_with("::<");
        !is_part && !before.ends_with("fn ") && (is_called || before.ends_with("::"))
    })
}

/// A source file, without its tests and comments.
struct Source {
    text: String,
    /// The functions by name, each with its head; functions of one name are joined.
    functions: BTreeMap<String, String>,
}

impl Source {
    fn of(text: &str) -> Self {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        let text = code.collect::<Vec<_>>().join("\n");
        let mut functions = BTreeMap::<String, String>::new();
        let lines: Vec<&str> = text.lines().collect();
        for (at, head) in lines.iter().enumerate() {
            let Some((before, rest)) = head.split_once("fn ") else {
                continue;
            };
            let is_declared = before.split_whitespace().all(|word| {
                ["pub", "async", "const", "unsafe"].contains(&word) || word.starts_with("pub(")
            });
            if !is_declared {
                continue;
            }
            let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
            // rustfmt closes a function at the indentation of its head.
            let indent = &head[..head.len() - head.trim_start().len()];
            let ends = |l: &&str| *l == format!("{indent}}}") || *l == format!("{indent});");
            let is_whole = head.ends_with(';') || head.ends_with('}');
            let length = lines[at..].iter().position(ends).unwrap_or_default();
            let last = if is_whole { at } else { at + length };
            let body = functions.entry(name).or_default();
            body.push_str(&lines[at..=last].join("\n"));
            body.push('\n');
        }
        Self { text, functions }
    }

    /// An empty source if there is no such file: then it lacks every function.
    fn read(file: &str) -> Self {
        let text = fs::read_to_string(root().join("crates").join(file));
        Self::of(&text.unwrap_or_default())
    }

    /// The text of a function and of all functions of the file that it reaches.
    fn reach(&self, function: &str) -> String {
        let (mut open, mut seen) = (vec![function.to_owned()], BTreeSet::new());
        let mut text = String::new();
        while let Some(next) = open.pop() {
            let Some(body) = self.functions.get(&next) else {
                continue;
            };
            if seen.insert(next) {
                text.push_str(body);
                open.extend(self.functions.keys().filter(|f| calls(body, f)).cloned());
            }
        }
        text
    }

    /// Types and traits that the file defines, implements, or implements something for.
    fn defines(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for text in self.text.lines().map(str::trim_start) {
            let words = text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty());
            let words: Vec<&str> = words.collect();
            let is_type = |w: &&str| w.len() > 1 && w.starts_with(char::is_uppercase);
            let of_kind = |kind: &str| words.iter().take(3).any(|w| *w == kind);
            if ["struct", "enum", "trait", "type"].into_iter().any(of_kind) {
                found.extend(words.iter().copied().find(is_type));
            } else if text.starts_with("impl") {
                found.extend(words.iter().copied().filter(is_type));
            }
        }
        found
    }
}

/// `OneType` as a variable is called: `one_type`.
fn as_variable(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// The name of the module that a file is.
fn module(file: &str) -> &str {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap()
}

/// Heads of traits with the traits they require: `Form: Messages`.
fn subtraits() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in tree::files(&root().join("crates"), "rs").unwrap() {
        let text = fs::read_to_string(path).unwrap();
        let heads = text
            .lines()
            .filter_map(|l| l.split_once("trait ")?.1.split_once(':'));
        found.extend(heads.map(|(name, required)| (name.to_owned(), required.to_owned())));
    }
    found
}

/// Sources by file, read once.
struct Sources {
    files: BTreeMap<String, Source>,
    subtraits: Vec<(String, String)>,
}

impl Sources {
    fn new() -> Self {
        Self {
            files: BTreeMap::new(),
            subtraits: subtraits(),
        }
    }

    fn get(&mut self, file: &str) -> &Source {
        let entry = self.files.entry(file.to_owned());
        entry.or_insert_with(|| Source::read(file))
    }

    /// The text that a stop reaches within its file.
    fn reach(&mut self, stop: (&str, &str)) -> String {
        self.get(stop.0).reach(stop.1)
    }

    /// True if a file names what another one defines, or a trait that requires what that one
    /// implements.
    fn knows(&mut self, from: &str, to: &str) -> bool {
        let text = self.get(from).text.clone();
        let defined: Vec<String> = self
            .get(to)
            .defines()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let requires = |required: &str| defined.iter().any(|name| names(required, name));
        let implied = self
            .subtraits
            .iter()
            .filter(|(_, required)| requires(required));
        let implied = implied.map(|(name, _)| name.as_str());
        let mut known = defined.iter().map(String::as_str).chain(implied);
        names(&text, module(to))
            || known.any(|name| names(&text, name) || names(&text, &as_variable(name)))
    }

    /// Why one stop does not call another; `None` if it does.
    fn fault(&mut self, from: (&str, &str), to: (&str, &str)) -> Option<String> {
        if !calls(&self.reach(from), to.1) {
            return Some(format!("{from:?} does not call {to:?}"));
        }
        let is_known = from.0 == to.0 || self.knows(from.0, to.0);
        (!is_known).then(|| format!("{} names nothing that {} defines", from.0, to.0))
    }
}

/// All that is wrong with a walk. A stop without a caller is its first one, receives a message, or
/// stands in `before`.
fn faults<'p>(walk: &[Line<'p>], before: &[Line<'p>], sources: &mut Sources) -> Vec<String> {
    let mut faults = Vec::new();
    let mut callers: Vec<(&str, &str)> = Vec::new();
    let mut passed: Vec<(&str, &str)> = Vec::new();
    let known = before.iter().filter_map(|line| match line {
        Line::Stop { file, function, .. } => Some((*file, *function)),
        Line::Message(_) => None,
    });
    let known: Vec<_> = known.collect();
    let mut message = None;
    for line in walk {
        let (depth, stop) = match line {
            Line::Message(name) => {
                let is_sent = passed.iter().any(|stop| names(&sources.reach(*stop), name));
                faults.extend((!is_sent).then(|| format!("no stop above sends a {name}")));
                message = Some(*name);
                continue;
            }
            Line::Stop {
                depth,
                file,
                function,
            } => (*depth, (*file, *function)),
        };
        if !sources.get(stop.0).functions.contains_key(stop.1) {
            faults.push(format!("{} has no function {}", stop.0, stop.1));
        }
        callers.truncate(depth);
        match (callers.last(), message.take()) {
            (_, Some(name)) if !names(&sources.reach(stop), name) => {
                faults.push(format!("{stop:?} receives no {name}"));
            }
            (Some(caller), None) => faults.extend(sources.fault(*caller, stop)),
            (None, None) if !passed.is_empty() && !known.contains(&stop) => {
                faults.push(format!("nothing calls {stop:?}"));
            }
            _ => {}
        }
        callers.push(stop);
        passed.push(stop);
    }
    faults
}

fn files<'p>(walk: &[Line<'p>]) -> BTreeSet<&'p str> {
    let files = walk.iter().filter_map(|line| match line {
        Line::Stop { file, .. } => Some(*file),
        Line::Message(_) => None,
    });
    files.collect()
}

/// The walks: HTTP before and behind the lane, the lane and PostgreSQL, PostgreSQL's clients.
fn three(page: &str) -> [Vec<Line<'_>>; 3] {
    walks(page).try_into().unwrap()
}

#[test]
fn the_walks_follow_the_calls() {
    let page = page();
    let [http, lane, pg] = three(&page);
    let mut sources = Sources::new();
    let mut found = faults(&http, &[], &mut sources);
    found.extend(faults(&lane, &http, &mut sources));
    found.extend(faults(&pg, &lane, &mut sources));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_row_crosses_no_more_files_than_it_did() {
    let page = page();
    let [http, lane, pg] = three(&page);
    let of_row: BTreeSet<_> = &files(&http) | &files(&lane);
    let mut shared = files(&lane);
    shared.retain(|file| !ONLY_ROWS.iter().any(|only| file.starts_with(only)));
    let of_pg: BTreeSet<_> = &files(&pg) | &shared;
    assert!(of_row.len() <= HTTP_FILES, "HTTP: {}", of_row.len());
    assert!(
        of_pg.len() <= PG_FILES,
        "PostgreSQL's protocol: {}",
        of_pg.len()
    );
}

#[test]
fn architecture_is_short() {
    let words = page().split_whitespace().count();
    assert!(
        words <= MAX_WORDS,
        "ARCHITECTURE.md has {words} words, {MAX_WORDS} are allowed: move reasons to docs/decisions/"
    );
}

#[test]
fn a_call_is_told_from_a_name() {
    let text = "fn run() { self.send(1); let f = other::take; told(); }\nfn told() { last() }\n";
    assert!(calls(text, "send") && calls(text, "take") && calls(text, "last"));
    assert!(!calls(text, "run") && !calls(text, "sen") && !calls(text, "f"));
    let text = "impl Pump {\n    fn a(&self) {\n        self.b();\n    }\n    fn b(&self) {\n        c();\n    }\n}\n";
    let source = Source::of(text);
    assert!(calls(&source.reach("a"), "c") && !calls(&source.functions["a"], "c"));
    assert_eq!(source.defines().into_iter().collect::<Vec<_>>(), ["Pump"]);
    assert_eq!(as_variable("RowStream"), "row_stream");
}

/// The rows of the tables below a heading, as their cells.
fn rows<'p>(page: &'p str, heading: &str) -> Vec<Vec<&'p str>> {
    let (_, section) = page.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let cells = |row: &'p str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.skip(2).map(cells).collect()
}

/// The names between backticks in a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn the_map_has_every_crate() {
    let page = page();
    let crates = root().join("crates");
    let mut mapped = BTreeSet::new();
    for row in rows(&page, "\n## The map\n") {
        for name in quoted(row[0]) {
            let first = quoted(row[3]).next().unwrap();
            let file = crates.join(name).join("src").join(first);
            assert!(file.exists(), "the map names {}", file.display());
            mapped.insert(name.to_owned());
        }
    }
    let folders = ["", "databases", "frontends"].map(|folder| crates.join(folder));
    for entry in folders.iter().flat_map(|f| fs::read_dir(f).unwrap()) {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(&crates).unwrap().display().to_string();
        let is_known = !path.join("Cargo.toml").exists() || mapped.contains(&name);
        assert!(is_known, "{name} is not in the map");
    }
}

#[test]
fn the_tables_name_files_that_exist() {
    let page = page();
    let crates = root().join("crates");
    let headings = [
        "\n## Twelve words\n",
        "\n## Invariants\n",
        "\n## I want to change ..\n",
    ];
    for row in headings.iter().flat_map(|heading| rows(&page, heading)) {
        let paths = quoted(row[row.len() - 1]).filter(|name| name.contains('/'));
        for path in paths.filter(|path| !path.starts_with("./") && !path.contains("NAME")) {
            assert!(crates.join(path).exists(), "ARCHITECTURE.md names {path}");
        }
    }
}
