//! The pages of docs/clients.

use std::path::Path;

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
