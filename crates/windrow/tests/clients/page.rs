//! The pages of docs/clients, and the programs in tests/clients that they name.

use std::path::{Path, PathBuf};

use windrow_testkit::tree::root;

/// The code blocks of a page that are marked with a language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    blocks_of(&format!("clients/{page}"), language)
}

/// The same, of any page of docs.
pub(crate) fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(Path::new(&path)).expect("the page is there");
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(mark)) => open = Some((mark == language, String::new())),
            (Some(_), Some("")) => {
                if let Some((true, block)) = open.take() {
                    blocks.push(block);
                }
            }
            (Some((_, block)), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The text of a file in tests/clients.
pub(crate) fn file(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("the file is there")
}

/// The programs in tests/clients that belong to a page, in the order of their names, each with
/// the text that it prints.
pub(crate) fn programs_beside(page: &str) -> Vec<(String, String)> {
    let Ok(entries) = folder().join(page).read_dir() else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|kind| kind != "txt"))
        .collect();
    paths.sort();
    let read = |path: &Path| std::fs::read_to_string(path).expect("the file is there");
    paths
        .iter()
        .map(|path| (read(path), read(&path.with_extension("txt"))))
        .collect()
}

fn folder() -> PathBuf {
    root().join("tests/clients")
}
