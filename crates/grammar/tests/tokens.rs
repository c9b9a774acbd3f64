//! Tokens are held against those of PostgreSQL's own scanner.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[expect(unreachable_pub, reason = "it is public in the crate whose file it is")]
#[path = "../../sql/src/lex/mod.rs"]
mod lex;
#[path = "../../sql/src/word.rs"]
mod word;

use pg_query::protobuf::Token as Theirs;
use proptest::prelude::*;

use lex::{Kind, Lexer};

/// The tokens of a text; `None` where it cannot be cut, or where versions of the server differ.
fn ours(text: &str) -> Option<Vec<(usize, usize, Kind)>> {
    let mut lexer = Lexer::new(text, true).ok()?;
    let mut tokens: Vec<(usize, usize, Kind)> = Vec::new();
    loop {
        let token = lexer.token().ok()?;
        match token.kind {
            Kind::End => return Some(tokens),
            Kind::Odd => return None,
            // Strings side by side may be one: whoever takes tokens apart refuses them.
            _ if token.kind.is_string() && tokens.last().is_some_and(|last| last.2.is_string()) => {
                return None;
            }
            kind => tokens.push((token.start, token.end, kind)),
        }
    }
}

/// Whether a token of PostgreSQL's may be one of ours.
fn is(theirs: Theirs, kind: Kind) -> bool {
    match theirs {
        Theirs::Sconst => matches!(kind, Kind::Text | Kind::Escape | Kind::Dollar),
        Theirs::Usconst | Theirs::Uident => kind == Kind::Special,
        Theirs::Bconst | Theirs::Xconst => kind == Kind::Bits,
        Theirs::Iconst => kind == Kind::Integer,
        Theirs::Fconst => matches!(kind, Kind::Decimal | Kind::Integer),
        Theirs::Param => kind == Kind::Parameter,
        Theirs::Typecast => kind == Kind::Cast,
        Theirs::Ascii40 => kind == Kind::Open,
        Theirs::Ascii41 => kind == Kind::Close,
        Theirs::Ascii44 => kind == Kind::Comma,
        Theirs::Ascii46 => kind == Kind::Dot,
        Theirs::Ascii58 => kind == Kind::Colon,
        Theirs::Ascii59 => kind == Kind::Semicolon,
        Theirs::Ascii91 => kind == Kind::OpenBracket,
        Theirs::Ascii93 => kind == Kind::CloseBracket,
        Theirs::Ident => matches!(kind, Kind::Word | Kind::Quoted),
        Theirs::Nchar => matches!(kind, Kind::Word | Kind::Special),
        _ => matches!(kind, Kind::Operator | Kind::Word),
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
        if their.token() == Theirs::Nchar && kind == Kind::Special {
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
