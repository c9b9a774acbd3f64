//! Splits a text of SQL into words.

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// A word without quotes.
    Word(&'t str),
    /// A name between backticks.
    Name(&'t str),
    /// A text or a number.
    Literal,
    /// Any other character.
    Sign(char),
}

/// A token, and true if it follows the one before it without a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) piece: Piece<'t>,
    pub(super) glued: bool,
}

impl<'t> Token<'t> {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self.piece, Piece::Word(w) if w.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        self.piece == Piece::Sign(sign)
    }

    /// Returns a word or a name.
    pub(super) fn name(&self) -> Option<&'t str> {
        match self.piece {
            Piece::Word(name) | Piece::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// Splits a text; `None` if it cannot be parsed. If `versions` is set, the marks of version
/// comments are skipped and their contents count. Otherwise a text with such a comment cannot be
/// parsed.
pub(super) fn tokens(text: &str, versions: bool) -> Option<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut glued = false;
    loop {
        let Some(first) = rest.chars().next() else {
            return Some(found);
        };
        if let Some(behind) = space(rest, first, versions)? {
            (rest, glued) = (behind, false);
            continue;
        }
        let (piece, length) = piece(rest, first)?;
        found.push(Token { piece, glued });
        glued = true;
        rest = rest.get(length..)?;
    }
}

/// Returns the text after a space or a comment; the inner `None` if the text begins with neither.
fn space(text: &str, first: char, versions: bool) -> Option<Option<&str>> {
    if first.is_whitespace() {
        return Some(text.get(first.len_utf8()..));
    }
    if first == '#' || text.starts_with("-- ") || text.starts_with("--\n") {
        let line = text.split_once('\n');
        return Some(Some(line.map_or("", |(_, behind)| behind)));
    }
    if versions && (text.starts_with("/*!") || text.starts_with("/*M!")) {
        let behind = text.trim_start_matches(['/', '*', 'M', '!']);
        return Some(Some(
            behind.trim_start_matches(|c: char| c.is_ascii_digit()),
        ));
    }
    if versions && text.starts_with("*/") {
        return Some(text.get(2..));
    }
    if text.starts_with("/*!") || text.starts_with("/*M!") {
        return None;
    }
    match text.strip_prefix("/*") {
        Some(comment) => comment.split_once("*/").map(|(_, behind)| Some(behind)),
        None => Some(None),
    }
}

/// Returns the token at the beginning of a text, and its length.
fn piece(text: &str, first: char) -> Option<(Piece<'_>, usize)> {
    match first {
        '\'' | '"' => Some((Piece::Literal, quoted(text, first)?)),
        '`' => {
            let length = quoted(text, first)?;
            Some((Piece::Name(text.get(1..length - 1)?), length))
        }
        c if c.is_ascii_digit() => {
            let number = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
            Some((Piece::Literal, text.find(number).unwrap_or(text.len())))
        }
        c if c.is_alphabetic() || matches!(c, '_' | '$') => {
            let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
            let length = text.find(ends).unwrap_or(text.len());
            Some((Piece::Word(text.get(..length)?), length))
        }
        c => Some((Piece::Sign(c), c.len_utf8())),
    }
}

/// Returns the length of a quoted text. A doubled quote is a quote. Except in names, a backslash
/// escapes the next character.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' && quote != '`' {
            letters.next()?;
        } else if letter == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}
