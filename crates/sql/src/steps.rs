//! The statements of a text one by one: what each of them may commit, and which prepared statement
//! it names.
//!
//! The PostgreSQL frontend uses this for texts that it relays. Nothing here changes a text.

use std::ops::Range;

use crate::identifier::identifier;
use crate::kinds::{self, Property};
use crate::lex::{Token, TokenKind};
use crate::read::statements;
use crate::text::Text;
use crate::tokens::Tokens;
use crate::word::MAX_NAME;
use crate::words::Words;

/// The longest text that is cut into steps, in bytes.
const MAX_STEPS_TEXT: usize = 1 << 20;

/// A statement of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The effect of the statement on transactions.
    pub commits: Commits,
    /// The prepared statement that the statement names.
    pub names: Option<StatementName>,
    /// The bytes of the text from its first to its last token.
    pub place: Range<usize>,
}

/// The moment when the effect of a statement becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commits {
    /// Never: it concerns only the session or the transaction.
    Nothing,
    /// Outside of a transaction block, with the Sync or the simple query that it belongs to.
    AtSync,
    /// Outside of a transaction block, at any moment from its execution on.
    AtOnce,
    /// Never: it opens a transaction block.
    Opens,
    /// The statement commits the transaction block.
    Block,
    /// Never: it rolls the transaction block back.
    Undoes,
    /// Never: it rolls back to a savepoint, so a failed block continues.
    UndoesPart,
    /// In any state of the transaction.
    Anytime,
}

/// The name of a prepared statement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementName {
    /// The use that the text makes of the prepared statement.
    pub usage: NameUsage,
    /// The name as the server reads it: folded, and cut to 63 bytes. Empty for ALL.
    pub name: Box<str>,
    /// The whole name, if it was cut: the server sends a notice about that.
    pub whole: Option<Box<str>>,
    /// The range of the name in the text.
    pub place: Range<usize>,
}

/// The use that a text makes of a prepared statement that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUsage {
    /// `DEALLOCATE name`
    Deallocates,
    /// `DEALLOCATE ALL`
    DeallocatesAll,
    /// `EXECUTE name`, also within EXPLAIN and CREATE TABLE AS.
    Executes,
    /// `PREPARE name`
    Prepares,
}

/// Returns the statements of a text in their order. `None` if the cuts are uncertain: the meaning
/// depends on settings or on the server's version, or the text is longer than 1 MiB.
pub fn steps(text: &str) -> Option<Vec<Step>> {
    if text.len() > MAX_STEPS_TEXT {
        return None;
    }
    Text::read(text, |text| {
        let (found, backslash) = steps_as(text, true)?;
        // A string may end elsewhere where backslashes escape.
        let certain = !backslash || steps_as(text, false).is_some_and(|(other, _)| other == found);
        certain.then_some(found)
    })
}

fn steps_as(text: Text<'_>, standard: bool) -> Option<(Vec<Step>, bool)> {
    let tokens = Tokens::of(text, standard).ok()?;
    let found: Option<Vec<Step>> = statements(&tokens.list)
        .map(|statement| step(&text, statement))
        .collect();
    Some((found?, tokens.backslash))
}

fn step(text: &str, tokens: &[Token]) -> Option<Step> {
    let words = Words::new(text, tokens);
    // The semicolons of a body do not end statements of the text.
    if words.creates_with_a_body() {
        return None;
    }
    Some(Step {
        commits: commits(words),
        names: named(words),
        place: tokens.first()?.start..tokens.last()?.end,
    })
}

fn commits(words: Words<'_>) -> Commits {
    let at = words.after_work();
    if words.any(0, &["begin", "start"]) {
        return Commits::Opens;
    }
    if words.any(0, &["commit", "end", "rollback", "abort"]) && words.is(at, "prepared") {
        return Commits::Anytime;
    }
    if words.any(0, &["commit", "end"]) {
        return Commits::Block;
    }
    if words.any(0, &["rollback", "abort"]) {
        return match words.is(at, "to") {
            true => Commits::UndoesPart,
            false => Commits::Undoes,
        };
    }
    // The prepared statement that is executed may be a COMMIT.
    if words.is(0, "execute") || (words.is(0, "prepare") && words.is(1, "transaction")) {
        return Commits::Anytime;
    }
    if words.is(0, "set") && words.is(1, "constraints") {
        // It makes deferred triggers run.
        return Commits::AtSync;
    }
    let first = words.slice(0).to_ascii_lowercase();
    let has = |property| kinds::has(&first, property);
    match () {
        () if has(Property::Private) => Commits::Nothing,
        () if words.kind(0) == TokenKind::Open => Commits::AtSync,
        () if has(Property::Queries) || has(Property::WithSync) => Commits::AtSync,
        () => Commits::AtOnce,
    }
}

fn named(words: Words<'_>) -> Option<StatementName> {
    if words.is(0, "deallocate") {
        let at = 1 + usize::from(words.is(1, "prepare") && words.len() > 2);
        if words.is(at, "all") {
            return name_at(words, at, NameUsage::DeallocatesAll);
        }
        return name_at(words, at, NameUsage::Deallocates);
    }
    if words.is(0, "prepare") && !words.is(1, "transaction") {
        return name_at(words, 1, NameUsage::Prepares);
    }
    let execute = match () {
        () if words.is(0, "execute") => 0,
        () if words.is(0, "explain") => behind_explain(words)?,
        () => created_by(words, 0)?,
    };
    name_at(words, execute + 1, NameUsage::Executes)
}

/// Returns the place of EXECUTE in `EXPLAIN .. EXECUTE`.
fn behind_explain(words: Words<'_>) -> Option<usize> {
    let mut at = 1;
    if words.kind(1) == TokenKind::Open {
        at = 1 + (1..words.len()).find(|at| words.kind(*at) == TokenKind::Close)?;
    }
    while words.any(at, &["analyze", "analyse", "verbose"]) {
        at += 1;
    }
    match words.is(at, "execute") {
        true => Some(at),
        false => created_by(words, at),
    }
}

/// Returns the place of EXECUTE in `CREATE TABLE .. AS EXECUTE`, which begins at a token.
fn created_by(words: Words<'_>, from: usize) -> Option<usize> {
    if !words.is(from, "create") {
        return None;
    }
    let mut places = from + 1..words.len();
    let found = places.find(|at| words.is(*at, "as") && words.is(at + 1, "execute"));
    found.map(|at| at + 1)
}

fn name_at(words: Words<'_>, at: usize, usage: NameUsage) -> Option<StatementName> {
    let token = words.tokens.get(at)?;
    let (whole, last) = match usage {
        NameUsage::DeallocatesAll => (String::new(), at),
        _ => identifier(words, at)?,
    };
    let end = (0..=MAX_NAME)
        .rev()
        .find(|at| whole.is_char_boundary(*at))?;
    let name = whole.get(..end)?;
    Some(StatementName {
        usage,
        name: name.into(),
        whole: (name.len() < whole.len()).then(|| whole.as_str().into()),
        place: token.start..words.tokens.get(last)?.end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(NameUsage, String, String)> {
        let found = steps(text).unwrap();
        let names = found.into_iter().filter_map(|step| step.names);
        let place = |place: Range<usize>| text[place].to_owned();
        names
            .map(|named| (named.usage, named.name.into(), place(named.place)))
            .collect()
    }

    #[test]
    fn names_of_prepared_statements_are_found_wherever_the_grammar_has_them() {
        use NameUsage::{Deallocates, DeallocatesAll, Executes, Prepares};
        let long = "é".repeat(40);
        for (text, expected) in [
            ("deallocate One", vec![(Deallocates, "one", "One")]),
            (
                "/* a */ deallocate -- b\n prepare \"O\"\"n\";",
                vec![(Deallocates, "O\"n", "\"O\"\"n\"")],
            ),
            (
                "deallocate prepare",
                vec![(Deallocates, "prepare", "prepare")],
            ),
            ("deallocate prepare all", vec![(DeallocatesAll, "", "all")]),
            ("deallocate \"all\"", vec![(Deallocates, "all", "\"all\"")]),
            (
                "execute one (1, 'execute two')",
                vec![(Executes, "one", "one")],
            ),
            ("explain execute one", vec![(Executes, "one", "one")]),
            (
                "explain (analyze, costs off) execute one(1)",
                vec![(Executes, "one", "one")],
            ),
            (
                "explain analyze verbose execute one",
                vec![(Executes, "one", "one")],
            ),
            (
                "explain create table t as execute one",
                vec![(Executes, "one", "one")],
            ),
            (
                "create temp table t (a) as execute one(1) with no data",
                vec![(Executes, "one", "one")],
            ),
            (
                "prepare one (int) as select $1",
                vec![(Prepares, "one", "one")],
            ),
            (
                "deallocate U&\"\\0061\\+000062\\\\\"\"C\" ; execute u&\"d!00e9!D83D!de00!!\" uescape '!' (1)",
                vec![
                    (Deallocates, "ab\\\"C", "U&\"\\0061\\+000062\\\\\"\"C\""),
                    (
                        Executes,
                        "dé\u{1f600}!",
                        "u&\"d!00e9!D83D!de00!!\" uescape '!'",
                    ),
                ],
            ),
            ("execute U&\"\\006\"", vec![]),
            ("execute U&\"\\D83D\"", vec![]),
            ("execute U&\"\\0000\"", vec![]),
            ("execute U&\"a\" uescape '+'", vec![]),
            ("execute U&'a'", vec![]),
            ("prepare transaction 'one'", vec![]),
            ("select 'deallocate one', execute from execute", vec![]),
            ("create table execute as select 1", vec![]),
            (
                "SAVEPOINT x;DEALLOCATE \"_PLAN1\";RELEASE x; execute b",
                vec![(Deallocates, "_PLAN1", "\"_PLAN1\""), (Executes, "b", "b")],
            ),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(usage, name, place)| (usage, name.to_owned(), place.to_owned()))
                .collect();
            assert_eq!(names(text), expected, "{text}");
        }
        let cut = names(&format!("execute \"{long}\""));
        assert_eq!(cut[0].1, "é".repeat(31), "between characters");
        assert_eq!(
            names(&format!("execute {}", "A".repeat(70)))[0].1,
            "a".repeat(63)
        );
    }

    #[test]
    fn what_commits_is_told_by_its_words() {
        for (text, expected) in [
            ("begin", Commits::Opens),
            ("start transaction read only", Commits::Opens),
            ("commit", Commits::Block),
            ("end work", Commits::Block),
            ("commit and chain", Commits::Block),
            ("commit prepared 'x'", Commits::Anytime),
            ("prepare transaction 'x'", Commits::Anytime),
            ("rollback prepared 'x'", Commits::Anytime),
            ("rollback", Commits::Undoes),
            ("rollback to savepoint a", Commits::UndoesPart),
            ("rollback work to a", Commits::UndoesPart),
            ("savepoint a", Commits::Nothing),
            ("set x = 1", Commits::Nothing),
            ("set constraints all immediate", Commits::AtSync),
            ("insert into t values (1)", Commits::AtSync),
            ("(select f())", Commits::AtSync),
            ("copy t from stdin", Commits::AtSync),
            ("call p()", Commits::AtOnce),
            ("do 'x'", Commits::AtOnce),
            ("create table t ()", Commits::AtOnce),
            ("vacuum", Commits::AtOnce),
            ("execute a", Commits::Anytime),
        ] {
            assert_eq!(steps(text).unwrap()[0].commits, expected, "{text}");
        }
        assert_eq!(steps("select 'open"), None);
        assert_eq!(steps("select 'a\\'; commit; select 'b'"), None);
        assert_eq!(
            steps("create function f() begin atomic select 1; end"),
            None
        );
        assert_eq!(steps(" ; -- nothing").unwrap(), []);
    }
}
