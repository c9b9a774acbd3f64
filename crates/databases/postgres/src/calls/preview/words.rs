//! Words of a text.

use windrow_proof::Words;

/// Returns true if a text names a word, or if its words are uncertain.
pub(super) fn names(text: &str, words: &[&str]) -> bool {
    Words::of(text, true).is_none_or(|found| {
        let found = found.names();
        found.split('\u{1}').any(|word| words.contains(&word))
    })
}
