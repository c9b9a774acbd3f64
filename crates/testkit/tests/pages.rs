//! The pages that people read: their links lead somewhere, the book has all of them, the README
//! stays short, and decisions are listed with their dates.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::fs;
use std::path::{Path, PathBuf};

use windrow_testkit::tree::root;

/// The most words of the README.
const WORDS: usize = 700;

/// The Markdown files of a folder.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut pages: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    assert!(!pages.is_empty(), "no pages in {}", folder.display());
    pages
}

/// Lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Where the links and images of a page lead to.
fn targets(text: &str) -> Vec<String> {
    let after = |line: &str| -> Vec<String> {
        let parts = line.split("](").skip(1);
        let ends = parts.filter_map(|part| Some(part.split_once(')')?.0.to_owned()));
        ends.collect()
    };
    prose(text).flat_map(after).collect()
}

/// The anchors that GitHub and mdBook give to the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with a link from `page`, if anything is.
fn fault(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    let missing = || format!("{}: {target} leads nowhere", page.display());
    if !path.exists() {
        return Some(missing());
    }
    let found =
        anchor.is_empty() || anchors(&fs::read_to_string(path).unwrap()).contains(&anchor.into());
    (!found).then(missing)
}

#[test]
fn links_between_pages_lead_somewhere() {
    let docs = root().join("docs");
    let pages = [root(), docs.join("decisions"), docs].into_iter();
    let mut faults = Vec::new();
    for page in pages.flat_map(|folder| pages_in(&folder)) {
        let text = fs::read_to_string(&page).unwrap();
        faults.extend(
            targets(&text)
                .iter()
                .filter_map(|target| fault(&page, target)),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_book_lists_every_page() {
    let docs = root().join("docs");
    let listed = targets(&fs::read_to_string(docs.join("SUMMARY.md")).unwrap());
    for page in pages_in(&docs) {
        let name = page.file_name().unwrap().to_str().unwrap();
        let known = name == "SUMMARY.md" || listed.iter().any(|target| target == name);
        assert!(known, "docs/{name} is not in docs/SUMMARY.md");
    }
}

#[test]
fn decisions_are_listed_and_dated() {
    let folder = root().join("docs/decisions");
    let listed = targets(&fs::read_to_string(folder.join("README.md")).unwrap());
    for page in pages_in(&folder) {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "README.md" {
            continue;
        }
        assert!(
            listed.contains(&name),
            "{name} is not in docs/decisions/README.md"
        );
        let text = fs::read_to_string(&page).unwrap();
        let head: Vec<_> = text.lines().take(6).collect();
        for field in ["# ", "- Date: 20", "- State: "] {
            let has = head.iter().any(|line| line.starts_with(field));
            assert!(has, "docs/decisions/{name} does not begin with \"{field}\"");
        }
    }
}

#[test]
fn the_readme_is_short() {
    let words = fs::read_to_string(root().join("README.md")).unwrap();
    let words = words.split_whitespace().count();
    assert!(
        words <= WORDS,
        "README.md has {words} words, {WORDS} are allowed: move some to docs/"
    );
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# A `b`: c\n\n[x](y.md#z) ![p](q.svg)\n```\n[no](where)\n```\n";
    assert_eq!(targets(text), ["y.md#z", "q.svg"]);
    assert_eq!(anchors(text), ["a-b-c"]);
}
