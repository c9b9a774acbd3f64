//! Tokens are held against those of PostgreSQL's own scanner.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[expect(unreachable_pub, reason = "it is public in the crate whose file it is")]
#[path = "../../sql/src/lex/mod.rs"]
mod lex;
#[path = "../../sql/src/word.rs"]
mod word;

use pg_query::protobuf::Token as Theirs;
use proptest::prelude::*;

use lex::{Lexer, TokenKind};

/// The tokens of a text; `None` where it cannot be cut, or where versions of the server differ.
fn ours(text: &str) -> Option<Vec<(usize, usize, TokenKind)>> {
    let mut lexer = Lexer::new(text, true).ok()?;
    let mut tokens: Vec<(usize, usize, TokenKind)> = Vec::new();
    loop {
        let token = lexer.token().ok()?;
        match token.kind {
            TokenKind::End => return Some(tokens),
            TokenKind::Odd => return None,
            // Strings side by side may be one: whoever takes tokens apart refuses them.
            _ if token.kind.is_string() && tokens.last().is_some_and(|last| last.2.is_string()) => {
                return None;
            }
            kind => tokens.push((token.start, token.end, kind)),
        }
    }
}

/// Whether a token of PostgreSQL's may be one of ours.
fn is(theirs: Theirs, kind: TokenKind) -> bool {
    match theirs {
        Theirs::Sconst => matches!(
            kind,
            TokenKind::Text | TokenKind::Escape | TokenKind::Dollar
        ),
        Theirs::Usconst | Theirs::Uident => kind == TokenKind::Special,
        Theirs::Bconst | Theirs::Xconst => kind == TokenKind::Bits,
        Theirs::Iconst => kind == TokenKind::Integer,
        Theirs::Fconst => matches!(kind, TokenKind::Decimal | TokenKind::Integer),
        Theirs::Param => kind == TokenKind::Parameter,
        Theirs::Typecast => kind == TokenKind::Cast,
        Theirs::Ascii40 => kind == TokenKind::Open,
        Theirs::Ascii41 => kind == TokenKind::Close,
        Theirs::Ascii44 => kind == TokenKind::Comma,
        Theirs::Ascii46 => kind == TokenKind::Dot,
        Theirs::Ascii58 => kind == TokenKind::Colon,
        Theirs::Ascii59 => kind == TokenKind::Semicolon,
        Theirs::Ascii91 => kind == TokenKind::OpenBracket,
        Theirs::Ascii93 => kind == TokenKind::CloseBracket,
        Theirs::Ident => matches!(kind, TokenKind::Word | TokenKind::Quoted),
        Theirs::Nchar => matches!(kind, TokenKind::Word | TokenKind::Special),
        _ => matches!(kind, TokenKind::Operator | TokenKind::Word),
    }
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    let Some(ours) = ours(text) else {
        return Ok(());
    };
    let Ok(scanned) = pg_query::scan(text) else {
        // An empty name in quotes is refused later here.
        let refused_later = text.contains("\"\"") || text.contains('$') || text.contains('\\');
        prop_assert!(refused_later, "PostgreSQL refuses {text:?}: {ours:?}");
        return Ok(());
    };
    let theirs: Vec<_> = scanned
        .tokens
        .iter()
        .filter(|t| !matches!(t.token(), Theirs::SqlComment | Theirs::CComment))
        .collect();
    let mut theirs = theirs.into_iter().peekable();
    for (start, end, kind) in ours {
        let their = theirs.next();
        prop_assert!(their.is_some(), "{text:?}: {kind:?} at {start}");
        let their = their.unwrap();
        prop_assert!(
            is(their.token(), kind),
            "{text:?}: {kind:?} is {:?}",
            their.token()
        );
        prop_assert_eq!(usize::try_from(their.start).unwrap(), start, "{:?}", text);
        let mut their_end = usize::try_from(their.end).unwrap();
        if their.token() == Theirs::Nchar && kind == TokenKind::Special {
            // Theirs are two tokens.
            their_end = usize::try_from(theirs.next().unwrap().end).unwrap();
        }
        prop_assert_eq!(their_end, end, "{:?}", text);
    }
    prop_assert!(theirs.next().is_none(), "{text:?}: more tokens than ours");
    Ok(())
}

const FRAGMENTS: &[&str] = &[
    "a", "E", "b", "X", "n", "U&", "$", "$$", "$1", "$a$", "1", "12", ".", "..", "e5", "E-", "'",
    "''", "\"", "\"\"", "\\", "\\'", "--", "/*", "*/", "\n", " ", "\t", "\r", "+", "-", "*", "/",
    "<", ">", "=", "~", "!", "@", "#", "^", "&", "|", "`", "?", "%", "(", ")", "[", "]", ",", ";",
    ":", "::", ":=", "=>", "_", "ö", "€", "x1", "select", "\u{c}",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn tokens_are_those_of_postgresql(parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..12)) {
        agree(&parts.concat())?;
    }
}

#[test]
fn operators_end_where_those_of_postgresql_end() {
    for text in [
        "a=-1", "a<-1", "a@-1", "a*-1", "a->'x'", "a->>'x'", "a#>>'x'", "a||-1", "a--1",
        "a/*x*/+1", "a+/*x*/1", "a~--x", "1<=-2", "@-", "+-+", "1.5e-3-2", "a<>-1", "a!=-1",
        "a-(-1)",
    ] {
        agree(text).unwrap();
    }
}
