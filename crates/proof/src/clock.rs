//! Finds where an expression reads the transaction's clock: functions such as `now()`, which have
//! one value for a whole transaction, and texts such as `'now'`, which mean a moment once they are
//! read as a time.

use std::ops::Range;

use windrow_sql::is_moment;
use windrow_sql::lex::{Lexer, Token, TokenKind};

/// Functions without arguments that return when the transaction or its statement began.
const FUNCTIONS: [&str; 3] = ["now", "transaction_timestamp", "statement_timestamp"];

/// Keywords with the same value, and the type of each.
const KEYWORDS: [(&str, &str); 5] = [
    ("current_timestamp", "timestamptz"),
    ("localtimestamp", "timestamp"),
    ("current_date", "date"),
    ("current_time", "timetz"),
    ("localtime", "time"),
];

/// An SQL expression, as far as it reads the transaction's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// An expression that does not read the clock.
    Unread,
    /// An expression that reads the clock.
    Read {
        /// The same expression over another moment.
        sql: String,
        /// True if the value is the moment itself in all its precision: other moments give other
        /// values.
        exact: bool,
    },
    /// An expression that may read the clock in a way that its text does not show.
    Unclear,
}

/// Reads an expression, or a list of clauses. `moment` is an expression of type `timestamptz` that
/// replaces the clock.
pub fn clock(sql: &str, moment: &str) -> Clock {
    let Some(tokens) = tokens(sql) else {
        return Clock::Unclear;
    };
    let mut reads = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match read_at(sql, &tokens, at) {
            Some((read, next)) => {
                reads.push(read);
                at = next;
            }
            None if is_unclear(sql, &tokens, at, token) => return Clock::Unclear,
            None => at += 1,
        }
    }
    if reads.is_empty() {
        return Clock::Unread;
    }
    let exact = matches!(reads.as_slice(), [read] if read.is_whole && is_bare(sql, &read.place));
    Clock::Read {
        sql: replaced(sql, &reads, moment),
        exact,
    }
}

/// Returns true for names of functions that read the transaction's clock.
pub fn reads_clock(function: &str) -> bool {
    FUNCTIONS.contains(&function) || function == "age"
}

/// Returns true if a word of an expression reads the transaction's clock. `called` is true if a
/// parenthesis follows.
pub(crate) fn is_clock_word(word: &str, called: bool) -> bool {
    KEYWORDS.iter().any(|(keyword, _)| *keyword == word) || called && reads_clock(word)
}

/// A place of an expression where it reads the clock.
struct Read {
    place: Range<usize>,
    /// The type that the moment is cast to, with its precision; `None` for `timestamptz`.
    cast: Option<String>,
    /// True if it has all of the moment's precision.
    is_whole: bool,
}

fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut lexer = Lexer::new(sql, true).ok()?;
    let mut tokens = Vec::new();
    loop {
        match lexer.token().ok()? {
            token if token.kind == TokenKind::End => return Some(tokens),
            token if token.kind == TokenKind::Odd => return None,
            token => tokens.push(token),
        }
    }
}

fn slice<'s>(sql: &'s str, token: &Token) -> &'s str {
    sql.get(token.start..token.end).unwrap_or_default()
}

fn kind_at(tokens: &[Token], at: usize) -> Option<TokenKind> {
    tokens.get(at).map(|token| token.kind)
}

/// Reads one place. Also returns the place of the token after it.
fn read_at(sql: &str, tokens: &[Token], at: usize) -> Option<(Read, usize)> {
    let token = tokens.get(at)?;
    let name = word(sql, token)?;
    let dotted = at > 0 && kind_at(tokens, at - 1) == Some(TokenKind::Dot);
    let empty = kind_at(tokens, at + 1) == Some(TokenKind::Open)
        && kind_at(tokens, at + 2) == Some(TokenKind::Close);
    if FUNCTIONS.contains(&&*name) && empty {
        let first = match dotted {
            false => at,
            true if is_of_server(sql, tokens, at) => at - 2,
            true => return None,
        };
        let place = tokens.get(first)?.start..tokens.get(at + 2)?.end;
        let read = Read {
            place,
            cast: None,
            is_whole: true,
        };
        return Some((read, at + 3));
    }
    let keyword = token.kind == TokenKind::Word && !dotted;
    let (_, type_name) = KEYWORDS.iter().find(|(word, _)| keyword && *word == name)?;
    let precision = precision(sql, tokens, at);
    let next = at + 1 + 3 * usize::from(precision.is_some());
    let read = Read {
        place: token.start..tokens.get(next - 1)?.end,
        is_whole: name.ends_with("timestamp") && precision.is_none(),
        cast: Some(format!(
            "pg_catalog.{type_name}{}",
            precision.unwrap_or_default()
        )),
    };
    Some((read, next))
}

fn word(sql: &str, token: &Token) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(slice(sql, token).to_ascii_lowercase()),
        TokenKind::Quoted => Some(slice(sql, token).trim_matches('"').to_owned()),
        _ => None,
    }
}

fn is_of_server(sql: &str, tokens: &[Token], at: usize) -> bool {
    let schema = at.checked_sub(2).and_then(|schema| tokens.get(schema));
    schema.and_then(|token| word(sql, token)).as_deref() == Some("pg_catalog")
}

/// Returns the precision after a keyword, such as `(3)`.
fn precision(sql: &str, tokens: &[Token], at: usize) -> Option<String> {
    let is = |ahead: usize, kind| kind_at(tokens, at + ahead) == Some(kind);
    let digits = tokens.get(at + 2).map(|token| slice(sql, token))?;
    (is(1, TokenKind::Open) && is(2, TokenKind::Integer) && is(3, TokenKind::Close))
        .then(|| format!("({digits})"))
}

/// Returns true for a token that may read the clock without a word for it.
fn is_unclear(sql: &str, tokens: &[Token], at: usize, token: &Token) -> bool {
    if token.kind.is_string() {
        return is_moment(slice(sql, token).as_bytes());
    }
    let called = kind_at(tokens, at + 1) == Some(TokenKind::Open);
    called && word(sql, token).is_some_and(|name| name == "age")
}

/// Returns true if the whole expression is the value that is read at a place, possibly at a
/// constant time zone.
fn is_bare(sql: &str, place: &Range<usize>) -> bool {
    let before = sql.get(..place.start).unwrap_or_default().trim();
    let behind = sql.get(place.end..).unwrap_or_default().trim();
    let zone = |text: &str| {
        let text = text.strip_suffix("::text").unwrap_or(text);
        let quoted = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
        quoted.is_some_and(|name| !name.contains('\''))
    };
    match (before, behind) {
        ("" | "(", behind) => {
            let behind = match before {
                "(" => behind.strip_suffix(')'),
                _ => Some(behind),
            };
            let Some(behind) = behind.map(str::trim) else {
                return false;
            };
            let lower = behind.to_ascii_lowercase();
            let at_zone = lower.strip_prefix("at time zone ").map(str::trim);
            behind.is_empty() || at_zone.is_some_and(zone)
        }
        (before, ")") => {
            let call = before.to_ascii_lowercase();
            let zoned = call
                .strip_prefix("timezone(")
                .and_then(|c| c.strip_suffix(','));
            zoned.map(str::trim).is_some_and(zone)
        }
        _ => false,
    }
}

fn replaced(sql: &str, reads: &[Read], moment: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 64 * reads.len());
    let mut from = 0;
    for read in reads {
        out.push_str(sql.get(from..read.place.start).unwrap_or_default());
        match &read.cast {
            None => out.push_str(moment),
            Some(cast) => {
                out.push('(');
                out.push_str(moment);
                out.push_str("::");
                out.push_str(cast);
                out.push(')');
            }
        }
        from = read.place.end;
    }
    out.push_str(sql.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<(String, bool)> {
        match clock(sql, "m") {
            Clock::Read { sql, exact } => Some((sql, exact)),
            Clock::Unread | Clock::Unclear => None,
        }
    }

    #[test]
    fn the_clock_is_replaced_wherever_it_is_read() {
        for (sql, replaced, exact) in [
            ("now()", "m", true),
            (" Pg_Catalog . \"now\" ( ) ", " m ", true),
            ("CURRENT_TIMESTAMP", "(m::pg_catalog.timestamptz)", true),
            ("LOCALTIMESTAMP(3)", "(m::pg_catalog.timestamp(3))", false),
            ("current_date", "(m::pg_catalog.date)", false),
            (
                "timezone('utc'::text, now())",
                "timezone('utc'::text, m)",
                true,
            ),
            (
                "(now() AT TIME ZONE 'utc'::text)",
                "(m AT TIME ZONE 'utc'::text)",
                true,
            ),
            (
                "date_trunc('hour'::text, now())",
                "date_trunc('hour'::text, m)",
                false,
            ),
            ("now() - now()", "m - m", false),
        ] {
            assert_eq!(read(sql), Some((replaced.to_owned(), exact)), "{sql}");
        }
    }

    #[test]
    fn other_words_are_left_alone() {
        for sql in [
            "now",
            "shop.now()",
            "now(1)",
            "\"Now\"()",
            "clock_timestamp()",
            "'know'",
            "t.localtime",
        ] {
            assert_eq!(clock(sql, "m"), Clock::Unread, "{sql}");
        }
        for sql in [
            "('now'::text)::date",
            "age(born)",
            "'",
            "' Today 10:00'::timestamp",
        ] {
            assert_eq!(clock(sql, "m"), Clock::Unclear, "{sql}");
        }
    }
}
