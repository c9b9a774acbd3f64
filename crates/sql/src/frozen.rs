//! Literals whose meaning depends on when they are read: a prepared statement reads them once, and
//! keeps that meaning.

use crate::lex::{Token, TokenKind};
use crate::text::Text;
use crate::tokens::{MAX_SCANNED, Tokens};

/// Words that the input functions of times read as a moment (`datetktbl` of
/// `src/backend/utils/adt/datetime.c`).
const MOMENTS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

/// The longest text that is read as a time, or as a list or range of times.
const MAX_TIME_BYTES: usize = 1024;

/// Types whose literals name an object of the catalog that the server does not follow once it has
/// read them. `regclass` is followed.
const NAMES: [&str; 9] = [
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
];

/// Returns true if a text may mean a moment that depends on when it is read as a time, or as a list
/// or range of times.
pub fn is_moment(text: &[u8]) -> bool {
    if text.len() > MAX_TIME_BYTES {
        return false;
    }
    let mut words = text.split(|byte| !byte.is_ascii_alphabetic());
    words.any(|word| MOMENTS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Returns true if a prepared statement of this text might have another meaning when it is executed
/// than the text has at that time. This is also true for a text that cannot be read or is longer
/// than 1 MiB.
pub fn may_freeze(text: &str) -> bool {
    if text.len() > MAX_SCANNED {
        return true;
    }
    Text::read(text, |text| {
        let tokens = Tokens::of(text, true).or_else(|_| Tokens::of(text, false));
        tokens.map_or(true, |tokens| is_frozen(&text, &tokens.list))
    })
}

/// Returns true if a prepared statement of these tokens might have another meaning when it is
/// executed than the text has at that time.
pub(crate) fn is_frozen(text: &str, tokens: &[Token]) -> bool {
    let slice = |token: &Token| text.get(token.start..token.end).unwrap_or_default();
    tokens.iter().any(|token| match token.kind {
        // An escape may stand for a letter.
        TokenKind::Escape | TokenKind::Special => {
            slice(token).contains('\\') || is_moment(inside(slice(token)))
        }
        TokenKind::Text | TokenKind::Dollar => is_moment(inside(slice(token))),
        TokenKind::Word => NAMES
            .iter()
            .any(|name| name.eq_ignore_ascii_case(slice(token))),
        _ => false,
    })
}

/// Returns a string literal without the letters before its first quote.
fn inside(literal: &str) -> &[u8] {
    let at = literal.find(['\'', '$', '"']).unwrap_or_default();
    let quoted = literal.get(at..).unwrap_or_default();
    match quoted
        .strip_prefix('$')
        .and_then(|rest| rest.split_once('$'))
    {
        Some((tag, body)) => {
            let end = body.len().saturating_sub(tag.len() + 2);
            body.get(..end).unwrap_or_default().as_bytes()
        }
        None => quoted.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_by_whole_words() {
        for text in [
            "now",
            " NOW ",
            "today 10:00",
            "10:00 tomorrow",
            "[yesterday,infinity)",
            "{now}",
        ] {
            assert!(is_moment(text.as_bytes()), "{text}");
        }
        for text in ["", "know", "nowhere", "2024-02-29", "epoch", "infinity"] {
            assert!(!is_moment(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn literals_that_are_read_once_are_found() {
        let tokens = |text: &str| Text::read(text, |text| Tokens::of(text, true)).unwrap();
        let found = |text: &str| is_frozen(text, &tokens(text).list);
        for text in [
            "update t set seen = 'now' where id = $1",
            "delete from t where at < $q$today$q$",
            "insert into t values (timestamptz 'Yesterday 10:00')",
            "insert into t values (E'n\\x6fw')",
            "insert into t values ('f'::regproc)",
        ] {
            assert!(found(text), "{text}");
        }
        for text in [
            "insert into t values ('known', now(), $now$x$now$)",
            "insert into t values ('s'::regclass, E'x')",
        ] {
            assert!(!found(text), "{text}");
        }
    }
}
