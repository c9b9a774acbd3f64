//! The sequences that a text takes from, and what stands in the place of its questions for what
//! they gave.

use super::asking;
use crate::kinds::{self, Property};
use crate::lex::TokenKind;
use crate::parentheses::Parentheses;
use crate::reading::Effect;
use crate::text::Text;
use crate::tokens::{MAX_SCANNED, Tokens};
use crate::words::Words;

/// The sequences that a text itself takes from, or sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// Their names, as they stand in it.
    pub names: Vec<Box<str>>,
    /// True if the statement may also take values from sequences that only its values name.
    pub others: bool,
}

/// The sequences that a text names in calls of `nextval` and `setval`. Those of a text longer than
/// 1 MiB are not known.
pub fn sequences(text: &str) -> Sequences {
    let known = match text.len() <= MAX_SCANNED {
        true => Text::read(text, named),
        false => None,
    };
    known.unwrap_or_else(|| Sequences {
        names: Vec::new(),
        others: true,
    })
}

/// Returns the sequences that a text names; `None` if the text cannot be cut.
fn named(text: Text<'_>) -> Option<Sequences> {
    let mut found = Sequences::default();
    let tokens = Tokens::of(text, true).ok()?;
    let words = Words::new(text.as_str(), &tokens.list);
    let parentheses = Parentheses::of(words);
    for at in 0..words.len() {
        let Some((_, end)) = call_of(words, &parentheses, at, &["nextval", "setval"]) else {
            continue;
        };
        let arguments = words.between(at + 2, end);
        let known = asking::sequence(arguments);
        let is_whole = |behind| matches!(arguments.kind(behind), TokenKind::Comma | TokenKind::End);
        match known.filter(|(_, behind)| is_whole(*behind)) {
            Some((Effect::Currval(Some(name)), _)) => found.names.push((*name).into()),
            _ => found.others = true,
        }
    }
    Some(found)
}

/// A text in which other SQL stands in the place of its questions. `standard`: the session's
/// `standard_conforming_strings`. `last`: what stands for `lastval()`; `current`: what stands for
/// `currval(..)`, made of its argument. `None`: nothing is to be changed, or no query may stand
/// there. What stands in FROM, where no expression may, stays as it is.
pub fn answered(
    text: &str,
    standard: bool,
    last: Option<&str>,
    current: Option<&dyn Fn(&str) -> String>,
) -> Option<String> {
    Text::read(text, |text| replaced(text, standard, last, current))
}

fn replaced(
    text: Text<'_>,
    standard: bool,
    last: Option<&str>,
    current: Option<&dyn Fn(&str) -> String>,
) -> Option<String> {
    let tokens = Tokens::of(text, standard).ok()?;
    let words = Words::new(text.as_str(), &tokens.list);
    let parentheses = Parentheses::of(words);
    let place = |at: usize| words.tokens.get(at).copied();
    let is_query = |at: usize| {
        let first = words.slice(at).to_ascii_lowercase();
        words.kind(at) == TokenKind::Open || kinds::has(&first, Property::Queries)
    };
    let (mut out, mut from) = (String::with_capacity(text.len() + 256), 0);
    let mut in_query = is_query(0);
    for at in 0..words.len() {
        if words.kind(at) == TokenKind::Semicolon {
            in_query = is_query(at + 1);
        }
        let Some((begin, end)) = call_of(words, &parentheses, at, &["lastval", "currval"]) else {
            continue;
        };
        let start = place(begin)?.start;
        let in_from = begin > 0
            && words.any(begin - 1, &["from", "join", "lateral"])
            && !(begin > 1 && words.is(begin - 2, "distinct"));
        // Or within the argument of another question.
        if !in_query || in_from || start < from {
            continue;
        }
        let is_empty = end == at + 2;
        let asks_last = words.identifier(at).as_deref() == Some("lastval");
        let instead = match (asks_last, last, current) {
            (true, Some(last), _) if is_empty => last.into(),
            (false, _, Some(current)) if !is_empty => {
                current(text.get(place(at + 2)?.start..place(end - 1)?.end)?)
            }
            _ => continue,
        };
        out.push_str(text.get(from..start)?);
        out.push_str(&instead);
        from = place(end)?.end;
    }
    if from == 0 {
        return None;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// Returns the first token of the call of one of these built-in functions whose name is at a
/// token, and the token of its closing parenthesis.
fn call_of(
    words: Words<'_>,
    parentheses: &Parentheses,
    at: usize,
    functions: &[&str],
) -> Option<(usize, usize)> {
    let name = words.identifier(at)?;
    if !functions.contains(&&*name) || words.kind(at + 1) != TokenKind::Open {
        return None;
    }
    let qualified = at > 0 && words.kind(at - 1) == TokenKind::Dot;
    let begin = match qualified {
        false => at,
        true => {
            let schema = at.checked_sub(2)?;
            let twice = schema > 0 && words.kind(schema - 1) == TokenKind::Dot;
            let built_in = words.identifier(schema).as_deref() == Some("pg_catalog");
            (built_in && !twice).then_some(schema)?
        }
    };
    Some((begin, parentheses.end_of(at + 1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_takes_from_is_named_or_may_be_others() {
        let of = |text: &str| {
            let found = sequences(text);
            let names: Vec<String> = found.names.iter().map(ToString::to_string).collect();
            (names.join(" "), found.others)
        };
        for (text, names, others) in [
            (
                "select nextval('a'), pg_catalog.setval('s.\"B\"', 7, false)",
                "a s.\"B\"",
                false,
            ),
            (
                "insert into t values (nextval('a'::regclass), 'nextval(')",
                "a",
                false,
            ),
            ("select nextval($1)", "", true),
            ("select nextval('a' || $1)", "", true),
            ("select other.nextval('a')", "", false),
            ("select 1", "", false),
        ] {
            assert_eq!(of(text), (names.to_owned(), others), "{text}");
        }
    }

    #[test]
    fn what_is_known_stands_in_the_place_of_a_question() {
        let current = |argument: &str| format!("<{argument}>");
        let with = |text: &str| answered(text, true, Some("L"), Some(&current));
        for (text, instead) in [
            ("select lastval() as id, LastVal ( )", "select L as id, L"),
            (
                "select 'lastval()', pg_catalog.lastval()+1",
                "select 'lastval()', L+1",
            ),
            (
                "select currval('it''s') -- lastval()",
                "select <'it''s'> -- lastval()",
            ),
            (
                "insert into t values (5, \"currval\"( ('a') -- )\n))",
                "insert into t values (5, <('a')>)",
            ),
            (
                "select currval(pg_get_serial_sequence('t', $1))",
                "select <pg_get_serial_sequence('t', $1)>",
            ),
            (
                "create table t (a int default lastval()); select lastval()",
                "create table t (a int default lastval()); select L",
            ),
            (
                "select lastval() is distinct from lastval() from lastval()",
                "select L is distinct from L from lastval()",
            ),
        ] {
            assert_eq!(with(text).as_deref(), Some(instead), "{text}");
        }
        for not in [
            "select 'lastval()'",
            "select my_lastval(), s.lastval(), currval()",
            "select $a$lastval()$a$",
            "select lastval -- ()",
            "create table t (a int default currval('a'))",
            "call p(lastval())",
        ] {
            assert_eq!(with(not), None, "{not}");
        }
        assert_eq!(
            answered("select lastval()", true, None, Some(&current)),
            None
        );
    }
}
