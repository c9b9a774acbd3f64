//! Comments, messages and pages keep to plain words (CONTRIBUTING.md, "Plain words").
//!
//! Counted are comments that begin with a riddle, and words that have a plainer one of the field.
//! Crates and pages that still have some stand in lists that only shrink: one without offenders has
//! to leave its list.
//!
//! Left to the reader, because the same word is often the right one: *room*, *rest*, *pause*,
//! *letter*, *apart*, *alone*, *behind*, *where*, *it*, names in the code, and whether a
//! sentence can be understood.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windrow_testkit::tree::{self, files, is_test, root};

/// Crates that still have offenders.
const CRATES_TO_DO: &[&str] = &[];

/// Pages that still have offenders.
const PAGES_TO_DO: &[&str] = &[];

/// Words with which no documentation of an item begins: it begins with a verb or a noun.
const RIDDLES: [&str; 11] = [
    "What", "Who", "Whoever", "How", "Whether", "It", "They", "Those", "Its", "So", "That",
];

/// Words that have a plainer one, each with that.
const WORDS: [(&str, &str); 11] = [
    ("anew", "again"),
    ("bad manners", "a client that does not read its answers"),
    ("call back", "cancel"),
    ("called back", "cancelled"),
    ("calls back", "cancels"),
    ("in front of", "before"),
    ("patience", "timeout"),
    ("somebody", "another session, a client"),
    ("told", "reported, returned, answered"),
    ("whoever", "the client, another session"),
    ("whomever", "the client, another session"),
];

/// A comment or a string of a source file, with the number of its first line.
#[derive(Debug, PartialEq)]
enum Piece {
    Comment(usize, String),
    Text(usize, String),
}

/// The comments and strings of a source file.
fn pieces(source: &str) -> Vec<Piece> {
    let (mut found, mut rest, mut line) = (Vec::new(), source, 1);
    while let Some(at) = rest.find(['/', '"', 'r', '\'']) {
        let (before, from) = rest.split_at(at);
        line += before.matches('\n').count();
        let length = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if let Some(text) = from.strip_prefix("r#\"") {
            text.find("\"#").map_or(from.len(), |end| end + 5)
        } else if let Some(text) = from.strip_prefix('"') {
            1 + string_length(text)
        } else if from.starts_with("'\"'") {
            3
        } else if from.starts_with("'\\\"'") {
            4
        } else {
            1
        };
        let (piece, behind) = from.split_at(length);
        if piece.starts_with("//") {
            found.push(Piece::Comment(line, piece.to_owned()));
        } else if length > 4 || piece.starts_with('"') {
            found.push(Piece::Text(line, piece.to_owned()));
        }
        line += piece.matches('\n').count();
        rest = behind;
    }
    found
}

/// The length of a string whose first quote is taken off, with its last one.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

/// True if a text has a word or a phrase as a whole.
fn has(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Text without what stands between backticks, which is code.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the fault of a text's words; `None` if there is none.
fn word_fault(text: &str) -> Option<String> {
    let text = without_code(&text.to_lowercase());
    let (word, better) = WORDS.iter().find(|(word, _)| has(&text, word))?;
    Some(format!("\"{word}\", better: {better}"))
}

/// Offenders of a source file, as `line: why`.
fn offenders(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_tested = source[..code.len()].lines().count();
    let (mut found, mut last) = (Vec::new(), (0, ""));
    for piece in pieces(source) {
        match piece {
            Piece::Comment(line, comment) => {
                let kind = ["///", "//!", "//"];
                let kind = kind.into_iter().find(|k| comment.starts_with(k)).unwrap();
                let text = comment[kind.len()..].trim();
                let continues = last == (line - 1, kind);
                let first = text.split([' ', ',', '\'']).next().unwrap_or_default();
                if kind != "//" && !continues && RIDDLES.contains(&first) {
                    found.push(format!("{line}: begins with \"{first}\": {text}"));
                }
                found.extend(word_fault(text).map(|why| format!("{line}: {why}: {text}")));
                last = (line, kind);
            }
            Piece::Text(line, text) if line <= is_tested => {
                found.extend(word_fault(&text).map(|why| format!("{line}: {why}: {text}")));
            }
            Piece::Text(..) => {}
        }
    }
    found
}

/// The offenders of each crate, by its folder below `crates`.
fn by_crate() -> BTreeMap<String, Vec<String>> {
    let crates = root().join("crates");
    let offenders_of = |folder: &Path| {
        let mut found = Vec::new();
        let sources = files(&folder.join("src"), "rs").unwrap();
        for path in sources.iter().filter(|path| !is_test(path)) {
            let name = path.strip_prefix(&crates).unwrap().display().to_string();
            let text = fs::read_to_string(path).unwrap();
            found.extend(
                offenders(&text)
                    .into_iter()
                    .map(|why| format!("{name}:{why}")),
            );
        }
        found
    };
    let name = |folder: &Path| folder.strip_prefix(&crates).unwrap().display().to_string();
    let folders = tree::crates().unwrap();
    folders
        .iter()
        .map(|folder| (name(folder), offenders_of(folder)))
        .collect()
}

/// The offenders of each page, by its path. The changelog is history and is not a page.
fn by_page() -> BTreeMap<String, Vec<String>> {
    let (root, mut found) = (root(), BTreeMap::new());
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let mut pages: Vec<_> = names.iter().map(|name| root.join(name)).collect();
    pages.extend(files(&root.join("docs"), "md").unwrap());
    for page in pages {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(&page).unwrap();
        let mut is_code = false;
        let mut offenders = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            if !is_code && let Some(why) = word_fault(line) {
                offenders.push(format!("{name}:{}: {why}", at + 1));
            }
        }
        found.insert(name, offenders);
    }
    found
}

/// Asserts that all but the listed ones have no offenders, and that the listed ones have some.
fn assert_clean(found: &BTreeMap<String, Vec<String>>, to_do: &[&str]) {
    let mut faults = Vec::new();
    for (name, offenders) in found {
        match (to_do.contains(&name.as_str()), offenders.is_empty()) {
            (true, true) => faults.push(format!("{name} is done: take it off the list")),
            (false, false) => faults.extend(offenders.iter().cloned()),
            _ => {}
        }
    }
    let unknown = to_do.iter().filter(|name| !found.contains_key(**name));
    faults.extend(unknown.map(|name| format!("{name} is in the list, but does not exist")));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn crates_use_plain_words() {
    assert_clean(&by_crate(), CRATES_TO_DO);
}

#[test]
fn pages_use_plain_words() {
    assert_clean(&by_page(), PAGES_TO_DO);
}

#[test]
fn riddles_and_words_are_found() {
    let source = "//! What it is.\n\n/// Returns it.\n/// It was.\nfn f() {}\n\n/// Its end, `told`.\nlet a = \"was told\"; // anew\nlet told = '\"';\n";
    let found = offenders(source);
    let lines: Vec<&str> = found.iter().map(|f| f.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["1", "7", "8", "8"], "{found:#?}");
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    const A: &str = \"told\";\n}\n";
    assert!(offenders(tests).is_empty());
    assert_eq!(pieces("r#\"a\"b\"#").len(), 1);
}
