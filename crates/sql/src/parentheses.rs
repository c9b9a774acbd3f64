//! The parentheses that belong together.

use crate::lex::TokenKind;
use crate::words::Words;

/// The places of a statement's parentheses, found in one pass. A reader that looked for the end of
/// each call by itself would pass the tokens of calls within calls again and again.
pub(crate) struct Parentheses {
    /// The place of each opening parenthesis, in order, and of its closing one.
    pairs: Vec<(usize, Option<usize>)>,
}

impl Parentheses {
    pub(crate) fn of(words: Words<'_>) -> Self {
        let (mut pairs, mut open) = (Vec::new(), Vec::new());
        for at in 0..words.len() {
            match words.kind(at) {
                TokenKind::Open => {
                    open.push(pairs.len());
                    pairs.push((at, None));
                }
                TokenKind::Close => {
                    let pair = open.pop().and_then(|pair: usize| pairs.get_mut(pair));
                    if let Some((_, end)) = pair {
                        *end = Some(at);
                    }
                }
                _ => {}
            }
        }
        Self { pairs }
    }

    /// Returns the place of the parenthesis that closes the one at a place.
    pub(crate) fn end_of(&self, open: usize) -> Option<usize> {
        let pair = self.pairs.binary_search_by_key(&open, |(at, _)| *at);
        let (_, end) = self.pairs.get(pair.ok()?)?;
        *end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;
    use crate::tokens::Tokens;

    #[test]
    fn each_parenthesis_is_closed_by_its_own() {
        let text = ") (a (b) ( (c)) (";
        let tokens = Text::read(text, |text| Tokens::of(text, true)).unwrap();
        let found = Parentheses::of(Words::new(text, &tokens.list));
        for (open, end) in [
            (0, None),
            (1, None),
            (3, Some(5)),
            (4, None),
            (6, Some(10)),
            (7, Some(9)),
            (11, None),
        ] {
            assert_eq!(found.end_of(open), end, "{open}");
        }
    }
}
