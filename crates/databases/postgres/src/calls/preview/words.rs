//! Words of a text.

use windrow_proof::Words;

/// Returns true if a text certainly names no other words than these.
pub(super) fn holds_only(text: &str, words: &[&str]) -> bool {
    Words::of(text, true).is_some_and(|found| found.iter().all(|word| words.contains(&word)))
}

/// Returns true if a text names a word, or if its words are uncertain.
pub(super) fn names(text: &str, words: &[&str]) -> bool {
    Words::of(text, true).is_none_or(|found| found.iter().any(|word| words.contains(&word)))
}
