//! The tokens of a whole text.

use crate::lex::{Broken, Lexer, Token, TokenKind};
use crate::string;
use crate::text::Text;

/// The longest text that is read as a whole, in bytes.
pub const MAX_SCANNED: usize = 1 << 20;

/// The most tokens of a text whose length is not limited.
const MAX_TOKENS: usize = 1 << 20;

/// Words that are literals.
const LITERAL_WORDS: [&str; 3] = ["null", "true", "false"];

/// All tokens of a text, without [`TokenKind::End`].
pub(crate) struct Tokens {
    pub(crate) list: Vec<Token>,
    /// True if a plain string contains a backslash.
    pub(crate) backslash: bool,
}

impl Tokens {
    /// Cuts the text. Two strings side by side are [`Broken`]: where a line ends between them they
    /// are one, and the second is read by the rules of the first.
    pub(crate) fn of(text: Text<'_>, standard: bool) -> Result<Self, Broken> {
        let mut list = Vec::with_capacity(text.len() / 4 + 4);
        let backslash = cut(text, standard, |token| {
            list.push(token);
            Ok(())
        })?;
        Ok(Self { list, backslash })
    }

    /// Cuts the text as [`Tokens::of`] does, and leaves out each row of literals behind a comma:
    /// the rows of a long INSERT name nothing. A text of more than 1,048,576 other tokens is
    /// [`Broken`].
    pub(crate) fn without_rows(text: Text<'_>, standard: bool) -> Result<Self, Broken> {
        let mut list = Vec::new();
        let backslash = cut(text, standard, |token| {
            let row = match token.kind {
                TokenKind::Close => row_of_literals(&text, &list),
                _ => None,
            };
            match row {
                Some(comma) => list.truncate(comma),
                None if list.len() == MAX_TOKENS => return Err(Broken),
                None => list.push(token),
            }
            Ok(())
        })?;
        Ok(Self { list, backslash })
    }
}

/// Cuts the text and passes each token to `take`. Returns true if a plain string contains a
/// backslash.
fn cut(
    text: Text<'_>,
    standard: bool,
    mut take: impl FnMut(Token) -> Result<(), Broken>,
) -> Result<bool, Broken> {
    let mut lexer = Lexer::new(&text, standard)?;
    let mut behind_string = false;
    loop {
        let mut token = lexer.token()?;
        if token.kind == TokenKind::End {
            return Ok(lexer.backslash);
        }
        if token.kind == TokenKind::Text && behind_string {
            return Err(Broken);
        }
        let literal = text.get(token.start..token.end).unwrap_or_default();
        if token.kind == TokenKind::Escape && !string::is_plain_escape(literal) {
            token.kind = TokenKind::Special;
        }
        behind_string = token.kind.is_string();
        take(token)?;
    }
}

/// Returns the place of the comma before a row of literals at the end of the list, whose closing
/// parenthesis comes next.
fn row_of_literals(text: &str, list: &[Token]) -> Option<usize> {
    let is_literal = |token: &Token| match token.kind {
        TokenKind::Text | TokenKind::Dollar | TokenKind::Bits => true,
        TokenKind::Integer | TokenKind::Decimal | TokenKind::Parameter => true,
        TokenKind::Comma => true,
        TokenKind::Word => {
            let word = text.get(token.start..token.end).unwrap_or_default();
            LITERAL_WORDS
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        }
        _ => false,
    };
    let open = list.iter().rposition(|token| !is_literal(token))?;
    let comma = open.checked_sub(1)?;
    let kind = |at: usize| list.get(at).map(|token| token.kind);
    let is_row = kind(open) == Some(TokenKind::Open) && kind(comma) == Some(TokenKind::Comma);
    is_row.then_some(comma)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Option<Vec<&str>> {
        let tokens = Text::read(text, |text| Tokens::without_rows(text, true)).ok()?;
        let slice = |token: Token| &text[token.start..token.end];
        Some(tokens.list.into_iter().map(slice).collect())
    }

    #[test]
    fn rows_of_literals_are_left_out_but_for_the_first() {
        for (text, without) in [
            (
                "values (1, 'a'), (2.5, NULL), ($1, $$x$$), (true, x'1f') returning id",
                "values (1, 'a') returning id",
            ),
            ("values (1), (f(2)), (-3)", "values (1), (f(2)), (-3)"),
            ("select f(1, (2)), (3)", "select f(1)"),
            ("select (1, 2)), )", "select (1, 2)), )"),
        ] {
            let expected = Text::read(without, |text| Tokens::of(text, true));
            let expected = expected.unwrap().list;
            let expected = expected
                .iter()
                .map(|token| &without[token.start..token.end]);
            assert_eq!(kept(text), Some(expected.collect()), "{text}");
        }
        assert_eq!(kept("values (1), ('a' 'b')"), None);
    }

    #[test]
    fn a_text_of_too_many_tokens_is_not_cut() {
        let rows = "values (0)".to_owned() + &", (1)".repeat(MAX_TOKENS);
        assert_eq!(kept(&rows), kept("values (0)"));
        let commas = ",".repeat(MAX_TOKENS);
        assert_eq!(kept(&commas).unwrap().len(), MAX_TOKENS);
        assert_eq!(kept(&(commas + ",")), None);
    }
}
